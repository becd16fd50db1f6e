package leasehold.interop;

import java.util.Arrays;
import java.util.List;

/**
 * One line: {@code TAG THREAD OBJECT NAME VERB ARGUMENT…}, separated by single blanks. What is missing at the end is
 * empty. Names therefore hold no blanks; anything else is allowed in them.
 */
record Command(String tag, String thread, String object, String name, String verb, List<String> arguments) {
    private static final int FIXED = 5;

    static Command parse(String line) {
        String[] words = line.strip().split(" +");
        String[] fixed = Arrays.copyOf(words, FIXED);
        for (int i = words.length; i < FIXED; i++) {
            fixed[i] = "";
        }
        List<String> arguments = words.length <= FIXED ? List.of() : List.of(words).subList(FIXED, words.length);
        return new Command(fixed[0], fixed[1], fixed[2], fixed[3], fixed[4], arguments);
    }

    /** How many arguments follow the verb. */
    int count() {
        return arguments.size();
    }

    String text(int index) {
        if (index >= arguments.size()) {
            throw new IllegalArgumentException(object + " " + verb + " needs an argument more");
        }
        return arguments.get(index);
    }

    long number(int index) {
        return Long.parseLong(text(index));
    }

    int size(int index) {
        return Math.toIntExact(number(index));
    }

    IllegalArgumentException unknown() {
        return new IllegalArgumentException("no such verb of " + object + ": " + verb);
    }
}
