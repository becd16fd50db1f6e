package leasehold.bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntConsumer;
import java.util.stream.Collectors;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson, whose waiters are woken: a thread for each task. Speaks the protocol of ../README.md. */
public final class Main {
    private static final double[] QUANTILES = {0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999};
    private static final BufferedReader IN =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    private final String url;
    private final int tasks;
    private final double seconds;
    private volatile boolean measuring;
    private volatile boolean over;

    private Main(String url, int tasks, double seconds) {
        this.url = url;
        this.tasks = tasks;
        this.seconds = seconds;
    }

    public static void main(String[] words) throws Exception {
        Main main = new Main(words[0], Integer.parseInt(words[2]), Double.parseDouble(words[3]));
        switch (words[1]) {
            case "version" -> System.out.println('"' + version() + '"');
            case "pairs" -> main.pairs();
            case "counter" -> main.counter(0);
            case "hold" -> main.counter(1);
            case "turns" -> main.turns();
            case "waiters" -> main.waiters();
            default -> throw new IllegalArgumentException("no scenario is called " + words[1]);
        }
        // Not an orderly end: those who wait for a lock would wait on.
        Runtime.getRuntime().halt(0);
    }

    private static String version() throws IOException {
        Properties properties = new Properties();
        try (var file = Main.class.getResourceAsStream("/META-INF/maven/org.redisson/redisson/pom.properties")) {
            properties.load(file);
        }
        return properties.getProperty("version");
    }

    private RedissonClient connect() {
        Config config = new Config();
        config.useSingleServer().setAddress(url);
        return Redisson.create(config);
    }

    /** More than other languages need: what is measured is compiled by then. */
    private static void warm(RedissonClient client) {
        RLock lock = client.getLock("bench:warm:" + ProcessHandle.current().pid());
        for (int round = 0; round < 2000; round++) {
            lock.lock();
            lock.unlock();
        }
    }

    private void pairs() throws Exception {
        RedissonClient client = connect();
        warm(client);
        ready();
        AtomicLong[] done = new AtomicLong[tasks];
        List<List<Long>> latencies = new ArrayList<>();
        for (int number = 0; number < tasks; number++) {
            done[number] = new AtomicLong();
            latencies.add(new ArrayList<>());
        }
        List<Thread> threads = start(number -> {
            RLock lock = client.getLock("bench:" + number);
            while (!over) {
                long began = System.nanoTime();
                lock.lock();
                lock.unlock();
                done[number].incrementAndGet();
                if (measuring) {
                    latencies.get(number).add(System.nanoTime() - began);
                }
            }
        });
        Thread.sleep(300);
        long before = sum(done);
        double cpu = cpu();
        long began = System.nanoTime();
        measuring = true;
        Thread.sleep((long) (seconds * 1000));
        measuring = false;
        double length = (System.nanoTime() - began) / 1e9;
        long pairs = sum(done) - before;
        cpu = cpu() - cpu;
        over = true;
        for (Thread thread : threads) {
            thread.join();
        }
        say(pairs, length, cpu, latencies.stream().flatMapToLong(all -> all.stream().mapToLong(one -> one)).toArray());
    }

    private void counter(long pause) throws Exception {
        RedissonClient client = connect();
        warm(client);
        FileChannel number = FileChannel.open(
            Path.of(System.getenv("BENCH_COUNTER")), StandardOpenOption.READ, StandardOpenOption.WRITE);
        ready();
        long[] waits = new long[tasks];
        double cpu = cpu();
        long began = System.nanoTime();
        List<Thread> threads = start(task -> {
            RLock lock = client.getLock("bench:counter");
            long asked = System.nanoTime();
            lock.lock();
            waits[task] = System.nanoTime() - asked;
            try {
                increment(number, pause);
            } finally {
                lock.unlock();
            }
        });
        for (Thread thread : threads) {
            thread.join();
        }
        say(tasks, (System.nanoTime() - began) / 1e9, cpu() - cpu, waits);
    }

    private static void increment(FileChannel number, long pause) {
        try {
            ByteBuffer digits = ByteBuffer.allocate(20);
            number.read(digits, 0);
            long before = Long.parseLong(new String(digits.array(), StandardCharsets.US_ASCII));
            if (pause > 0) {
                Thread.sleep(pause);
            } else {
                Thread.yield();
            }
            String after = String.format(Locale.ROOT, "%020d", before + 1);
            number.write(ByteBuffer.wrap(after.getBytes(StandardCharsets.US_ASCII)), 0);
        } catch (IOException | InterruptedException exception) {
            throw new IllegalStateException(exception);
        }
    }

    private void turns() throws IOException {
        RedissonClient client = connect();
        warm(client);
        RLock lock = client.getLock("bench:turns");
        ready();
        for (String word = IN.readLine(); word != null; word = IN.readLine()) {
            long at;
            if (word.equals("acquire")) {
                lock.lock();
                at = System.nanoTime();
            } else {
                at = System.nanoTime();
                lock.unlock();
            }
            System.out.println(at);
        }
    }

    private void waiters() throws Exception {
        RedissonClient holder = connect();
        RedissonClient client = connect();
        warm(client);
        holder.getLock("bench:waiters").lock();
        AtomicLong got = new AtomicLong();
        start(number -> {
            client.getLock("bench:waiters").lock();
            got.incrementAndGet();
        });
        Thread.sleep(1000);
        ready();
        double cpu = cpu();
        long began = System.nanoTime();
        Thread.sleep((long) (seconds * 1000));
        say(got.get(), (System.nanoTime() - began) / 1e9, cpu() - cpu, new long[0]);
    }

    private List<Thread> start(IntConsumer work) {
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < tasks; number++) {
            int own = number;
            Thread thread = new Thread(() -> work.accept(own));
            thread.setDaemon(true);
            threads.add(thread);
            thread.start();
        }
        return threads;
    }

    private static long sum(AtomicLong[] all) {
        return Arrays.stream(all).mapToLong(AtomicLong::get).sum();
    }

    private static double cpu() {
        var system = ManagementFactory.getPlatformMXBean(com.sun.management.OperatingSystemMXBean.class);
        return system.getProcessCpuTime() / 1e9;
    }

    private static void ready() throws IOException {
        System.out.println("ready");
        IN.readLine();
    }

    private static void say(long done, double seconds, double cpu, long[] nanos) {
        Arrays.sort(nanos);
        String micros = nanos.length == 0 ? "" : Arrays.stream(QUANTILES)
            .mapToObj(share -> String.valueOf(nanos[(int) ((nanos.length - 1) * share)] / 1e3))
            .collect(Collectors.joining(","));
        System.out.printf(Locale.ROOT, "{\"done\":%d,\"seconds\":%f,\"cpu\":%f,\"micros\":[%s]}%n",
            done, seconds, cpu, micros);
    }
}
