//! The lock as a condition of the user's own transaction: the strongest there is (level S4).
//!
//! A check before a write can be outdated when the write arrives. A condition within the write cannot: etcd looks at it and
//! writes in one act.

use leasehold_core::{Error, ErrorKind, Guard, Operation, Proof, Result};

use crate::names::Folder;

/// What must be true of etcd for a lock to be held: this key was created at this revision and has not gone since. With any
/// client of etcd: `Compare(CreateRevision(key), "=", create_revision)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The key of the acquisition.
    pub key: Vec<u8>,
    /// The revision at which it was created: the fence.
    pub create_revision: i64,
}

/// What a proof of holding can be turned into on etcd.
pub trait Conditional {
    /// The condition to add to a transaction on the same etcd: it commits only while the lock is held.
    ///
    /// # Errors
    /// `Unsupported` if the lock is not on an etcd.
    fn compare(&self) -> Result<Condition>;
}

impl Conditional for Proof {
    fn compare(&self) -> Result<Condition> {
        if !matches!(self.store.scheme, "etcd" | "etcds") {
            let message =
                format!("this lock is on {}; only one on etcd is a condition there", self.store.scheme);
            return Err(Error::new(ErrorKind::Unsupported, Operation::Check, message));
        }
        let key = Folder::of(&self.key).held(self.mode, self.id);
        Ok(Condition { key, create_revision: self.fence.cast_signed() })
    }
}

impl Conditional for Guard {
    fn compare(&self) -> Result<Condition> {
        self.proof().compare()
    }
}
