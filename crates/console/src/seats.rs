//! How many connections each address has: one of them must not take every place there is. Whoever asks says what counts as
//! one address: of IPv6, a whole network.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The connections of each address that has any: never more entries than connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seats(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// The place of one connection. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Seats,
    peer: IpAddr,
}

impl Seats {
    /// A place for one more of this address; `None` if it has so many already.
    pub(crate) fn take(&self, peer: IpAddr, most: usize) -> Option<Seat> {
        let mut taken = self.taken();
        let count = taken.get(&peer).copied().unwrap_or_default();
        if count >= most {
            return None;
        }
        taken.insert(peer, count + 1);
        Some(Seat { seats: self.clone(), peer })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
        match taken.get_mut(&self.peer) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.peer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_places_and_no_more_and_leaves_nothing_behind() {
        let (seats, [one, other]) = (Seats::default(), [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from));
        let both = (seats.take(one, 2).unwrap(), seats.take(one, 2).unwrap());
        assert!(seats.take(one, 2).is_none());
        let another = seats.take(other, 2).unwrap();
        drop(both.0);
        drop(seats.take(one, 2).unwrap());
        drop((both.1, another));
        assert!(seats.taken().is_empty());
    }
}
