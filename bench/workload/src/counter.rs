//! All want the same lock: each task reads a number, lets others run, and writes one more. Where two hold the lock at
//! once a number is lost, and whoever started this finds it: the number is in a file, so that several processes can
//! count together and nothing of the store is used but the lock.

use std::{
    fs::File,
    os::unix::fs::FileExt as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::sleep};

use crate::{Ask, Conversation, Lock, Peer, Said, processor_time, resident, warm};

/// The variable that names the file with the number, 20 digits.
const VARIABLE: &str = "BENCH_COUNTER";

pub(crate) async fn run<P: Peer>(
    peer: &P,
    ask: &Ask,
    pause: Option<Duration>,
    conversation: &mut Conversation,
) -> Result<(), String> {
    let number = Arc::new(Number::open()?);
    let lock = peer.lock("bench:counter");
    warm(peer).await?;
    let before = resident();
    conversation.ready().await?;
    let (cpu, began) = (processor_time(), Instant::now());
    let errors = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..ask.tasks {
        tasks.spawn(increment(lock.clone(), number.clone(), pause, errors.clone()));
    }
    let latencies = tasks.join_all().await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut said = Said {
        done: ask.tasks as u64,
        seconds: began.elapsed().as_secs_f64(),
        cpu: processor_time() - cpu,
        errors: errors.load(Relaxed),
        resident: [before, resident()],
        ..Said::default()
    };
    said.latencies(latencies);
    conversation.say(&said)
}

async fn increment(
    lock: impl Lock,
    number: Arc<Number>,
    pause: Option<Duration>,
    errors: Arc<AtomicU64>,
) -> Result<Duration, String> {
    let began = Instant::now();
    let held = loop {
        match lock.acquire().await {
            Ok(held) => break held,
            Err(_) => errors.fetch_add(1, Relaxed),
        };
        sleep(Duration::from_millis(10)).await;
    };
    let waited = began.elapsed();
    let before = number.read()?;
    match pause {
        Some(pause) => sleep(pause).await,
        None => tokio::task::yield_now().await,
    }
    number.write(before + 1)?;
    if lock.release(held).await.is_err() {
        errors.fetch_add(1, Relaxed);
    }
    Ok(waited)
}

/// A number in a file.
struct Number(File);

impl Number {
    fn open() -> Result<Self, String> {
        let path = std::env::var_os(VARIABLE).ok_or_else(|| format!("{VARIABLE} names no file"))?;
        let file = File::options().read(true).write(true).open(path);
        file.map(Self).map_err(|error| format!("the number cannot be opened: {error}"))
    }

    fn read(&self) -> Result<u64, String> {
        let mut digits = [0; 20];
        self.0.read_exact_at(&mut digits, 0).map_err(|error| error.to_string())?;
        std::str::from_utf8(&digits).ok().and_then(|digits| digits.parse().ok()).ok_or("no number".to_owned())
    }

    fn write(&self, number: u64) -> Result<(), String> {
        self.0.write_all_at(format!("{number:020}").as_bytes(), 0).map_err(|error| error.to_string())
    }
}
