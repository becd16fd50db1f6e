//! What is written under a key of ours: who is behind it and what for. Text, for people to read with `etcdctl`.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use leasehold_core::{
    CallSite, ClaimId, Error, ErrorKind, Operation, Result, Who,
    backend::{ClaimSpec, Holder, Holds, Mode, Waiter},
};
use serde::{Deserialize, Serialize};

/// The format this version writes.
const FORMAT: u32 = 1;

/// One who holds or waits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    format: u32,
    pub(crate) mode: Mode,
    count: u32,
    /// Since when, in milliseconds on the wall clock of whoever wrote it: etcd has no clock to ask. Shown to people; nothing
    /// is decided by it.
    since: u64,
    who: Arc<Who>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    location: Option<CallSite>,
}

impl Entry {
    /// Of one who has just come, or just won.
    pub(crate) fn now(spec: &ClaimSpec) -> Self {
        let (who, label, location) = (spec.who.clone(), spec.label.clone(), spec.location.clone());
        Self { format: FORMAT, mode: spec.mode, count: 1, since: wall_clock(), who, label, location }
    }

    /// The same with other holds. With no exclusive hold left it is shared.
    pub(crate) fn holding(mut self, holds: Holds) -> Self {
        if self.mode == Mode::Exclusive && holds.exclusive == 0 && holds.shared > 0 {
            self.mode = Mode::Shared;
        }
        self.count = holds.total();
        self
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        // Neither map keys nor numbers in it can fail; an empty text would not decode.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads what somebody wrote.
    pub(crate) fn decode(value: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let read = serde_json::from_slice::<Self>(value);
        match (read, serde_json::from_slice(value)) {
            (_, Ok(Version { format })) if format > FORMAT => {
                let message = format!(
                    "written by a newer Leasehold (format {format}, we know {FORMAT}); upgrade this one"
                );
                Err(Error::new(ErrorKind::Unsupported, Operation::Inspect, message))
            }
            (Ok(entry), _) => Ok(entry),
            (Err(error), _) => {
                let message = "this is not an entry of ours; was the key written by another program?";
                Err(Error::new(ErrorKind::Internal, Operation::Inspect, message).because(error))
            }
        }
    }

    pub(crate) fn holder(&self, id: ClaimId, fence: u64, remaining: Duration) -> Holder {
        let mut holder = Holder::new(id, self.mode, fence, self.who.clone());
        holder.count = self.count;
        holder.held_for = self.age();
        holder.remaining = remaining;
        holder.label.clone_from(&self.label);
        holder.location.clone_from(&self.location);
        holder
    }

    pub(crate) fn waiter(&self, id: ClaimId, fair: bool) -> Waiter {
        let mut waiter = Waiter::new(id, self.mode, self.who.clone());
        waiter.fair = fair;
        waiter.waited = self.age();
        waiter.label.clone_from(&self.label);
        waiter.location.clone_from(&self.location);
        waiter
    }

    fn age(&self) -> Duration {
        Duration::from_millis(wall_clock().saturating_sub(self.since))
    }
}

#[expect(clippy::disallowed_methods, reason = "shown to people only; etcd has no clock that could be asked")]
fn wall_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::{
        collection::vec,
        prelude::{Just, Strategy, any, prop_oneof},
        proptest,
        sample::select,
        test_runner::Config,
    };

    use super::*;

    fn entry() -> Entry {
        let (take, of) = (NonZeroU32::MIN, NonZeroU32::MAX);
        let who = Arc::new(Who::here());
        Entry {
            format: FORMAT,
            mode: Mode::Permits { take, of },
            count: 1,
            since: 7,
            who,
            label: None,
            location: None,
        }
    }

    /// Anything, and ours with something else in one place.
    fn value() -> impl Strategy<Value = Vec<u8>> {
        let ours = entry().encode();
        let numbers = select(vec!["0", "-1", "1.5", "18446744073709551616", "null", "[]", "{}", "\"\""]);
        let places = select(vec!["\"format\":1", "\"count\":1", "\"since\":7"]);
        let text = String::from_utf8_lossy(&ours).into_owned();
        let changed = (places, numbers).prop_map(move |(place, number)| {
            let name = place.split(':').next().unwrap_or_default();
            text.replace(place, &format!("{name}:{number}")).into_bytes()
        });
        let cut = (Just(ours.clone()), 0..ours.len()).prop_map(|(ours, at)| ours[..at].to_vec());
        let spoilt = (Just(ours.clone()), 0..ours.len(), any::<u8>()).prop_map(|(mut ours, at, byte)| {
            ours[at] = byte;
            ours
        });
        prop_oneof![vec(any::<u8>(), 0..60), changed, cut, spoilt]
    }

    proptest! {
        #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_value_makes_it_panic(value in value()) {
            if let Ok(entry) = Entry::decode(&value) {
                let id = "00000000-0000-0000-0000-000000000001:7".parse().unwrap();
                drop((entry.holder(id, u64::MAX, Duration::MAX), entry.waiter(id, true)));
                assert!(Entry::decode(&entry.encode()).is_ok(), "what is read can be written");
            }
        }
    }

    #[test]
    fn ours_is_read_and_a_newer_one_is_refused_by_name() {
        assert!(Entry::decode(&entry().encode()).is_ok());
        let newer = Entry { format: FORMAT + 1, ..entry() };
        assert_eq!(Entry::decode(&newer.encode()).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
