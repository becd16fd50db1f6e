//! What a command runs under: one lock or several, as one thing with one deadline.

use leasehold::{Guard, SetGuard, backend::Loss, time::Instant};

/// The locks that are held, and their names in the order in which they were asked for.
#[derive(Debug)]
pub(crate) struct Hold<'g> {
    names: Vec<String>,
    held: Held<'g>,
}

/// Whose the locks are.
#[derive(Debug)]
enum Held<'g> {
    /// Ours, to give back.
    Set(SetGuard),
    /// A job's or a leader's, which gives it back by itself.
    Lent(&'g Guard),
}

impl<'g> Hold<'g> {
    pub(crate) fn new(names: Vec<String>, guard: SetGuard) -> Self {
        Self { names, held: Held::Set(guard) }
    }

    /// The lock of a job that runs, or of one who leads.
    pub(crate) fn lent(guard: &'g Guard) -> Self {
        Self { names: vec![guard.name().to_owned()], held: Held::Lent(guard) }
    }

    /// The guards, in the order in which the names were given. A name given twice has one guard, named twice.
    pub(crate) fn guards(&self) -> impl Iterator<Item = &Guard> {
        self.names.iter().filter_map(|name| match &self.held {
            Held::Set(set) => set.guard(name),
            Held::Lent(guard) => Some(*guard),
        })
    }

    /// Until when all of them are ours.
    pub(crate) fn deadline(&self) -> Instant {
        self.first_to_end().map_or(Instant::from_nanos(0), Guard::deadline)
    }

    /// Completes when the deadline may have moved beyond `known`, or a lock is lost.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub(crate) async fn renewed(&self, known: Instant) {
        // The deadline of all moves when the one that ends first is renewed, and not before.
        match self.first_to_end() {
            Some(guard) => drop(guard.renewed(known).await),
            None => std::future::pending().await,
        }
    }

    /// Completes when any of them is lost.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub(crate) async fn lost(&self) -> Loss {
        match &self.held {
            Held::Set(set) => set.lost().await,
            Held::Lent(guard) => guard.lost().await,
        }
    }

    /// Gives back what is ours.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing: the releases go on in the background.
    pub(crate) async fn release(self) -> leasehold::Result<()> {
        match self.held {
            Held::Set(set) => set.release().await,
            Held::Lent(_) => Ok(()),
        }
    }

    fn first_to_end(&self) -> Option<&Guard> {
        self.guards().min_by_key(|guard| guard.deadline())
    }
}
