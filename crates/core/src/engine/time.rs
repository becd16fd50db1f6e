//! All time in this crate: the boot clock, deadlines on it, and waiting for them.
//!
//! A holder's belief must not outlive its lease while the machine sleeps, so deadlines count on `CLOCK_BOOTTIME`,
//! which goes on in suspend, unlike the clock behind `std::time::Instant` and tokio's timers. Timers that guard a
//! lease therefore never sleep longer than [`TICK`] at a stretch: after a suspend they notice within one tick, and
//! whoever asks meanwhile compares the clock itself and is answered exactly.

use std::{sync::Arc, time::Duration};

#[cfg(shuttle)]
use super::jumps::TestTime;

#[cfg(not(shuttle))]
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::{AtomicI64, Ordering};

/// The longest sleep of a timer that must notice a suspend.
pub const TICK: Duration = Duration::from_millis(250);

/// Clock rates may differ by this share between holder and store.
const DRIFT: u32 = 100;

/// What the wall clock shows when a test's begins: the first of January 2026, in UTC.
const EPOCH: Duration = Duration::from_secs(1_767_225_600);

/// What a lease is shortened by besides, for the grain of clocks and timers.
const GRAIN: Duration = Duration::from_millis(2);

/// A point on the boot clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// Nanoseconds since the clock's start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Microseconds since the clock's start.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1000
    }

    /// This much later; the end of time if that is beyond it.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.as_nanos().try_into().unwrap_or(u64::MAX)))
    }

    /// How long until `later`; zero if that has passed.
    pub fn until(self, later: Self) -> Duration {
        Duration::from_nanos(later.0.saturating_sub(self.0))
    }

    /// The last moment at which a lease granted for `granted` may be believed, if its request was sent now:
    /// shorter than the lease by what clocks may drift apart.
    #[must_use]
    pub fn believing(self, granted: Duration) -> Self {
        self.after(granted.saturating_sub(granted / DRIFT).saturating_sub(GRAIN))
    }
}

/// Where `now` comes from: the boot clock, or a test's.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    Boot,
    Test(Arc<Turned>),
}

/// What a test turns: its time, and by how many nanoseconds the wall clock was set apart from it.
#[derive(Debug)]
struct Turned {
    time: TestTime,
    ahead: AtomicI64,
}

impl Clock {
    /// The boot clock of this machine.
    pub const fn boot() -> Self {
        Self(Source::Boot)
    }

    /// A clock that follows tokio's, and so stands still and jumps with its paused time. Only for tests.
    pub fn test() -> Self {
        Self(Source::Test(Arc::new(Turned { time: TestTime::new(), ahead: AtomicI64::new(0) })))
    }

    /// The time.
    pub fn now(&self) -> Instant {
        match &self.0 {
            Source::Boot => boot_now(),
            // The clock starts at an hour, so that subtracting from it is possible.
            Source::Test(turned) => Instant(0).after(Duration::from_secs(3600) + turned.time.passed()),
        }
    }

    /// The wall clock, as the time since 1970. It may be wrong and may be set: no lease and no belief goes by it.
    pub fn wall(&self) -> Duration {
        match &self.0 {
            Source::Boot => wall_now(),
            Source::Test(turned) => {
                let (wall, ahead) = (EPOCH + turned.time.passed(), turned.ahead.load(Ordering::SeqCst));
                let apart = Duration::from_nanos(ahead.unsigned_abs());
                if ahead < 0 { wall.saturating_sub(apart) } else { wall + apart }
            }
        }
    }

    /// Sets a test's wall clock so many nanoseconds ahead of its time, or back, as somebody sets a machine's. Nothing on the
    /// machine's own.
    pub fn set_wall(&self, ahead: i64) {
        if let Source::Test(turned) = &self.0 {
            turned.ahead.store(ahead, Ordering::SeqCst);
        }
    }

    /// Lets a test's clock go on without any timer noticing, as a suspend does. Nothing on the boot clock.
    pub fn suspend(&self, duration: Duration) {
        if let Source::Test(turned) = &self.0 {
            turned.time.suspend(duration);
        }
    }

    /// Sleeps until then, noticing a suspend within a [`TICK`] of its end.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn sleep_until(&self, then: Instant) {
        loop {
            let left = self.now().until(then);
            if left.is_zero() {
                return;
            }
            self.pause(left.min(TICK)).await;
        }
    }

    /// Sleeps for about this long, without regard to suspends: for waits nothing depends on.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn pause(&self, duration: Duration) {
        match &self.0 {
            Source::Boot => tokio::time::sleep(duration).await,
            Source::Test(turned) => turned.time.sleep(duration).await,
        }
    }
}

/// The wall clock, in milliseconds since 1970: for what people read, and for nothing else.
#[expect(clippy::disallowed_methods, reason = "people read it; nothing is decided by it")]
pub(crate) fn wall_clock() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    since.as_millis().try_into().unwrap_or(u64::MAX)
}

/// A test's time: tokio's, and what was slept through.
#[cfg(not(shuttle))]
#[derive(Debug)]
struct TestTime {
    start: tokio::time::Instant,
    suspended: AtomicU64,
}

#[cfg(not(shuttle))]
impl TestTime {
    fn new() -> Self {
        Self { start: tokio::time::Instant::now(), suspended: AtomicU64::new(0) }
    }

    fn passed(&self) -> Duration {
        self.start.elapsed() + Duration::from_nanos(self.suspended.load(Ordering::SeqCst))
    }

    fn suspend(&self, duration: Duration) {
        self.suspended.fetch_add(duration.as_nanos() as u64, Ordering::SeqCst);
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that asks for it")]
fn wall_now() -> Duration {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap_or_default()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn boot_now() -> Instant {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Instant(now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned())
}

/// Elsewhere the monotonic clock has to do: on macOS and Windows it may stand still in suspend.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn boot_now() -> Instant {
    use std::sync::OnceLock;
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    Instant(0).after(START.get_or_init(std::time::Instant::now).elapsed())
}
