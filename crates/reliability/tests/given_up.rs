//! A round whose store cannot be brought back is given up, and what was done until then is judged.

use std::{
    io,
    path::PathBuf,
    sync::OnceLock,
    time::{Duration, Instant},
};

use leasehold_reliability::{
    clock::rest,
    dice::Dice,
    options::Manner,
    packs::{Crew, Pack, Promise, Store},
    report::Report,
    round::{self, Plan},
    worker::Kind,
};

/// How long the worker may take until it has written something.
const PATIENCE: Duration = Duration::from_secs(60);

/// The folder of the round.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// A store in the worker's memory whose first fault cannot be healed. It comes when the worker is at work.
struct Brittle;

impl Pack for Brittle {
    fn url(&self) -> String {
        "memory:".to_owned()
    }

    fn version(&self) -> String {
        "brittle".to_owned()
    }

    fn faults(&self) -> &'static [&'static str] {
        &["a fall"]
    }

    fn inflict(&mut self, _fault: &str, _lease: Duration, _dice: &mut Dice) -> io::Result<()> {
        let history = FOLDER.get().map(|folder| folder.join("register.history")).unwrap_or_default();
        let end = Instant::now() + PATIENCE;
        while std::fs::metadata(&history).map_or(0, |file| file.len()) == 0 && Instant::now() < end {
            rest(Duration::from_millis(10));
        }
        Err(io::Error::other("it is in pieces"))
    }

    fn leftovers(&self, _killed: &[String]) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

#[test]
fn a_round_that_is_given_up_is_judged_up_to_there() {
    let crew = Crew {
        program: "leasehold-worker",
        workers: 1,
        tasks: 4,
        names: 2,
        long: 1000,
        kinds: &Kind::ALL,
        hazards: &[],
        heals: 1,
        shortest: 0,
    };
    let (name, title, promise) = ("brittle", "brittle", Promise::Exclusive);
    let store = Store { name, title, promise, crew, start: || Ok(Box::new(Brittle)) };
    let folder = tempfile::tempdir().unwrap();
    FOLDER.set(folder.path().to_owned()).unwrap();
    let manner = Manner {
        lease: Duration::from_secs(1),
        work: Duration::from_millis(2),
        tasks: 4,
        names: 2,
        calm: [Duration::from_millis(1); 2],
    };
    let programs = PathBuf::from(env!("CARGO_BIN_EXE_leasehold-worker")).parent().unwrap().to_owned();
    let plan = Plan { programs, folder: folder.path().to_owned(), seconds: 2, seed: 1, manner };
    let mut report = Report::default();
    let problem = round::run(&store, &plan, &mut report).unwrap_err();
    assert!(problem.to_string().contains("a fall: it is in pieces"), "{problem}");
    assert!(
        report.grants > 0 && report.operations() > 0 && report.writes[0] > 0,
        "it was judged: {report:?}"
    );
    assert!(report.seeds.is_empty() && report.stuck.is_empty() && report.dead == 0, "{report:?}");
}
