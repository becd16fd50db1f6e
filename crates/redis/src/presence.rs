//! Presence: who a client is and what it waits for, beside a layout that has no room for either.
//!
//! A client introduces itself with its first request: one more command in the same write, not waited for, and again
//! before it is forgotten. Those who wait are noted in a hash of the name, each for a short time; a heartbeat notes
//! them again. Who a client is never changes, so answers are remembered and a busy answer costs at most one more read.
//! Everything here expires by itself, and nothing is granted or refused by it: it is for people, and lets a crowd know that
//! it is one (`crowd.rs`).

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use leasehold_core::{
    ClaimId, ClientId, Operation, Result, Who,
    backend::{ClaimSpec, Mode, Sign, Standing},
};
use serde_json::json;

use crate::{
    answer,
    connect::{Topology, Weight},
    error::Fault,
    names, scripts, sites,
};

/// How long an introduction lasts at least.
const KNOWN: Duration = Duration::from_secs(60);

/// How long a note of somebody waiting is believed; a heartbeat comes every ten seconds.
const BELIEVED: Duration = Duration::from_secs(35);

/// How long it is remembered that nobody knows a client.
const UNKNOWN: Duration = Duration::from_secs(1);

/// More than this is not remembered.
const MEMORY: usize = 4096;

/// What a store remembers about clients, its own and others.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    introduced: Mutex<HashMap<ClientId, Instant>>,
    told: Mutex<HashMap<ClaimId, (Standing, Instant)>>,
    /// Claims that wait at the store. Others of this process may wait behind them; to Redis they are one.
    standing: Mutex<HashSet<ClaimId>>,
    known: Mutex<HashMap<ClientId, Known>>,
}

/// Who a client is, if anybody knows, and when that was asked.
type Known = (Option<Arc<Who>>, Instant);

impl Presence {
    /// Introduces who is behind a claim, if that is not known well enough. Not waited for.
    pub(crate) fn introduce(&self, topology: &dyn Topology, spec: &ClaimSpec) {
        self.refresh(topology, spec.id.client(), &spec.who, spec.ttl + KNOWN);
    }

    fn refresh(&self, topology: &dyn Topology, client: ClientId, who: &Who, lasts: Duration) {
        let now = Instant::now();
        {
            let mut introduced = lock(&self.introduced);
            if introduced.get(&client).is_some_and(|until| *until >= now + lasts / 2) {
                return;
            }
            if introduced.len() >= MEMORY {
                introduced.clear();
            }
            introduced.insert(client, now + lasts);
        }
        let Ok(text) = serde_json::to_string(who) else { return };
        let key = names::who(client);
        let mut command = redis::cmd("SET");
        command.arg(&key).arg(text).arg("PX").arg(lasts.as_millis() as u64);
        topology.node(&key).wire.tell(command);
    }

    /// A claim begins to wait at the store. If its wait was announced while it stood behind another of this process, it
    /// is noted now.
    pub(crate) fn stands(&self, topology: &dyn Topology, id: ClaimId) {
        lock(&self.standing).insert(id);
        if let Some((standing, since)) = lock(&self.told).get(&id) {
            let name = standing.key.full();
            let since = since.elapsed();
            let command = scripts::STANDS.by_text(|command| fill_note(command, standing, since));
            topology.node(name).wire.tell(command);
        }
    }

    /// It waits no more.
    pub(crate) fn stands_no_more(&self, id: ClaimId) {
        lock(&self.standing).remove(&id);
    }

    /// Whether somebody is noted as waiting.
    pub(crate) fn is_told(&self, id: ClaimId) -> bool {
        let told = lock(&self.told);
        !told.is_empty() && told.contains_key(&id)
    }

    /// Forgets that somebody waits; whoever asks tells the server.
    pub(crate) fn forget(&self, id: ClaimId) {
        lock(&self.told).remove(&id);
    }

    /// Takes note of who holds and who waits, and gives a sign of life for those noted before.
    pub(crate) async fn announce(&self, topology: &dyn Topology, who: &Who, signs: &[Sign]) -> Result<()> {
        self.refresh(topology, who.client, who, KNOWN);
        sites::tell(topology, who, signs);
        let now = Instant::now();
        let mut ended = Vec::new();
        {
            let mut told = lock(&self.told);
            for sign in signs {
                match sign {
                    Sign::Stands { standing, age } if standing.fence.is_none() => {
                        let since = now.checked_sub(*age).unwrap_or(now);
                        told.insert(standing.id, (standing.clone(), since));
                    }
                    // A holder is seen in the lock itself; it may have been noted as waiting for it.
                    Sign::Stands { standing, .. } | Sign::Ended(standing) => {
                        let was_told = told.remove(&standing.id).is_some();
                        if was_told || standing.fence.is_none() {
                            ended.push(standing.clone());
                        }
                    }
                }
            }
        }
        let waits: Vec<_> = {
            let (told, standing) = (lock(&self.told), lock(&self.standing));
            let own = told.values().filter(|(noted, _)| noted.id.client() == who.client);
            own.filter(|(noted, _)| standing.contains(&noted.id)).cloned().collect()
        };
        let notes = join_all(waits.iter().map(|(standing, since)| note(topology, standing, now - *since)));
        let removals = join_all(ended.iter().map(|standing| unnote(topology, standing)));
        let (notes, removals) = tokio::join!(notes, removals);
        let failed = notes.into_iter().chain(removals).find_map(std::result::Result::err);
        failed.map_or(Ok(()), |fault| Err(fault.into_error(Operation::Inspect)))
    }

    /// Who these clients are, each asked for at most once; those nobody knows are described as such.
    pub(crate) async fn known(
        &self,
        topology: &dyn Topology,
        clients: impl IntoIterator<Item = ClientId>,
    ) -> HashMap<ClientId, Option<Arc<Who>>> {
        let now = Instant::now();
        let mut found = HashMap::new();
        let mut asked = Vec::new();
        {
            let known = lock(&self.known);
            for client in clients {
                match known.get(&client) {
                    Some((who, at)) if who.is_some() || now < *at + UNKNOWN => {
                        found.insert(client, who.clone());
                    }
                    _ if asked.contains(&client) => {}
                    _ => asked.push(client),
                }
            }
        }
        let answers = join_all(asked.iter().map(|client| ask(topology, *client))).await;
        let mut known = lock(&self.known);
        if known.len() >= MEMORY {
            known.clear();
        }
        for (client, who) in asked.into_iter().zip(answers) {
            known.insert(client, (who.clone(), now));
            found.insert(client, who);
        }
        found
    }
}

async fn ask(topology: &dyn Topology, client: ClientId) -> Option<Arc<Who>> {
    let key = names::who(client);
    let mut command = redis::cmd("GET");
    command.arg(&key);
    let answer = topology.call(&key, command).await.ok()?;
    introduction(client, &answer).map(Arc::new)
}

/// What a client said of itself; nothing if that is not readable, or is about another.
fn introduction(client: ClientId, answer: &redis::Value) -> Option<Who> {
    let who: Who = serde_json::from_slice(answer::bytes(answer)?).ok()?;
    (who.client == client).then_some(who)
}

async fn note(topology: &dyn Topology, standing: &Standing, age: Duration) -> Result<(), Fault> {
    let fill = |command: &mut redis::Cmd| fill_note(command, standing, age);
    topology.run(standing.key.full(), Weight::Plain, &scripts::STANDS, fill).await.map(drop)
}

fn fill_note(command: &mut redis::Cmd, standing: &Standing, age: Duration) {
    let label = standing.label.as_deref().unwrap_or("");
    command.arg(1).arg(standing.key.full()).arg(standing.id.to_string()).arg(age.as_millis() as u64);
    command.arg(BELIEVED.as_millis() as u64).arg(wants(standing.mode)).arg(label);
}

async fn unnote(topology: &dyn Topology, standing: &Standing) -> Result<(), Fault> {
    let name = standing.key.full();
    topology.call(name, removal(name, standing.id)).await.map(drop)
}

/// The command that removes the note of one who waits.
pub(crate) fn removal(name: &str, id: ClaimId) -> redis::Cmd {
    let mut command = redis::cmd("HDEL");
    command.arg(names::waits(name)).arg(id.to_string());
    command
}

/// What is wanted, as a word.
fn wants(mode: Mode) -> String {
    match mode {
        Mode::Shared => "shared".to_owned(),
        Mode::Permits { take, of } => format!("{take}/{of}"),
        Mode::Open => "open".to_owned(),
        _ => "exclusive".to_owned(),
    }
}

/// What was wanted, from its word.
pub(crate) fn wanted(word: &str) -> Mode {
    let permits = || {
        let (take, of) = word.split_once('/')?;
        Some(Mode::Permits { take: take.parse().ok()?, of: of.parse().ok()? })
    };
    match word {
        "shared" => Mode::Shared,
        "open" => Mode::Open,
        _ => permits().unwrap_or(Mode::Exclusive),
    }
}

/// A client nobody introduced: another program, or one of ours that is long gone.
pub(crate) fn stranger(client: ClientId) -> Arc<Who> {
    let who = json!({ "client": client, "host": "unknown", "pid": 0, "user": "unknown", "program": "another program" });
    serde_json::from_value(who).map_or_else(|_| Arc::new(Who::here()), Arc::new)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::{prelude::any, proptest, test_runner::Config};
    use redis::Value;

    use super::*;
    use crate::fuzz;

    const CLIENT: &str = "01234567-89ab-cdef-0011-223344556677";

    proptest! {
        #![proptest_config(Config { cases: 500, failure_persistence: None, ..Config::default() })]

        #[test]
        fn whatever_is_wanted_survives_its_word((take, of) in any::<(NonZeroU32, NonZeroU32)>()) {
            for mode in [Mode::Exclusive, Mode::Shared, Mode::Open, Mode::Permits { take, of }] {
                assert_eq!(wanted(&wants(mode)), mode);
            }
        }

        #[test]
        fn any_word_is_a_want(word in "[0-9+-]{0,11}/[0-9+-]{0,11}|.{0,20}") {
            let mode = wanted(&word);
            assert_eq!(wanted(&wants(mode)), mode);
        }

        #[test]
        fn any_introduction_is_read_as_it_was_written(
            host in ".{0,20}", user in ".{0,20}", program in ".{0,20}", pid in any::<u32>(),
        ) {
            let client = CLIENT.parse().unwrap();
            let mut who = Who::here().with_program(&program);
            (who.client, who.host, who.user, who.pid) = (client, host.into(), user.into(), pid);
            let text = Value::BulkString(serde_json::to_vec(&who).unwrap());
            assert_eq!(introduction(client, &text).as_ref(), Some(&who));
            assert_eq!(introduction(ClientId::random(), &text), None, "it is about another");
        }

        #[test]
        fn nothing_that_is_found_as_an_introduction_makes_reading_panic(
            value in fuzz::value(), at in any::<proptest::sample::Index>(), byte in any::<u8>(),
        ) {
            let client = CLIENT.parse().unwrap();
            drop(introduction(client, &value));
            let mut who = Who::here();
            who.client = client;
            let mut text = serde_json::to_vec(&who).unwrap();
            let at = at.index(text.len());
            text[at] = byte;
            if let Some(read) = introduction(client, &Value::BulkString(text)) {
                let again = Value::BulkString(serde_json::to_vec(&read).unwrap());
                assert_eq!(introduction(client, &again), Some(read));
            }
        }
    }
}
