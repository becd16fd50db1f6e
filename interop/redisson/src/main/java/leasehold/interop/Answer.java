package leasehold.interop;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * One answer, a line of JSON. {@code began} and {@code ended} are nanoseconds of the monotonic clock of the machine
 * (on Linux the same for every process on it), so what happened in two processes can be put in order.
 */
final class Answer {
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    private final Map<String, Object> fields = new LinkedHashMap<>();

    private Answer(String tag) {
        fields.put("tag", tag);
    }

    /** The answer that says that the program is there. */
    static Answer ready() {
        return new Answer("ready");
    }

    static Answer to(Command command) {
        return new Answer(command.tag()).with("began", System.nanoTime());
    }

    Answer with(String field, Object value) {
        fields.put(field, value);
        return this;
    }

    Answer returned(Object value) {
        return with("ended", System.nanoTime()).with("value", value);
    }

    Answer failed(Throwable error) {
        return with("ended", System.nanoTime())
                .with("error", error.getClass().getSimpleName())
                .with("message", message(error));
    }

    /** What it says, and what the exceptions below it say: Redisson wraps what matters. */
    private static String message(Throwable error) {
        StringBuilder message = new StringBuilder(String.valueOf(error.getMessage()));
        for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause()) {
            message.append("; because of ").append(cause.getClass().getSimpleName()).append(": ").append(cause.getMessage());
        }
        return message.toString();
    }

    void write() {
        String line = json(fields);
        synchronized (OUT) {
            OUT.println(line);
            OUT.flush();
        }
    }

    private static String json(Object value) {
        if (value instanceof Map<?, ?> map) {
            return braced("{", "}", map.entrySet().stream().map(e -> quote(e.getKey()) + ":" + json(e.getValue())).toList());
        }
        if (value instanceof List<?> list) {
            return braced("[", "]", list.stream().map(Answer::json).toList());
        }
        boolean plain = value == null || value instanceof Number || value instanceof Boolean;
        return plain ? String.valueOf(value) : quote(value);
    }

    private static String braced(String open, String close, List<String> parts) {
        return open + String.join(",", parts) + close;
    }

    private static String quote(Object text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toString().toCharArray()) {
            if (c == '"' || c == '\\') {
                quoted.append('\\').append(c);
            } else if (c < ' ') {
                quoted.append(String.format("\\u%04x", (int) c));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append('"').toString();
    }
}
