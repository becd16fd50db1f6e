//! How far the server's clock is from ours.
//!
//! No lock compares the two: leases are lengths of time, and belief counts on the holder's own boot clock. But fences
//! are made of the server's time, and a clock that is wrong will be set right one day.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use leasehold_core::backend::Finding;

use crate::{answer, connect::Node, error::Fault};

/// The quickest of so many looks is the most exact.
const LOOKS: usize = 5;

/// What clocks that are looked after differ by, at most.
const TOLERATED: Duration = Duration::from_secs(1);

/// One look at both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    /// The server's clock and ours, in microseconds since 1970.
    server: i64,
    ours: i64,
    /// The server looked at its clock somewhen in this time.
    round_trip: Duration,
}

/// Looks at the server's clock. Nothing if it does not tell.
pub(super) async fn examine(node: &Node) -> Result<Option<Finding>, Fault> {
    let mut best: Option<Look> = None;
    for _ in 0..LOOKS {
        match look(node).await? {
            Some(look) if best.is_none_or(|best| look.round_trip < best.round_trip) => best = Some(look),
            Some(_) => {}
            None => return Ok(None),
        }
    }
    Ok(best.map(judge))
}

async fn look(node: &Node) -> Result<Option<Look>, Fault> {
    let (begun, ours) = (Instant::now(), wall_clock());
    let answer = match node.wire.call(redis::cmd("TIME")).await {
        Err(Fault::Refused(_)) => return Ok(None),
        answer => answer?,
    };
    let round_trip = begun.elapsed();
    let parts = answer::list(&answer).unwrap_or_default().iter().filter_map(answer::text);
    let numbers: Vec<i64> = parts.filter_map(|part| part.parse().ok()).collect();
    let [seconds, micros] = numbers[..] else { return Ok(None) };
    Ok(Some(Look { server: seconds.saturating_mul(1_000_000).saturating_add(micros), ours, round_trip }))
}

#[expect(clippy::disallowed_methods, reason = "the wall clock is what is examined; nothing decides by it")]
fn wall_clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

fn judge(look: Look) -> Finding {
    const TOPIC: &str = "clock-offset";
    let exactness = look.round_trip / 2;
    let ours = look.ours.saturating_add(exactness.as_micros() as i64);
    let (offset, direction) = match look.server.saturating_sub(ours) {
        ahead @ 0.. => (ahead.unsigned_abs(), "ahead of"),
        behind => (behind.unsigned_abs(), "behind"),
    };
    let offset = Duration::from_micros(offset);
    if offset <= TOLERATED + exactness {
        let bound = millis(offset.max(exactness));
        return Finding::good(TOPIC, format!("the server's clock is within {bound} of ours"));
    }
    let what = format!(
        "the server's clock is {} {direction} ours (give or take {})",
        millis(offset),
        millis(exactness)
    );
    Finding::warning(TOPIC, what)
        .because(
            "locks do not compare clocks, but when the wrong one is set right in one step, leases end early or late by as \
             much, and fences, which are made of the server's time, stand still until it has caught up",
        )
        .remedy("keep both clocks right with NTP that slews and never steps (chrony, systemd-timesyncd)")
}

fn millis(duration: Duration) -> String {
    match duration.as_millis() {
        0 => "1 ms".to_owned(),
        millis @ 1..10_000 => format!("{millis} ms"),
        millis => format!("{} s", millis / 1000),
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::backend::Severity;

    use super::*;

    fn offset(micros: i64, round_trip: Duration) -> Finding {
        let ours = 1_700_000_000_000_000;
        let middle = i64::try_from((round_trip / 2).as_micros()).unwrap();
        judge(Look { server: ours + middle + micros, ours, round_trip })
    }

    #[test]
    fn clocks_that_agree_are_good_however_slow_the_network() {
        for (micros, round_trip) in [(0, 100), (-400, 800), (900_000, 1), (-1_900_000, 2_000_000)] {
            let finding = offset(micros, Duration::from_micros(round_trip));
            assert_eq!(finding.severity, Severity::Good, "{finding:?}");
        }
    }

    #[test]
    fn a_clock_that_is_off_is_told_with_its_direction() {
        let fast = offset(90_000_000, Duration::from_millis(2));
        assert_eq!((fast.severity, fast.topic), (Severity::Warning, "clock-offset"));
        assert_eq!(fast.what, "the server's clock is 90 s ahead of ours (give or take 1 ms)");
        let slow = offset(-1_500_000, Duration::from_millis(2));
        assert_eq!(slow.what, "the server's clock is 1500 ms behind ours (give or take 1 ms)");
    }

    #[test]
    fn nonsense_from_a_server_does_not_overflow() {
        for server in [i64::MIN, i64::MAX] {
            let finding = judge(Look { server, ours: i64::MAX, round_trip: Duration::ZERO });
            assert!(!finding.what.is_empty());
        }
    }
}
