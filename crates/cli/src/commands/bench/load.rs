//! What the tasks of each scenario do.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use leasehold::{Client, Error, Guard, Lock};
use tokio::task::JoinSet;

use super::{
    scenario::Scenario,
    stage::{Stage, full},
    witness::Witness,
};

/// Permits of the semaphore.
const PERMITS: u32 = 8;

/// One in so many writes.
const WRITES: usize = 10;

/// How long a lock is held before it is handed on: the other one must be waiting by then.
const SETTLED: Duration = Duration::from_millis(20);

/// So many locks are asked for at a time.
const TOGETHER: usize = 64;

/// Names that a soak uses.
const NAMES: usize = 8;

/// How long a task of a soak waits before it gives up, one time in some.
const SHORT: Duration = Duration::from_millis(5);

/// Plays a scenario to its end. Whatever happens is in the meter.
pub(crate) async fn play(scenario: Scenario, stage: &Arc<Stage>) {
    match scenario {
        Scenario::Uncontended => uncontended(stage).await,
        Scenario::Counter => counter(stage).await,
        Scenario::Handoff => handoff(stage).await,
        Scenario::Waiters => waiters(stage).await,
        Scenario::Rw => rw(stage).await,
        Scenario::Semaphore => semaphore(stage).await,
        Scenario::Held => held(stage).await,
        Scenario::Soak => soak(stage).await,
    }
}

async fn uncontended(stage: &Arc<Stage>) {
    let work = |stage: Arc<Stage>, task| async move {
        let lock = stage.lock(task, &format!("uncontended:{task}"));
        loop {
            let begun = Instant::now();
            match pair(&lock).await {
                Ok(()) => stage.meter.took(task, begun.elapsed()),
                Err(error) => stage.trouble(&error).await,
            }
            if stage.is_over() {
                return;
            }
        }
    };
    stage.crowd(work).await;
}

async fn pair(lock: &Lock) -> Result<(), Error> {
    lock.acquire().await?.release().await
}

/// Each task adds one, once.
async fn counter(stage: &Arc<Stage>) {
    let witness = Arc::new(Witness::default());
    let work = |stage: Arc<Stage>, task| {
        let witness = witness.clone();
        async move {
            let lock = stage.lock(task, "counter");
            stage.under(task, &lock, |fence| witness.add(fence)).await;
        }
    };
    stage.crowd(work).await;
    stage.judge(&witness);
}

async fn handoff(stage: &Arc<Stage>) {
    let locks = [stage.lock(0, "handoff"), stage.lock(1, "handoff")];
    let begun = Instant::now();
    let mut held = match locks[0].acquire().await {
        Ok(guard) => guard,
        Err(error) => return stage.meter.failed(&error),
    };
    for turn in 1.. {
        held = match hand_on(stage, held, locks[turn % 2].clone()).await {
            Ok(guard) => guard,
            Err(error) => return stage.meter.failed(&error),
        };
        if begun.elapsed() >= stage.time {
            break;
        }
    }
    if let Err(error) = held.release().await {
        stage.meter.failed(&error);
    }
}

/// Lets another one wait, lets go, and measures until it has it.
async fn hand_on(stage: &Stage, held: Guard, next: Lock) -> Result<Guard, Error> {
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { (next.acquire().await, Instant::now()) });
    tokio::time::sleep(SETTLED).await;
    let begun = Instant::now();
    held.release().await?;
    let (acquired, at) = waiting.join_all().await.pop().expect("there is one task, and it ends once");
    let guard = acquired?;
    stage.meter.took(0, at.saturating_duration_since(begun));
    Ok(guard)
}

/// The lock is held for the time of the run while all others wait; then each of them has it.
async fn waiters(stage: &Arc<Stage>) {
    let held = match stage.lock(0, "waiters").acquire().await {
        Ok(guard) => guard,
        Err(error) => return stage.meter.failed(&error),
    };
    let freed = Arc::new(OnceLock::new());
    let work = |stage: Arc<Stage>, task| {
        let freed = freed.clone();
        async move {
            match stage.lock(task, "waiters").acquire().await {
                Ok(guard) => {
                    let begun = freed.get().copied().unwrap_or_else(Instant::now);
                    stage.meter.took(task, begun.elapsed());
                    stage.inside(guard, |_| std::future::ready(Ok(()))).await;
                }
                Err(error) => stage.meter.failed(&error),
            }
        }
    };
    let release = async {
        tokio::time::sleep(stage.time).await;
        let _ = freed.set(Instant::now());
        if let Err(error) = held.release().await {
            stage.meter.failed(&error);
        }
    };
    tokio::join!(stage.crowd(work), release);
}

async fn rw(stage: &Arc<Stage>) {
    let witness = Arc::new(Witness::default());
    let work = |stage: Arc<Stage>, task| {
        let witness = witness.clone();
        async move {
            for turn in task.. {
                read_or_write(&stage, task, "rw", turn % WRITES == 0, &witness).await;
                if stage.is_over() {
                    return;
                }
            }
        }
    };
    stage.crowd(work).await;
    stage.judge(&witness);
}

async fn read_or_write(stage: &Stage, task: usize, name: &str, writes: bool, witness: &Witness) {
    let rwlock = stage.client(task).rwlock(&full(name));
    if writes {
        stage.under(task, &stage.leased(rwlock.write()), |fence| witness.add(fence)).await;
    } else {
        stage.under(task, &stage.leased(rwlock.read()), |_| witness.look(i64::MAX)).await;
    }
}

async fn semaphore(stage: &Arc<Stage>) {
    let witness = Arc::new(Witness::default());
    let work = |stage: Arc<Stage>, task| {
        let witness = witness.clone();
        async move {
            let permit = permit(&stage, stage.client(task), "semaphore");
            loop {
                stage.under(task, &permit, |_| witness.look(i64::from(PERMITS))).await;
                if stage.is_over() {
                    return;
                }
            }
        }
    };
    stage.crowd(work).await;
}

fn permit(stage: &Stage, client: &Client, name: &str) -> Lock {
    stage.leased(client.semaphore(&full(name), PERMITS).permits(1))
}

/// Takes many locks, keeps them for the time of the run, and sees whether they are still held.
async fn held(stage: &Arc<Stage>) {
    let mut guards = Vec::with_capacity(stage.tasks);
    let mut asking = JoinSet::new();
    for number in 0..stage.tasks {
        if asking.len() >= TOGETHER {
            guards.extend(taken(stage, &mut asking).await);
        }
        let (lock, stage) = (stage.lock(number, &format!("held:{number}")), stage.clone());
        asking.spawn(async move {
            let begun = Instant::now();
            let acquired = lock.acquire().await;
            if acquired.is_ok() {
                stage.meter.took(number, begun.elapsed());
            }
            acquired
        });
    }
    while !asking.is_empty() {
        guards.extend(taken(stage, &mut asking).await);
    }
    tokio::time::sleep(stage.time).await;
    for guard in guards {
        match guard.check() {
            Ok(()) => drop(guard),
            Err(error) => stage.meter.failed(&error),
        }
    }
    for client in &stage.clients {
        client.idle().await;
    }
}

async fn taken(stage: &Stage, asking: &mut JoinSet<Result<Guard, Error>>) -> Option<Guard> {
    match asking.join_next().await? {
        Ok(Ok(guard)) => Some(guard),
        Ok(Err(error)) => {
            stage.trouble(&error).await;
            None
        }
        Err(trouble) => {
            stage.ended(Some(trouble));
            None
        }
    }
}

/// What programs do, good and bad, on a few names: all kinds, short waits, guards that are only dropped.
async fn soak(stage: &Arc<Stage>) {
    let witnesses: Arc<Vec<[Witness; 3]>> = Arc::new((0..NAMES).map(|_| Default::default()).collect());
    let work = |stage: Arc<Stage>, task| {
        let witnesses = witnesses.clone();
        async move {
            // Different for each task, the same in each run; the low bits of such numbers are poor.
            let mut dice = task as u64 + 1;
            loop {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (name, act) = ((dice >> 33) as usize % NAMES, (dice >> 40) % 8);
                soak_once(&stage, task, name, act, &witnesses[name]).await;
                if stage.is_over() {
                    return;
                }
            }
        }
    };
    stage.crowd(work).await;
    witnesses.iter().flatten().for_each(|witness| stage.judge(witness));
}

async fn soak_once(stage: &Stage, task: usize, name: usize, act: u64, witnesses: &[Witness; 3]) {
    let [alone, shared, limited] = witnesses;
    let lock = stage.lock(task, &format!("soak:lock:{name}"));
    match act {
        0 | 1 => stage.under(task, &lock, |fence| alone.add(fence)).await,
        2 => match lock.wait(SHORT).try_acquire().await {
            Ok(Some(guard)) => stage.inside(guard, |fence| alone.add(fence)).await,
            Ok(None) => {}
            Err(error) => stage.trouble(&error).await,
        },
        // Given up half-way, or taken and only dropped.
        3 => drop(tokio::time::timeout(SHORT, lock.acquire()).await),
        4 | 5 => read_or_write(stage, task, &format!("soak:rw:{name}"), act == 5, shared).await,
        _ => {
            let permit = permit(stage, stage.client(task), &format!("soak:permits:{name}"));
            stage.under(task, &permit, |_| limited.look(i64::from(PERMITS))).await;
        }
    }
}
