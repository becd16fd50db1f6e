//! What a cron expression means: the slots of a schedule, in a time zone.
//!
//! Five fields (minute, hour, day, month, weekday) or six with seconds first; `@hourly` and its like; names of months and
//! weekdays. The parser is croner's. Time zones are those of the IANA database that is compiled in, not the machine's:
//! one program means the same everywhere, and what the compiler accepted is there when it runs.
//!
//! Where the clocks of the zone are changed, it matters whether the time of day is fixed: one second, one minute and one
//! hour, each a single number, as in `30 2 * * *`. A fixed slot that falls into the gap when clocks go forward comes right
//! after it, and comes once when they go back. With a list, a range, a step or a star in one of these fields, as in
//! `30 2,14 * * *` or `*/30 2 * * *`, every slot is taken by the clock on the wall: what falls into the gap does not come
//! that day, and what is in the hour that is repeated comes twice. Who needs each of several hours once a day declares a
//! job for each, keeps out of the hours that are changed, or stays with UTC.
//!
//! Users see this crate through `leasehold`; the attribute `#[scheduled]` uses it to refuse what is no schedule.

use std::{fmt, time::Duration};

use croner::{
    Cron,
    errors::CronError,
    parser::{CronParser, Seconds, Year},
};
use jiff::{
    Timestamp, Zoned,
    tz::{TimeZone, TimeZoneDatabase},
};
use serde::{Deserialize, Serialize};

/// The zone of a schedule that names none.
pub const UTC: &str = "UTC";

/// What the fields are called; the first may be left out.
const FIELDS: [&str; 6] = ["second", "minute", "hour", "day", "month", "weekday"];

/// A moment at which a job is to run, to the second: a point on a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slot(u64);

impl Slot {
    /// The slot so many seconds after 1970 began, in UTC.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Seconds since 1970 began, in UTC.
    pub const fn as_secs(self) -> u64 {
        self.0
    }

    /// The time since 1970 began, in UTC.
    pub const fn since_1970(self) -> Duration {
        Duration::from_secs(self.0)
    }

    fn at(self, zone: &TimeZone) -> Option<Zoned> {
        let moment = Timestamp::from_second(i64::try_from(self.0).ok()?).ok()?;
        Some(moment.to_zoned(zone.clone()))
    }
}

/// `2026-01-31T02:00:00Z`.
impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = i64::try_from(self.0).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
        match moment {
            Some(moment) => f.pad(&moment.to_string()),
            None => f.pad("the end of time"),
        }
    }
}

/// When a job is to run.
#[derive(Clone, Debug)]
pub struct Schedule {
    text: String,
    zone_name: String,
    cron: Cron,
    zone: TimeZone,
}

impl Schedule {
    /// Reads a cron expression, whose times are those of the zone of this name; UTC if none is named.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    pub fn parse(text: &str, zone: Option<&str>) -> Result<Self, String> {
        let zone_name = zone.unwrap_or(UTC).to_owned();
        let zone = zone_named(&zone_name)?;
        let schedule = Self { text: text.to_owned(), zone_name, cron: read(text)?, zone };
        // Some day within the reach of croner's search, which is thousands of years.
        if schedule.next_after(Slot(0)).is_none() {
            return Err(format!("{text:?} never comes: no year has such a day"));
        }
        Ok(schedule)
    }

    /// The expression, as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name of its time zone.
    pub fn zone(&self) -> &str {
        &self.zone_name
    }

    /// The first slot after this one.
    pub fn next_after(&self, slot: Slot) -> Option<Slot> {
        let found = self.cron.find_next_occurrence(&slot.at(&self.zone)?, false).ok()?;
        slot_of(&found).filter(|found| *found > slot)
    }

    /// The last slot at this time, given since 1970, or before it.
    pub fn latest_at(&self, time: Duration) -> Option<Slot> {
        let now = Slot(time.as_secs());
        let found = self.cron.find_previous_occurrence(&now.at(&self.zone)?, true).ok()?;
        slot_of(&found).filter(|found| *found <= now)
    }
}

/// `0 2 * * *`, and the zone if it is not UTC.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.zone_name == UTC { f.pad(&self.text) } else { write!(f, "{} {}", self.text, self.zone_name) }
    }
}

/// None for what is before 1970.
fn slot_of(moment: &Zoned) -> Option<Slot> {
    u64::try_from(moment.timestamp().as_second()).ok().map(Slot)
}

fn read(text: &str) -> Result<Cron, String> {
    let fields = text.split_whitespace().count();
    if !text.trim_start().starts_with('@') && !matches!(fields, 5 | 6) {
        return Err(format!(
            "{text:?} has {fields} fields; a schedule has five, \"minute hour day month weekday\" as in \"0 2 * * *\", or \
             six with seconds before them"
        ));
    }
    parse(text).map_err(|error| {
        let why = match &error {
            CronError::InvalidPattern(why)
            | CronError::IllegalCharacters(why)
            | CronError::ComponentError(why) => format!(" ({})", why.trim_end_matches('.').to_lowercase()),
            _ => String::new(),
        };
        let wrong = wrong_field(text).unwrap_or_default();
        format!("{text:?} is not a schedule{wrong}{why}; write it like \"0 2 * * *\" (every day at two)")
    })
}

fn parse(text: &str) -> Result<Cron, CronError> {
    CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build().parse(text)
}

/// The first field that is wrong by itself.
fn wrong_field(text: &str) -> Option<String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let names = &FIELDS[FIELDS.len().checked_sub(fields.len())?..];
    let wrong = |at: usize| {
        let alone = (0..fields.len()).map(|each| if each == at { fields[at] } else { "*" });
        parse(&alone.collect::<Vec<_>>().join(" ")).is_err()
    };
    let at = (0..fields.len()).find(|at| wrong(*at))?;
    Some(format!(": {:?} is no {}", fields[at], names[at]))
}

fn zone_named(name: &str) -> Result<TimeZone, String> {
    let zones = TimeZoneDatabase::bundled();
    zones.get(name).map_err(|_| {
        let near = |zone: &str| strsim::jaro_winkler(&zone.to_lowercase(), &name.to_lowercase());
        let nearest = zones.available().map(|zone| zone.to_string());
        let nearest = nearest.max_by(|one, other| near(one).total_cmp(&near(other)));
        match nearest.filter(|zone| near(zone) > 0.85) {
            Some(nearest) => format!("no time zone is called {name:?}; did you mean {nearest:?}?"),
            None => format!("no time zone is called {name:?}; write it like \"Europe/Berlin\" or \"UTC\""),
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::{
        prelude::any, prop_oneof, proptest, sample::select, strategy::Strategy, test_runner::Config,
    };

    use super::*;

    fn slot(text: &str) -> Slot {
        Slot(text.parse::<Timestamp>().unwrap().as_second().try_into().unwrap())
    }

    #[track_caller]
    fn slots(schedule: &str, zone: &str, from: &str, expected: &[&str]) {
        let schedule = Schedule::parse(schedule, Some(zone)).unwrap();
        let mut now = slot(from);
        for expected in expected {
            now = schedule.next_after(now).unwrap();
            assert_eq!(now.to_string(), *expected);
            assert_eq!(schedule.latest_at(now.since_1970()), Some(now));
        }
    }

    #[test]
    fn five_fields_begin_with_minutes_and_six_with_seconds() {
        slots("0 2 * * *", UTC, "2026-01-01T00:00:00Z", &["2026-01-01T02:00:00Z", "2026-01-02T02:00:00Z"]);
        slots(
            "*/20 * * * * *",
            UTC,
            "2026-01-01T00:00:00Z",
            &["2026-01-01T00:00:20Z", "2026-01-01T00:00:40Z"],
        );
        slots("@hourly", UTC, "2026-01-01T00:00:00Z", &["2026-01-01T01:00:00Z"]);
        slots("0 9 * * MON", UTC, "2026-01-01T00:00:00Z", &["2026-01-05T09:00:00Z"]);
    }

    #[test]
    fn a_zone_moves_the_slots() {
        let expected = ["2026-01-01T01:00:00Z", "2026-01-02T01:00:00Z"];
        slots("0 2 * * *", "Europe/Berlin", "2026-01-01T00:00:00Z", &expected);
    }

    #[test]
    fn a_slot_in_the_gap_comes_right_after_it_and_one_that_is_twice_comes_once() {
        // In Berlin 02:30 is missing on the 29th of March and comes twice on the 25th of October.
        let expected = ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"];
        slots("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", &expected);
        let expected = ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"];
        slots("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", &expected);
    }

    #[test]
    fn lists_of_hours_go_by_the_clock_on_the_wall() {
        for (schedule, in_spring, in_autumn) in [
            ("30 2,14 * * *", ["2026-03-29T12:30:00Z"], ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]),
            ("*/40 2 * * *", ["2026-03-30T00:00:00Z"], ["2026-10-25T00:00:00Z", "2026-10-25T00:40:00Z"]),
        ] {
            slots(schedule, "Europe/Berlin", "2026-03-28T20:00:00Z", &in_spring);
            slots(schedule, "Europe/Berlin", "2026-10-24T20:00:00Z", &in_autumn);
        }
        let twice = ["2026-10-25T01:00:00Z", "2026-10-25T01:40:00Z", "2026-10-26T01:00:00Z"];
        slots("*/40 2 * * *", "Europe/Berlin", "2026-10-25T00:40:00Z", &twice);
    }

    #[test]
    fn what_is_no_schedule_says_what_to_write() {
        for (wrong, said) in [
            ("", "has 0 fields"),
            ("* * * *", "has 4 fields"),
            ("* * * * * * *", "has 7 fields"),
            ("61 * * * *", "\"61\" is no minute"),
            ("0 0 25 * * *", "\"25\" is no hour"),
            ("0 2 * * FUN", "\"FUN\" is no weekday"),
            ("x * * * *", "is not a schedule"),
            ("@sometimes", "is not a schedule"),
            ("0 0 30 2 *", "never comes"),
        ] {
            let message = Schedule::parse(wrong, None).unwrap_err();
            assert!(message.contains(said), "{wrong:?}: {message}");
        }
    }

    #[test]
    fn an_unknown_zone_is_told_the_nearest() {
        let message = Schedule::parse("0 2 * * *", Some("Europe/Berln")).unwrap_err();
        assert_eq!(message, "no time zone is called \"Europe/Berln\"; did you mean \"Europe/Berlin\"?");
        let message = Schedule::parse("0 2 * * *", Some("at home")).unwrap_err();
        assert!(message.contains("write it like"), "{message}");
    }

    fn field() -> impl Strategy<Value = String> {
        prop_oneof![
            select(vec!["*", "*/5", "1-5", "3,4", "0", "L", "?", "MON", "1#2", "15W", "JAN-MAR", "/", "9-1"])
                .prop_map(str::to_owned),
            any::<u8>().prop_map(|number| number.to_string()),
        ]
    }

    proptest! {
        #![proptest_config(Config { cases: 300, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_text_makes_reading_a_schedule_panic(text in ".{0,30}", zone in "[A-Za-z/]{0,20}") {
            drop(Schedule::parse(&text, None));
            drop(Schedule::parse("* * * * *", Some(&zone)));
        }

        #[test]
        fn slots_are_the_same_from_both_sides(
            fields in proptest::collection::vec(field(), 5..7),
            zone in select(vec!["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]),
            from in 1_700_000_000u64..2_000_000_000,
        ) {
            if let Ok(schedule) = Schedule::parse(&fields.join(" "), Some(zone)) {
                let next = schedule.next_after(Slot(from)).unwrap();
                assert!(next > Slot(from));
                assert_eq!(schedule.latest_at(next.since_1970()), Some(next), "{schedule}");
                if let Some(before) = schedule.latest_at(Duration::from_secs(next.as_secs() - 1)) {
                    assert!(before <= Slot(from), "{schedule}: {before} was skipped from {from}");
                }
            }
        }
    }
}
