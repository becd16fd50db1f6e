//! Numbers about locks, told to whatever recorder the program has installed for the `metrics` crate.
//!
//! Names of locks are no labels: they are many, and often somebody's customers. The label is the *template* of the name,
//! which the lock says itself or which is taken from the beginning of the name, and there are at most [`TEMPLATES`] per
//! client: the rest are `other`. What a label needs is made once for each template, so recording allocates nothing; which
//! recorder there is, is asked each time, for it may be installed late. Without the feature `metrics` this file is not
//! compiled, and `unmeasured.rs` stands in its place.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use metrics::{Gauge, Key, Label, Level, Metadata, Recorder, SharedString, Unit, with_recorder};

use super::{observe::kind, time::Instant};
use crate::{
    backend::Mode,
    key::Key as Name,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Whether anything is measured at all.
pub(super) const MEASURED: bool = true;

/// So many templates a client tells apart.
const TEMPLATES: usize = 200;

/// The longest beginning of a name that is taken for a template, in bytes.
const LONGEST: usize = 64;

const OTHER: &str = "other";

const ACQUIRE: &str = "lock_acquire_seconds";
const HOLD: &str = "lock_hold_seconds";
const LOST: &str = "lock_lost_total";
const RENEWALS: &str = "lock_renewals_total";
const LAG: &str = "lock_renew_lag_seconds";
const LEADER: &str = "lock_is_leader";

/// Stands for the label and the word of a metric that has none of its own.
const NONE: &str = "";

/// Every series that a template and a kind can have: the metric, its own label, and the word there.
const ROWS: [(&str, &str, &str); 20] = [
    (ACQUIRE, "outcome", "acquired"),
    (ACQUIRE, "outcome", "busy"),
    (ACQUIRE, "outcome", "failed"),
    (ACQUIRE, "outcome", "abandoned"),
    (HOLD, "end", "released"),
    (HOLD, "end", "expired"),
    (HOLD, "end", "max_hold"),
    (HOLD, "end", "gone"),
    (HOLD, "end", "broken"),
    (HOLD, "end", "shutdown"),
    (LOST, "cause", "expired"),
    (LOST, "cause", "max_hold"),
    (LOST, "cause", "gone"),
    (LOST, "cause", "broken"),
    (LOST, "cause", "shutdown"),
    (RENEWALS, "outcome", "renewed"),
    (RENEWALS, "outcome", "failed"),
    (RENEWALS, "outcome", "lost"),
    (LAG, NONE, NONE),
    (LEADER, NONE, NONE),
];

const KINDS: usize = 4;

static METADATA: Metadata<'static> = Metadata::new("leasehold", Level::INFO, None);

/// The templates that a client has met.
#[derive(Debug, Default)]
pub(crate) struct Measures(RwLock<Templates>);

#[derive(Debug, Default)]
struct Templates {
    /// By the whole text, and by a beginning that something follows.
    whole: HashMap<Box<str>, Series>,
    begun: HashMap<Box<str>, Series>,
    other: Option<Series>,
}

/// Where a lock is counted. Clones are the same.
#[derive(Clone)]
pub(crate) struct Series(Arc<Template>);

struct Template {
    text: SharedString,
    /// For each kind, made when it is first met; and in it each row.
    keys: [OnceLock<Box<[OnceLock<Key>; ROWS.len()]>>; KINDS],
}

impl Measures {
    /// Where a lock of this name is counted, if it says so under this template.
    pub(crate) fn series(&self, said: Option<&'static str>, name: &Name) -> Series {
        let (text, varies) = said.map_or_else(|| beginning(name.name()), |said| (said, false));
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = known.get(text, varies) {
            return series.clone();
        }
        drop(known);
        self.0.write().unwrap_or_else(PoisonError::into_inner).add(text, varies)
    }
}

impl Templates {
    fn get(&self, text: &str, varies: bool) -> Option<&Series> {
        let known = if varies { &self.begun } else { &self.whole };
        let is_full = || self.whole.len() + self.begun.len() >= TEMPLATES;
        known.get(text).or_else(|| self.other.as_ref().filter(|_| is_full()))
    }

    fn add(&mut self, text: &str, varies: bool) -> Series {
        if let Some(series) = self.get(text, varies) {
            return series.clone();
        }
        if self.whole.len() + self.begun.len() >= TEMPLATES {
            return self.other.insert(Series::new(OTHER.to_owned())).clone();
        }
        let label = if varies { [text, "{}"].concat() } else { text.to_owned() };
        let known = if varies { &mut self.begun } else { &mut self.whole };
        known.entry(text.into()).or_insert_with(|| Series::new(label)).clone()
    }
}

impl Series {
    fn new(text: String) -> Self {
        with_recorder(describe);
        let text = SharedString::from_shared(text.into());
        Self(Arc::new(Template { text, keys: Default::default() }))
    }

    /// An acquisition was answered, after this long.
    pub(super) fn asked(&self, mode: Mode, outcome: &'static str, took: Duration) {
        self.record(ACQUIRE, mode, outcome, took);
    }

    /// A hold is over, after this long.
    pub(super) fn held(&self, mode: Mode, end: &'static str, held: Duration) {
        self.record(HOLD, mode, end, held);
    }

    /// A hold was lost.
    pub(super) fn lost(&self, mode: Mode, cause: &'static str) {
        self.count(LOST, mode, cause);
    }

    /// A renewal was answered, or not.
    pub(super) fn renewed(&self, mode: Mode, outcome: &'static str) {
        self.count(RENEWALS, mode, outcome);
    }

    /// The keeper heard that a lease was renewed, so long after it was due.
    pub(super) fn lagged(&self, mode: Mode, late: Duration) {
        self.record(LAG, mode, NONE, late);
    }

    /// Somebody would lead: from now on it can be seen whether they do.
    pub(crate) fn candidate(&self) {
        self.leader(Mode::Exclusive);
    }

    /// How many elections of this template are led from this process, in whatever recorder there is now.
    fn leader(&self, mode: Mode) -> Option<Gauge> {
        self.with(LEADER, mode, NONE, |recorder, key| recorder.register_gauge(key, &METADATA))
    }

    fn record(&self, metric: &'static str, mode: Mode, word: &'static str, time: Duration) {
        self.with(metric, mode, word, |recorder, key| {
            recorder.register_histogram(key, &METADATA).record(time.as_secs_f64());
        });
    }

    fn count(&self, metric: &'static str, mode: Mode, word: &'static str) {
        self.with(metric, mode, word, |recorder, key| {
            recorder.register_counter(key, &METADATA).increment(1);
        });
    }

    fn with<T>(
        &self,
        metric: &'static str,
        mode: Mode,
        word: &'static str,
        tell: impl FnOnce(&dyn Recorder, &Key) -> T,
    ) -> Option<T> {
        let row = ROWS.iter().position(|row| (row.0, row.2) == (metric, word))?;
        let keys = self.0.keys[place(mode)].get_or_init(Box::default);
        let key = keys[row].get_or_init(|| self.key(ROWS[row], mode));
        Some(with_recorder(|recorder| tell(recorder, key)))
    }

    fn key(&self, (metric, label, word): (&'static str, &'static str, &'static str), mode: Mode) -> Key {
        let template = Label::new("template", self.0.text.clone());
        let mut labels = vec![template, Label::new("kind", kind(mode))];
        if label != NONE {
            labels.push(Label::new(label, word));
        }
        Key::from_parts(metric, labels)
    }
}

impl fmt::Debug for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Series").field(&self.0.text).finish()
    }
}

/// When the keeper's next renewal of a hold is due.
#[derive(Debug, Default)]
pub(super) struct Due(AtomicU64);

impl Due {
    pub(super) fn set(&self, due: Instant) {
        self.0.store(due.as_nanos(), Ordering::Relaxed);
    }

    /// How long that is past; nothing for what comes early.
    pub(super) fn lag(&self, now: Instant) -> Duration {
        Instant::from_nanos(self.0.load(Ordering::Relaxed)).until(now)
    }
}

/// A hold that is a lead: counted in one recorder when it begins, and in the same one when it is over, once.
#[derive(Debug, Default)]
pub(super) struct Lead {
    counted: AtomicBool,
    gauge: OnceLock<Gauge>,
}

impl Lead {
    pub(super) fn begin(&self, series: &Series, mode: Mode) {
        let Some(gauge) = series.leader(mode) else { return };
        self.gauge.get_or_init(|| gauge).increment(1.0);
        self.counted.store(true, Ordering::SeqCst);
    }

    pub(super) fn end(&self) {
        // Most holds are none: they are asked, and not written to.
        if self.counted.load(Ordering::SeqCst) && self.counted.swap(false, Ordering::SeqCst) {
            self.gauge.get().inspect(|gauge| gauge.decrement(1.0));
        }
    }
}

fn place(mode: Mode) -> usize {
    match mode {
        Mode::Exclusive => 0,
        Mode::Shared => 1,
        Mode::Permits { .. } => 2,
        Mode::Open => 3,
    }
}

/// Tells what the numbers mean. Once for each template: the recorder may have come after the client.
fn describe(recorder: &dyn Recorder) {
    let seconds = Some(Unit::Seconds);
    let histogram = |name, unit, text: &'static str| {
        recorder.describe_histogram(SharedString::const_str(name).into(), unit, text.into());
    };
    histogram(ACQUIRE, seconds, "How long it took to acquire a lock, or to hear that it is not to be had.");
    histogram(HOLD, seconds, "How long locks were held.");
    let counter = |name, text: &'static str| {
        recorder.describe_counter(SharedString::const_str(name).into(), Some(Unit::Count), text.into());
    };
    counter(LOST, "Holds that were lost before their holders let go.");
    counter(RENEWALS, "Renewals of leases.");
    let lag = "How long after it was due a renewal was heard to have succeeded.";
    histogram(LAG, seconds, lag);
    let leader = "How many elections of this template this process leads.";
    recorder.describe_gauge(SharedString::const_str(LEADER).into(), Some(Unit::Count), leader.into());
}

/// The beginning of a name that is the same for many, and whether anything follows it: whole words without digits, up to
/// the first separator and no further.
fn beginning(name: &str) -> (&str, bool) {
    let is_word = |letter: char| letter.is_alphanumeric();
    let is_joint = |letter: char| matches!(letter, '-' | '_');
    let mut end = 0;
    while end < name.len() {
        let word = name[end..].find(|letter| !is_word(letter)).map_or(name.len(), |at| end + at);
        if name[end..word].contains(char::is_numeric) {
            break;
        }
        let Some(after) = name[word..].chars().next() else { return cut(name, name.len(), false) };
        end = word + after.len_utf8();
        if !is_joint(after) {
            break;
        }
    }
    cut(name, end, end < name.len())
}

fn cut(name: &str, end: usize, varies: bool) -> (&str, bool) {
    if end > LONGEST { ("", true) } else { (&name[..end], varies) }
}

#[cfg(test)]
mod tests {
    use proptest::{proptest, test_runner::Config};

    use super::*;

    fn template(name: &str) -> String {
        let measures = Measures::default();
        measures.series(None, &Name::new("", name).unwrap()).0.text.to_string()
    }

    #[test]
    fn what_varies_in_a_name_is_no_label() {
        for (name, expected) in [
            ("nightly", "nightly"),
            ("nightly-report_all", "nightly-report_all"),
            ("order:42", "order:{}"),
            ("user:alice", "user:{}"),
            ("stock/eu/7", "stock/{}"),
            ("job-2026-11-16", "job-{}"),
            ("order42", "{}"),
            ("550e8400-e29b-41d4-a716-446655440000", "{}"),
            ("alice@example.com", "alice@{}"),
            ("锁:1", "锁:{}"),
            ("订单", "订单"),
            (":", ":"),
            ("٣", "{}"),
            ("{a}{b}", "{{}"),
        ] {
            assert_eq!(template(name), expected, "{name}");
        }
        assert_eq!(template(&"x".repeat(65)), "{}");
    }

    #[test]
    fn a_template_that_is_said_is_the_label() {
        let measures = Measures::default();
        let name = Name::new("", "alice").unwrap();
        assert_eq!(&*measures.series(Some("user {}"), &name).0.text, "user {}");
    }

    #[test]
    fn ten_thousand_names_are_no_more_than_two_hundred_templates_and_other() {
        let measures = Measures::default();
        let letters = |number: u32| {
            number.to_string().chars().map(|digit| char::from(digit as u8 + 49)).collect::<String>()
        };
        let texts: std::collections::BTreeSet<String> = (0..10_000)
            .map(|number| measures.series(None, &Name::new("", &letters(number)).unwrap()).0.text.to_string())
            .collect();
        assert_eq!(texts.len(), TEMPLATES + 1);
        assert!(texts.contains(OTHER));
        let known = measures.series(None, &Name::new("", &letters(7)).unwrap());
        assert_eq!(&*known.0.text, &*letters(7), "those that came first stay what they are");
    }

    proptest! {
        #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn a_template_is_a_beginning_without_digits(name in "[a-c1-3锁é:/_.{} -]{1,40}|[^\\pC]{1,80}") {
            let (text, varies) = beginning(&name);
            assert!(name.starts_with(text) && !text.contains(char::is_numeric) && text.len() <= LONGEST, "{text}");
            assert_eq!(varies, text != name);
        }
    }
}
