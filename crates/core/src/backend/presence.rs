//! What a client tells a store about itself, where the store's own layout has no room for it.

use std::{sync::Arc, time::Duration};

use super::Mode;
use crate::{call_site::CallSite, id::ClaimId, key::Key};

/// One acquisition that holds or waits.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The name.
    pub key: Key,
    /// The acquisition.
    pub id: ClaimId,
    /// How it is held, or asked for.
    pub mode: Mode,
    /// Its fence, if it holds; without one it waits.
    pub fence: Option<u64>,
    /// What for.
    pub label: Option<Arc<str>>,
    /// Where in its code it was asked for.
    pub location: Option<CallSite>,
}

/// News of an acquisition.
#[derive(Clone, Debug)]
pub enum Sign {
    /// It holds or waits, and has done so for this long.
    Stands {
        /// The acquisition.
        standing: Standing,
        /// For how long, when this is told.
        age: Duration,
    },
    /// It holds and waits no more.
    Ended(Standing),
}
