//! Using a store as a holder would, to see whether that works: what `doctor` finds out about any store.
//!
//! The probes are real locks under one fixed name, so that whatever a store keeps of a name for a while is kept once.
//! Two that run at the same time wait for each other.

use std::time::{Duration, Instant};

use leasehold::{Client, Error, ErrorKind, Lock, backend::Finding, time::Clock};

/// The name of the probe.
const NAME: &str = "leasehold-doctor";

/// Lease of the probe, and how long to wait for somebody else's.
const LEASE: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(15);

/// So many questions are timed; the middle one counts.
const QUESTIONS: usize = 9;

/// A round trip that takes longer than this is worth a word.
const SLOW: Duration = Duration::from_millis(50);

/// How long one who waits needs to settle down to it.
const SETTLING: Duration = Duration::from_millis(300);

/// A store that polls less often than this is expected to wake those who wait.
const OFTEN: Duration = Duration::from_secs(1);

/// Uses the store. `other` is another client of the same one.
pub(crate) async fn examine(client: &Client, other: Option<&Client>) -> Vec<Finding> {
    let mut findings = Vec::new();
    match round_trip(client).await {
        Ok(found) => findings.push(found),
        Err(error) => findings.push(failed("round-trip", "reading a lock", &error)),
    }
    match fences(client).await {
        Ok(found) => findings.push(found),
        Err(error) if error.kind() == ErrorKind::Busy => {
            let what = format!("{NAME:?} was busy all the time, so no lock was tried: {error}");
            findings
                .push(Finding::note("lock", what).remedy("examine the store again when nobody else does"));
            return findings;
        }
        Err(error) => {
            findings.push(failed("lock", "taking and releasing a lock", &error));
            return findings;
        }
    }
    if let Some(other) = other {
        let woken = wake_up(client, other).await;
        findings.push(woken.unwrap_or_else(|error| failed("wake-up", "passing a lock on", &error)));
    }
    findings
}

fn failed(topic: &'static str, doing: &str, error: &Error) -> Finding {
    Finding::danger(topic, format!("{doing} fails: {error}"))
        .because("locks do not work")
        .remedy("see the other findings, and the store's own log")
}

async fn round_trip(client: &Client) -> leasehold::Result<Finding> {
    let mut times = [Duration::ZERO; QUESTIONS];
    for time in &mut times {
        let begun = Instant::now();
        client.inspect(NAME).await?;
        *time = begun.elapsed();
    }
    times.sort_unstable();
    let (middle, longest) = (times[QUESTIONS / 2], times[QUESTIONS - 1]);
    let what = format!("a question is answered in {} ({} at most)", brief(middle), brief(longest));
    if middle < SLOW {
        return Ok(Finding::good("round-trip", what));
    }
    let lease = brief(client.ttl());
    Ok(Finding::note("round-trip", what)
        .because(format!(
            "every acquire and release takes as long; a lease ({lease}) must be many times that"
        ))
        .remedy("use a store that is nearer"))
}

async fn fences(client: &Client) -> leasehold::Result<Finding> {
    let first = pass(client).await?;
    let second = pass(client).await?;
    if first < second {
        let what = "a lock was taken and released twice, and its fence grew".to_owned();
        return Ok(Finding::good("lock", what));
    }
    let what = format!("a lock was given the fence {first}, and then {second}, which is not greater");
    Ok(Finding::danger("lock", what)
        .because("a resource that checks fences refuses the new holder, or lets the old one in")
        .remedy("see the server's clock, and whether it lost data"))
}

async fn pass(client: &Client) -> leasehold::Result<u64> {
    let guard = probe(client).acquire().await?;
    let fence = guard.fence();
    guard.release().await?;
    Ok(fence)
}

/// Passes a lock from one client to another who waits for it.
async fn wake_up(client: &Client, other: &Client) -> leasehold::Result<Finding> {
    let clock = Clock::boot();
    let guard = probe(client).acquire().await?;
    let waiting = async {
        let guard = probe(other).acquire().await?;
        Ok::<_, Error>((guard, Instant::now()))
    };
    let releasing = async {
        clock.pause(SETTLING).await;
        let begun = Instant::now();
        guard.release().await?;
        Ok::<_, Error>(begun)
    };
    let (waited, released) = tokio::join!(waiting, releasing);
    let ((guard, woken), released) = (waited?, released?);
    guard.release().await?;
    let took = woken.saturating_duration_since(released);
    let what = format!("one who waited had the lock {} after its release", brief(took));
    let poll = client.info().capabilities.poll;
    if poll < OFTEN || took < poll / 2 {
        return Ok(Finding::good("wake-up", what));
    }
    Ok(Finding::warning("wake-up", format!("{what}: no wake-up came"))
        .because(format!("those who wait look again only every {}", brief(poll)))
        .remedy("see that messages reach us: a proxy in between may not pass them on"))
}

fn probe(client: &Client) -> Lock {
    client.lock(NAME).label("doctor").ttl(LEASE).wait(PATIENCE)
}

/// A short time as people read it.
pub(crate) fn brief(duration: Duration) -> String {
    match duration.as_micros() {
        micros @ ..1000 => format!("{micros} µs"),
        1000..10_000 => format!("{:.1} ms", duration.as_secs_f64() * 1000.0),
        micros @ 10_000..1_000_000 => format!("{} ms", micros / 1000),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_times_have_the_unit_that_fits() {
        for (micros, shown) in
            [(7, "7 µs"), (1500, "1.5 ms"), (25_000, "25 ms"), (3_200_000, "3.2 s"), (30_000_000, "30.0 s")]
        {
            assert_eq!(brief(Duration::from_micros(micros)), shown);
        }
    }
}
