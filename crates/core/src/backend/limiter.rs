//! A rate limiter as a value, for a store within this process: a sliding window of what was taken.
//!
//! Every taking counts for as long as the rate says and not a moment longer, so no stretch of that length ever sees more
//! than the rate: there are no fixed windows with a double portion where two of them meet.

use std::{
    collections::{HashMap, VecDeque},
    num::NonZeroU32,
    time::Duration,
};

use super::{Rate, RateAnswer, Share, record::Moment};
use crate::id::{ClaimId, ClientId};

/// One limiter.
#[derive(Debug)]
pub(super) struct Limiter {
    rate: Rate,
    used: Moment,
    all: Window,
    each: HashMap<ClientId, Window>,
}

/// What was taken of late, oldest first.
#[derive(Debug, Default)]
struct Window {
    taken: VecDeque<Taking>,
    sum: u64,
}

#[derive(Debug)]
struct Taking {
    id: ClaimId,
    at: Moment,
    permits: u32,
}

impl Limiter {
    pub(super) fn new(rate: Rate, now: Moment) -> Self {
        Self { rate, used: now, all: Window::default(), each: HashMap::new() }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// Nobody has used it for as long as it was to be kept.
    pub(super) fn is_over(&self, now: Moment) -> bool {
        self.rate.keep.is_some_and(|keep| self.used.after(keep) <= now)
    }

    pub(super) fn take(&mut self, id: ClaimId, permits: NonZeroU32, now: Moment) -> RateAnswer {
        let Rate { permits: rate, per, .. } = self.rate;
        if u64::from(permits.get()) > rate {
            return RateAnswer::TooMany { rate };
        }
        self.used = now;
        self.window(id.client(), now).take(id, permits.get(), rate, per, now)
    }

    pub(super) fn read(&mut self, client: ClientId, now: Moment) -> RateAnswer {
        self.used = now;
        let rate = self.rate;
        RateAnswer::Has { rate, free: rate.permits - self.window(client, now).sum.min(rate.permits) }
    }

    /// The window that counts for this client, with nothing in it that counts no more.
    fn window(&mut self, client: ClientId, now: Moment) -> &mut Window {
        let per = self.rate.per;
        let window = match self.rate.share {
            Share::All => &mut self.all,
            Share::Each => {
                if !self.each.contains_key(&client) {
                    // Clients that are gone leave empty windows.
                    self.each.values_mut().for_each(|window| window.expire(per, now));
                    self.each.retain(|_, window| !window.taken.is_empty());
                }
                self.each.entry(client).or_default()
            }
        };
        window.expire(per, now);
        window
    }
}

impl Window {
    fn expire(&mut self, per: Duration, now: Moment) {
        while let Some(oldest) = self.taken.front().filter(|taking| taking.at.after(per) <= now) {
            self.sum -= u64::from(oldest.permits);
            self.taken.pop_front();
        }
    }

    fn take(&mut self, id: ClaimId, permits: u32, rate: u64, per: Duration, now: Moment) -> RateAnswer {
        if self.taken.iter().any(|taking| taking.id == id) {
            return RateAnswer::Taken;
        }
        let wanted = self.sum + u64::from(permits);
        let Some(missing) = wanted.checked_sub(rate).filter(|missing| *missing > 0) else {
            self.taken.push_back(Taking { id, at: now, permits });
            self.sum = wanted;
            return RateAnswer::Taken;
        };
        RateAnswer::Later { after: self.back(missing, per, now) }
    }

    /// How long until so many are back.
    fn back(&self, mut missing: u64, per: Duration, now: Moment) -> Duration {
        let mut at = now;
        for taking in &self.taken {
            at = taking.at.after(per);
            missing = missing.saturating_sub(u64::from(taking.permits));
            if missing == 0 {
                break;
            }
        }
        Duration::from_micros(at.0.saturating_sub(now.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn limiter(permits: u64, share: Share) -> Limiter {
        let rate = Rate { permits, per: Duration::from_secs(1), share, keep: None };
        Limiter::new(rate, Moment(0))
    }

    fn id(client: u8, serial: u64) -> ClaimId {
        format!("00000000-0000-0000-0000-0000000000{client:02x}:{serial}").parse().unwrap()
    }

    fn take(limiter: &mut Limiter, id: ClaimId, permits: u32, now: u64) -> RateAnswer {
        limiter.take(id, NonZeroU32::new(permits).unwrap(), Moment(now))
    }

    #[test]
    fn no_stretch_of_the_interval_sees_more_than_the_rate() {
        let mut limiter = limiter(3, Share::All);
        let mut granted: Vec<u64> = Vec::new();
        for step in 0..1000_u64 {
            let now = step * SECOND / 50;
            if take(&mut limiter, id(1, step), 1, now) == RateAnswer::Taken {
                granted.push(now);
            }
        }
        assert!(granted.windows(4).all(|few| few[3] - few[0] >= SECOND), "{granted:?}");
        assert_eq!(granted.len(), 60, "and all of it is used");
    }

    #[test]
    fn the_time_told_is_when_enough_are_back_and_not_before() {
        let mut limiter = limiter(5, Share::All);
        for (serial, now) in [(1, 0), (2, SECOND / 4), (3, SECOND / 2)] {
            assert_eq!(take(&mut limiter, id(1, serial), 1, now), RateAnswer::Taken);
        }
        let RateAnswer::Later { after } = take(&mut limiter, id(1, 4), 4, SECOND / 2) else {
            panic!("too many")
        };
        assert_eq!(after, Duration::from_millis(750), "the first two must be back");
        assert!(matches!(take(&mut limiter, id(1, 4), 4, SECOND * 5 / 4 - 1), RateAnswer::Later { .. }));
        assert_eq!(take(&mut limiter, id(1, 4), 4, SECOND * 5 / 4), RateAnswer::Taken);
    }

    #[test]
    fn a_repeated_taking_takes_once_and_shares_are_kept_apart() {
        let mut limiter = limiter(2, Share::Each);
        for _ in 0..3 {
            assert_eq!(take(&mut limiter, id(1, 1), 2, 0), RateAnswer::Taken);
        }
        assert!(matches!(take(&mut limiter, id(1, 2), 1, 0), RateAnswer::Later { .. }));
        assert_eq!(take(&mut limiter, id(2, 1), 2, 0), RateAnswer::Taken);
        assert_eq!(take(&mut limiter, id(2, 2), 3, 0), RateAnswer::TooMany { rate: 2 });
        limiter.window(id(3, 1).client(), Moment(2 * SECOND));
        assert_eq!(limiter.each.len(), 1, "clients that are gone are forgotten");
    }
}
