package leasehold.interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.List;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** What is a number to Redisson: semaphores, semaphores whose permits expire, latches. */
final class Counters {
    private final RedissonClient client;

    Counters(RedissonClient client) {
        this.client = client;
    }

    Object semaphore(Command command) throws InterruptedException {
        RSemaphore semaphore = client.getSemaphore(command.name());
        switch (command.verb()) {
            case "acquire" -> semaphore.acquire(amount(command));
            case "release" -> semaphore.release(amount(command));
            case "addPermits" -> semaphore.addPermits(command.size(0));
            case "tryAcquire" -> {
                return command.count() < 2
                        ? semaphore.tryAcquire(amount(command))
                        : semaphore.tryAcquire(amount(command), command.number(1), MILLISECONDS);
            }
            case "trySet" -> {
                return semaphore.trySetPermits(command.size(0));
            }
            case "available" -> {
                return semaphore.availablePermits();
            }
            case "drain" -> {
                return semaphore.drainPermits();
            }
            default -> throw command.unknown();
        }
        return null;
    }

    /** Permits have names: acquiring returns one, releasing needs it. */
    Object permits(Command command) throws InterruptedException {
        RPermitExpirableSemaphore semaphore = client.getPermitExpirableSemaphore(command.name());
        switch (command.verb()) {
            case "release" -> semaphore.release(command.text(0));
            case "releaseAll" -> semaphore.release(List.copyOf(command.arguments()));
            case "addPermits" -> semaphore.addPermits(command.size(0));
            case "set" -> semaphore.setPermits(command.size(0));
            default -> {
                return ask(command, semaphore);
            }
        }
        return null;
    }

    private static Object ask(Command command, RPermitExpirableSemaphore semaphore) throws InterruptedException {
        return switch (command.verb()) {
            case "acquire" -> command.count() == 0
                    ? semaphore.acquire()
                    : semaphore.acquire(command.number(0), MILLISECONDS);
            case "acquireMany" -> semaphore.acquire(command.size(0), command.number(1), MILLISECONDS);
            case "tryAcquire" -> command.count() == 0
                    ? semaphore.tryAcquire()
                    : semaphore.tryAcquire(command.number(0), command.number(1), MILLISECONDS);
            case "tryRelease" -> semaphore.tryRelease(command.text(0));
            case "update" -> semaphore.updateLeaseTime(command.text(0), command.number(1), MILLISECONDS);
            case "trySet" -> semaphore.trySetPermits(command.size(0));
            case "available" -> semaphore.availablePermits();
            case "acquired" -> semaphore.acquiredPermits();
            case "all" -> semaphore.getPermits();
            default -> throw command.unknown();
        };
    }

    Object latch(Command command) throws InterruptedException {
        RCountDownLatch latch = client.getCountDownLatch(command.name());
        switch (command.verb()) {
            case "countDown" -> latch.countDown();
            case "trySet" -> {
                return latch.trySetCount(command.number(0));
            }
            case "count" -> {
                return latch.getCount();
            }
            case "delete" -> {
                return latch.delete();
            }
            case "await" -> {
                if (command.count() > 0) {
                    return latch.await(command.number(0), MILLISECONDS);
                }
                latch.await();
                return true;
            }
            default -> throw command.unknown();
        }
        return null;
    }

    private static int amount(Command command) {
        return command.count() == 0 ? 1 : command.size(0);
    }
}
