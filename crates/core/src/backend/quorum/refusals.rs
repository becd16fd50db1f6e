//! What a quorum says when it cannot do something, or could not this time.

use crate::error::{Error, ErrorKind, Operation};

/// What no majority of answers can do.
pub(super) fn unsupported(operation: Operation, what: &str) -> Error {
    let message = format!("a quorum of stores has no {what}; use one store for them");
    Error::new(ErrorKind::Unsupported, operation, message)
}

/// Too few members answered. What the others did is unknown if any of them said so or said nothing.
pub(super) fn too_few(
    operation: Operation,
    (fine, needed, members): (usize, usize, usize),
    errors: Vec<Error>,
) -> Error {
    let silent = fine + errors.len() < members;
    let unknown = silent || errors.iter().any(|error| error.kind() == ErrorKind::Indeterminate);
    let kind = if unknown { ErrorKind::Indeterminate } else { ErrorKind::Unavailable };
    let message =
        format!("{fine} of {members} members were of use and {needed} are needed; see to the others");
    let error = Error::new(kind, operation, message);
    match errors.into_iter().next() {
        Some(first) => error.because(first),
        None => error,
    }
}
