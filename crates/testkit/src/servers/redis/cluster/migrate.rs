//! A slot on its way from one primary to another, step by step, so that a test can stop in the middle: between
//! [`begin`](Cluster::begin_migration) and [`finish`](Cluster::finish_migration) the old owner answers `ASK` for keys
//! that it does not have, and `MOVED` afterwards.

use std::io;

use super::{Cluster, Redis, view};

/// How many keys are asked for, and moved, at once.
const BATCH: &str = "100";

/// A slot on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a slot stays half-way until its migration is finished"]
pub struct Migration {
    slot: u16,
    from: usize,
    to: usize,
}

impl Migration {
    /// The slot.
    pub fn slot(&self) -> u16 {
        self.slot
    }

    /// The node that owns it until the end.
    pub fn from(&self) -> usize {
        self.from
    }

    /// The node that will.
    pub fn to(&self) -> usize {
        self.to
    }
}

impl Cluster {
    /// The first step: the owner of the slot and the primary `to` know that it is on its way (`SETSLOT IMPORTING`,
    /// `MIGRATING`).
    ///
    /// # Errors
    /// If a node refuses or does not answer.
    pub fn begin_migration(&self, slot: u16, to: usize) -> io::Result<Migration> {
        let migration = Migration { slot, from: self.owner(slot)?, to };
        let (source, target) = self.ends(migration);
        let slot = slot.to_string();
        // The target first: otherwise the source would send clients to one that turns them away.
        target.demand(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &view::own(source)?.id])?;
        source.demand(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &view::own(target)?.id])?;
        Ok(migration)
    }

    /// The middle: moves all keys of the slot (`MIGRATE`), and returns how many.
    ///
    /// # Errors
    /// If a node refuses or does not answer.
    pub fn move_keys(&self, migration: Migration) -> io::Result<usize> {
        let (source, slot) = (self.ends(migration).0, migration.slot.to_string());
        let mut moved = 0;
        loop {
            let reply = source.demand(&["CLUSTER", "GETKEYSINSLOT", &slot, BATCH])?;
            let keys: Vec<&str> = reply.parts().iter().filter_map(|key| key.text()).collect();
            if keys.is_empty() {
                return Ok(moved);
            }
            // MIGRATE takes what it moved away, so this ends unless clients write faster than it moves.
            self.move_these_keys(migration, &keys)?;
            moved += keys.len();
        }
    }

    /// Moves these keys of the slot only.
    ///
    /// # Errors
    /// If a node refuses or does not answer.
    pub fn move_these_keys(&self, migration: Migration, keys: &[&str]) -> io::Result<()> {
        let (source, target) = self.ends(migration);
        let port = target.port().to_string();
        let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "1000", "KEYS"];
        words.extend(keys);
        source.demand(&words).map(drop)
    }

    /// The last step: the slot belongs to the primary `to` (`SETSLOT NODE`), and all primaries know.
    ///
    /// # Errors
    /// If a node refuses, as the old owner does while it has keys of the slot, or does not answer.
    pub fn finish_migration(&self, migration: Migration) -> io::Result<()> {
        let (source, target) = self.ends(migration);
        let (slot, id) = (migration.slot.to_string(), view::own(target)?.id);
        // The target first: a crash between the two leaves the slot with an owner.
        target.demand(&["CLUSTER", "SETSLOT", &slot, "NODE", &id])?;
        source.demand(&["CLUSTER", "SETSLOT", &slot, "NODE", &id])?;
        let agree = || (self.seen_owner(migration.slot, None) == Some(migration.to)).then_some(());
        super::together::until("all nodes know the slot's new owner", agree)
    }

    /// All three steps.
    ///
    /// # Errors
    /// If a node refuses or does not answer.
    pub fn migrate_slot(&self, slot: u16, to: usize) -> io::Result<()> {
        let migration = self.begin_migration(slot, to)?;
        self.move_keys(migration)?;
        self.finish_migration(migration)
    }

    fn ends(&self, migration: Migration) -> (&Redis, &Redis) {
        (&self.nodes()[migration.from], &self.nodes()[migration.to])
    }
}
