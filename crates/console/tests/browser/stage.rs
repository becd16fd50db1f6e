//! A store with people in it, and the console before it: what the browser looks at.
//!
//! Everybody is a client of their own, under a made-up name, so that owners can be told apart. A stage ends with its
//! test: dropping it closes the server and lets go of everything.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use leasehold::{
    Client, Guard, Settings, Who,
    backend::{Memory, Recorded},
    connect_with,
};
use leasehold_console::{Access, Console, Server};
use leasehold_testkit::servers::{redis::Redis, start_or_skip};
use tokio::{sync::oneshot, task::JoinSet};

/// Turns of waiting, of 10 ms and a question each: minutes.
const TURNS: usize = 6000;

/// Which store the people meet in.
pub(crate) enum Store {
    Memory(Recorded<Memory>),
    Redis(Redis),
}

impl Store {
    pub(crate) fn memory() -> Self {
        Self::Memory(Memory::new())
    }

    /// `None`, said aloud, if there is no Redis and may be none.
    pub(crate) fn redis() -> Option<Self> {
        start_or_skip(Redis::start).map(Self::Redis)
    }

    /// What its pictures are called after.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            Self::Redis(_) => "redis",
        }
    }

    /// A client under this name.
    pub(crate) async fn client(&self, program: &str, host: &str) -> Client {
        let mut who = Who::here().with_program(program);
        who.host = host.into();
        who.user = "deploy".into();
        match self {
            Self::Memory(memory) => Client::builder(memory.clone()).who(who).build(),
            Self::Redis(redis) => {
                let mut settings = Settings::default();
                settings.who = Some(who);
                connect_with(&redis.url(), settings).await.unwrap()
            }
        }
    }
}

/// The console on a socket.
pub(crate) struct Stage {
    pub(crate) store: Store,
    pub(crate) token: String,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinSet<()>,
    waiting: JoinSet<()>,
    held: Vec<Guard>,
}

impl Stage {
    /// Whoever comes may look; the token lets its bearer act.
    pub(crate) async fn open(store: Store) -> Self {
        let (access, token) = Access::open();
        Self::with(store, access, token).await
    }

    pub(crate) async fn with(store: Store, access: Access, token: String) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let (stop, serving) = (None, JoinSet::new());
        let (waiting, held) = (JoinSet::new(), Vec::new());
        let mut stage = Self { store, token, address, stop, serving, waiting, held };
        stage.serves(access).await;
        stage
    }

    /// Serves, on the address of before if there was one.
    pub(crate) async fn serves(&mut self, access: Access) {
        let client = self.store.client("leasehold serve", "ops-1").await;
        let server = Server::bind(self.address).await.unwrap();
        self.address = server.address().unwrap();
        let console = Console::builder(client, access).build();
        let (stop, stopped) = oneshot::channel();
        self.stop = Some(stop);
        self.serving.spawn(server.run(console, async { drop(stopped.await) }));
    }

    /// Serves no more.
    pub(crate) async fn stops(&mut self) {
        drop(self.stop.take());
        while self.serving.join_next().await.is_some() {}
    }

    /// Where the page is.
    pub(crate) fn home(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Somebody takes a lock and keeps it.
    pub(crate) async fn holds(&mut self, client: &Client, name: &str, label: Option<&str>) {
        let lock = client.lock(name).wait(MINUTES);
        let lock = if let Some(label) = label { lock.label(label) } else { lock };
        self.held.push(lock.acquire().await.unwrap());
    }

    /// Keeps what somebody took.
    pub(crate) fn keeps(&mut self, guard: Guard) {
        self.held.push(guard);
    }

    /// Somebody stands in line for a lock that another holds, and is seen to; should they get it, they keep it.
    pub(crate) async fn waits(&mut self, client: &Client, name: &str) {
        let before = waiters(client, name).await;
        let lock = client.lock(name).fair().wait(HOURS);
        self.waiting.spawn(async move {
            let _guard = lock.acquire().await;
            std::future::pending::<()>().await;
        });
        eventually(async || waiters(client, name).await > before).await;
    }

    /// Does something beside the test for as long as the stage stands.
    pub(crate) fn beside(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.waiting.spawn(task);
    }
}

pub(crate) const MINUTES: Duration = Duration::from_secs(300);
pub(crate) const HOURS: Duration = Duration::from_secs(7200);

async fn waiters(client: &Client, name: &str) -> usize {
    client.inspect(name).await.unwrap().map_or(0, |state| state.waiters.len())
}

/// Completes when something is so; it fails if that does not come within minutes.
pub(crate) async fn eventually(is_so: impl AsyncFn() -> bool) {
    for _ in 0..TURNS {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to be");
}

/// A busy shop: holders, a line, readers, permits, a latch, a leader with a follower, two who wait for each other.
pub(crate) async fn shop(stage: &mut Stage) -> Arc<[Client]> {
    let mut people = Vec::new();
    for (program, host) in
        [("checkout", "web-1"), ("reprice", "web-2"), ("backup", "batch-1"), ("mailer", "web-3")]
    {
        people.push(stage.store.client(program, host).await);
    }
    let [checkout, reprice, backup, mailer] = &people[..] else { unreachable!("there are four") };
    stage.holds(checkout, "order:42", Some("basket 7781")).await;
    stage.holds(reprice, "stock:sku-99812", None).await;
    stage.holds(backup, "nightly-report", Some("nightly")).await;
    stage.holds(mailer, "invoice/2026-11/settle", None).await;
    stage.holds(backup, "锁:库存:上海", Some("盘点")).await;
    stage.holds(backup, "account:7", None).await;
    stage.holds(mailer, "account:9", None).await;
    for reader in [checkout, reprice] {
        let guard = reader.rwlock("config").read().acquire().await.unwrap();
        stage.keeps(guard);
    }
    let permit = checkout.semaphore("uploads", 5).acquire().await.unwrap();
    stage.keeps(permit);
    assert!(reprice.latch("warm-up").arm(3).await.unwrap());
    stage.waits(mailer, "order:42").await;
    stage.waits(reprice, "order:42").await;
    stage.waits(backup, "account:9").await;
    stage.waits(mailer, "account:7").await;
    elect(stage, checkout, reprice).await;
    people.into()
}

async fn elect(stage: &mut Stage, leader: &Client, follower: &Client) {
    let (leads, led) = oneshot::channel();
    let (leader, election) = (leader.clone(), follower.election("scheduler"));
    stage.beside(async move {
        let leadership = leader.election("scheduler").campaign("10.0.0.7:9000").await.unwrap();
        leads.send(()).unwrap();
        leadership.lost().await;
    });
    led.await.unwrap();
    stage.beside(async move { drop(election.campaign("10.0.0.8:9000").await) });
    let observer = follower.clone();
    eventually(async || waiters(&observer, "scheduler").await == 1).await;
}
