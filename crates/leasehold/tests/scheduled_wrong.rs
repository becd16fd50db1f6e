//! `#[scheduled]` as it is not meant to be used: it does not compile, and says what to write.
//!
//! What the compiler says beside our own words may change with its version; `TRYBUILD=overwrite` writes it anew.

#![cfg(feature = "macros")]

#[test]
fn wrong_uses_do_not_compile_and_say_what_to_write() {
    trybuild::TestCases::new().compile_fail("tests/scheduled_wrong/*.rs");
}
