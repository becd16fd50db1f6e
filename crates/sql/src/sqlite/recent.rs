//! Rows as we last wrote them, so that the usual release after an acquire, the renewal after a renewal, need neither
//! read nor parse what they change.
//!
//! The database decides: what is written on the strength of a memory is written on the condition that the row still
//! says, byte for byte, what we remember. So nothing here can do harm by being out of date.

use std::{collections::HashMap, sync::Arc};

use leasehold_core::backend::record::Record;

/// How many rows are remembered.
const MOST: usize = 128;

/// What we last wrote of each name.
#[derive(Debug, Default)]
pub(super) struct Recent(HashMap<Arc<str>, Written>);

/// A row as it was written: the record, and its text if anybody is in it.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) record: Record,
    pub(super) text: Option<String>,
}

impl Written {
    pub(super) fn new(record: Record) -> Self {
        let text = (!record.is_vacant()).then(|| record.encode());
        Self { record, text }
    }
}

impl Recent {
    pub(super) fn take(&mut self, name: &str) -> Option<Written> {
        self.0.remove(name)
    }

    pub(super) fn remember(&mut self, name: Arc<str>, written: Written) {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(name, written);
    }
}
