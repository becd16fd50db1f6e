//! Which Redisson, connected to what.

use std::time::Duration;

/// What a small machine that runs several of them can bear; speed is not what tests ask for.
const MODEST: &[&str] = &["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-Xshare:auto"];

/// Which release of Redisson. The numbers are in `interop/redisson/pom.xml`; a process says its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// The newest there was when this was written.
    Newest,
    /// One of the 3.2x line.
    Old,
}

impl Version {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Newest, Self::Old];

    /// The name of its Maven profile, and of the folder it is built into.
    pub(crate) fn profile(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Old => "old",
        }
    }
}

/// The servers and settings of one Redisson client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Config {
    servers: Vec<String>,
    settings: Vec<String>,
    machine: Vec<String>,
}

impl Config {
    /// One server, by URL (`redis://127.0.0.1:6379`).
    pub fn single(url: &str) -> Self {
        Self::singles(&[url])
    }

    /// Independent servers, for [`Thread::redlock`](crate::Thread::redlock). Everything else is on the first.
    pub fn singles(urls: &[&str]) -> Self {
        Self::new("single", None, urls)
    }

    /// The servers that these sentinels (URLs) watch under this name.
    pub fn sentinel(primary: &str, sentinels: &[&str]) -> Self {
        Self::new("sentinel", Some(primary), sentinels)
    }

    /// The cluster that these nodes (URLs) belong to.
    pub fn cluster(nodes: &[&str]) -> Self {
        Self::new("cluster", None, nodes)
    }

    /// A primary with replicas (URLs), in roles that never change.
    pub fn fixed(primary: &str, replicas: &[&str]) -> Self {
        Self::new("fixed", Some(primary), replicas)
    }

    fn new(topology: &str, first: Option<&str>, urls: &[&str]) -> Self {
        let servers = [topology].into_iter().chain(first).chain(urls.iter().copied());
        let machine = MODEST.iter().map(|option| (*option).to_owned()).collect();
        Self { servers: servers.map(str::to_owned).collect(), settings: Vec::new(), machine }
    }

    /// How long a lock taken without a lease lives without renewal. Redisson renews after a third of it.
    pub fn with_watchdog(self, timeout: Duration) -> Self {
        self.with("watchdog", timeout)
    }

    /// How long a waiter for a fair lock keeps its place. [`Version::Old`] has no such setting and does not start.
    pub fn with_fair_wait(self, wait: Duration) -> Self {
        self.with("fairwait", wait)
    }

    /// The options of the Java machine, in place of modest ones. For measurements: none.
    pub fn with_machine(self, options: &[&str]) -> Self {
        Self { machine: options.iter().map(|option| (*option).to_owned()).collect(), ..self }
    }

    fn with(mut self, setting: &str, value: Duration) -> Self {
        self.settings.push(format!("{setting}={}", value.as_millis()));
        self
    }

    /// Options of the machine itself.
    pub(crate) fn machine(&self) -> &[String] {
        &self.machine
    }

    /// Arguments of the program.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &String> {
        self.servers.iter().chain(&self.settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(config: &Config) -> Vec<&str> {
        config.arguments().map(String::as_str).collect()
    }

    #[test]
    fn every_topology_is_said_as_the_program_reads_it() {
        assert_eq!(arguments(&Config::single("redis://a")), ["single", "redis://a"]);
        assert_eq!(arguments(&Config::sentinel("m", &["redis://a"])), ["sentinel", "m", "redis://a"]);
        assert_eq!(
            arguments(&Config::cluster(&["redis://a", "redis://b"])),
            ["cluster", "redis://a", "redis://b"]
        );
        let fixed = Config::fixed("redis://a", &["redis://b"]).with_watchdog(Duration::from_secs(3));
        assert_eq!(arguments(&fixed), ["fixed", "redis://a", "redis://b", "watchdog=3000"]);
    }
}
