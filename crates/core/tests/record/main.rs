//! The record, without any store: against a sequential model, against its invariants, against the texts a store may
//! hand it.
//!
//! `sequences` draws random steps and compares every answer with `model`, which is written from the rules and shares
//! no code and no structure with the record; `invariants` are asserted besides and do not trust the model. `rules`
//! are single stories, one sentence each, and hold the defects once found. `texts` is about decoding. Nothing here
//! waits: the clock is a number the test moves.

mod invariants;
mod model;
mod rules;
mod sequences;
mod texts;
mod world;
