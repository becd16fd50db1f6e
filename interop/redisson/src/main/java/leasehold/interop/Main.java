package leasehold.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * Redisson on a lead: commands come in by standard input, one to a line, answers go out by standard output.
 *
 * <p>An answer is written when its command has finished, so answers of different threads come in any order; the tag
 * tells them apart. Commands of one thread run one after the other, on one Java thread, as Redisson's owners are
 * threads. At the end of the input the process is gone at once, releasing nothing: that is what a peer that dies does.
 *
 * <p>The language is in README.md.
 */
public final class Main {
    /** The thread name of commands to this program itself. */
    private static final String SELF = "-";

    private final Clients clients;
    private final Objects objects;
    private final Map<String, Worker> workers = new ConcurrentHashMap<>();

    private Main(Clients clients) {
        this.clients = clients;
        this.objects = new Objects(clients);
    }

    public static void main(String[] arguments) throws IOException {
        Main main;
        try {
            main = new Main(Clients.connect(arguments));
        } catch (RuntimeException error) {
            Answer.ready().failed(error).write();
            Runtime.getRuntime().halt(1);
            return;
        }
        Answer.ready().with("client", main.clients.first().getId()).with("redisson", Clients.version()).write();
        main.serve();
        Runtime.getRuntime().halt(0);
    }

    private void serve() throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            if (line.isBlank()) {
                continue;
            }
            Command command = Command.parse(line);
            if (command.thread().equals(SELF)) {
                obey(command);
            } else {
                worker(command.thread()).add(command);
            }
        }
    }

    private Worker worker(String name) {
        return workers.computeIfAbsent(name, missing -> new Worker(missing, objects));
    }

    /** Commands to the program itself: they never block the line. */
    private void obey(Command command) {
        Answer answer = Answer.to(command);
        try {
            switch (command.object()) {
                case "await" -> await(command, answer);
                case "interrupt" -> {
                    worker(command.name()).interrupt();
                    answer.returned(null).write();
                }
                case "thread" -> answer.returned(worker(command.name()).getId()).write();
                case "shutdown" -> {
                    clients.shutdown();
                    answer.returned(null).write();
                }
                default -> throw new IllegalArgumentException("no such command: " + command.object());
            }
        } catch (RuntimeException error) {
            answer.failed(error).write();
        }
    }

    /** Whether everything that thread was told to do before now is done, or done within so long. */
    private void await(Command command, Answer answer) {
        CompletableFuture<Boolean> done = worker(command.name()).idle().thenApply(nothing -> true);
        long patience = Long.parseLong(command.verb());
        done.completeOnTimeout(false, patience, TimeUnit.MILLISECONDS)
                .thenAccept(finished -> answer.returned(finished).write());
    }
}
