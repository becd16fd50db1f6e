//! Stands in for `measure.rs` without the feature `metrics`: nothing is counted, and nothing is kept for counting.

use std::time::Duration;

use super::time::Instant;
use crate::{backend::Mode, key::Key};

/// Whether anything is measured at all.
pub(super) const MEASURED: bool = false;

#[derive(Debug, Default)]
pub(crate) struct Measures(());

#[derive(Clone, Debug)]
pub(crate) struct Series(());

impl Measures {
    #[expect(clippy::unused_self, reason = "the one that measures asks itself")]
    pub(crate) fn series(&self, _said: Option<&'static str>, _name: &Key) -> Series {
        Series(())
    }
}

#[expect(clippy::unused_self, reason = "the one that measures asks itself")]
impl Series {
    pub(super) fn asked(&self, _mode: Mode, _outcome: &'static str, _took: Duration) {}

    pub(super) fn held(&self, _mode: Mode, _end: &'static str, _held: Duration) {}

    pub(super) fn lost(&self, _mode: Mode, _cause: &'static str) {}

    pub(super) fn renewed(&self, _mode: Mode, _outcome: &'static str) {}

    pub(super) fn lagged(&self, _mode: Mode, _late: Duration) {}

    pub(crate) fn candidate(&self) {}
}

#[derive(Debug, Default)]
pub(super) struct Due(());

#[expect(clippy::unused_self, reason = "the one that measures asks itself")]
impl Due {
    pub(super) fn set(&self, _due: Instant) {}

    pub(super) fn lag(&self, _now: Instant) -> Duration {
        Duration::ZERO
    }
}

#[derive(Debug, Default)]
pub(super) struct Lead(());

#[expect(clippy::unused_self, reason = "the one that measures asks itself")]
impl Lead {
    pub(super) fn begin(&self, _series: &Series, _mode: Mode) {}

    pub(super) fn end(&self) {}
}
