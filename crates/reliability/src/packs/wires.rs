//! Bad wires between workers and a store that is well: connections break, fall silent, are slow, lose answers, and
//! deliver requests long after whoever sent them has given up.
//!
//! Each worker has a wire of its own. What befalls one alone parts it from the store while all others go on: then
//! somebody else may have what it believes to hold.

use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use leasehold_testkit::faultline::{Faultline, Hit, Speech};

use super::WORKERS;
use crate::{clock::rest, dice::Dice};

const CUT: &str = "connections cut";
const REFUSE: &str = "connections cut and refused";
pub(super) const SHORT: &str = "wire silent for less than a lease";
pub(super) const LONG: &str = "wire silent for more than a lease";
const SLOW: &str = "wire slow";
const HALF: &str = "connections half closed";
pub(super) const SWALLOW: &str = "answers lost";
pub(super) const LATE: &str = "requests delivered late";

pub(super) const CUT_ONE: &str = "one worker cut off and refused";
pub(super) const STALL_ONE: &str = "one worker's wire silent for more than a lease";
const DEAFEN_ONE: &str = "one worker's answers lost, again and again";
const LATE_ONE: &str = "one worker's requests delivered late";

/// How long to wait for a request that a verb can act on.
const PATIENCE: Duration = Duration::from_secs(3);

/// One wire for each place.
#[derive(Debug)]
pub(super) struct Wires {
    lines: Vec<Faultline>,
    /// What every request about a lock contains.
    request: &'static [u8],
}

impl Wires {
    /// All that can befall them.
    pub(super) const FAULTS: [&str; 12] =
        [CUT, REFUSE, SHORT, LONG, SLOW, HALF, SWALLOW, LATE, CUT_ONE, STALL_ONE, DEAFEN_ONE, LATE_ONE];

    /// Wires to this server, whose requests about locks contain these bytes.
    pub(super) fn to(server: SocketAddr, speech: Speech, request: &'static [u8]) -> io::Result<Self> {
        let lines = (0..WORKERS).map(|_| Faultline::before(server, speech));
        Ok(Self { lines: lines.collect::<io::Result<_>>()?, request })
    }

    /// Where the worker at this place finds the server.
    pub(super) fn address(&self, place: usize) -> SocketAddr {
        self.lines[place % self.lines.len()].address()
    }

    /// Inflicts one of [`FAULTS`](Self::FAULTS), from the beginning until it is healed.
    pub(super) fn inflict(&self, fault: &str, lease: Duration, dice: &mut Dice) {
        let one = std::slice::from_ref(dice.choose(&self.lines));
        let all = &self.lines[..];
        match fault {
            CUT => again(all, dice, Faultline::cut),
            HALF => again(all, dice, Faultline::half_close),
            REFUSE => refuse(all, dice.between(lease / 4, lease * 3 / 2)),
            SHORT => stall(all, dice.between(lease / 10, lease * 3 / 4)),
            LONG => stall(all, dice.between(lease, lease * 2)),
            SLOW => {
                let delay = dice.between(Duration::from_millis(5), lease / 8);
                each(all, |line| line.delay(delay));
                rest(dice.between(lease / 2, lease * 2));
                each(all, |line| line.delay(Duration::ZERO));
            }
            SWALLOW => swallow(all, self.request, 1 + dice.below(3) as usize),
            LATE => deliver_late(all, self.request, lease, dice),
            // Long enough that its leases end meanwhile, and others get what it had.
            CUT_ONE => refuse(one, dice.between(lease / 2, lease * 2)),
            STALL_ONE => stall(one, dice.between(lease, lease * 2)),
            DEAFEN_ONE => swallow(one, self.request, 5 + dice.below(20) as usize),
            _ => deliver_late(one, self.request, lease, dice),
        }
    }
}

fn each(lines: &[Faultline], verb: impl Fn(&Faultline)) {
    for line in lines {
        verb(line);
    }
}

fn refuse(lines: &[Faultline], span: Duration) {
    each(lines, |line| line.refuse(true));
    each(lines, Faultline::cut);
    rest(span);
    each(lines, |line| line.refuse(false));
}

fn stall(lines: &[Faultline], span: Duration) {
    each(lines, |line| line.stall(true));
    rest(span);
    each(lines, |line| line.stall(false));
}

fn again(lines: &[Faultline], dice: &mut Dice, verb: fn(&Faultline)) {
    for _ in 0..=dice.below(5) {
        each(lines, verb);
        rest(dice.between(Duration::from_millis(10), Duration::from_millis(150)));
    }
}

/// So many answers of each are lost, while it still asks.
fn swallow(lines: &[Faultline], request: &[u8], times: usize) {
    let hits: Vec<Hit> = lines.iter().map(|line| line.swallow_reply(request, times)).collect();
    let end = Instant::now() + PATIENCE;
    while hits.iter().any(|hit| hit.times() < times) && Instant::now() < end {
        rest(Duration::from_millis(5));
    }
}

/// Some requests of each are kept until their senders have given up, and most of their leases are over.
fn deliver_late(lines: &[Faultline], request: &[u8], lease: Duration, dice: &mut Dice) {
    let count = 1 + dice.below(4);
    let held: Vec<_> = lines.iter().flat_map(|line| (0..count).map(|_| line.hold_request(request))).collect();
    rest(dice.between(lease / 2, lease * 2));
    for request in held {
        request.deliver();
        rest(dice.between(Duration::ZERO, Duration::from_millis(20)));
    }
}
