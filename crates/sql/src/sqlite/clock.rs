//! The store's time, and the boot it belongs to.
//!
//! On Linux time is `CLOCK_BOOTTIME`, the same for every process of the machine and untouched by whoever sets the
//! wall clock; it starts anew with each boot, so moments are only worth something beside the boot's id. Processes in
//! a time namespace with an offset of its own do not share this clock and must not share a store.
//!
//! The wall clock is the kernel's, asked of the kernel itself: one for every process of the machine, whatever a library that
//! was loaded into one of them would have it believe.
//!
//! Elsewhere neither is to be had without foreign code, and the wall clock has to do. The store then grades itself
//! lower and writes every transaction to disk.

use leasehold_core::{Result, backend::record::Moment};

/// The boot this machine is in, where that can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Boot {
    /// Moments of another boot mean nothing in this one.
    #[cfg_attr(
        not(any(target_os = "linux", target_os = "android")),
        expect(dead_code, reason = "no boot id there")
    )]
    Known(String),
    /// Moments are on the wall clock, which goes on through boots.
    #[cfg_attr(
        any(target_os = "linux", target_os = "android"),
        expect(dead_code, reason = "always known there")
    )]
    Unknown,
}

impl Boot {
    /// What the database says of the boot its moments are from.
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Known(id) => id,
            Self::Unknown => "",
        }
    }

    pub(super) fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) use linux::{boot, now, wall};

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) use elsewhere::{boot, now, wall};

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use std::time::Duration;

    use leasehold_core::{Error, ErrorKind, Operation, time::Clock};

    use super::{Boot, Moment, Result};

    const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

    pub(in super::super) fn now() -> Moment {
        Moment(Clock::boot().now().as_micros())
    }

    pub(in super::super) fn wall() -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0))
    }

    pub(in super::super) fn boot() -> Result<Boot> {
        let id = std::fs::read_to_string(BOOT_ID).map_err(|error| {
            let message = format!("cannot read {BOOT_ID}, which leases depend on; mount /proc");
            Error::new(ErrorKind::Unavailable, Operation::Connect, message).because(error)
        })?;
        Ok(Boot::Known(id.trim().to_owned()))
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod elsewhere {
    use std::time::Duration;

    use leasehold_core::time::Clock;

    use super::{Boot, Moment, Result};

    /// No other clock here is shared by processes and survives a boot.
    pub(in super::super) fn now() -> Moment {
        Moment(wall().as_micros() as u64)
    }

    pub(in super::super) fn wall() -> Duration {
        Clock::boot().wall()
    }

    #[expect(clippy::unnecessary_wraps, reason = "as on Linux, where it can fail")]
    pub(in super::super) fn boot() -> Result<Boot> {
        Ok(Boot::Unknown)
    }
}
