//! What a store needs to recognise an acquisition, taken from a guard: what store crates build their own proofs on, such as
//! a condition in a transaction of the store.

use crate::{
    backend::{Mode, StoreInfo},
    id::ClaimId,
    key::Key,
};

/// An acquisition, as its store knows it. It proves nothing by itself: the lock may be lost by now. A store crate turns it
/// into something that the store checks together with a write.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Proof {
    /// The store.
    pub store: StoreInfo,
    /// The name, as the store has it.
    pub key: Key,
    /// Identity of the acquisition.
    pub id: ClaimId,
    /// The mode it was acquired in.
    pub mode: Mode,
    /// Its fence.
    pub fence: u64,
}
