//! The page in a real Chromium: every view and every act, on memory and on Redis, in both languages, dark and light, on
//! a desk and on a phone. Pictures of all of it are left in `target/screens` for people to look at.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod acts;
mod driver;
mod hostile;
mod jobs;
mod stage;
mod views;
