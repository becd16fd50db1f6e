//! How many requests a second each who asks may make: each token, and each address that sends none.
//!
//! Who asks too fast is told to wait, and nobody else is: neither another token nor another address pays for it. A second's
//! worth may come at once. Of more addresses than can be remembered the rest are counted together.
//!
//! Kept of each is only when its past requests are worked off at the allowed rate. Once that is over, it is as good as never
//! seen, and may be forgotten.

use std::{
    collections::HashMap,
    net::IpAddr,
    num::NonZeroU32,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::access::{Role, network};

/// So many addresses are told apart.
const PEERS: usize = 1024;

/// What may come at once: so long a time's worth.
const BURST: Duration = Duration::from_secs(1);

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Asker {
    /// There is one token for each role.
    Token(Role),
    Peer(IpAddr),
    /// All addresses that cannot be told apart any more.
    Rest,
}

/// What each asked of late.
#[derive(Debug)]
pub(crate) struct Rates {
    /// How long one request takes to be worked off.
    each: Duration,
    worked_off: Mutex<HashMap<Asker, Instant>>,
    refused: AtomicU64,
}

impl Rates {
    pub(crate) fn new(per_second: NonZeroU32) -> Self {
        let each = Duration::from_secs(1) / per_second.get();
        Self { each, worked_off: Mutex::default(), refused: AtomicU64::new(0) }
    }

    /// Counts a request, or says after how long there is room for it.
    pub(crate) fn take(&self, role: Role, peer: IpAddr) -> Result<(), Duration> {
        let asker = match role {
            Role::Nobody => Asker::Peer(network(peer)),
            role => Asker::Token(role),
        };
        self.take_at(asker, Instant::now())
    }

    /// How many were refused so far.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn take_at(&self, asker: Asker, now: Instant) -> Result<(), Duration> {
        let mut worked_off = self.worked_off.lock().unwrap_or_else(PoisonError::into_inner);
        if worked_off.len() >= PEERS {
            worked_off.retain(|_, until| *until > now);
        }
        let is_one_of_the_rest =
            matches!(asker, Asker::Peer(_)) && worked_off.len() >= PEERS && !worked_off.contains_key(&asker);
        let until = worked_off.entry(if is_one_of_the_rest { Asker::Rest } else { asker }).or_insert(now);
        let next = (*until).max(now) + self.each;
        let early = next.duration_since(now).saturating_sub(BURST.max(self.each));
        if early.is_zero() {
            *until = next;
            return Ok(());
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(early)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATOR: Asker = Asker::Token(Role::Operator);

    fn rates(per_second: u32) -> Rates {
        Rates::new(NonZeroU32::new(per_second).unwrap())
    }

    fn passed(rates: &Rates, asker: Asker, now: Instant) -> usize {
        (0..1000).filter(|_| rates.take_at(asker, now).is_ok()).count()
    }

    #[test]
    fn a_seconds_worth_passes_at_once_and_then_one_at_a_time() {
        let (rates, now) = (rates(10), Instant::now());
        assert_eq!(passed(&rates, OPERATOR, now), 10);
        assert_eq!(
            rates.take_at(OPERATOR, now),
            Err(Duration::from_millis(100)),
            "and refusals cost nothing"
        );
        assert_eq!(passed(&rates, OPERATOR, now + Duration::from_millis(100)), 1);
        assert_eq!(
            passed(&rates, OPERATOR, now + Duration::from_secs(60)),
            10,
            "what was not used is not saved up"
        );
    }

    #[test]
    fn nobody_pays_for_another() {
        let (rates, now) = (rates(5), Instant::now());
        let peers = [[10, 0, 0, 1], [10, 0, 0, 2]].map(|address| Asker::Peer(IpAddr::from(address)));
        for asker in [OPERATOR, Asker::Token(Role::Viewer), peers[0], peers[1]] {
            assert_eq!(passed(&rates, asker, now), 5, "{asker:?}");
        }
    }

    #[test]
    fn however_many_ask_few_are_remembered_and_tokens_pass() {
        let (rates, now) = (rates(1), Instant::now());
        let peer = |number: u32| Asker::Peer(IpAddr::from(number.to_be_bytes()));
        let crowd = (0..5000).filter(|number| rates.take_at(peer(*number), now).is_ok()).count();
        assert_eq!(crowd, PEERS + 1, "the rest are one");
        assert_eq!(passed(&rates, OPERATOR, now), 1);
        assert!(rates.worked_off.lock().unwrap().len() <= PEERS + 2);
        assert_eq!(passed(&rates, peer(500_000), now + Duration::from_secs(2)), 1);
        assert_eq!(rates.worked_off.lock().unwrap().len(), 1, "what is worked off is forgotten");
    }
}
