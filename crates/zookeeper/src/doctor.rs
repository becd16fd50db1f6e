//! The examination of an ensemble: is it set up so that its locks are worth what they promise?
//!
//! What the ensemble is made of is read from its own node, what each server says of itself by the four-letter command
//! `srvr`. A server that answers neither is not an error: what could not be seen is said in a note.

use std::time::Duration;

use leasehold_core::backend::Finding;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{config::ZooKeeperConfig, session::Session};

/// How long a server may take to say what it is.
const PATIENCE: Duration = Duration::from_secs(2);

/// The most that a server says.
const MOST: u64 = 64 * 1024;

/// The voting servers of the ensemble, as it says itself; none if it does not.
pub(crate) async fn members(session: &Session) -> Vec<String> {
    let Ok((data, _)) = session.answered(session.client.get_config()).await else { return Vec::new() };
    members_in(&String::from_utf8_lossy(&data))
}

fn members_in(config: &str) -> Vec<String> {
    let lines = config.lines().filter(|line| line.starts_with("server.") && !line.contains(":observer"));
    lines.map(str::to_owned).collect()
}

/// Examines the ensemble, the session and each server we know.
pub(crate) async fn examine(session: &Session, config: &ZooKeeperConfig) -> Vec<Finding> {
    let mut findings = vec![
        judge_members(members(session).await.len()),
        judge_session(config.session_timeout, session.client.session_timeout()),
        judge_rights(config.credentials.is_some()),
    ];
    let hosts =
        config.servers.iter().map(|server| server.rsplit_once(':').map_or(server.as_str(), |(host, _)| host));
    findings.extend(Finding::unencrypted(hosts).map(|finding| {
        finding.remedy("keep it within a network that others cannot hear: there is no TLS here")
    }));
    for server in &config.servers {
        let said = tokio::time::timeout(PATIENCE, srvr(server)).await;
        findings.push(judge_server(server, said.ok().and_then(Result::ok).as_deref()));
    }
    findings
}

fn judge_members(count: usize) -> Finding {
    const TOPIC: &str = "ensemble-size";
    match count {
        0 | 1 => Finding::warning(TOPIC, "this is one server, not an ensemble")
            .because("no lock can be had while it is down, and its locks are gone with its disk")
            .remedy("run three servers or five"),
        2 => Finding::warning(TOPIC, "the ensemble has two voting servers")
            .because("both are a majority of two: either one down stops all locks")
            .remedy("add a third"),
        count if count.is_multiple_of(2) => {
            Finding::note(TOPIC, format!("the ensemble has {count} voting servers"))
                .because("an even number bears no more failures than one server less")
        }
        count => Finding::good(TOPIC, format!("the ensemble has {count} voting servers")),
    }
}

fn judge_session(asked: Duration, given: Duration) -> Finding {
    const TOPIC: &str = "session-timeout";
    let most = given / 2;
    let what = format!("the server gives sessions of {given:?}, so no lease is longer than {most:?}");
    if given >= asked {
        return Finding::good(TOPIC, what);
    }
    Finding::note(TOPIC, format!("{what} ({asked:?} were asked for)"))
        .because("a longer ttl is cut to that and renewed more often; nothing is less safe")
        .remedy("raise maxSessionTimeout (20 ticks unless set), or ask for less with session_timeout")
}

fn judge_rights(has_credentials: bool) -> Finding {
    const TOPIC: &str = "rights";
    if has_credentials {
        return Finding::good(TOPIC, "our nodes are made for our user alone");
    }
    Finding::note(TOPIC, "we are nobody in particular, and whatever we make is everybody's")
        .because("any program that reaches the ensemble can delete locks")
        .remedy("connect with zookeeper://user:password@host, or keep the network closed")
}

fn judge_server(server: &str, said: Option<&str>) -> Finding {
    const TOPIC: &str = "server";
    let line = |word: &str| said.and_then(|said| said.lines().find_map(|line| line.strip_prefix(word)));
    let (Some(version), Some(mode)) = (line("Zookeeper version: "), line("Mode: ")) else {
        return Finding::note(TOPIC, format!("{server} does not say what it is"))
            .because("it is down, is without a quorum, or its command srvr is not allowed")
            .remedy("allow it with 4lw.commands.whitelist=srvr, or look at its log");
    };
    let version = version.split(['-', ',']).next().unwrap_or(version);
    let numbers: Vec<u32> = version.split('.').filter_map(|part| part.parse().ok()).collect();
    if numbers < vec![3, 5] {
        return Finding::danger(TOPIC, format!("{server} is ZooKeeper {version}"))
            .because("containers came with 3.5; before that no name can be locked")
            .remedy("upgrade it");
    }
    if mode.contains("read-only") {
        return Finding::warning(TOPIC, format!("{server} is read-only: it has lost its ensemble"))
            .because("it grants nothing until it is back")
            .remedy("see to the network between the servers");
    }
    Finding::good(TOPIC, format!("{server} is ZooKeeper {version}, {mode}"))
}

/// What a server says of itself.
async fn srvr(server: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(b"srvr").await?;
    let mut said = String::new();
    stream.take(MOST).read_to_string(&mut said).await?;
    Ok(said)
}

#[cfg(test)]
mod tests {
    use leasehold_core::backend::Severity::{self, Good, Note, Warning};

    use super::*;

    #[test]
    fn an_ensemble_is_better_than_one_server() {
        let severities = [0, 1, 2, 3, 4, 5].map(|count| judge_members(count).severity);
        assert_eq!(severities, [Warning, Warning, Warning, Good, Note, Good]);
        let config = "server.1=a:1:2:participant;0.0.0.0:3\nserver.2=b:1:2:observer;0.0.0.0:3\nversion=0";
        assert_eq!(members_in(config).len(), 1);
    }

    #[test]
    fn a_server_is_judged_by_what_it_says() {
        let said =
            |version: &str, mode: &str| format!("Zookeeper version: {version}-x, built on y\nMode: {mode}\n");
        let severity = |said: Option<&str>| judge_server("a:2181", said).severity;
        assert_eq!(severity(Some(&said("3.8.0", "leader"))), Severity::Good);
        assert_eq!(severity(Some(&said("3.4.14", "leader"))), Severity::Danger);
        assert_eq!(severity(Some(&said("3.8.0", "read-only"))), Severity::Warning);
        assert_eq!(
            severity(Some("This ZooKeeper instance is not currently serving requests")),
            Severity::Note
        );
        assert_eq!(severity(None), Severity::Note);
    }
}
