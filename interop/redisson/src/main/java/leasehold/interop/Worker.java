package leasehold.interop;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;

/** A named thread, which is an owner to Redisson. It does what it is told, in order, and says when each is done. */
final class Worker extends Thread {
    private final Objects objects;
    private final BlockingQueue<Runnable> orders = new LinkedBlockingQueue<>();
    private CompletableFuture<Void> last = CompletableFuture.completedFuture(null);

    Worker(String name, Objects objects) {
        super(name);
        this.objects = objects;
        setDaemon(true);
        start();
    }

    synchronized void add(Command command) {
        CompletableFuture<Void> done = new CompletableFuture<>();
        last = done;
        orders.add(() -> {
            obey(command);
            done.complete(null);
        });
    }

    /** Completes when all that was added so far is done. */
    synchronized CompletableFuture<Void> idle() {
        return last.copy();
    }

    @Override
    public void run() {
        while (true) {
            try {
                orders.take().run();
            } catch (InterruptedException nothingToInterrupt) {
                // Told to stop when it was doing nothing: so it is.
            }
        }
    }

    private void obey(Command command) {
        Answer answer = Answer.to(command).with("thread", getId());
        try {
            answer.returned(objects.run(command));
        } catch (Exception | Error error) {
            answer.failed(error);
        }
        // An interrupt is for one command; what is left of it must not reach the next.
        Thread.interrupted();
        answer.write();
    }
}
