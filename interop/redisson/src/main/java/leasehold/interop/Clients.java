package leasehold.interop;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.BaseMasterSlaveServersConfig;
import org.redisson.config.Config;

/**
 * The connections, as the command line says: {@code single ADDRESS…}, {@code sentinel PRIMARY ADDRESS…},
 * {@code cluster ADDRESS…} or {@code fixed PRIMARY REPLICA…}, and settings {@code watchdog=MILLISECONDS},
 * {@code fairwait=MILLISECONDS}, {@code idle=CONNECTIONS} anywhere.
 *
 * <p>Several single servers are several clients: the first serves everything, all of them serve {@code redlock}.
 */
final class Clients {
    /** Connections kept open from the start. Few, because tests start many clients; more are opened when needed. */
    private static final int IDLE = 2;

    private final List<RedissonClient> all;

    private Clients(List<RedissonClient> all) {
        this.all = all;
    }

    static Clients connect(String[] arguments) {
        Map<String, String> settings = new LinkedHashMap<>();
        List<String> words = new ArrayList<>();
        for (String argument : arguments) {
            int equals = argument.indexOf('=');
            if (equals > 0) {
                settings.put(argument.substring(0, equals), argument.substring(equals + 1));
            } else {
                words.add(argument);
            }
        }
        if (words.size() < 2) {
            throw new IllegalArgumentException("which server? say: single ADDRESS, for example");
        }
        String topology = words.get(0);
        List<String> rest = words.subList(1, words.size());
        List<RedissonClient> clients = new ArrayList<>();
        if (topology.equals("single")) {
            rest.forEach(address -> clients.add(open(settings, config -> single(config, address, settings))));
        } else {
            clients.add(open(settings, config -> many(config, topology, rest, settings)));
        }
        return new Clients(clients);
    }

    RedissonClient first() {
        return all.get(0);
    }

    List<RedissonClient> all() {
        return all;
    }

    void shutdown() {
        all.forEach(RedissonClient::shutdown);
    }

    static String version() {
        String jar = Redisson.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        return jar.replaceAll("^.*redisson-|\\.jar$", "");
    }

    private interface Setup {
        void apply(Config config);
    }

    private static RedissonClient open(Map<String, String> settings, Setup setup) {
        Config config = new Config();
        setup.apply(config);
        if (settings.containsKey("watchdog")) {
            config.setLockWatchdogTimeout(Long.parseLong(settings.get("watchdog")));
        }
        if (settings.containsKey("fairwait")) {
            fairWait(config, Long.parseLong(settings.get("fairwait")));
        }
        return Redisson.create(config);
    }

    private static void single(Config config, String address, Map<String, String> settings) {
        config.useSingleServer().setAddress(address).setConnectionMinimumIdleSize(idle(settings));
    }

    private static void many(Config config, String topology, List<String> words, Map<String, String> settings) {
        String[] addresses = words.toArray(String[]::new);
        String[] others = words.subList(1, words.size()).toArray(String[]::new);
        BaseMasterSlaveServersConfig<?> servers =
                switch (topology) {
                    // One sentinel is enough for a test that kills the others.
                    case "sentinel" -> config.useSentinelServers()
                            .setMasterName(words.get(0))
                            .setCheckSentinelsList(false)
                            .addSentinelAddress(others);
                    case "cluster" -> config.useClusterServers().addNodeAddress(addresses);
                    case "fixed" -> config.useMasterSlaveServers()
                            .setMasterAddress(words.get(0))
                            .addSlaveAddress(others);
                    default -> throw new IllegalArgumentException("no such topology: " + topology);
                };
        servers.setMasterConnectionMinimumIdleSize(idle(settings)).setSlaveConnectionMinimumIdleSize(idle(settings));
    }

    private static int idle(Map<String, String> settings) {
        return Integer.parseInt(settings.getOrDefault("idle", String.valueOf(IDLE)));
    }

    /** By name, because the setting came in the course of 3.x; before, the wait is a constant. */
    private static void fairWait(Config config, long milliseconds) {
        try {
            Config.class.getMethod("setFairLockWaitTimeout", long.class).invoke(config, milliseconds);
        } catch (ReflectiveOperationException error) {
            throw new IllegalArgumentException("this Redisson has no setting for the wait of fair locks", error);
        }
    }
}
