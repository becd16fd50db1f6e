//! What a server might answer, drawn by chance: for tests that nothing it sends makes us panic.
//!
//! Trees of any shape, and answers of the right shape with numbers and texts that no script of ours would write.

use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any, prop_oneof},
    sample::select,
};
use redis::Value;

const WORDS: &[&str] = &[
    "held",
    "withdrawn",
    "other",
    "busy",
    "gone",
    "error",
    "unset",
    "many",
    "kept",
    "has",
    "lock",
    "read",
    "write",
    "semaphore",
    "latch",
    "fair",
    "",
    "MOVED 3999 127.0.0.1:6381",
    "OOM no memory",
    "{}",
    "null",
    "{\"by\":\"a@b\",\"why\":\"\"}",
];

const HOLDERS: &[&str] = &[
    "01234567-89ab-cdef-0011-223344556677:1",
    "01234567-89ab-cdef-0011-223344556677:1:write",
    "01234567-89ab-cdef-0011-223344556677:18446744073709551615",
    "01234567-89ab-cdef-0011-223344556677:-1",
    "x",
    ":write",
    "",
];

const EXTREMES: &[i64] = &[0, 1, -1, 16383, 16384, u32::MAX as i64, i64::MAX, i64::MIN];

/// Any answer at all.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    prop_oneof![tree(), shaped()]
}

/// Any tree.
fn tree() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 40, 8, |inner| {
        prop_oneof![
            4 => vec(inner.clone(), 0..8).prop_map(Value::Array),
            1 => vec(inner.clone(), 0..4).prop_map(Value::Set),
            1 => vec((inner.clone(), inner), 0..4).prop_map(Value::Map),
        ]
    })
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Nil),
        Just(Value::Okay),
        number(),
        word(),
        any::<bool>().prop_map(Value::Boolean),
        any::<f64>().prop_map(Value::Double),
        vec(any::<u8>(), 0..40).prop_map(Value::BulkString),
    ]
}

fn word() -> impl Strategy<Value = Value> {
    prop_oneof![
        select(WORDS).prop_map(|word| Value::BulkString(word.into())),
        select(WORDS).prop_map(|word| Value::SimpleString(word.into())),
    ]
}

/// A number as servers write them, the extremes more often than by chance.
pub(crate) fn number() -> impl Strategy<Value = Value> {
    let extremes = select(EXTREMES);
    let number = prop_oneof![extremes, any::<i64>(), 0..20_000_i64];
    prop_oneof![
        number.clone().prop_map(Value::Int),
        number.prop_map(|number| Value::BulkString(number.to_string().into())),
    ]
}

/// A word, some numbers, and a scene with its line and its notes: right in shape, wrong in everything else.
fn shaped() -> impl Strategy<Value = Value> {
    let busy = (vec(number(), 0..4), scene()).prop_map(|(numbers, scene)| [numbers, scene].concat());
    let view = (scene(), list(leaf()), list(leaf()))
        .prop_map(|(scene, line, told)| [scene, vec![line, told]].concat());
    let told = (word(), vec(leaf(), 0..6)).prop_map(|(word, rest)| [vec![word], rest].concat());
    let busy = busy.prop_map(|parts| [vec![Value::BulkString("busy".into())], parts].concat());
    prop_oneof![busy, view, told].prop_map(Value::Array)
}

/// What could stand in the fields of a cell, near to what does.
pub(crate) fn cell_field() -> impl Strategy<Value = Value> {
    let digits = "[0-9]{1,21}|[+-]?[0-9]{1,4}".prop_map(|digits| Value::BulkString(digits.into()));
    prop_oneof![3 => digits, 1 => leaf(), 1 => word()]
}

/// The five parts of a scene.
pub(crate) fn scene() -> impl Strategy<Value = Vec<Value>> {
    (word(), number(), number(), number(), list(row()))
        .prop_map(|(kind, count, fence, now, rows)| vec![kind, count, fence, now, rows])
}

fn row() -> impl Strategy<Value = Value> {
    let holder = select(HOLDERS).prop_map(|holder| Value::BulkString(holder.into()));
    let note = prop_oneof!["[0-9]{0,20} [0-9]{0,11} .{0,9}", ".{0,20}"];
    let note = note.prop_map(|note| Value::BulkString(note.into()));
    (holder, number(), number(), note).prop_map(|(a, b, c, d)| Value::Array(vec![a, b, c, d]))
}

fn list(of: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    vec(of, 0..6).prop_map(Value::Array)
}
