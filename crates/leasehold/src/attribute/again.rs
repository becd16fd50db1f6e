//! What a job needs of its function: arguments that can be given again, and an end that can be written down.

use std::fmt::Display;

/// Something that every run of a job can be given.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given to every run of a job",
    label = "this is cloned for every run, and has no `Clone`",
    note = "take an `Arc<{Self}>`, or write `#[derive(Clone)]` on it"
)]
pub trait Again: Clone {}

#[diagnostic::do_not_recommend]
impl<T: Clone> Again for T {}

/// The same once more, for another run.
pub fn again<T: Again>(it: &T) -> T {
    it.clone()
}

/// How a run can end.
#[diagnostic::on_unimplemented(
    message = "a job returns nothing or a `Result`, and this one returns `{Self}`",
    label = "nobody is there to take this",
    note = "write `-> Result<(), E>` where `E` has `Display`: what it says is kept in the job's history"
)]
pub trait Ends {
    /// What is written down of it.
    fn ended(self) -> Result<(), String>;
}

impl Ends for () {
    fn ended(self) -> Result<(), String> {
        Ok(())
    }
}

impl<T, E: Display> Ends for Result<T, E> {
    fn ended(self) -> Result<(), String> {
        self.map(drop).map_err(|error| error.to_string())
    }
}

/// What is written down of a run.
pub fn ended(run: impl Ends) -> Result<(), String> {
    run.ended()
}
