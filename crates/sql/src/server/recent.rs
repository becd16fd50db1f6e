//! Rows as we last wrote or saw them, so that the usual release after an acquire need not look first.
//!
//! The database decides: what is written on the strength of a memory is written on the condition that the row still has
//! the version we remember, and no name ever has a version twice. So nothing here can do harm by being out of date.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::Found;

/// How many rows are remembered.
const MOST: usize = 1024;

/// What we last knew of each name.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<HashMap<Arc<str>, Found>>);

impl Recent {
    pub(super) fn take(&self, name: &str) -> Option<Found> {
        self.lock().remove(name)
    }

    pub(super) fn remember(&self, name: Arc<str>, found: Found) {
        let mut known = self.lock();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(name, found);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, Found>> {
        // Whatever is in there is checked by the database before it is used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
