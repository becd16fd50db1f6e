package leasehold.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/** Many threads at once. */
final class Workloads {
    private final RedissonClient client;
    private final Locks locks;

    Workloads(RedissonClient client, Locks locks) {
        this.client = client;
        this.locks = locks;
    }

    /**
     * {@code counter LOCK KIND KEY THREADS TIMES}: every thread adds one to the key so many times, reading and writing
     * in two steps, under the lock. Exact only if the lock excludes. Returns how often it added.
     */
    Object counter(Command command) throws InterruptedException {
        RLock lock = locks.of(command.verb(), command.name());
        RBucket<String> value = client.getBucket(command.text(0), StringCodec.INSTANCE);
        int times = command.size(2);
        return total(command.size(1), () -> {
            for (int i = 0; i < times; i++) {
                lock.lock();
                try {
                    String before = value.get();
                    value.set(String.valueOf(before == null ? 1 : Long.parseLong(before) + 1));
                } finally {
                    lock.unlock();
                }
            }
            return (long) times;
        });
    }

    /**
     * {@code pairs PREFIX KIND THREADS MILLISECONDS}: every thread locks and unlocks a lock of its own for so long.
     * Returns how many pairs there were in all.
     */
    Object pairs(Command command) throws InterruptedException {
        long end = System.nanoTime() + command.number(1) * 1_000_000;
        return total(command.size(0), () -> {
            RLock lock = locks.of(command.verb(), command.name() + Thread.currentThread().getId());
            long pairs = 0;
            while (System.nanoTime() - end < 0) {
                lock.lock();
                lock.unlock();
                pairs++;
            }
            return pairs;
        });
    }

    private static long total(int threads, Callable<Long> task) throws InterruptedException {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            List<Future<Long>> parts = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                parts.add(pool.submit(task));
            }
            long total = 0;
            for (Future<Long> part : parts) {
                total += part.get();
            }
            return total;
        } catch (ExecutionException error) {
            throw new IllegalStateException(error.getCause());
        } finally {
            pool.shutdownNow();
        }
    }
}
