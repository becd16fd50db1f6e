//! A network of the run's own, where root allows one, and walls in it.
//!
//! The program starts itself anew in a network namespace that has no name: it is gone with the last process in it,
//! however that ends, so there is nothing to clean up. All servers and workers are started from there and talk over its
//! loopback, and packets dropped there are nobody else's.
//!
//! Servers that speak to each other do so from addresses of their own ([`PEERS`] and those that follow it), so that a wall
//! can part a server from its peers and leave it to its clients. A wall drops packets without a word, as a broken network
//! does.

use std::{
    io::{self, Write as _},
    net::Ipv4Addr,
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
};

/// From where servers speak to each other: the first of a topology from here.
pub const PEERS: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);

/// All addresses that servers speak to each other from.
const NETWORK: &str = "127.0.1.0/24";

/// Names the process that lives in a network of its own: to start anew keeps the process id.
const MARK: &str = "LEASEHOLD_ENCLOSED";

/// What the network calls a wall: this, and the port that is walled in.
const TABLE: &str = "leasehold_wall";

/// Whom a server is parted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// From other servers: clients still reach it.
    Peers,
    /// From all.
    Everybody,
}

/// A server to be walled in.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Where clients find it, and peers that copy from it.
    pub port: u16,
    /// Where only its peers find it, if there is such a port, and from where it speaks to them itself.
    pub bus: Option<(u16, Ipv4Addr)>,
}

/// A wall around one server. Dropping it opens the way again.
#[derive(Debug)]
#[must_use]
pub struct Wall {
    /// Of the server that is walled in, while it is.
    port: Option<u16>,
}

/// Starts this program anew in a network of its own, unless it is there. Returns where that cannot be, and why.
///
/// # Errors
/// What is missing: there are no walls then.
pub fn enter() -> Result<(), String> {
    if is_enclosed() {
        return run("ip", &["link", "set", "lo", "up"]);
    }
    run("unshare", &["--net", "--", "nft", "list", "ruleset"]).map_err(|problem| {
        format!("no network of our own for partitions (it takes root, unshare, ip and nft): {problem}")
    })?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut anew = Command::new("unshare");
    anew.args(["--net", "--"]).arg(own).args(std::env::args_os().skip(1));
    // Only returns if it fails.
    Err(anew.env(MARK, std::process::id().to_string()).exec().to_string())
}

/// Whether walls can be put up.
pub fn is_enclosed() -> bool {
    std::env::var(MARK).is_ok_and(|process| process == std::process::id().to_string())
}

impl Wall {
    /// Parts the server on this port from others, at once. One wall around a server at a time.
    ///
    /// # Errors
    /// If this is not a network of our own, or it refuses.
    pub fn around(port: u16, from: From) -> io::Result<Self> {
        Self::around_all_of(Server { port, bus: None }, from)
    }

    /// The same for a server that has more than a port.
    ///
    /// # Errors
    /// As for [`around`](Self::around).
    pub fn around_all_of(server: Server, from: From) -> io::Result<Self> {
        if !is_enclosed() {
            return Err(io::Error::other("no walls are put up in a network that is not our own"));
        }
        firewall(&rules(server, from))?;
        Ok(Self { port: Some(server.port) })
    }

    /// Opens the way again.
    ///
    /// # Errors
    /// If the network refuses.
    pub fn open(mut self) -> io::Result<()> {
        self.port.take().map_or(Ok(()), |port| firewall(&open(port)))
    }
}

impl Drop for Wall {
    fn drop(&mut self) {
        if let Some(port) = self.port.take() {
            drop(firewall(&open(port)));
        }
    }
}

fn rules(server: Server, from: From) -> String {
    let port = server.port;
    let [to, back] = match from {
        From::Peers => [format!("ip saddr {NETWORK} "), format!("ip daddr {NETWORK} ")],
        From::Everybody => [String::new(), String::new()],
    };
    let mut drops = vec![format!("{to}tcp dport {port}"), format!("{back}tcp sport {port}")];
    if let Some((bus, own)) = server.bus {
        // What it says to its peers by itself comes from a port of the moment: only its address tells.
        drops.extend([format!("tcp dport {bus}"), format!("tcp sport {bus}")]);
        drops.extend([format!("ip saddr {own}"), format!("ip daddr {own}")]);
    }
    let drops: Vec<String> = drops.iter().map(|what| format!("  {what} drop\n")).collect();
    format!(
        "table inet {TABLE}_{port} {{\n chain input {{\n  type filter hook input priority 0;\n{} }}\n}}\n",
        drops.concat()
    )
}

fn open(port: u16) -> String {
    format!("delete table inet {TABLE}_{port}\n")
}

fn firewall(rules: &str) -> io::Result<()> {
    let mut nft =
        Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut input) = nft.stdin.take() {
        input.write_all(rules.as_bytes())?;
    }
    let ended = nft.wait_with_output()?;
    if ended.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("nft refused a wall: {}", String::from_utf8_lossy(&ended.stderr).trim())))
}

fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let ended = Command::new(program).args(words).stdin(Stdio::null()).output();
    let ended = ended.map_err(|error| format!("{program}: {error}"))?;
    if ended.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&ended.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wall_is_put_up_in_a_network_that_is_not_our_own() {
        assert!(Wall::around(1, From::Everybody).is_err());
    }

    #[test]
    fn a_wall_against_peers_leaves_clients_alone() {
        let server = Server { port: 7000, bus: None };
        let (peers, all) = (rules(server, From::Peers), rules(server, From::Everybody));
        assert_eq!(peers.matches(NETWORK).count(), 2);
        assert!(!all.contains(NETWORK) && all.contains("tcp dport 7000 drop"), "{all}");
    }

    #[test]
    fn a_wall_around_a_node_keeps_in_what_it_says_by_itself() {
        let server = Server { port: 7000, bus: Some((7001, PEERS)) };
        let wall = rules(server, From::Peers);
        for dropped in ["tcp dport 7001 drop", "ip saddr 127.0.1.1 drop", "ip daddr 127.0.1.1 drop"] {
            assert!(wall.contains(dropped), "{wall}");
        }
        assert!(!wall.contains("\n  tcp dport 7000 drop"), "clients still reach it: {wall}");
    }
}
