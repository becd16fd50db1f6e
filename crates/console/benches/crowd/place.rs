//! A Redis, and a console of it in a process of its own.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::Duration,
};

use leasehold::{Client, ClientId};
use leasehold_testkit::servers::redis::{Redis, Reply, Setup};

use crate::Outcome;

/// What takes a Redis longer than this is written down by it, in microseconds.
const SLOW: &str = "5000";

/// How often to look, and how often at most, until everything is told.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS: usize = 3000;

pub(crate) struct Place {
    redis: Redis,
    server: Child,
    /// Where the console listens.
    pub(crate) console: SocketAddr,
    name: &'static str,
}

impl Place {
    pub(crate) fn start(name: &'static str) -> Outcome<Self> {
        let setup = Setup::new()
            .with_setting("slowlog-log-slower-than", SLOW)
            .with_setting("slowlog-max-len", "1024");
        let redis = Redis::start_as(&setup).map_err(|error| error.to_string())?;
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.arg("serve").arg(redis.url()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().map_err(|error| error.to_string())?;
        let mut line = String::new();
        if let Some(said) = server.stdout.take() {
            BufReader::new(said).read_line(&mut line).map_err(|error| error.to_string())?;
        }
        let console = line.trim().parse().map_err(|_| "the console does not say where it listens")?;
        Ok(Self { redis, server, console, name })
    }

    /// The process of its Redis.
    pub(crate) fn pid(&self) -> u32 {
        self.redis.pid()
    }

    /// A client as any program has one.
    pub(crate) async fn client(&self) -> Outcome<Client> {
        leasehold::connect(&self.redis.url()).await.map_err(|error| error.to_string())
    }

    /// Completes when a client has told the store of all that it holds: its keeper does so a little later.
    pub(crate) async fn until_told(&self, client: ClientId, count: usize) -> Outcome<()> {
        let key = format!("leasehold_sites:{client}");
        for _ in 0..LOOKS {
            let told = self.redis.demand(&["HLEN", &key]).map_err(|error| error.to_string())?;
            if told == Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX)) {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(format!("{}: the client never told of all {count} that it holds", self.name))
    }

    /// What the slow log has, a line each.
    pub(crate) fn slow(&self) -> Outcome<Vec<String>> {
        let log = self.redis.demand(&["SLOWLOG", "GET", "1024"]).map_err(|error| error.to_string())?;
        let entry = |entry: &Reply| {
            let [_, _, Reply::Integer(took), command, ..] = entry.parts() else {
                return format!("{entry:?}");
            };
            let words: Vec<&str> = command.parts().iter().filter_map(Reply::text).take(4).collect();
            // Of a script in full, its first words will do.
            let words: String =
                words.join(" ").split('\n').next().unwrap_or_default().chars().take(80).collect();
            format!("{}: {took} µs: {words}", self.name)
        };
        Ok(log.parts().iter().map(entry).collect())
    }

    /// Memory of the console, in bytes.
    pub(crate) fn resident(&self) -> Outcome<usize> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.id()));
        let status = status.map_err(|error| format!("the console is gone: {error}"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        let kilobytes = line.trim().trim_end_matches(" kB").parse::<usize>();
        kilobytes.map(|kilobytes| kilobytes * 1024).map_err(|_| "this system does not tell memory".to_owned())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}
