//! How a lock is asked for: in a mode, or by numbers that have yet to make one.

use std::num::NonZeroU32;

use crate::{
    backend::Mode,
    error::{Error, ErrorKind, Operation, Result},
};

/// A mode, or the numbers that do not make one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    Mode(Mode),
    Permits { take: u32, of: u32 },
}

impl Asked {
    pub(super) fn check(self) -> Result<Mode> {
        let (take, of) = match self {
            Self::Mode(mode) => return Ok(mode),
            Self::Permits { take, of } => (take, of),
        };
        match (NonZeroU32::new(take), NonZeroU32::new(of)) {
            (Some(take), Some(of)) if take <= of => Ok(Mode::Permits { take, of }),
            _ => {
                let message = format!("cannot take {take} of {of} permits; take at least 1 and at most all");
                Err(Error::new(ErrorKind::Config, Operation::Acquire, message))
            }
        }
    }
}
