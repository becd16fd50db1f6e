//! A worker: a process with several tasks that acquire, read, work, write and release, over and over.
//!
//! It writes its history as it goes, so that being killed costs it nothing, and when it ends in order it says in a file
//! of its own what it still had: locks, waits, releases under way, open files, what the store lists as its own, and how
//! often it met which error.

mod connection;
mod crowd;
mod desk;
mod kinds;
mod naive;
mod rival;

use std::{
    fmt::Write as _,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold::{Client, Settings, connect_with};
use leasehold_testkit::history::Recorder;
use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use self::{connection::Connection, desk::Desk, desk::Tally};
pub use self::{kinds::Kind, rival::Rival};
use crate::{audit::LEFT, clock, dice::Dice, listing};

/// How long a worker that ends waits for what goes on in the background.
const TIDYING: Duration = Duration::from_secs(10);

/// How long after the end of every lease something of ours may still be listed.
const LEASE_AND: Duration = Duration::from_secs(2);

/// What a worker is told.
#[derive(Clone, Debug, clap::Parser)]
pub struct Arguments {
    /// The store.
    #[arg(long)]
    pub url: String,
    /// The register's socket.
    #[arg(long)]
    pub register: PathBuf,
    /// The folder of the run: histories and last words go there.
    #[arg(long)]
    pub folder: PathBuf,
    /// The number its history bears: different for every worker of a run, also for one that follows a killed one.
    #[arg(long)]
    pub process: u32,
    /// What to do; the tasks take these in turn.
    #[arg(long, value_delimiter = ',')]
    pub kinds: Vec<Kind>,
    /// How many tasks.
    #[arg(long)]
    pub tasks: u32,
    /// How many names per kind.
    #[arg(long)]
    pub names: u64,
    /// The longest work under a lock, in milliseconds.
    #[arg(long)]
    pub work: u64,
    /// One hold in so many lasts longer than its lease, so that renewals matter.
    #[arg(long)]
    pub long: u64,
    /// The lease, in milliseconds.
    #[arg(long)]
    pub ttl: u64,
    /// How long to stand in line, in milliseconds.
    #[arg(long)]
    pub wait: u64,
    /// When to end, in seconds, if nobody says so before.
    #[arg(long)]
    pub seconds: u64,
    /// The seed of its dice.
    #[arg(long)]
    pub seed: u64,
}

impl Arguments {
    /// As words of a command line.
    pub fn words(&self) -> Vec<String> {
        let kinds: Vec<String> = self.kinds.iter().map(ToString::to_string).collect();
        [
            ("--url", self.url.clone()),
            ("--register", self.register.display().to_string()),
            ("--folder", self.folder.display().to_string()),
            ("--process", self.process.to_string()),
            ("--kinds", kinds.join(",")),
            ("--tasks", self.tasks.to_string()),
            ("--names", self.names.to_string()),
            ("--work", self.work.to_string()),
            ("--long", self.long.to_string()),
            ("--ttl", self.ttl.to_string()),
            ("--wait", self.wait.to_string()),
            ("--seconds", self.seconds.to_string()),
            ("--seed", self.seed.to_string()),
        ]
        .into_iter()
        .flat_map(|(option, value)| [option.to_owned(), value])
        .collect()
    }

    /// The file with its history.
    pub fn history(&self) -> PathBuf {
        self.folder.join(format!("worker-{}.history", self.process))
    }

    /// The file that says by which id the store knows it.
    pub fn client(&self) -> PathBuf {
        self.folder.join(format!("worker-{}.client", self.process))
    }

    /// The file with its last words.
    pub fn ending(&self) -> PathBuf {
        self.folder.join(format!("worker-{}.ending", self.process))
    }
}

/// Where the locks of others come from; `None` for kinds that are not of this worker.
pub type Rivals = fn(Kind, &Arguments) -> Option<Box<dyn Rival>>;

/// Works until it is over, as the whole of a program.
pub fn main(arguments: Arguments, rivals: Rivals) -> ExitCode {
    match run(arguments, rivals) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            say(&problem);
            ExitCode::FAILURE
        }
    }
}

/// Works until it is over.
///
/// # Errors
/// What kept it from working at all, or from ending in order.
pub fn run(arguments: Arguments, rivals: Rivals) -> Result<(), String> {
    // Whoever started us may be killed as well: nobody would stop us then.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(work(Arc::new(arguments), rivals))
}

/// Tells whoever reads the log.
#[expect(clippy::print_stderr, reason = "a worker's log is its standard error")]
pub fn say(line: &str) {
    eprintln!("{line}");
}

async fn work(arguments: Arc<Arguments>, rivals: Rivals) -> Result<(), String> {
    let recorder = Recorder::to_file(&arguments.history(), arguments.process, clock::now)
        .map_err(|error| format!("{}: {error}", arguments.history().display()))?;
    let (stop, stopped) = watch::channel(false);
    let end = Instant::now() + Duration::from_secs(arguments.seconds);
    let mut signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(|error| error.to_string())?;
    let mut tasks = JoinSet::new();
    let client = tokio::select! {
        client = patiently_connect(&arguments) => client?,
        _ = signal.recv() => return last_words(&arguments, None, 0, &Tally::default()).await,
    };
    std::fs::write(arguments.client(), client.who().client.to_string()).map_err(|error| error.to_string())?;
    let (tally, owners, files) = (Tally::default(), Arc::new(AtomicU64::new(1)), open_files());
    let mut dice = Dice::of(arguments.seed);
    for task in 0..arguments.tasks {
        let register = Connection::open(&arguments.register).await.map_err(|error| error.to_string())?;
        let desk = Desk {
            client: client.clone(),
            recorder: recorder.clone(),
            register,
            dice: dice.fork(),
            tally: tally.clone(),
            owners: owners.clone(),
            arguments: arguments.clone(),
        };
        let kind = arguments.kinds[task as usize % arguments.kinds.len()];
        tasks.spawn(kinds::shift(kind, desk, rivals(kind, &arguments), stopped.clone()));
    }
    tokio::select! {
        _ = signal.recv() => {}
        () = tokio::time::sleep_until(end) => {}
        Some(ended) = tasks.join_next() => return Err(format!("a task ended before its time: {ended:?}")),
    }
    stop.send_replace(true);
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| error.to_string())??;
    }
    last_words(&arguments, Some(&client), files, &tally).await
}

/// The store may be down when a worker starts; that is no reason to give up.
async fn patiently_connect(arguments: &Arguments) -> Result<Client, String> {
    let end = Instant::now() + Duration::from_secs(arguments.seconds);
    loop {
        match connect_with(&arguments.url, Settings::default()).await {
            Ok(client) => return Ok(client),
            Err(error) if Instant::now() > end => return Err(error.to_string()),
            Err(error) => say(&format!("cannot connect yet: {error}")),
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// What is left when all tasks are done, written in one piece.
async fn last_words(
    arguments: &Arguments,
    client: Option<&Client>,
    files: usize,
    tally: &Tally,
) -> Result<(), String> {
    let mut words = String::new();
    if let Some(client) = client {
        let idle = timeout(TIDYING, client.idle()).await.is_ok();
        let stats = client.stats();
        let more = open_files().saturating_sub(files + usize::try_from(arguments.tasks).unwrap_or(0));
        let lines = [
            ("idle", u64::from(idle)),
            ("held", stats.held as u64),
            ("waiting", stats.waiting as u64),
            ("tidying", stats.tidying as u64),
            ("files", more as u64),
        ];
        for (word, count) in lines {
            writeln!(words, "{word}\t{count}").map_err(|error| error.to_string())?;
        }
        for left in left(client, Duration::from_millis(arguments.ttl) + LEASE_AND).await {
            writeln!(words, "{LEFT}{left}\t1").map_err(|error| error.to_string())?;
        }
        if let Err(error) = client.shutdown(TIDYING).await {
            say(&format!("shutdown: {error}"));
            writeln!(words, "shutdown\t1").map_err(|error| error.to_string())?;
        }
    }
    words.push_str(&tally.lines());
    std::fs::write(arguments.ending(), words).map_err(|error| error.to_string())
}

/// What the store lists as ours, when we have nothing any more: of a release whose answer never came until its lease is
/// over, so there is time for that.
async fn left(client: &Client, patience: Duration) -> Vec<String> {
    let end = Instant::now() + patience;
    loop {
        let left = match timeout(TIDYING, listing::all(client)).await {
            Ok(Ok(locks)) => listing::of(client, &locks),
            Ok(Err(error)) => vec![format!("unlisted: {error}")],
            Err(_) => vec!["unlisted: no answer".to_owned()],
        };
        if left.is_empty() || Instant::now() > end {
            return left;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Files this process has open: those of its store, once it is connected.
fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// The next number that no other acquisition of the run bears.
fn next_owner(process: u32, owners: &AtomicU64) -> u64 {
    (u64::from(process) << 32) | owners.fetch_add(1, Ordering::Relaxed)
}
