//! What the store keeps of a job: the last slot that was given out, who runs it, whether it is paused, and how the last runs
//! went.
//!
//! Pure: every change is a function of the book and the time that is passed in. That a slot is given out once rests on two
//! things: a slot must be later than the last one, and a book is written only over the version that was read.

use std::time::Duration;

use leasehold_schedule::{Schedule, Slot};
use serde::{Deserialize, Serialize};

use super::past::{Ended, PastRun, Paused, Running, Start, Totals, maybe_millis};
use crate::{
    error::{Error, ErrorKind, Operation, Result},
    id::ClaimId,
};

/// The form that is written here. A later one is refused by name.
const FORM: u32 = 1;

/// How many runs are kept.
pub(crate) const RUNS: usize = 20;

/// How many missed slots are counted at a time, at most: nobody needs to know more exactly, and counting takes time.
const COUNTED: u64 = 10_000;

/// How late a slot may be and still be on time, at most.
const ON_TIME: Duration = Duration::from_secs(60);

/// The longest text that is kept of a failure.
const WORDS: usize = 500;

/// What happens to slots that nobody ran in time, because all were down or a run took longer than the time between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CatchUp {
    /// The latest of them is run, late; those before it are written down as missed.
    #[default]
    Latest,
    /// They are run one after the other.
    All,
    /// None of them is run. A slot is late after a minute, or after half of the time to the next one if that is shorter.
    Skip,
}

/// All that is kept of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Book {
    form: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) schedule: Option<Written>,
    /// The last slot that was given out. None is given out twice, because the next must be later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<Slot>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) paused: Option<Paused>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) running: Option<Running>,
    #[serde(default, with = "maybe_millis", skip_serializing_if = "Option::is_none")]
    pub(crate) rests_until: Option<Duration>,
    #[serde(default)]
    pub(crate) runs: Vec<PastRun>,
    #[serde(default)]
    pub(crate) totals: Totals,
}

/// A schedule as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Written {
    pub(crate) cron: String,
    pub(crate) zone: String,
}

impl Written {
    /// Whether the two differ by no more than the space between their fields.
    fn means_the_same(&self, other: &Self) -> bool {
        self.zone == other.zone && self.cron.split_whitespace().eq(other.cron.split_whitespace())
    }
}

/// What a job runs by.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// None for a job that runs when it is told to.
    pub(crate) schedule: Option<Schedule>,
    pub(crate) catch_up: CatchUp,
    /// Slots begin up to this late by intention.
    pub(crate) jitter: Duration,
    pub(crate) at_least: Duration,
}

/// What is to be done at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// This slot is to be run.
    Due(Slot),
    /// Nothing before then, as the time since 1970.
    Later(Duration),
    /// Nothing before then: the last run was to count for at least so long.
    Resting(Duration),
    /// Nothing until an operator says so.
    Paused(Paused),
}

impl Default for Book {
    fn default() -> Self {
        Self {
            form: FORM,
            schedule: None,
            last: None,
            paused: None,
            running: None,
            rests_until: None,
            runs: Vec::new(),
            totals: Totals::default(),
        }
    }
}

impl Book {
    pub(crate) fn write(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|error| strange("a job cannot be written down").because(error))
    }

    /// Reads a book.
    ///
    /// # Errors
    /// `Unsupported` for one of a later form, `Internal` for what is none.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            form: u32,
        }
        let foreign = "this is not a job of ours; was the cell used by another program?";
        let head: Head = serde_json::from_slice(bytes).map_err(|error| strange(foreign).because(error))?;
        if head.form > FORM {
            let message = "this job was written by a newer version of leasehold; use that one";
            return Err(Error::new(ErrorKind::Unsupported, Operation::Job, message));
        }
        serde_json::from_slice(bytes).map_err(|error| strange(foreign).because(error))
    }

    /// Takes the schedule that a runner comes with. A job does not run for the time before it had this schedule.
    pub(crate) fn adopt(&mut self, schedule: &Schedule, now: Duration) {
        let written = Written { cron: schedule.text().to_owned(), zone: schedule.zone().to_owned() };
        if self.last.is_some() && self.schedule.as_ref().is_some_and(|before| before.means_the_same(&written))
        {
            return;
        }
        self.miss_what_was_due(now);
        let begin = schedule.latest_at(now).unwrap_or(Slot::from_secs(now.as_secs()));
        self.last = self.last.max(Some(begin));
        self.schedule = Some(written);
    }

    /// How much later than now the last slot is, if that is more than the time to the next: it was given out by a clock that
    /// was ahead, and nothing is due until then.
    pub(crate) fn ahead(&self, now: Duration) -> Option<Duration> {
        let (schedule, last) = self.given().zip(self.last)?;
        let next = schedule.next_after(Slot::from_secs(now.as_secs()))?;
        (last > next).then(|| last.since_1970().saturating_sub(now))
    }

    pub(crate) fn verdict(&self, rules: &Rules, now: Duration) -> Verdict {
        if let Some(paused) = &self.paused {
            return Verdict::Paused(paused.clone());
        }
        if let Some(until) = self.rests_until.filter(|until| *until > now) {
            return Verdict::Resting(until);
        }
        let Some(schedule) = &rules.schedule else {
            return Verdict::Due(Slot::from_secs(now.as_secs()));
        };
        self.due(schedule, rules, now)
    }

    fn due(&self, schedule: &Schedule, rules: &Rules, now: Duration) -> Verdict {
        let last = self.last.unwrap_or(Slot::from_secs(now.as_secs()));
        let next = |slot| schedule.next_after(slot).map_or(Duration::MAX, Slot::since_1970);
        let due = match rules.catch_up {
            CatchUp::All => schedule.next_after(last).filter(|slot| slot.since_1970() <= now),
            CatchUp::Latest | CatchUp::Skip => schedule.latest_at(now).filter(|slot| *slot > last),
        };
        match due {
            None => Verdict::Later(next(last.max(Slot::from_secs(now.as_secs())))),
            Some(slot) if rules.catch_up == CatchUp::Skip && rules.is_late(schedule, slot, now) => {
                Verdict::Later(next(slot))
            }
            Some(slot) => Verdict::Due(slot),
        }
    }

    /// Gives this slot out.
    pub(crate) fn begin(&mut self, rules: &Rules, slot: Slot, start: Start) {
        self.bury(|_| false);
        if let Some(schedule) = &rules.schedule {
            self.miss_until(schedule, slot);
            self.last = Some(slot);
        }
        self.rests_until = (!rules.at_least.is_zero()).then(|| start.at.saturating_add(rules.at_least));
        self.running = Some(Running { slot, start });
    }

    /// Writes down how a run ended, also if somebody took it for dead meanwhile. Says whether there is such a run.
    pub(crate) fn end(&mut self, id: ClaimId, took: Duration, ended: Ended) -> bool {
        if let Some(running) = self.running.take_if(|running| running.start.id == id) {
            self.count(&ended, 1);
            self.push(PastRun { slot: running.slot, ended, start: Some(running.start), took: Some(took) });
            return true;
        }
        let is_it = |run: &&mut PastRun| {
            run.ended == Ended::Died && run.start.as_ref().is_some_and(|start| start.id == id)
        };
        let Some(run) = self.runs.iter_mut().find(is_it) else { return false };
        (run.ended, run.took) = (ended.clone(), Some(took));
        self.totals.died = self.totals.died.saturating_sub(1);
        self.count(&ended, 1);
        true
    }

    /// Writes down as dead a run of which nobody lives any more.
    pub(crate) fn bury(&mut self, lives: impl Fn(ClaimId) -> bool) {
        if let Some(Running { slot, start }) = self.running.take_if(|running| !lives(running.start.id)) {
            self.count(&Ended::Died, 1);
            self.push(PastRun { slot, ended: Ended::Died, start: Some(start), took: None });
        }
    }

    /// Lets a paused job go on. What fell into the pause is not made up for.
    pub(crate) fn resume(&mut self, now: Duration) {
        if self.paused.take().is_none() {
            return;
        }
        self.miss_what_was_due(now);
    }

    /// Lets it go on from now, also if the last slot is still to come.
    pub(crate) fn resume_from(&mut self, now: Duration) {
        self.paused = None;
        self.miss_what_was_due(now);
        if self.ahead(now).is_some() {
            self.last = self.given().and_then(|schedule| schedule.latest_at(now)).or(self.last);
            // By the same clock.
            self.rests_until = None;
        }
    }

    /// What is due by the schedule that it was given is missed: it is not run any more.
    fn miss_what_was_due(&mut self, now: Duration) {
        let Some((schedule, last)) = self.given().zip(self.last) else { return };
        if let Some(latest) = schedule.latest_at(now).filter(|latest| *latest > last) {
            let end = schedule.next_after(latest).unwrap_or(latest);
            self.miss_until(&schedule, end);
            self.last = Some(latest);
        }
    }

    /// The schedule that it was given.
    fn given(&self) -> Option<Schedule> {
        let written = self.schedule.as_ref()?;
        Schedule::parse(&written.cron, Some(&written.zone)).ok()
    }

    /// When it runs next, by the schedule that it was given.
    pub(crate) fn next(&self, now: Duration) -> Option<Slot> {
        self.given()?.next_after(self.last.max(Some(Slot::from_secs(now.as_secs())))?)
    }

    /// The slots between the last one and this one are missed.
    fn miss_until(&mut self, schedule: &Schedule, slot: Slot) {
        let Some(from) = self.last.and_then(|last| schedule.next_after(last)).filter(|from| *from < slot)
        else {
            return;
        };
        let (mut latest, mut count) = (from, 1);
        while let Some(next) = schedule.next_after(latest).filter(|next| *next < slot) {
            latest = next;
            count += 1;
            if count == COUNTED {
                let before = slot.since_1970().saturating_sub(Duration::from_secs(1));
                latest = schedule.latest_at(before).unwrap_or(latest);
                break;
            }
        }
        let ended = Ended::Missed { from, count };
        self.count(&ended, count);
        self.push(PastRun { slot: latest, ended, start: None, took: None });
    }

    fn count(&mut self, ended: &Ended, count: u64) {
        let total = match ended {
            Ended::Done => &mut self.totals.done,
            Ended::Failed(_) => &mut self.totals.failed,
            Ended::Lost(_) => &mut self.totals.lost,
            Ended::Died => &mut self.totals.died,
            Ended::Missed { .. } => &mut self.totals.missed,
        };
        *total = total.saturating_add(count);
    }

    fn push(&mut self, run: PastRun) {
        self.runs.push(run);
        let surplus = self.runs.len().saturating_sub(RUNS);
        self.runs.drain(..surplus);
    }
}

impl Rules {
    fn is_late(&self, schedule: &Schedule, slot: Slot, now: Duration) -> bool {
        let next = schedule.next_after(slot).map_or(Duration::MAX, Slot::since_1970);
        let allowed = (next.saturating_sub(slot.since_1970()) / 2).min(ON_TIME);
        now.saturating_sub(slot.since_1970()) > allowed.saturating_add(self.jitter)
    }
}

/// What a run said of its failure, no longer than is kept.
pub(crate) fn words(said: &str) -> String {
    let end = (0..=said.len().min(WORDS)).rev().find(|&end| said.is_char_boundary(end));
    said[..end.unwrap_or(0)].to_owned()
}

fn strange(message: &'static str) -> Error {
    Error::new(ErrorKind::Internal, Operation::Job, message)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::any, proptest, test_runner::Config};

    use super::*;
    use crate::{
        id::{ClaimIds, ClientId},
        who::Who,
    };

    /// A job of every minute, first seen at noon.
    fn minutely(catch_up: CatchUp) -> (Rules, Book) {
        let schedule = Schedule::parse("* * * * *", None).unwrap();
        let mut book = Book::default();
        book.adopt(&schedule, at(0));
        let rules =
            Rules { schedule: Some(schedule), catch_up, jitter: Duration::ZERO, at_least: Duration::ZERO };
        (rules, book)
    }

    /// So many seconds after noon.
    fn at(seconds: u64) -> Duration {
        Duration::from_secs(1_767_268_800 + seconds)
    }

    fn slot(seconds: u64) -> Slot {
        Slot::from_secs(at(seconds).as_secs())
    }

    fn start(seconds: u64) -> Start {
        let id = ClaimIds::new(ClientId::random()).next();
        Start { id, fence: 1, who: Who::here(), at: at(seconds) }
    }

    fn missed(book: &Book) -> Vec<(Slot, Slot, u64)> {
        let missed = book.runs.iter().filter_map(|run| match run.ended {
            Ended::Missed { from, count } => Some((from, run.slot, count)),
            _ => None,
        });
        missed.collect()
    }

    #[test]
    fn a_job_does_not_run_for_the_time_before_it_was_seen() {
        let (rules, book) = minutely(CatchUp::Latest);
        assert_eq!(book.last, Some(slot(0)));
        assert_eq!(book.verdict(&rules, at(0)), Verdict::Later(at(60)));
        assert_eq!(book.verdict(&rules, at(59)), Verdict::Later(at(60)));
        assert_eq!(book.verdict(&rules, at(60)), Verdict::Due(slot(60)));
    }

    #[test]
    fn a_slot_is_given_out_once() {
        let (rules, mut book) = minutely(CatchUp::Latest);
        book.begin(&rules, slot(60), start(60));
        assert_eq!(book.verdict(&rules, at(61)), Verdict::Later(at(120)));
        // Not even by a clock that is behind.
        assert_eq!(book.verdict(&rules, at(0)), Verdict::Later(at(120)));
    }

    #[test]
    fn of_what_was_missed_the_latest_is_run() {
        let (rules, mut book) = minutely(CatchUp::Latest);
        assert_eq!(book.verdict(&rules, at(299)), Verdict::Due(slot(240)));
        book.begin(&rules, slot(240), start(299));
        assert_eq!(missed(&book), [(slot(60), slot(180), 3)]);
        assert_eq!(book.totals.missed, 3);
    }

    #[test]
    fn or_all_of_it_one_after_the_other() {
        let (rules, mut book) = minutely(CatchUp::All);
        for due in [60, 120, 180] {
            assert_eq!(book.verdict(&rules, at(200)), Verdict::Due(slot(due)));
            let start = start(200);
            book.begin(&rules, slot(due), start.clone());
            assert!(book.end(start.id, Duration::ZERO, Ended::Done));
        }
        assert_eq!(book.verdict(&rules, at(200)), Verdict::Later(at(240)));
        assert!(missed(&book).is_empty());
    }

    #[test]
    fn or_none_of_it() {
        let (rules, mut book) = minutely(CatchUp::Skip);
        assert_eq!(book.verdict(&rules, at(89)), Verdict::Due(slot(60)), "half a minute is still on time");
        assert_eq!(book.verdict(&rules, at(91)), Verdict::Later(at(120)));
        assert_eq!(book.verdict(&rules, at(120)), Verdict::Due(slot(120)));
        book.begin(&rules, slot(120), start(120));
        assert_eq!(missed(&book), [(slot(60), slot(60), 1)]);
    }

    #[test]
    fn another_schedule_begins_anew() {
        let (_, mut book) = minutely(CatchUp::Latest);
        let hourly = Schedule::parse("0 * * * *", None).unwrap();
        book.adopt(&hourly, at(3 * 3600 + 60));
        assert_eq!(book.next(at(3 * 3600 + 60)), Some(slot(4 * 3600)));
        let before = book.clone();
        book.adopt(&hourly, at(9 * 3600));
        assert_eq!(book, before, "the same schedule changes nothing: what was missed meanwhile counts");
    }

    #[test]
    fn what_the_schedule_before_had_due_is_missed() {
        let (_, mut book) = minutely(CatchUp::Latest);
        let hourly = Schedule::parse("0 * * * *", None).unwrap();
        book.adopt(&hourly, at(200));
        assert_eq!(missed(&book), [(slot(60), slot(180), 3)]);
        assert_eq!(book.last, Some(slot(180)));
    }

    #[test]
    fn space_between_fields_makes_no_other_schedule() {
        let (rules, mut book) = minutely(CatchUp::Latest);
        book.adopt(&Schedule::parse(" *  * * * *", None).unwrap(), at(200));
        assert_eq!(book.verdict(&rules, at(200)), Verdict::Due(slot(180)));
        book.adopt(&Schedule::parse("* * * * *", Some("Europe/Berlin")).unwrap(), at(200));
        assert_eq!(book.verdict(&rules, at(200)), Verdict::Later(at(240)), "another zone does");
    }

    #[test]
    fn however_many_were_missed_the_last_of_them_is_told() {
        let (rules, mut book) = minutely(CatchUp::Latest);
        book.begin(&rules, slot(20_000 * 60), start(20_000 * 60));
        assert_eq!(missed(&book), [(slot(60), slot(19_999 * 60), COUNTED)]);
    }

    #[test]
    fn a_clock_that_was_ahead_is_seen_and_can_be_made_up_for() {
        let (rules, mut book) = minutely(CatchUp::Latest);
        book.begin(&rules, slot(60), start(59));
        assert_eq!(book.ahead(at(59)), None, "a clock may differ by less than a period");
        book.begin(&rules, slot(86_400), start(86_400));
        assert_eq!(book.ahead(at(100)), Some(Duration::from_secs(86_300)));
        assert_eq!(book.verdict(&rules, at(120)), Verdict::Later(at(86_460)));
        book.resume_from(at(100));
        assert_eq!((book.ahead(at(100)), book.last), (None, Some(slot(60))));
        assert_eq!(book.verdict(&rules, at(120)), Verdict::Due(slot(120)));
    }

    #[test]
    fn rest_and_pause_come_before_what_is_due() {
        let (mut rules, mut book) = minutely(CatchUp::Latest);
        rules.at_least = Duration::from_secs(150);
        book.begin(&rules, slot(60), start(61));
        assert_eq!(book.verdict(&rules, at(120)), Verdict::Resting(at(211)));
        assert_eq!(book.verdict(&rules, at(211)), Verdict::Due(slot(180)));
        let paused = Paused { by: "op".into(), why: "disk".into(), since: at(211) };
        book.paused = Some(paused.clone());
        assert_eq!(book.verdict(&rules, at(500)), Verdict::Paused(paused));
    }

    #[test]
    fn what_fell_into_a_pause_is_missed_and_not_made_up_for() {
        let (rules, mut book) = minutely(CatchUp::Latest);
        book.paused = Some(Paused { by: "op".into(), why: "disk".into(), since: at(1) });
        book.resume(at(200));
        assert_eq!(missed(&book), [(slot(60), slot(180), 3)]);
        assert_eq!(book.verdict(&rules, at(200)), Verdict::Later(at(240)));
        let before = book.clone();
        book.resume(at(1000));
        assert_eq!(book, before, "who is not paused is not resumed");
    }

    #[test]
    fn a_run_that_nobody_ended_is_written_down_as_dead_until_it_speaks() {
        let (rules, mut book) = minutely(CatchUp::Latest);
        let first = start(60);
        book.begin(&rules, slot(60), first.clone());
        book.begin(&rules, slot(120), start(120));
        assert_eq!((book.runs[0].ended.clone(), book.totals.died), (Ended::Died, 1));
        assert!(book.end(first.id, Duration::from_secs(70), Ended::Done));
        assert_eq!((book.runs[0].ended.clone(), book.totals.died, book.totals.done), (Ended::Done, 0, 1));
        assert!(!book.end(first.id, Duration::ZERO, Ended::Done), "it has ended");
    }

    #[test]
    fn a_job_without_a_schedule_is_due_whenever_it_is_asked() {
        let rules = Rules {
            schedule: None,
            catch_up: CatchUp::Latest,
            jitter: Duration::ZERO,
            at_least: Duration::from_secs(10),
        };
        let mut book = Book::default();
        assert_eq!(book.verdict(&rules, at(0)), Verdict::Due(slot(0)));
        book.begin(&rules, slot(0), start(0));
        assert_eq!(book.verdict(&rules, at(9)), Verdict::Resting(at(10)));
        assert_eq!(book.verdict(&rules, at(10)), Verdict::Due(slot(10)));
    }

    #[test]
    fn only_the_last_runs_are_kept() {
        let (rules, mut book) = minutely(CatchUp::Latest);
        for minute in 1..=100 {
            let start = start(minute * 60);
            book.begin(&rules, slot(minute * 60), start.clone());
            book.end(start.id, Duration::ZERO, Ended::Done);
        }
        assert_eq!((book.runs.len(), book.totals.done), (RUNS, 100));
        assert_eq!(book.runs.last().unwrap().slot, slot(6000));
    }

    #[test]
    fn a_later_form_is_refused_by_name() {
        let error = Book::read(br#"{"form":2,"what":"ever"}"#).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    proptest! {
        #![proptest_config(Config { cases: 300, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_bytes_make_reading_a_book_panic(bytes in vec(any::<u8>(), 0..100)) {
            let _ = Book::read(&bytes);
            let _ = Book::read(&[br#"{"form":1,"runs":["#, &bytes[..], b"]}"].concat());
        }

        #[test]
        fn any_book_survives_its_bytes(
            steps in vec((0u64..4000, 0u8..5), 0..30),
            text in ".{0,40}",
        ) {
            let (mut rules, mut book) = minutely(CatchUp::Latest);
            rules.at_least = Duration::from_millis(steps.len() as u64);
            for (seconds, step) in steps {
                match (step, book.verdict(&rules, at(seconds))) {
                    (0, _) => book.paused = Some(Paused { by: text.clone(), why: text.clone(), since: at(seconds) }),
                    (1, _) => book.resume(at(seconds)),
                    (2, _) => if let Some(id) = book.running.as_ref().map(|running| running.start.id) {
                        assert!(book.end(id, Duration::from_millis(seconds), Ended::Failed(words(&text))));
                    },
                    (_, Verdict::Due(slot)) => {
                        assert!(book.last < Some(slot), "no slot is given out twice");
                        book.begin(&rules, slot, start(seconds));
                    }
                    _ => {}
                }
                assert_eq!(Book::read(&book.write().unwrap()).unwrap(), book);
            }
        }
    }
}
