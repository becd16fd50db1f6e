package leasehold.interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.redisson.api.RRateLimiter;
import org.redisson.api.RateIntervalUnit;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;

/** Rate limiters: so many permits in so many milliseconds, for all clients together or for each. */
final class Limiters {
    private final RedissonClient client;

    Limiters(RedissonClient client) {
        this.client = client;
    }

    Object run(Command command) {
        RRateLimiter limiter = client.getRateLimiter(command.name());
        return switch (command.verb()) {
            case "trySet" -> rate(limiter, command, RateType.OVERALL);
            case "trySetEach" -> rate(limiter, command, RateType.PER_CLIENT);
            case "set" -> {
                limiter.setRate(RateType.OVERALL, command.number(0), command.number(1), RateIntervalUnit.MILLISECONDS);
                yield null;
            }
            case "acquire" -> {
                limiter.acquire(permits(command));
                yield null;
            }
            case "tryAcquire" -> command.count() < 2
                    ? limiter.tryAcquire(permits(command))
                    : limiter.tryAcquire(permits(command), command.number(1), MILLISECONDS);
            case "available" -> limiter.availablePermits();
            default -> throw command.unknown();
        };
    }

    private static boolean rate(RRateLimiter limiter, Command command, RateType type) {
        return limiter.trySetRate(type, command.number(0), command.number(1), RateIntervalUnit.MILLISECONDS);
    }

    private static long permits(Command command) {
        return command.count() == 0 ? 1 : command.number(0);
    }
}
