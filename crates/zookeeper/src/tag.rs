//! What a node says besides its name: who is behind it, for people, and how it is held.
//!
//! Nodes of other programs say something else, or nothing; then their text is shown as the program.

use std::{sync::Arc, time::Duration};

use leasehold_core::{
    CallSite, ClaimId, Who,
    backend::{ClaimSpec, Holder, Holds, Mode, Waiter},
};
use serde::{Deserialize, Serialize};
use zookeeper_client::Stat;

use crate::names::{Contender, Stand};

/// The text of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tag {
    who: Arc<Who>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    location: Option<CallSite>,
    /// The lease asked for, in milliseconds.
    ttl: u64,
    /// How often its owner holds it.
    count: u32,
    /// A writer that has become a reader.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) shared: bool,
    /// It has waited and holds now: news for the one who waits behind it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) served: bool,
}

impl Tag {
    pub(crate) fn of(spec: &ClaimSpec, holds: Holds) -> Self {
        Self {
            who: spec.who.clone(),
            label: spec.label.clone(),
            location: spec.location.clone(),
            ttl: spec.ttl.as_millis().try_into().unwrap_or(u64::MAX),
            count: holds.total(),
            shared: spec.mode == Mode::Exclusive && holds.exclusive == 0,
            served: false,
        }
    }

    /// The same, of one who has waited.
    pub(crate) fn after_waiting(mut self) -> Self {
        self.served = true;
        self
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        // Plain fields cannot fail to be written.
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn decode(contender: &Contender, data: &[u8]) -> Self {
        serde_json::from_slice(data).unwrap_or_else(|_| Self::foreign(contender.id, data))
    }

    /// Another program's node: kazoo writes a text of the user's choosing.
    fn foreign(id: ClaimId, data: &[u8]) -> Self {
        let text = String::from_utf8_lossy(data);
        let printable: String = text.chars().filter(|letter| !letter.is_control()).take(80).collect();
        let mut who =
            Who::here().with_program(if printable.is_empty() { "another program" } else { &printable });
        (who.client, who.host, who.user, who.pid) = (id.client(), "unknown".into(), "unknown".into(), 0);
        Self {
            who: Arc::new(who),
            label: None,
            location: None,
            ttl: 0,
            count: 1,
            shared: false,
            served: false,
        }
    }

    /// As a holder. How long is left, only the holder itself knows; others are told the most it can be.
    pub(crate) fn holder(self, contender: &Contender, stat: &Stat, now: i64) -> Holder {
        let mode = if self.shared { Mode::Shared } else { contender.mode };
        let mut holder = Holder::new(contender.id, mode, stat.czxid.cast_unsigned(), self.who);
        holder.count = self.count;
        (holder.label, holder.location) = (self.label, self.location);
        holder.held_for = since(stat, now);
        holder.remaining = Duration::from_millis(self.ttl);
        holder
    }

    pub(crate) fn waiter(self, contender: &Contender, stat: &Stat, now: i64) -> Waiter {
        let mut waiter = Waiter::new(contender.id, contender.mode, self.who);
        waiter.fair = contender.stand == Stand::Fair;
        (waiter.label, waiter.location) = (self.label, self.location);
        waiter.waited = since(stat, now);
        waiter
    }
}

fn since(stat: &Stat, now: i64) -> Duration {
    Duration::from_millis(now.saturating_sub(stat.ctime).try_into().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use proptest::{
        collection::vec, prelude::any, prop_oneof, proptest, strategy::Strategy, test_runner::Config,
    };

    use super::*;

    fn tag() -> Tag {
        Tag {
            who: Arc::new(Who::here()),
            label: None,
            location: None,
            ttl: 5,
            count: 1,
            shared: false,
            served: true,
        }
    }

    /// Anything, ours cut off or with a byte of something else, and ours with numbers at their ends.
    fn data() -> impl Strategy<Value = Vec<u8>> {
        let ours = tag().encode();
        let (length, other) = (ours.len(), ours.clone());
        let cut = (0..length).prop_map(move |at| ours[..at].to_vec());
        let spoilt = (0..length, any::<u8>()).prop_map(move |(at, byte)| {
            let mut ours = other.clone();
            ours[at] = byte;
            ours
        });
        let extreme = any::<(u64, u32)>().prop_map(|(ttl, count)| Tag { ttl, count, ..tag() }.encode());
        prop_oneof![vec(any::<u8>(), 0..120), cut, spoilt, extreme]
    }

    proptest! {
        #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_text_of_a_node_makes_it_panic(data in data(), ctime: i64, now: i64) {
            let node = "0123456789abcdef0123456789abcdef__lock__0000000001";
            let contender = Contender::parse(node).unwrap();
            let tag = Tag::decode(&contender, &data);
            let stat = Stat {
                czxid: i64::MIN, mzxid: 0, pzxid: 0, ctime, mtime: 0, version: 0, cversion: 0, aversion: 0,
                ephemeral_owner: 0, data_length: 0, num_children: 0,
            };
            let shown = tag.clone().holder(&contender, &stat, now);
            if serde_json::from_slice::<Tag>(&data).is_err() {
                assert!(!shown.who.program.chars().any(char::is_control), "what others wrote is shown to people");
            }
            drop(tag.waiter(&contender, &stat, now));
        }
    }

    #[test]
    fn ours_is_read_back_and_what_another_program_wrote_is_its_name() {
        let contender = Contender::parse("0123456789abcdef0123456789abcdef__lock__0000000001").unwrap();
        let ours = tag();
        assert_eq!(Tag::decode(&contender, &ours.encode()), ours);
        assert_eq!(&*Tag::decode(&contender, b"worker-7\n").who.program, "worker-7");
    }
}
