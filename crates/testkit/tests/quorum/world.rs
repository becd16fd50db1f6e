//! Stores that can be restarted without their data, as members of quorums whose every request can be made to fail.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold_core::{
    ClaimId, Client, ErrorKind, Key, Result,
    backend::{
        Backend, Cell, CellPage, CellWrite, Expect, LockPage, LockState, Memory, Quorum, QuorumOptions,
        RecordStore, Recorded, StoreInfo,
        record::{Answer, Step},
    },
    time::Clock,
};
use leasehold_testkit::scripted::{Fault, Script, ScriptedRecords, Verb};

/// Every request of a lock's life.
pub(crate) const REQUESTS: [Verb; 9] = [
    Verb::Attempt,
    Verb::Raise,
    Verb::Renew,
    Verb::Recount,
    Verb::Release,
    Verb::Break,
    Verb::Inspect,
    Verb::List,
    Verb::Changed,
];

/// Independent stores on one clock that only the test moves.
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) stores: Vec<Recorded<Forgetful>>,
}

impl World {
    pub(crate) fn new(count: usize) -> Self {
        let clock = Clock::test();
        let stores = (0..count).map(|_| Recorded::new(Forgetful::new(clock.clone()))).collect();
        Self { clock, stores }
    }

    /// One script for each of so many members.
    pub(crate) fn scripts(count: usize) -> Vec<Script> {
        (0..count).map(|_| Script::new()).collect()
    }

    /// A quorum of all stores, as another process would have it, whose members play these scripts; none is no faults.
    pub(crate) fn quorum(&self, scripts: &[Script]) -> Quorum {
        let none = Self::scripts(self.stores.len());
        let scripts = if scripts.is_empty() { &none[..] } else { scripts };
        let member = |(store, script): (&Recorded<Forgetful>, &Script)| {
            Arc::new(ScriptedRecords::new(store.clone(), script.clone())) as Arc<dyn Backend>
        };
        let members = self.stores.iter().zip(scripts).map(member).collect();
        Quorum::new(members, QuorumOptions::default().with_clock(self.clock.clone())).unwrap()
    }

    /// A client of such a quorum.
    pub(crate) fn client(&self, scripts: &[Script]) -> Client {
        Client::builder(self.quorum(scripts)).clock(self.clock.clone()).build()
    }

    /// What each store itself has under a name: how many holders.
    pub(crate) async fn held(&self, name: &str) -> Vec<usize> {
        let mut held = Vec::new();
        for at in 0..self.stores.len() {
            held.push(self.seen(at, name).await.map_or(0, |state| state.holders.len()));
        }
        held
    }

    pub(crate) async fn seen(&self, at: usize, name: &str) -> Option<LockState> {
        self.stores[at].inspect(&Key::new("", name).unwrap()).await.unwrap()
    }

    /// Restarts a store, which has nothing of what it had.
    pub(crate) fn restart(&self, at: usize) {
        let forgetful = self.stores[at].store();
        *forgetful.inner.lock().unwrap() = Memory::with_clock(self.clock.clone());
    }

    /// Completes when something is so; fails if that never comes.
    pub(crate) async fn eventually(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        for _ in 0..10_000 {
            if is_so().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it never came to be: {what}");
    }

    /// Completes when nobody holds or waits for a name at any store.
    pub(crate) async fn until_empty(&self, name: &str) {
        let is_empty = async || {
            for at in 0..self.stores.len() {
                if self.seen(at, name).await.is_some() {
                    return false;
                }
            }
            true
        };
        self.eventually("nothing is left at any store", is_empty).await;
    }
}

/// These members refuse everything from now on.
pub(crate) fn fail(scripts: &[Script]) {
    always(scripts, Fault::Err(ErrorKind::Unavailable));
    // A script has a bell that cannot be heard ring for nothing; one of a store that is down is silent.
    for script in scripts {
        script.always(Verb::Changed, Fault::Never);
    }
}

/// All members are well again.
pub(crate) fn heal(scripts: &[Script]) {
    for script in scripts {
        script.heal();
    }
}

/// This happens to every request to these members from now on.
pub(crate) fn always(scripts: &[Script], fault: Fault) {
    for script in scripts {
        for verb in REQUESTS {
            script.always(verb, fault);
        }
    }
}

/// A memory store that can lose everything at once.
#[derive(Debug)]
pub(crate) struct Forgetful {
    info: StoreInfo,
    inner: Mutex<Recorded<Memory>>,
}

impl Forgetful {
    fn new(clock: Clock) -> Self {
        let inner = Memory::with_clock(clock);
        Self { info: inner.info().clone(), inner: Mutex::new(inner) }
    }

    fn now(&self) -> Recorded<Memory> {
        self.inner.lock().unwrap().clone()
    }
}

impl RecordStore for Forgetful {
    type Bell = <Memory as RecordStore>::Bell;

    fn info(&self) -> &StoreInfo {
        &self.info
    }

    async fn apply(&self, key: &Key, step: Step) -> Result<Answer> {
        self.now().store().apply(key, step).await
    }

    fn bell(&self, key: &Key, id: ClaimId) -> Self::Bell {
        self.now().store().bell(key, id)
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        self.now().store().inspect(key).await
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        self.now().store().list(prefix, cursor, limit).await
    }

    async fn read_cell(&self, name: &str) -> Result<Option<Cell>> {
        self.now().store().read_cell(name).await
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        self.now().store().write_cell(name, expect, value, ttl).await
    }

    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
        self.now().store().list_cells(prefix, cursor, limit).await
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }
}
