//! What proofs within transactions have in common.

use leasehold_core::{Error, ErrorKind, Operation, Proof};

/// A lock of another kind of store has no row where the transaction looks.
pub(crate) fn elsewhere(proof: &Proof, database: &str) -> Error {
    let message = format!(
        "this lock is on {}; only one on {database} is proved in its transactions",
        proof.store.scheme
    );
    Error::new(ErrorKind::Unsupported, Operation::Check, message).about(proof.key.name())
}
