//! What a store that fails in odd ways does to what is written down beside the locks, and what one that says odd things
//! does to the locks themselves.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use leasehold_core::{
    ClaimId, Client, ClientId, Error, ErrorKind, Key, Operation, Result, State,
    backend::{
        Backend, BreakOutcome, Broken, Cell, CellPage, CellWrite, Claim, ClaimSpec, Expect, LatchStep,
        LockPage, LockState, Loss, Memory, Mode, Release, Renew, Renewal, Rumour, Rumours, StoreInfo,
    },
    time::Clock,
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// The store in memory, with faults.
struct Fragile {
    store: Box<dyn Backend>,
    faults: Arc<Faults>,
}

impl std::fmt::Debug for Fragile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.store.fmt(f)
    }
}

#[derive(Default)]
struct Faults {
    /// Writing a cell panics.
    panics: AtomicBool,
    /// A break is done, and its answer lost.
    loses: AtomicBool,
    /// What is heard of a client's locks, once.
    rumours: Mutex<Option<Rumours>>,
    /// The leases that somebody wanted to renew, and for how long.
    renewed: Mutex<Vec<(ClaimId, Duration)>>,
    /// The cells that somebody wanted to write.
    written: Mutex<BTreeSet<String>>,
}

impl Faults {
    fn written(&self) -> usize {
        self.written.lock().expect("nobody panics with it").len()
    }
}

impl Faults {
    fn renewed(&self, id: ClaimId) -> Vec<Duration> {
        let renewed = self.renewed.lock().expect("nobody panics with it");
        renewed.iter().filter(|(renewed, _)| *renewed == id).map(|(_, ttl)| *ttl).collect()
    }
}

fn client() -> (Client, Arc<Faults>) {
    let (clock, faults) = (Clock::test(), Arc::<Faults>::default());
    let store = Box::new(Memory::with_clock(clock.clone()));
    let client = Client::builder(Fragile { store, faults: faults.clone() }).clock(clock).build();
    (client, faults)
}

#[async_trait]
impl Backend for Fragile {
    fn info(&self) -> &StoreInfo {
        self.store.info()
    }

    fn claim(&self, spec: Arc<ClaimSpec>) -> Box<dyn Claim> {
        self.store.claim(spec)
    }

    async fn renew(&self, batch: &[Renew]) -> Vec<Result<Renewal>> {
        let leases = batch.iter().map(|renew| (renew.id, renew.ttl));
        self.faults.renewed.lock().expect("nobody panics with it").extend(leases);
        self.store.renew(batch).await
    }

    async fn release(&self, key: &Key, id: ClaimId, mode: Mode) -> Result<Release> {
        self.store.release(key, id, mode).await
    }

    async fn latch(&self, key: &Key, step: LatchStep) -> Result<u64> {
        self.store.latch(key, step).await
    }

    async fn inspect(&self, key: &Key) -> Result<Option<LockState>> {
        self.store.inspect(key).await
    }

    async fn list(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
        self.store.list(prefix, cursor, limit).await
    }

    async fn break_hold(&self, key: &Key, id: ClaimId, broken: &Broken) -> Result<BreakOutcome> {
        let outcome = self.store.break_hold(key, id, broken).await;
        if self.faults.loses.load(SeqCst) {
            return Err(Error::new(ErrorKind::Indeterminate, Operation::Break, "the connection broke"));
        }
        outcome
    }

    fn rumours(&self, _client: ClientId) -> Option<Rumours> {
        self.faults.rumours.lock().expect("nobody panics with it").take()
    }

    async fn read_cell(&self, name: &str) -> Result<Option<Cell>> {
        self.store.read_cell(name).await
    }

    async fn write_cell(
        &self,
        name: &str,
        expect: Expect,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<CellWrite> {
        self.faults.written.lock().expect("nobody panics with it").insert(name.to_owned());
        assert!(!self.faults.panics.load(SeqCst), "a store that panics");
        self.store.write_cell(name, expect, value, ttl).await
    }

    async fn list_cells(&self, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
        self.store.list_cells(prefix, cursor, limit).await
    }

    async fn close(&self) -> Result<()> {
        self.store.close().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_over_the_history_loses_no_lock() {
    let (client, faults) = client();
    let kept = client.lock("kept").ttl("3s").acquire().await.unwrap();
    let over = client.lock("over").acquire().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    faults.panics.store(true, SeqCst);
    over.release().await.unwrap();
    for _ in 0..1000 {
        if faults.written() > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(faults.written(), 1, "the history was to be written");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(matches!(kept.state(), State::Held), "{:?}", kept.state());
}

#[tokio::test(start_paused = true)]
async fn the_history_of_a_client_is_of_so_many_names_a_minute_and_of_those_that_ended_badly() {
    let (client, faults) = client();
    let mut last = None;
    for turn in 0..5 {
        let mut held = Vec::new();
        for name in 0..100 {
            held.push(client.lock(&format!("{turn}:{name}")).acquire().await.unwrap());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        last = held.pop();
        for guard in held {
            guard.release().await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(faults.written(), 256, "of 495 names");
    let last = last.unwrap();
    // Past the client, which would write of it itself.
    let (key, broken) = (Key::new("", "4:99").unwrap(), Broken { by: "anna".into(), why: "stuck".into() });
    let outcome = client.backend().break_hold(&key, last.id(), &broken).await.unwrap();
    assert_eq!(outcome, BreakOutcome::Broken);
    drop(last);
    let is_written = || faults.written.lock().expect("nobody panics with it").contains("history:4:99");
    for _ in 0..1000 {
        if is_written() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(is_written(), "what ended badly is written");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let after = client.lock("after").acquire().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    after.release().await.unwrap();
    client.shutdown("5s").await.unwrap();
    assert!(
        faults.written.lock().expect("nobody panics with it").contains("history:after"),
        "another minute"
    );
}

#[tokio::test(start_paused = true)]
async fn a_break_whose_answer_is_lost_is_in_the_audit_and_marked_so() {
    let (client, faults) = client();
    let guard = client.lock("a").acquire().await.unwrap();
    faults.loses.store(true, SeqCst);
    let error = client.break_hold("a", guard.id(), "stuck").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate);
    let entries = client.audit(None, 10).await.unwrap().entries;
    assert_eq!(entries.len(), 1);
    assert!(
        entries[0].unsure && entries[0].id == Some(guard.id()) && entries[0].holder.is_some(),
        "{entries:?}"
    );
}

/// A store that says whatever the test wants to be heard.
fn rumoured() -> (Client, Arc<Faults>, UnboundedSender<Rumour>) {
    let (client, faults) = client();
    let (sender, receiver) = unbounded_channel();
    let heard = stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
    *faults.rumours.lock().expect("nobody panics with it") = Some(heard.boxed());
    (client, faults, sender)
}

#[tokio::test(start_paused = true)]
async fn a_rumour_is_looked_into_and_a_lock_that_is_still_ours_stays_so() {
    let (client, faults, rumours) = rumoured();
    let renewing = client.lock("a").ttl("60s").acquire().await.unwrap();
    let ending = client.lock("b").ttl("60s").no_renew().acquire().await.unwrap();
    let other = client.lock("c").ttl("60s").acquire().await.unwrap();
    let ends = ending.deadline();
    tokio::time::sleep(Duration::from_secs(5)).await;
    for guard in [&renewing, &ending] {
        assert!(faults.renewed(guard.id()).is_empty());
        rumours.send(Rumour::Of(guard.id())).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(faults.renewed(renewing.id()), [Duration::from_secs(60)]);
    assert!(faults.renewed(ending.id())[0] <= Duration::from_secs(55), "it is only looked at");
    assert!(faults.renewed(other.id()).is_empty(), "nobody spoke of it");
    rumours.send(Rumour::OfAny).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let looks = [&renewing, &ending, &other].map(|guard| faults.renewed(guard.id()).len());
    assert_eq!(looks, [2, 2, 1]);
    for guard in [&renewing, &ending, &other] {
        assert_eq!(guard.state(), State::Held);
    }
    assert_eq!(ending.deadline(), ends, "a lease that is not to be renewed ends when it was to end");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((renewing.state(), ending.state()), (State::Held, State::Lost));
}

#[tokio::test(start_paused = true)]
async fn a_rumour_that_is_true_ends_exactly_that_lock_long_before_its_renewal() {
    let (client, faults, rumours) = rumoured();
    let guard = client.lock("a").ttl("60s").acquire().await.unwrap();
    let other = client.lock("b").ttl("60s").acquire().await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(client.break_hold("a", guard.id(), "stuck").await.unwrap(), BreakOutcome::Broken);
    rumours.send(Rumour::Of(guard.id())).unwrap();
    let Loss::Broken(broken) = guard.lost().await else { panic!("{:?}", guard.lost().await) };
    assert_eq!(&*broken.why, "stuck");
    assert_eq!(faults.renewed(guard.id()).len(), 1);
    assert!(faults.renewed(other.id()).is_empty() && other.state() == State::Held);
}

#[tokio::test(start_paused = true)]
async fn rumours_without_end_cost_a_few_looks_a_second() {
    let (client, faults, _) = rumoured();
    let guard = client.lock("a").ttl("60s").acquire().await.unwrap();
    let id = guard.id();
    let endless = stream::repeat_with(move || Rumour::Of(id));
    *faults.rumours.lock().expect("nobody panics with it") = Some(endless.boxed());
    tokio::time::sleep(Duration::from_secs(10)).await;
    let looks = faults.renewed(id).len();
    assert!((10..=200).contains(&looks), "{looks} looks in nine seconds");
    assert_eq!(guard.state(), State::Held);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_over_a_rumour_loses_no_lock() {
    let (client, faults, _) = rumoured();
    let guard = client.lock("a").ttl("3s").acquire().await.unwrap();
    let panics = stream::poll_fn(|_| panic!("a store that panics"));
    *faults.rumours.lock().expect("nobody panics with it") = Some(panics.boxed());
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(faults.rumours.lock().expect("nobody panics with it").is_none(), "it was listened to");
    assert_eq!(guard.state(), State::Held);
}
