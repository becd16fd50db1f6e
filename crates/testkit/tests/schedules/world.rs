//! One seed's world: its store, its clients, what happens to them, and what must be true in the end.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use leasehold_core::{
    Client, Owner, Who,
    backend::{Memory, Recorded},
    time::{Clock, TICK},
};
use leasehold_testkit::{
    history::{Event, FenceFault, check, notices},
    scripted::{Dice, Script, Scripted, ScriptedRecords},
};
use tokio::{runtime::Builder, task::JoinSet};

use super::{ledger::Ledger, nemesis, worker::Worker};

/// The names all fight for: a lock, a readers-writer lock, a semaphore, and one more lock for sets.
pub(crate) const NAMES: [&str; 4] = ["lock", "rwlock", "permits", "other"];

/// Beyond any lease, any wait and any late request.
const LONG: Duration = Duration::from_secs(600);

/// Beyond all that a world does. What goes on for longer goes on for ever, and is played out in no time worth waiting for.
const ALL: Duration = Duration::from_secs(3 * 3600);

/// How much longer than its holder believes in it a store may keep a lease, unless it has been stalled: by what its
/// request was on its way, and by what clocks may drift apart.
const SPARE: Duration = Duration::from_millis(150);

pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) clients: Vec<Client>,
    /// One who may enter again, of each client.
    pub(crate) owners: Vec<Owner>,
    pub(crate) scripts: Vec<Script>,
    /// A client that nothing ever goes wrong with: it looks, and holds nothing.
    pub(crate) onlooker: Client,
    /// A store that never answers leaves requests open for ever: then nothing can be said of what is open.
    pub(crate) may_be_mute: bool,
    /// A store was stalled for a while: a request that was long on its way leaves a lease that is longer than anybody
    /// knows.
    pub(crate) was_stalled: AtomicBool,
}

/// What came of one seed.
pub(crate) struct Played {
    pub(crate) grants: usize,
    pub(crate) history: Vec<Event>,
}

/// Plays one seed, and panics if anything is not as it must be.
pub(crate) fn play(seed: u64) -> Played {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let dice = Dice::new(seed);
    let (ledger, is_mute) = runtime.block_on(async {
        let played = tokio::time::timeout(ALL, live(dice));
        played.await.expect("it should be over by now: somebody waits for what never comes")
    });
    let left = runtime.metrics().num_alive_tasks();
    assert!(is_mute || left == 0, "{left} tasks go on though every client is gone");
    let history = ledger.history();
    if std::env::var_os("LEASEHOLD_SEED").is_some() {
        // Captured by the harness, and shown if this fails.
        for event in &history {
            println!("{event}");
        }
    }
    let mut verdict = check(&history);
    verdict.fences.retain(|fault| !entered_while_leaving(fault));
    assert!(verdict.is_sound(), "{verdict}");
    let told = notices(&history, &ledger.suspended());
    assert!(told.false_held.is_empty(), "told that it is held after the deadline: {:?}", told.false_held);
    let latest = told.late.iter().max().copied().map_or(Duration::ZERO, Duration::from_nanos);
    assert!(latest <= TICK + Duration::from_millis(5), "a loss was told {latest:?} after the deadline");
    Played { grants: verdict.grants, history }
}

/// Of two workers with one owner, one may enter while the other is about to leave: then both are in, under one fence.
fn entered_while_leaving(fault: &FenceFault) -> bool {
    match fault {
        FenceFault::Twice { one, other } | FenceFault::NotGreater { earlier: one, later: other } => {
            (one.owner, one.fence) == (other.owner, other.fence)
        }
        _ => false,
    }
}

async fn live(mut dice: Dice) -> (Ledger, bool) {
    let world = World::new(&mut dice);
    let ledger = Ledger::new(world.clock.clone());
    let mut tasks = JoinSet::new();
    for number in 0..3 + dice.below(4) {
        let worker = Worker::new(&world, &ledger, number, dice.fork());
        let rounds = 4 + dice.below(8);
        tasks.spawn(worker.run(rounds));
    }
    nemesis::rage(&world, &ledger, dice.fork()).await;
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            std::panic::resume_unwind(error.into_panic());
        }
    }
    world.is_tidy(&ledger).await;
    let is_mute = world.may_be_mute;
    drop(world);
    tokio::time::sleep(LONG).await;
    (ledger, is_mute)
}

impl World {
    fn new(dice: &mut Dice) -> Self {
        let clock = Clock::test();
        let store = Memory::with_clock(clock.clone());
        let scripts = [dice.fork(), dice.fork()].map(Script::drawn).to_vec();
        let below = ScriptedRecords::new(store.clone(), scripts[0].clone());
        let above = Scripted::new(store.clone(), scripts[1].clone());
        let clients = vec![
            Client::builder(below).clock(clock.clone()).who(who(1)).build(),
            Client::builder(above).clock(clock.clone()).who(who(2)).build(),
            Self::plain(&store, &clock, 3),
        ];
        let onlooker = Self::plain(&store, &clock, 4);
        let owners = clients.iter().map(|_| Owner::new()).collect();
        Self {
            clock,
            clients,
            owners,
            scripts,
            onlooker,
            may_be_mute: dice.chance(10),
            was_stalled: AtomicBool::new(false),
        }
    }

    /// A client whose requests are answered on the spot, which takes other ways through the engine.
    fn plain(store: &Recorded<Memory>, clock: &Clock, number: u32) -> Client {
        Client::builder(store.clone()).clock(clock.clone()).who(who(number)).build()
    }

    /// Once nobody has anything left to do, nothing waits for a lease to end: what was taken was given back.
    async fn is_given_back(&self) {
        for client in &self.clients {
            drop(tokio::time::timeout(LONG, client.idle()).await);
        }
        let page = self.onlooker.list("", None, usize::MAX).await.unwrap();
        for held in page.locks.iter().flat_map(|lock| &lock.holders) {
            assert!(held.remaining <= SPARE, "nobody holds it, and it was not given back: {held:?}");
        }
    }

    /// Nothing of all that happened is left, once the store is well and every lease has ended.
    async fn is_tidy(&self, ledger: &Ledger) {
        for script in &self.scripts {
            script.heal().landed().await;
        }
        if !self.may_be_mute && !self.was_stalled.load(Ordering::SeqCst) {
            self.is_given_back().await;
        }
        tokio::time::sleep(LONG).await;
        for (index, client) in self.clients.iter().enumerate().filter(|_| !self.may_be_mute) {
            let idle = tokio::time::timeout(LONG, client.idle()).await;
            let stats = client.stats();
            let counts = (stats.held, stats.waiting, stats.tidying);
            let is_closed = ledger.is_closed(index);
            assert!(
                idle.is_ok() && counts == (0, 0, 0),
                "client {index}, closed: {is_closed}, has left {stats:?}"
            );
        }
        let left = self.onlooker.list("", None, usize::MAX).await.unwrap();
        assert!(left.locks.is_empty(), "left behind: {left:?}");
        for name in NAMES {
            let free = self.onlooker.lock(name).try_acquire().await.unwrap();
            free.expect("what nobody holds is free").release().await.unwrap();
        }
    }
}

/// Ids that are the same in every run.
fn who(number: u32) -> Who {
    let mut who = Who::here();
    who.client = format!("00000000-0000-0000-0000-{number:012x}").parse().unwrap();
    who
}
