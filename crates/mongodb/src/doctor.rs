//! The examination of a MongoDB: is it set up so that its locks are worth what they promise?
//!
//! Everything is asked for with commands that every user may send, or that a user may lack the right to: what could not
//! be seen is said in a note. What was seen is judged by pure functions. It changes nothing.

use leasehold_core::{Result, backend::Finding};
use mongodb::bson::{Document, doc};

use crate::{
    connect::{self, Kind},
    desk::Desk,
    error::Effect,
};

pub(crate) async fn examine(desk: &Desk, hears: Option<bool>) -> Result<Vec<Finding>> {
    let hello = desk.ask(doc! { "hello": 1 }).await?;
    let build = desk.ask(doc! { "buildInfo": 1 }).await?;
    let mut findings =
        vec![version(build.get_str("version").unwrap_or_default()), members(&hello), wakes(hears)];
    findings.push(match desk.ask(doc! { "replSetGetConfig": 1 }).await {
        Ok(config) => journal(&config),
        Err(_) if connect::kind(&hello) == Kind::Single => single_journal(),
        Err(_) => Finding::note("journal", "the settings of the set could not be read")
            .because(
                "a majority that confirms before its journals are written can forget a lock in a power cut",
            )
            .remedy("let an administrator check writeConcernMajorityJournalDefault")
            .command("rs.conf().writeConcernMajorityJournalDefault"),
    });
    findings.push(sweeping(desk).await?);
    findings.extend(encryption(&desk.exposed));
    Ok(findings)
}

fn encryption(exposed: &[String]) -> Option<Finding> {
    let finding = Finding::unencrypted(exposed.iter().map(String::as_str))?;
    Some(finding.remedy("let the servers require TLS, and add tls=true to the store URL"))
}

fn version(text: &str) -> Finding {
    const TOPIC: &str = "version";
    let major: u32 = text.split('.').next().and_then(|major| major.parse().ok()).unwrap_or_default();
    if major >= 5 {
        return Finding::good(TOPIC, format!("MongoDB {text} has all that locks need"));
    }
    Finding::danger(TOPIC, format!("MongoDB {text} is older than 5.0"))
        .because("it is not tested, and may read or write documents otherwise")
        .remedy("upgrade it")
}

/// How many servers may fail.
fn members(hello: &Document) -> Finding {
    const TOPIC: &str = "members";
    if hello.get_str("msg").is_ok_and(|message| message == "isdbgrid") {
        return Finding::note(TOPIC, "the locks are behind a router; its shards were not examined")
            .remedy("run this against each shard that has the collection");
    }
    let count = |list: &str| hello.get_array(list).map_or(0, Vec::len);
    let (full, arbiters) = (count("hosts") + count("passives"), count("arbiters"));
    match (connect::kind(hello), full, arbiters) {
        (Kind::Single, ..) => Finding::warning(TOPIC, "a single server, without replicas")
            .because("while it is down there are no locks, and if its data is lost two may hold one")
            .remedy("use a replica set of three"),
        (_, ..=2, _) => Finding::warning(TOPIC, format!("a replica set with {full} members that keep data"))
            .because("when one of them is down no lock can be taken: a majority confirms nothing")
            .remedy("add members until there are three that keep data"),
        (_, _, 0) => Finding::good(TOPIC, format!("a replica set of {full}")),
        _ => Finding::note(TOPIC, format!("a replica set of {full}, with an arbiter"))
            .because("an arbiter votes and confirms nothing: fewer failures than it seems stop all locks")
            .remedy("replace it by a member that keeps data"),
    }
}

fn wakes(hears: Option<bool>) -> Finding {
    const TOPIC: &str = "wake-ups";
    match hears {
        None => Finding::note(
            TOPIC,
            "a single server has no change streams; those who wait look again by themselves",
        )
        .because("a lock passes on later than it could, and waiting costs requests"),
        Some(true) => Finding::good(TOPIC, "those who wait are woken by a change stream"),
        Some(false) => {
            Finding::warning(TOPIC, "there is no change stream; those who wait look again by themselves")
                .because("a lock passes on later than it could, and waiting costs requests")
                .remedy("let our user follow changes of the collection (the action changeStream)")
        }
    }
}

fn journal(config: &Document) -> Finding {
    const TOPIC: &str = "journal";
    let settings = config.get_document("config");
    let journals = settings.and_then(|settings| settings.get_bool("writeConcernMajorityJournalDefault"));
    if journals.is_ok_and(|journals| !journals) {
        return Finding::warning(TOPIC, "members confirm before they have written their journals")
            .because("a power cut of several members at once can take back a lock that was granted")
            .remedy("set writeConcernMajorityJournalDefault to true")
            .command("cfg = rs.conf(); cfg.writeConcernMajorityJournalDefault = true; rs.reconfig(cfg)");
    }
    Finding::good(TOPIC, "a majority writes its journals before a lock is granted")
}

fn single_journal() -> Finding {
    Finding::good("journal", "the server writes its journal before a lock is granted")
}

async fn sweeping(desk: &Desk) -> Result<Finding> {
    const TOPIC: &str = "sweeping";
    let locks = desk.locks.clone();
    let names = desk.run(Effect::None, async move { locks.list_index_names().await }).await?;
    if names.iter().any(|name| name.starts_with("sweep")) {
        return Ok(Finding::good(TOPIC, "names that nobody uses any more are removed after a day"));
    }
    Ok(Finding::warning(TOPIC, "the index that removes unused names is gone")
        .because("every name that was ever locked stays for ever")
        .remedy("open the store again: it makes the index"))
}

#[cfg(test)]
mod tests {
    use leasehold_core::backend::Severity;

    use super::*;

    #[test]
    fn a_set_is_judged_by_what_it_can_lose() {
        let set = |hosts: usize, arbiters: usize| {
            let list = |count: usize| vec!["h:1"; count];
            members(&doc! { "setName": "rs0", "hosts": list(hosts), "arbiters": list(arbiters) }).severity
        };
        assert_eq!(set(3, 0), Severity::Good);
        assert_eq!(set(5, 0), Severity::Good);
        assert_eq!(set(3, 1), Severity::Note);
        assert_eq!(set(2, 1), Severity::Warning);
        assert_eq!(set(1, 0), Severity::Warning);
        assert_eq!(members(&doc! {}).severity, Severity::Warning);
        assert_eq!(members(&doc! { "msg": "isdbgrid" }).severity, Severity::Note);
    }

    #[test]
    fn what_weakens_locks_is_told() {
        assert_eq!(version("6.0.5").severity, Severity::Good);
        assert_eq!(version("4.4.0").severity, Severity::Danger);
        assert_eq!(version("").severity, Severity::Danger);
        let config = |journal: bool| doc! { "config": { "writeConcernMajorityJournalDefault": journal } };
        assert_eq!(journal(&config(false)).severity, Severity::Warning);
        assert_eq!(journal(&config(true)).severity, Severity::Good);
        assert_eq!(wakes(Some(false)).severity, Severity::Warning);
        let exposed = |host: &str| encryption(&["localhost".to_owned(), host.to_owned()]);
        assert!(exposed("127.0.0.1").is_none() && exposed("db.example").is_some());
    }
}
