package leasehold.interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.stream.Stream;
import org.redisson.RedissonMultiLock;
import org.redisson.RedissonRedLock;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Everything that is a lock to Redisson: one set of verbs for all kinds, and tokens for the fenced one. */
final class Locks {
    /** Redisson's word for "as long as the watchdog renews it". */
    private static final long WATCHDOG = -1;

    private final Clients clients;

    Locks(Clients clients) {
        this.clients = clients;
    }

    /** The lock of that kind. A multi lock's name is the names of its locks, with commas between. */
    RLock of(String kind, String name) {
        RedissonClient client = clients.first();
        return switch (kind) {
            case "lock" -> client.getLock(name);
            case "fair" -> client.getFairLock(name);
            case "read" -> client.getReadWriteLock(name).readLock();
            case "write" -> client.getReadWriteLock(name).writeLock();
            case "spin" -> client.getSpinLock(name);
            case "fenced" -> client.getFencedLock(name);
            case "multi" -> new RedissonMultiLock(Stream.of(name.split(",")).map(client::getLock).toArray(RLock[]::new));
            case "redlock" -> new RedissonRedLock(clients.all().stream().map(one -> one.getLock(name)).toArray(RLock[]::new));
            default -> throw new IllegalArgumentException("no such object: " + kind);
        };
    }

    Object run(Command command) throws InterruptedException {
        RLock lock = of(command.object(), command.name());
        switch (command.verb()) {
            case "lock" -> {
                lock.lock(lease(command, 0), MILLISECONDS);
                return null;
            }
            case "lockInterruptibly" -> {
                lock.lockInterruptibly(lease(command, 0), MILLISECONDS);
                return null;
            }
            case "unlock" -> {
                lock.unlock();
                return null;
            }
            default -> {
                return ask(command, lock);
            }
        }
    }

    private static Object ask(Command command, RLock lock) throws InterruptedException {
        return switch (command.verb()) {
            case "tryLock" -> command.count() == 0
                    ? lock.tryLock()
                    : lock.tryLock(command.number(0), lease(command, 1), MILLISECONDS);
            case "forceUnlock" -> lock.forceUnlock();
            case "isLocked" -> lock.isLocked();
            case "isHeld" -> lock.isHeldByCurrentThread();
            case "holdCount" -> lock.getHoldCount();
            case "ttl" -> lock.remainTimeToLive();
            default -> throw command.unknown();
        };
    }

    Object fenced(Command command) throws InterruptedException {
        RFencedLock lock = clients.first().getFencedLock(command.name());
        return switch (command.verb()) {
            case "lockToken" -> command.count() == 0
                    ? lock.lockAndGetToken()
                    : lock.lockAndGetToken(command.number(0), MILLISECONDS);
            case "tryLockToken" -> command.count() == 0
                    ? lock.tryLockAndGetToken()
                    : lock.tryLockAndGetToken(command.number(0), lease(command, 1), MILLISECONDS);
            case "token" -> lock.getToken();
            default -> run(command);
        };
    }

    private static long lease(Command command, int index) {
        return index < command.count() ? command.number(index) : WATCHDOG;
    }
}
