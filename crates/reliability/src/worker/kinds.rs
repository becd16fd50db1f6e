//! The workloads: what a task does over and over.

use std::{fmt, io, time::Duration};

use leasehold::Owner;
use leasehold_testkit::history::{Act, Mode};
use tokio::{sync::watch, time::sleep};

use super::{Rival, crowd, desk::Desk, naive::Naive, rival};

/// One hold in so many is careless.
const CARELESS: u64 = 150;

/// Permits of every semaphore.
const PERMITS: u32 = 3;

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// One lock at a time.
    Lock,
    /// One lock at a time, first come first served.
    Fair,
    /// Readers and writers.
    Rw,
    /// One or two permits of three.
    Permits,
    /// A lock that its owner enters twice.
    Reentry,
    /// Two locks together.
    Set,
    /// Many tasks that ask for one lock at once; most go away half-way, when the dice say so.
    Storm,
    /// Ten thousand that wait for one lock at once; half of them go away half-way.
    Crowd,
    /// A client as it should not be: `SET NX` and `DEL`, on Redis.
    Naive,
    /// The crate `rslock`, by the worker of peers.
    Rslock,
    /// The crate `redlock`, by the worker of peers.
    Redlock,
}

impl Kind {
    /// Everything Leasehold offers.
    pub const ALL: [Self; 6] = [Self::Lock, Self::Fair, Self::Rw, Self::Permits, Self::Reentry, Self::Set];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lock => "lock",
            Self::Fair => "fair",
            Self::Rw => "rw",
            Self::Permits => "permits",
            Self::Reentry => "reentry",
            Self::Set => "set",
            Self::Storm => "storm",
            Self::Crowd => "crowd",
            Self::Naive => "naive",
            Self::Rslock => "rslock",
            Self::Redlock => "redlock",
        })
    }
}

/// Does one thing over and over until it is told to stop.
pub(super) async fn shift(
    kind: Kind,
    mut desk: Desk,
    rival: Option<Box<dyn Rival>>,
    stopped: watch::Receiver<bool>,
) -> Result<(), String> {
    let naive = || (kind == Kind::Naive).then(|| Box::new(Naive::new(&desk.arguments.url)) as Box<dyn Rival>);
    if let Some(rival) = rival.or_else(naive) {
        return rival::shift(kind, rival, desk, stopped).await;
    }
    while !*stopped.borrow() {
        let cycle = match kind {
            Kind::Lock => lock(&mut desk).await,
            Kind::Fair => fair(&mut desk).await,
            Kind::Rw => read_write(&mut desk).await,
            Kind::Permits => permits(&mut desk).await,
            Kind::Reentry => reentry(&mut desk).await,
            Kind::Set => set(&mut desk).await,
            Kind::Storm => crowd::gather(&mut desk, "storm", 100, Duration::from_millis(10)).await,
            Kind::Crowd => crowd::gather(&mut desk, "crowd", 10_000, Duration::from_secs(2)).await,
            Kind::Naive | Kind::Rslock | Kind::Redlock => return Err(format!("this worker has no {kind}")),
        };
        cycle.map_err(|error| format!("the register failed: {error}"))?;
    }
    Ok(())
}

async fn lock(desk: &mut Desk) -> io::Result<()> {
    let name = desk.name("lock");
    let lock = desk.client.lock(&name);
    writing(desk, lock, &name).await
}

async fn fair(desk: &mut Desk) -> io::Result<()> {
    let name = desk.name("fair");
    let lock = desk.client.lock(&name).fair();
    writing(desk, lock, &name).await
}

/// Acquire, read, work, write, release: the base of all.
async fn writing(desk: &mut Desk, lock: leasehold::Lock, name: &str) -> io::Result<()> {
    if desk.dice.one_in(CARELESS) {
        return careless(desk, lock.no_renew(), name).await;
    }
    let owner = desk.owner();
    let Some(guard) = desk.acquire(lock, Mode::Exclusive, owner).await else { return Ok(()) };
    let reading = desk.read(name, owner, guard.fence()).await?;
    if desk.work(&guard, owner).await {
        desk.write(name, owner, guard.fence(), reading).await?;
        desk.release(guard, owner).await;
    }
    Ok(())
}

/// Works on beyond the lease without a look, and writes all the same: a fence is what keeps that from doing harm.
async fn careless(desk: &mut Desk, lock: leasehold::Lock, name: &str) -> io::Result<()> {
    let (owner, lease) = (desk.owner(), Duration::from_millis(desk.arguments.ttl));
    let Some(guard) = desk.acquire(lock, Mode::Exclusive, owner).await else { return Ok(()) };
    let reading = desk.read(name, owner, guard.fence()).await?;
    sleep(desk.dice.between(lease, lease * 3 / 2)).await;
    desk.write(name, owner, guard.fence(), reading).await?;
    desk.release(guard, owner).await;
    Ok(())
}

async fn read_write(desk: &mut Desk) -> io::Result<()> {
    let name = desk.name("rw");
    let lock = desk.client.rwlock(&name);
    if desk.dice.one_in(3) {
        return writing(desk, lock.write(), &name).await;
    }
    let owner = desk.owner();
    let Some(guard) = desk.acquire(lock.read(), Mode::Shared, owner).await else { return Ok(()) };
    if desk.work(&guard, owner).await {
        desk.release(guard, owner).await;
    }
    Ok(())
}

async fn permits(desk: &mut Desk) -> io::Result<()> {
    let (name, owner) = (desk.name("permits"), desk.owner());
    let take = 1 + u32::from(desk.dice.one_in(3));
    let lock = desk.client.semaphore(&name, PERMITS).permits(take);
    let mode = Mode::Permits { take, of: PERMITS };
    let Some(guard) = desk.acquire(lock, mode, owner).await else { return Ok(()) };
    if desk.work(&guard, owner).await {
        desk.release(guard, owner).await;
    }
    Ok(())
}

/// Enters twice, leaves once, works on, leaves for good.
async fn reentry(desk: &mut Desk) -> io::Result<()> {
    let (name, owner, me) = (desk.name("reentry"), desk.owner(), Owner::new());
    let lock = desk.client.lock(&name).owner(&me);
    let Some(outer) = desk.acquire(lock.clone(), Mode::Exclusive, owner).await else { return Ok(()) };
    let reading = desk.read(&name, owner, outer.fence()).await?;
    if let Some(inner) = desk.acquire(lock, Mode::Exclusive, owner).await {
        if !desk.work(&inner, owner).await {
            return Ok(());
        }
        desk.release(inner, owner).await;
    }
    if desk.work(&outer, owner).await {
        desk.write(&name, owner, outer.fence(), reading).await?;
        desk.release(outer, owner).await;
    }
    Ok(())
}

/// Two names of the same pool, so that sets overlap.
async fn set(desk: &mut Desk) -> io::Result<()> {
    let owner = desk.owner();
    let pool = desk.arguments.names + 1;
    let first = desk.dice.below(pool);
    let second = (first + 1 + desk.dice.below(pool - 1)) % pool;
    let names = [format!("set-{first}"), format!("set-{second}")];
    let (ttl, wait) = (desk.arguments.ttl, desk.arguments.wait);
    let set = desk.client.set().lock(&names[0]).lock(&names[1]);
    let set = set.ttl(Duration::from_millis(ttl)).wait(Duration::from_millis(wait));
    let mode = Mode::Exclusive;
    let asked = names.each_ref().map(|name| desk.recorder.asked(name, owner, Act::Acquire { mode }));
    let guards = match set.acquire().await {
        Ok(guards) => guards,
        Err(error) => {
            for asked in asked {
                asked.unknown();
            }
            desk.tally.count(&error);
            return Ok(());
        }
    };
    let held: Vec<_> = names.iter().filter_map(|name| guards.guard(name)).collect();
    for (asked, guard) in asked.into_iter().zip(&held) {
        asked.granted(guard.fence(), guard.deadline().as_nanos());
    }
    let mut readings = Vec::new();
    for guard in &held {
        readings.push(desk.read(guard.name(), owner, guard.fence()).await?);
    }
    if !desk.work_both(held[0], held.get(1).copied(), owner).await {
        return Ok(());
    }
    for (guard, reading) in held.iter().zip(readings) {
        desk.write(guard.name(), owner, guard.fence(), reading).await?;
    }
    let asked = names.each_ref().map(|name| desk.recorder.asked(name, owner, Act::Release));
    let released = guards.release().await;
    for asked in asked {
        if released.is_ok() { asked.done() } else { asked.unknown() }
    }
    Ok(())
}
