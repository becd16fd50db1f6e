//! Random sequences of steps on one record, every answer compared with the model's.
//!
//! A sequence is drawn as plain numbers, each of which stands for one act, so that drawing is cheap and a failing
//! sequence shrinks to few acts. What failed is kept by seed in a file beside this one and tried first next time;
//! `PROPTEST_CASES` asks for more than the usual number.

use std::{fmt, sync::Arc, time::Duration};

use leasehold_core::{
    ClaimId, ClientId,
    backend::{
        ClaimSpec, LatchStep, Life, Mode,
        record::{Record, Step},
    },
};
use proptest::{
    collection::vec,
    prelude::any,
    proptest,
    strategy::Strategy,
    test_runner::{Config, FileFailurePersistence},
};

use crate::{
    invariants::{Taken, assert_vacant_is_new},
    model::{Asked, Model, Said, Seen},
    world::{World, break_hold, claim, claim_id, permits, recount, release, renew, secs, session, withdraw},
};

/// Sequences per theme.
const CASES: u32 = 5000;
const STEPS: usize = 60;
const CLAIMS: usize = 8;
const SESSIONS: u32 = 3;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn locks_do_as_the_model_does(play in play(Theme::Lock)) {
        play.perform();
    }

    #[test]
    fn semaphores_do_as_the_model_does(play in play(Theme::Semaphore)) {
        play.perform();
    }

    #[test]
    fn latches_do_as_the_model_does(play in play(Theme::Latch)) {
        play.perform();
    }

    #[test]
    fn names_used_as_several_kinds_do_as_the_model_does(play in play(Theme::Mixed)) {
        play.perform();
    }
}

fn config() -> Config {
    let usual = Config::default();
    let cases = std::env::var_os("PROPTEST_CASES").map_or(CASES, |_| usual.cases);
    let failure_persistence = Some(Box::new(FileFailurePersistence::WithSource("regressions")) as Box<_>);
    Config { cases, failure_persistence, ..usual }
}

/// What most claims of a play want.
#[derive(Clone, Copy, Debug)]
enum Theme {
    Lock,
    Semaphore,
    Latch,
    Mixed,
}

/// Claims, and what happens to them.
#[derive(Clone)]
struct Play {
    cast: Vec<Arc<ClaimSpec>>,
    acts: Vec<Act>,
}

#[derive(Clone)]
enum Act {
    Take {
        step: Step,
        asker: Option<ClientId>,
    },
    Pass(Duration),
    Die(ClientId),
    /// The store keeps the record and reads it again.
    Keep,
}

fn play(theme: Theme) -> impl Strategy<Value = Play> {
    let numbers = (vec(any::<u32>(), CLAIMS), vec(any::<u32>(), 1..=STEPS), any::<bool>());
    numbers.prop_map(move |(cast, acts, no_sessions)| {
        let cast: Vec<_> =
            (1..).zip(cast).map(|(serial, draw)| contender(theme, serial, Draw(draw))).collect();
        let mut acts: Vec<_> = acts.into_iter().map(|draw| act(theme, &cast, Draw(draw))).collect();
        if no_sessions {
            acts.iter_mut().for_each(Act::forget_session);
        }
        Play { cast, acts }
    })
}

/// A number from which choices are made.
struct Draw(u32);

impl Draw {
    /// One of the first so many numbers; small draws make small choices, so sequences shrink.
    fn below(&mut self, choices: u32) -> u32 {
        let choice = self.0 % choices;
        self.0 /= choices;
        choice
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u32) as usize]
    }
}

fn contender(theme: Theme, serial: u64, mut draw: Draw) -> Arc<ClaimSpec> {
    let locks = [Mode::Exclusive, Mode::Shared];
    let semaphores = [permits(1, 3), permits(2, 3), permits(1, 3), permits(3, 3)];
    let all = [Mode::Exclusive, Mode::Shared, permits(1, 3), permits(2, 3), permits(1, 2), Mode::Open];
    let foreign = draw.below(12) == 11;
    let mode = match theme {
        Theme::Mixed => draw.of(&all),
        _ if foreign => draw.of(&all),
        Theme::Lock => draw.of(&locks),
        Theme::Semaphore => draw.of(&semaphores),
        Theme::Latch => draw.of(&[Mode::Open, Mode::Open, Mode::Open, Mode::Exclusive]),
    };
    let fair = draw.below(2) == 1;
    let life = if draw.below(8) == 7 { Life::Detached } else { Life::Session };
    let ttl = draw.of(&[secs(30), secs(10), secs(15), secs(1)]);
    let id = claim_id(session(u64::from(draw.below(SESSIONS))), serial);
    Arc::new(ClaimSpec { id, mode, fair, life, ttl, ..claim(serial, mode) })
}

fn act(theme: Theme, cast: &[Arc<ClaimSpec>], mut draw: Draw) -> Act {
    let choice = draw.below(32);
    let spec = &cast[draw.below(CLAIMS as u32) as usize];
    let step = match choice {
        0..=13 => Step::Attempt { spec: spec.clone(), waiting: choice < 12 },
        14..=18 if matches!(theme, Theme::Latch) => latch(&mut draw),
        14..=15 => renew(spec, draw.of(&[secs(30), secs(5), spec.ttl])),
        16 => Step::Raise { id: spec.id, fence: draw.of(&[0, 3, 50, 1000]) },
        17..=18 => {
            let (exclusive, shared) = draw.of(&[(0, 1), (2, 0), (1, 1), (0, 2)]);
            recount(spec, exclusive, shared)
        }
        19..=23 => release(spec),
        24 => withdraw(spec),
        25 => break_hold(spec, draw.of(&["stuck", "deploy"])),
        26 => latch(&mut draw),
        27..=29 => {
            return Act::Pass(draw.of(&[secs(1), secs(5), secs(8), secs(15), secs(31), secs(0), secs(61)]));
        }
        30 => return Act::Die(session(u64::from(draw.below(SESSIONS)))),
        _ => return Act::Keep,
    };
    let asker = (!matches!(step, Step::Break { .. } | Step::Latch(_))).then(|| spec.id.client());
    Act::Take { step, asker }
}

fn latch(draw: &mut Draw) -> Step {
    let id = |number: u32| claim_id(session(9), u64::from(number));
    Step::Latch(match draw.below(4) {
        0 => LatchStep::Arm { count: u64::from(draw.below(4)) },
        3 => LatchStep::Read,
        _ => LatchStep::CountDown { id: id(draw.below(6)) },
    })
}

impl Act {
    fn forget_session(&mut self) {
        if let Self::Take { asker, .. } = self {
            *asker = None;
        }
    }
}

impl Play {
    fn perform(&self) {
        let mut stage =
            Stage { cast: &self.cast, world: World::new(), model: Model::default(), could_win: Vec::new() };
        for act in &self.acts {
            match act {
                Act::Take { step, asker } => stage.take(step, *asker),
                Act::Pass(time) => stage.world.pass(*time),
                Act::Die(session) => stage.world.dead.push(*session),
                Act::Keep => stage.keep(),
            }
        }
    }
}

/// One line per claim and act: what a person needs to replay a failure.
impl fmt::Debug for Play {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ClaimSpec { id, mode, ttl, fair, life, .. } in self.cast.iter().map(|spec| &**spec) {
            writeln!(f, "{id} wants {mode:?} for {ttl:?}, fair: {fair}, {life:?}")?;
        }
        self.acts.iter().try_for_each(|act| writeln!(f, "{act:?}"))
    }
}

impl fmt::Debug for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Take { step: Step::Attempt { spec, waiting }, .. } => {
                write!(f, "{} attempts, waiting: {waiting}", spec.id)
            }
            Self::Take { step: Step::Renew(renew), .. } => {
                write!(f, "{} renews for {:?}", renew.id, renew.ttl)
            }
            Self::Take { step, .. } => write!(f, "{step:?}"),
            Self::Pass(time) => write!(f, "{time:?} pass"),
            Self::Die(session) => write!(f, "session {session} dies"),
            Self::Keep => f.write_str("the record is kept and read again"),
        }
    }
}

/// The record and the model, side by side.
struct Stage<'a> {
    cast: &'a [Arc<ClaimSpec>],
    world: World,
    model: Model,
    /// The waiters who could have won after the step before.
    could_win: Vec<ClaimId>,
}

impl Stage<'_> {
    fn take(&mut self, step: &Step, asker: Option<ClientId>) {
        let before = self.world.clone();
        let expected = self.model.take(step, Asked { now: before.now, by: asker, dead: &before.dead });
        let applied = self.world.take(step, asker);
        let said = Said::from(applied.answer);
        assert_eq!(said, expected, "the model expects otherwise (right)");
        self.compare();
        let (changed, wake, after) = (applied.changed, &applied.wake[..], &self.world);
        let taken = Taken { before: &before, step, said: &said, changed, wake, after, asker };
        taken.check();
        let waiting: Vec<_> = self.cast.iter().filter(|spec| self.model.waits(spec.id)).cloned().collect();
        taken.check_wakes(&waiting, &self.could_win);
        self.could_win = waiting.iter().filter(|spec| after.could_win(spec)).map(|spec| spec.id).collect();
    }

    fn compare(&self) {
        let asked = Asked { now: self.world.now, by: None, dead: &self.world.dead };
        assert_eq!(
            self.world.living().map(Seen::from),
            self.model.see(asked),
            "people see otherwise (right)"
        );
        assert_eq!(self.world.record.is_vacant(), self.model.is_empty());
        if self.world.record.is_vacant() {
            assert_vacant_is_new(&self.world, self.cast);
        }
    }

    fn keep(&mut self) {
        let read = Record::decode(&self.world.record.encode()).expect("our own text");
        assert_eq!(read, self.world.record);
        self.world.record = read;
    }
}
