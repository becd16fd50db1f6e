package leasehold.interop;

/** Which object a command is for. */
final class Objects {
    private final Locks locks;
    private final Counters counters;
    private final Limiters limiters;
    private final Workloads workloads;

    Objects(Clients clients) {
        locks = new Locks(clients);
        counters = new Counters(clients.first());
        limiters = new Limiters(clients.first());
        workloads = new Workloads(clients.first(), locks);
    }

    /** Does what the command says, on the thread that calls, and returns what Redisson returned. */
    Object run(Command command) throws InterruptedException {
        return switch (command.object()) {
            case "semaphore" -> counters.semaphore(command);
            case "permits" -> counters.permits(command);
            case "latch" -> counters.latch(command);
            case "limiter" -> limiters.run(command);
            case "counter" -> workloads.counter(command);
            case "pairs" -> workloads.pairs(command);
            case "fenced" -> locks.fenced(command);
            default -> locks.run(command);
        };
    }
}
