//! The console on a Redis with very many locks, and with very many who listen.
//!
//! `cargo bench --package leasehold-console --bench crowd [-- --locks N --streams N --rounds N]` starts two real Redis
//! servers that log whatever takes them over five milliseconds. One gets a hundred locks, the other a hundred thousand, all
//! held by a real client that renews them and tells who holds them. A console serves each, as a process of its own on
//! loopback. The first page of the table is fetched from both in turn; then a thousand streams listen to the crowded one
//! while a lock of it changes hands, and the pages are fetched again.
//!
//! It ends with an error if something came out wrong: a lock that was lost, a page that is not full, a stream that did not
//! hear, an entry in the slow log. How long things took is only printed, beside what is wanted: that depends on the machine,
//! and on what else it does. A Redis that has to wait for a processor is slow by its own log, too: on a machine that does
//! other things, put those whose process ids are said at the start before everything else (`chrt --fifo --pid 1 PID`).

mod listeners;
mod page;
mod place;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    process::ExitCode,
    time::{Duration, Instant},
};

use leasehold::{Client, Guard};
use leasehold_console::{Access, Console, Server};
use tokio::{io::AsyncReadExt, task::JoinSet};

use self::{listeners::Listeners, place::Place};

/// Acquired side by side.
const AT_ONCE: usize = 64;

/// So many of what Redis was slow at are shown.
const SHOWN: usize = 20;

/// The most that the first page of many may cost, as a multiple of that of few.
const WANTED: f64 = 10.0;

type Outcome<T> = Result<T, String>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.first().map(String::as_str) {
        Some("serve") => serve(words.get(1).map_or("", String::as_str)),
        _ => Sizes::read(&words).and_then(|sizes| runtime()?.block_on(run(&sizes))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            say(&problem);
            ExitCode::FAILURE
        }
    }
}

/// How much of everything.
struct Sizes {
    few: usize,
    many: usize,
    streams: usize,
    rounds: usize,
}

impl Sizes {
    fn read(words: &[String]) -> Outcome<Self> {
        let mut said =
            BTreeMap::from([("--few", 100), ("--locks", 100_000), ("--streams", 1000), ("--rounds", 50)]);
        // Cargo adds a word of its own.
        let mut words = words.iter().filter(|word| *word != "--bench");
        while let Some(word) = words.next() {
            let number = words.next().and_then(|number| number.parse().ok());
            match (said.get_mut(word.as_str()), number) {
                (Some(place), Some(number)) => *place = number,
                _ => return Err(format!("{word}: say --few, --locks, --streams or --rounds, and a number")),
            }
        }
        Ok(Self {
            few: said["--few"],
            many: said["--locks"],
            streams: said["--streams"],
            rounds: said["--rounds"],
        })
    }
}

async fn run(sizes: &Sizes) -> Outcome<()> {
    let (few, many) = (Place::start("few")?, Place::start("many")?);
    say(&format!("the processes of Redis: {} and {}", few.pid(), many.pid()));
    let held_few = hold(&few.client().await?, sizes.few).await?;
    let took = Instant::now();
    let client = many.client().await?;
    let mut held = hold(&client, sizes.many).await?;
    say(&format!("{} locks are held after {:.1?}", sizes.many, took.elapsed()));
    few.until_told(held_few[0].id().client(), sizes.few).await?;
    many.until_told(client.who().client, sizes.many).await?;

    let quiet = pages(&few, &many, sizes).await?;
    // One who listens makes the console look again and again, which costs it the same for one as for a thousand.
    let _first = Listeners::start(many.console, 1).await?.and_again(3).await?;
    let before = many.resident()?;
    let listeners = Listeners::start(many.console, sizes.streams).await?;
    let watched = pages(&few, &many, sizes).await?;
    let after = many.resident()?;
    let heard = change_hands(&client, &mut held, &many, listeners).await?;

    let each = after.saturating_sub(before) / sizes.streams.max(1);
    print(&format!("| | {} locks | {} locks | × | wanted |", sizes.few, sizes.many));
    print("|---|---|---|---|---|");
    print(&quiet.row("first page, median"));
    print(&watched.row(&format!("the same while {} streams listen", sizes.streams)));
    print("");
    let (streams, heard) = (sizes.streams, heard.as_secs_f64());
    print(&format!(
        "{streams} of {streams} streams heard of the change, the last after {heard:.2} s; {each} bytes each in the server."
    ));
    wrong(&held_few, &held, &few, &many)
}

/// The first page of both, in turn.
async fn pages(few: &Place, many: &Place, sizes: &Sizes) -> Outcome<page::Times> {
    let mut times = page::Times::default();
    for _ in 0..sizes.rounds {
        times.few.push(page::first(few.console, sizes.few).await?);
        times.many.push(page::first(many.console, sizes.many).await?);
    }
    Ok(times)
}

/// Gives a lock to another holder. Of very many names a look takes in only the first, so it is one of the first page.
async fn change_hands(
    client: &Client,
    held: &mut Vec<Guard>,
    many: &Place,
    listeners: Listeners,
) -> Outcome<Duration> {
    let name = page::one_name(many.console).await?;
    let at = held
        .iter()
        .position(|guard| guard.name() == name)
        .ok_or("the page shows a lock that nobody holds")?;
    let took = Instant::now();
    held.swap_remove(at).release().await.map_err(|error| error.to_string())?;
    held.push(client.lock(&name).acquire().await.map_err(|error| error.to_string())?);
    let id = held.last().map(|guard| guard.id().to_string()).unwrap_or_default();
    listeners.until_all_heard(&id).await?;
    Ok(took.elapsed())
}

/// What must not be, however slow the machine is.
fn wrong(held_few: &[Guard], held: &[Guard], few: &Place, many: &Place) -> Outcome<()> {
    let lost = held_few.iter().chain(held).filter(|guard| guard.check().is_err()).count();
    if lost > 0 {
        return Err(format!("WRONG: {lost} of the locks were lost"));
    }
    let slow: Vec<String> = [few, many].into_iter().map(Place::slow).collect::<Outcome<Vec<_>>>()?.concat();
    if slow.is_empty() {
        print("Nothing took either Redis over 5 ms: its slow log is empty.");
        return Ok(());
    }
    let count = slow.len();
    Err(format!(
        "WRONG: the slow log has {count} entries, the newest of them:\n{}",
        slow[..count.min(SHOWN)].join("\n")
    ))
}

async fn hold(client: &Client, count: usize) -> Outcome<Vec<Guard>> {
    let mut guards = Vec::with_capacity(count);
    let mut asking = JoinSet::new();
    for number in 0..count {
        let lock = client.lock(&format!("crowd:{number}"));
        asking.spawn(async move { lock.acquire().await });
        if asking.len() >= AT_ONCE {
            guards.extend(asking.join_next().await.map(won).transpose()?);
        }
    }
    while let Some(asked) = asking.join_next().await {
        guards.push(won(asked)?);
    }
    Ok(guards)
}

fn won(asked: Result<leasehold::Result<Guard>, tokio::task::JoinError>) -> Outcome<Guard> {
    asked.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// The console of one store, until nobody is at the other end of our input. Says where it listens.
fn serve(url: &str) -> Outcome<()> {
    runtime()?.block_on(async {
        let client = leasehold::connect(url).await.map_err(|error| error.to_string())?;
        let console = Console::builder(client, Access::open().0).build();
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Server::bind(anywhere).await.map_err(|error| error.to_string())?;
        print(&server.address().map_err(|error| error.to_string())?.to_string());
        server.run(console, async { drop(tokio::io::stdin().read(&mut [0]).await) }).await;
        Ok(())
    })
}

fn runtime() -> Outcome<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())
}

#[expect(clippy::print_stdout, reason = "what was measured is for whoever runs this")]
fn print(line: &str) {
    println!("{line}");
}

#[expect(clippy::print_stderr, reason = "so is what went on")]
fn say(line: &str) {
    eprintln!("{line}");
}
