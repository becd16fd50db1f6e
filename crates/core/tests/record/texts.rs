//! Texts a store may hand us: ours, a newer version's, another program's, damaged ones.

use std::{sync::LazyLock, time::Duration};

use leasehold_core::{
    ErrorKind,
    backend::{
        LatchStep, Mode,
        record::{FORMAT, Record, Step},
    },
};
use proptest::{collection::vec, prelude::any, proptest, test_runner::Config};
use serde_json::{Value, json};

use crate::world::{
    World, attempt, break_hold, claim_id, fair, permits, plain, recount, release, renew, secs, session,
    withdraw,
};

#[test]
fn our_own_text_is_read_as_it_was_written() {
    for record in records() {
        assert_eq!(Record::decode(&record.encode()).unwrap(), record);
    }
}

#[test]
fn a_newer_format_is_refused_by_name_whatever_else_it_says() {
    let next = FORMAT + 1;
    let texts =
        [format!(r#"{{"format":{next}}}"#), format!(r#"{{"holders":7,"format":{},"new":[]}}"#, u32::MAX)];
    for text in texts {
        let error = Record::decode(&text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{text}");
        assert!(error.to_string().contains("newer"), "{error}");
    }
}

#[test]
fn an_older_format_is_read_and_written_as_ours() {
    let record = Record::decode(r#"{"format":0,"fence":7}"#).unwrap();
    assert_eq!(record, Record::new(7));
}

#[test]
fn what_is_no_record_is_refused() {
    let good = Record::new(3).encode();
    let texts = ["", "null", "7", "[]", "{}", "lock", r#"{"format":1}"#, r#"{"format":"1","fence":1}"#];
    let more = [format!("{good} x"), good.replace('3', "-3"), good.replace('3', "3.5"), "[".repeat(100_000)];
    for text in texts.into_iter().map(str::to_owned).chain(more) {
        assert_eq!(Record::decode(&text).unwrap_err().kind(), ErrorKind::Internal, "{text:.60}");
    }
}

#[test]
fn a_text_that_no_record_can_have_is_refused_or_harmless() {
    let latch = json!({"format": FORMAT, "fence": 1, "latch": {"count": 0}});
    let fence = json!({"format": FORMAT, "fence": u64::MAX});
    for text in [latch, fence] {
        use_if_read(&text.to_string());
    }
}

proptest! {
    #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn no_text_makes_decoding_panic(text in ".*") {
        use_if_read(&text);
    }

    #[test]
    fn no_damaged_text_makes_decoding_panic(which in 0..3usize, damage in vec(any::<(u16, u8)>(), 1..4)) {
        let mut text = records()[which].encode().into_bytes();
        for (at, byte) in damage {
            let at = usize::from(at) % text.len();
            match byte % 3 {
                0 => text[at] = byte / 2,
                1 => text.insert(at, byte / 2),
                _ => text.truncate(at.max(1)),
            }
        }
        use_if_read(&String::from_utf8_lossy(&text));
    }

    #[test]
    fn no_altered_value_makes_a_record_panic(which in 0..3usize, changes in vec(any::<(u16, u8)>(), 1..4)) {
        let mut value: Value = serde_json::from_str(&records()[which].encode()).unwrap();
        for (at, choice) in changes {
            let places = places(&value);
            let place = value.pointer_mut(&places[usize::from(at) % places.len()]).unwrap();
            *place = otherwise(place, choice);
        }
        use_if_read(&value.to_string());
    }
}

/// A text that passes as a record must also work as one.
fn use_if_read(text: &str) {
    let Ok(record) = Record::decode(text) else { return };
    assert_eq!(Record::decode(&record.encode()).expect("our own text"), record);
    for mode in [Mode::Exclusive, Mode::Shared, permits(1, 3), Mode::Open] {
        let mut world = World { record: record.clone(), ..World::new() };
        let (ours, other) = (plain(1, mode), fair(9, mode));
        let latch = [LatchStep::CountDown { id: claim_id(session(9), 1) }, LatchStep::Arm { count: 1 }];
        let mut steps = vec![renew(&ours, secs(5)), recount(&ours, 0, 1), attempt(&ours), attempt(&other)];
        steps.extend(latch.map(Step::Latch));
        steps.extend([break_hold(&ours, "stuck"), release(&ours), attempt(&other), withdraw(&other)]);
        for step in steps {
            let _ = world.take(&step, None);
            let _ = world.living();
            world.pass(Duration::from_secs(7));
        }
    }
}

/// A lock, a semaphore and a latch, with everything a record can have in it.
fn records() -> [Record; 3] {
    static RECORDS: LazyLock<[Record; 3]> = LazyLock::new(|| [lock(), semaphore(), latch()]);
    RECORDS.clone()
}

fn lock() -> Record {
    let mut world = World::new();
    let gone = plain(4, Mode::Exclusive);
    let _ = world.attempt(&gone);
    let _ = world.take(&break_hold(&gone, "it \"hung\"\n"), None);
    for claim in [plain(1, Mode::Exclusive), plain(2, Mode::Shared), fair(3, Mode::Exclusive)] {
        let _ = world.attempt(&claim);
    }
    let _ = world.take(&withdraw(&plain(5, Mode::Shared)), None);
    world.record
}

fn semaphore() -> Record {
    let mut world = World::new();
    for claim in [plain(1, permits(2, 3)), plain(2, permits(1, 3)), fair(3, permits(3, 3))] {
        let _ = world.attempt(&claim);
    }
    world.record
}

fn latch() -> Record {
    let mut world = World::new();
    let _ = world.latch(LatchStep::Arm { count: 3 });
    let _ = world.latch(LatchStep::CountDown { id: claim_id(session(9), 7) });
    let _ = world.attempt(&plain(1, Mode::Open));
    world.record
}

/// Where every value inside this one is.
fn places(value: &Value) -> Vec<String> {
    let inside: Vec<(String, &Value)> = match value {
        Value::Array(items) => items.iter().enumerate().map(|(at, item)| (at.to_string(), item)).collect(),
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), field)).collect(),
        _ => Vec::new(),
    };
    let deeper = |(at, value)| places(value).into_iter().map(move |rest| format!("/{at}{rest}"));
    std::iter::once(String::new()).chain(inside.into_iter().flat_map(deeper)).collect()
}

/// What could stand in the place of a value: nothing, too much, the wrong thing, the same thing twice.
fn otherwise(value: &Value, choice: u8) -> Value {
    match choice % 9 {
        0 => json!(0),
        1 => json!(1),
        2 => json!(u64::MAX),
        3 => json!(-1),
        4 => json!(1e300),
        5 => json!("x"),
        6 => json!(null),
        7 => json!({}),
        _ => value
            .as_array()
            .map_or(json!([value, value]), |items| items.iter().chain(items).cloned().collect()),
    }
}
