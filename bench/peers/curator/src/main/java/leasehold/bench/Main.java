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
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's InterProcessMutex, whose waiters are woken: a thread for each task. Speaks the protocol of ../README.md, of
 * which it knows version, counter and turns.
 */
public final class Main {
    private static final double[] QUANTILES = {0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999};
    private static final BufferedReader IN =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    private Main() {
    }

    public static void main(String[] words) throws Exception {
        switch (words[1]) {
            case "version" -> System.out.println('"' + version() + '"');
            case "counter" -> counter(connect(words[0]), Integer.parseInt(words[2]));
            case "turns" -> turns(connect(words[0]));
            default -> throw new IllegalArgumentException("no scenario is called " + words[1]);
        }
        // Not an orderly end: those who wait for a lock would wait on.
        Runtime.getRuntime().halt(0);
    }

    private static String version() throws IOException {
        Properties properties = new Properties();
        String place = "/META-INF/maven/org.apache.curator/curator-recipes/pom.properties";
        try (var file = Main.class.getResourceAsStream(place)) {
            properties.load(file);
        }
        return properties.getProperty("version");
    }

    private static CuratorFramework connect(String url) throws Exception {
        String servers = url.substring("zookeeper://".length());
        CuratorFramework client = CuratorFrameworkFactory.newClient(
            servers, 30_000, 15_000, new ExponentialBackoffRetry(1000, 3));
        client.start();
        client.blockUntilConnected();
        // More than other languages need: what is measured is compiled by then.
        InterProcessMutex lock = lock(client, "bench:warm:" + ProcessHandle.current().pid());
        for (int round = 0; round < 500; round++) {
            lock.acquire();
            lock.release();
        }
        return client;
    }

    private static InterProcessMutex lock(CuratorFramework client, String name) {
        return new InterProcessMutex(client, "/peer-curator/" + name);
    }

    private static void counter(CuratorFramework client, int tasks) throws Exception {
        FileChannel number = FileChannel.open(
            Path.of(System.getenv("BENCH_COUNTER")), StandardOpenOption.READ, StandardOpenOption.WRITE);
        InterProcessMutex lock = lock(client, "bench:counter");
        ready();
        long[] waits = new long[tasks];
        double cpu = cpu();
        long began = System.nanoTime();
        List<Thread> threads = new ArrayList<>();
        for (int task = 0; task < tasks; task++) {
            int own = task;
            Thread thread = new Thread(() -> waits[own] = increment(lock, number));
            thread.setDaemon(true);
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        say(tasks, (System.nanoTime() - began) / 1e9, cpu() - cpu, waits);
    }

    /** How long the wait was, in nanoseconds. */
    private static long increment(InterProcessMutex lock, FileChannel number) {
        try {
            long asked = System.nanoTime();
            lock.acquire();
            long waited = System.nanoTime() - asked;
            try {
                ByteBuffer digits = ByteBuffer.allocate(20);
                number.read(digits, 0);
                long before = Long.parseLong(new String(digits.array(), StandardCharsets.US_ASCII));
                Thread.yield();
                String after = String.format(Locale.ROOT, "%020d", before + 1);
                number.write(ByteBuffer.wrap(after.getBytes(StandardCharsets.US_ASCII)), 0);
            } finally {
                lock.release();
            }
            return waited;
        } catch (Exception exception) {
            throw new IllegalStateException(exception);
        }
    }

    private static void turns(CuratorFramework client) throws Exception {
        InterProcessMutex lock = lock(client, "bench:turns");
        ready();
        for (String word = IN.readLine(); word != null; word = IN.readLine()) {
            long at;
            if (word.equals("acquire")) {
                lock.acquire();
                at = System.nanoTime();
            } else {
                at = System.nanoTime();
                lock.release();
            }
            System.out.println(at);
        }
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
