//! The gate before a resource of this process: it lets a fence pass unless it has seen a greater one for that name.
//!
//! Its memory is bounded, and forgetting never lets a stale fence pass. When there is one name too many, the one with the
//! lowest fence is forgotten and the *floor* is raised to that fence; of a name that it does not know, the gate refuses
//! whatever is below the floor. So it may refuse a fence that is good. It does so where more names than it has room for are
//! in use and fences are plain counters, which are low for a new name; where they follow the clock, as on Redis, a new
//! holder is above the floor anyway.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Refuses a fence that is smaller than one it has seen for the same name.
///
/// It remembers as long as the process lives, and for one process only. What several processes write to needs
/// [`checks`](crate::checks) at the store of it.
///
/// ```
/// # use leasehold_tower::{FenceGate, Refused};
/// let gate = FenceGate::new(10_000);
/// gate.check("order:42", 7)?;
/// gate.check("order:42", 7)?;                        // the same holder once more
/// let written = gate.write("order:42", 9, || "paid")?;
/// assert_eq!(gate.check("order:42", 7), Err(Refused::Stale { least: 9 }));
/// # assert_eq!(written, "paid"); Ok::<_, Refused>(())
/// ```
#[derive(Debug)]
pub struct FenceGate {
    capacity: usize,
    seen: Mutex<Seen>,
}

/// Why a fence does not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// A later holder has been here, or the fence is zero, which nobody has.
    Stale {
        /// The least fence that would pass.
        least: u64,
    },
    /// The gate does not know this name, or no more, and has forgotten names with fences like this: it may be stale.
    Forgotten {
        /// The least fence that would pass.
        least: u64,
    },
}

#[derive(Debug, Default)]
struct Seen {
    floor: u64,
    fences: HashMap<Arc<str>, u64>,
    /// The same, lowest fence first.
    order: BTreeSet<(u64, Arc<str>)>,
}

impl FenceGate {
    /// A gate that remembers so many names. Give it room for all that are in use at a time.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, seen: Mutex::default() }
    }

    /// Lets this fence pass, and no smaller one for this name from now on.
    ///
    /// What is done *after* it can be overtaken: a thread can be paused between the check and its write. Where the write
    /// is a matter of this process's memory, use [`write`](Self::write).
    ///
    /// # Errors
    /// Why it does not pass.
    pub fn check(&self, name: &str, fence: u64) -> Result<(), Refused> {
        self.write(name, fence, || ())
    }

    /// Does this if the fence passes, before any other can pass: no later holder can come in between.
    ///
    /// All names wait meanwhile, so keep it short; it must not ask the same gate.
    ///
    /// # Errors
    /// Why it does not pass; nothing was done then.
    pub fn write<T>(&self, name: &str, fence: u64, write: impl FnOnce() -> T) -> Result<T, Refused> {
        let mut seen = self.seen();
        seen.admit(name, fence)?;
        while seen.fences.len() > self.capacity {
            seen.forget_lowest();
        }
        Ok(write())
    }

    /// How many names it remembers.
    pub fn len(&self) -> usize {
        self.seen().fences.len()
    }

    /// Whether it remembers none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A panic in a write leaves the memory whole: that is changed before.
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn admit(&mut self, name: &str, fence: u64) -> Result<(), Refused> {
        let known = self.fences.get_key_value(name).map(|(name, known)| (name.clone(), *known));
        let least = known.as_ref().map_or(self.floor, |(_, known)| *known).max(1);
        let (name, known) = match known {
            Some(_) if fence < least => return Err(Refused::Stale { least }),
            None if fence == 0 => return Err(Refused::Stale { least }),
            None if fence < least => return Err(Refused::Forgotten { least }),
            Some(known) => known,
            None => (name.into(), 0),
        };
        if fence > known {
            self.order.remove(&(known, name.clone()));
            self.order.insert((fence, name.clone()));
            self.fences.insert(name, fence);
        }
        Ok(())
    }

    fn forget_lowest(&mut self) {
        let Some((fence, name)) = self.order.pop_first() else { return };
        self.fences.remove(&name);
        self.floor = self.floor.max(fence);
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { least } => {
                write!(f, "a later holder has fence {least}; stop, the lock is no longer held")
            }
            Self::Forgotten { least } => {
                write!(
                    f,
                    "only fences from {least} on are safe for a name not remembered; give the gate more room"
                )
            }
        }
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_holder_shuts_the_gate_for_the_earlier_ones_of_that_name_only() {
        let gate = FenceGate::new(8);
        gate.check("a", 5).unwrap();
        gate.check("a", 7).unwrap();
        gate.check("a", 7).unwrap();
        assert_eq!(gate.check("a", 6), Err(Refused::Stale { least: 7 }));
        gate.check("b", 1).unwrap();
        assert_eq!(gate.len(), 2);
    }

    #[test]
    fn zero_is_nobodys_fence() {
        let gate = FenceGate::new(8);
        assert_eq!(gate.check("a", 0), Err(Refused::Stale { least: 1 }));
        assert!(gate.is_empty());
    }

    #[test]
    fn what_is_refused_is_not_written() {
        let gate = FenceGate::new(8);
        let mut written = Vec::new();
        gate.write("a", 2, || written.push(2)).unwrap();
        gate.write("a", 1, || written.push(1)).unwrap_err();
        gate.write("a", 3, || written.push(3)).unwrap();
        assert_eq!(written, [2, 3]);
    }

    #[test]
    fn forgetting_never_lets_a_stale_fence_pass() {
        let (names, rounds, capacity) = (64_u64, 50_u64, 16);
        let gate = FenceGate::new(capacity);
        let mut greatest: HashMap<u64, u64> = HashMap::new();
        let mut passed = 0;
        // A walk that comes back to every name again and again, with fences old and new.
        for step in 0..names * rounds {
            let name = (step * 37 + step / 7) % names;
            let fence = 1 + (step * 2_654_435_761) % (step + 1);
            if gate.check(&name.to_string(), fence).is_ok() {
                let known = greatest.entry(name).or_default();
                assert!(fence >= *known, "{name}: {fence} passed after {known}");
                *known = fence;
                passed += 1;
            }
            assert!(gate.len() <= capacity);
        }
        assert!(passed > names, "it lets something pass, too: {passed}");
    }

    #[test]
    fn a_forgotten_name_comes_back_with_a_greater_fence() {
        let gate = FenceGate::new(1);
        gate.check("a", 10).unwrap();
        gate.check("b", 20).unwrap();
        assert_eq!(gate.check("a", 9), Err(Refused::Forgotten { least: 10 }), "it was forgotten at 10");
        gate.check("a", 11).unwrap();
        gate.check("b", 20).unwrap();
    }

    #[test]
    fn a_gate_without_room_lets_no_stale_fence_pass_either() {
        let gate = FenceGate::new(0);
        gate.check("a", 10).unwrap();
        assert_eq!(gate.check("a", 9), Err(Refused::Forgotten { least: 10 }));
        gate.check("a", 10).unwrap();
    }
}
