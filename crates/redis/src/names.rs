//! Names of keys and channels: Redisson's rules for its own, and the same rules for ours.
//!
//! Everything about a name shares its hash tag, so that it lives in one slot of a cluster. The rule only asks whether
//! the name has an opening brace; scripts apply the same rule by themselves (`scripts/name.lua`) and are given nothing
//! but the name.

use std::fmt;

use leasehold_core::{ClaimId, ClientId};
use redis::{RedisWrite, ToRedisArgs};

/// What stands between the braces of everything that belongs to a name.
pub(crate) fn tag(name: &str) -> String {
    if name.contains('{') { name.to_owned() } else { format!("{{{name}}}") }
}

/// An acquisition as an argument: written where it goes, since every request has one and nothing needs it besides.
#[derive(Clone, Copy)]
pub(crate) struct Holder(pub(crate) ClaimId);

impl ToRedisArgs for Holder {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        out.write_arg_fmt(self.0);
    }
}

/// Where unlocks of locks are told.
pub(crate) fn lock_channel(name: &str) -> String {
    format!("redisson_lock__channel:{}", tag(name))
}

/// Where one waiter of the fair line is told that it is the head.
pub(crate) fn head_channel(name: &str, holder: ClaimId) -> String {
    format!("redisson_lock__channel:{}:{holder}", tag(name))
}

/// Where unlocks of read-write locks are told.
pub(crate) fn rwlock_channel(name: &str) -> String {
    format!("redisson_rwlock:{}", tag(name))
}

/// Where returned permits are told.
pub(crate) fn semaphore_channel(name: &str) -> String {
    format!("redisson_sc:{}", tag(name))
}

/// Where an opened latch is told: Redisson adds braces here even to a name that has some.
pub(crate) fn latch_channel(name: &str) -> String {
    format!("redisson_countdownlatch__channel__{{{name}}}")
}

/// Who waits for a name.
pub(crate) fn waits(name: &str) -> String {
    format!("leasehold_waits:{}", tag(name))
}

/// Who a client is.
pub(crate) fn who(client: ClientId) -> String {
    format!("leasehold_who:{client}")
}

/// Where in its code a client asked for what it holds and waits for.
pub(crate) fn sites(client: ClientId) -> String {
    format!("leasehold_sites:{client}")
}

/// Where a client is told which of its locks was broken.
pub(crate) fn breaks(client: ClientId) -> String {
    format!("leasehold_breaks:{client}")
}

/// All cells share a slot, so that their index can be kept with them.
pub(crate) const CELL: &str = "leasehold_cell:{leasehold_cells}:";

/// The names of all cells, in order.
pub(crate) const CELLS: &str = "leasehold_cells:{leasehold_cells}";

/// Whether a key is part of a lock's furniture rather than a name: Redisson's or ours.
pub(crate) fn is_furniture(key: &str) -> bool {
    key.starts_with("leasehold_")
        || key.starts_with("redisson_")
        || key.contains(":rwlock_timeout:")
        || (key.starts_with('{') && key.ends_with("}:timeout"))
}

/// The slot of a key in a cluster, by the server's rule: the first `}` after the first `{`, and something in between.
pub(crate) fn slot(key: &str) -> u16 {
    crc16(tagged(key).unwrap_or(key).as_bytes()) % 16384
}

/// Whether everything that belongs to a name is in the slot of the name itself.
pub(crate) fn is_in_one_slot(name: &str) -> bool {
    ClusterTrap::of(name).is_none()
}

/// Why a name cannot be used in a cluster.
///
/// Everything about a lock must be in one slot. Redisson, and we after it, only ask whether a name has an opening
/// brace: if so the name itself is put into the keys beside it, if not it is put in braces first. The server looks for
/// the first closing brace after the first opening one, and for something in between. Names that the two rules read
/// differently have their keys in different slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterTrap {
    /// `a{b`: an opening brace that nothing closes.
    Unclosed,
    /// `{}x`: nothing between the braces.
    Empty,
    /// `a}b`: a closing brace, and no opening one.
    OnlyClosed,
}

impl ClusterTrap {
    /// What is wrong with a name, or nothing.
    pub fn of(name: &str) -> Option<Self> {
        match name.split_once('{') {
            None => name.contains('}').then_some(Self::OnlyClosed),
            Some((_, rest)) => match rest.find('}') {
                None => Some(Self::Unclosed),
                Some(0) => Some(Self::Empty),
                Some(_) => None,
            },
        }
    }

    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Unclosed => "close the brace, as in a{b}, or use none",
            Self::Empty => "put something between the first pair of braces, or use none",
            Self::OnlyClosed => "open the brace, as in {a}b, or use none",
        }
    }
}

impl fmt::Display for ClusterTrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unclosed => "the first opening brace is never closed",
            Self::Empty => "there is nothing between the first pair of braces",
            Self::OnlyClosed => "there is a closing brace and no opening one",
        })
    }
}

/// What the server takes for the tag of a key.
fn tagged(key: &str) -> Option<&str> {
    let rest = &key[key.find('{')? + 1..];
    rest.find('}').filter(|close| *close > 0).map(|close| &rest[..close])
}

/// CRC-16/XMODEM, bit by bit: names are short.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use leasehold_core::Key;
    use proptest::{proptest, test_runner::Config};

    use super::*;

    #[test]
    fn braces_are_added_only_where_there_are_none() {
        assert_eq!(lock_channel("a"), "redisson_lock__channel:{a}");
        assert_eq!(lock_channel("x{a}"), "redisson_lock__channel:x{a}");
        assert_eq!(lock_channel("a}b"), "redisson_lock__channel:{a}b}");
        assert_eq!(rwlock_channel("a{"), "redisson_rwlock:a{");
        assert_eq!(latch_channel("x{a}"), "redisson_countdownlatch__channel__{x{a}}");
    }

    #[test]
    fn names_whose_keys_would_be_apart_are_known() {
        for name in ["a{b", "{}x", "a}b", "}{", "a{}b{c}"] {
            assert!(!is_in_one_slot(name), "{name}");
            assert_ne!(slot(name), slot(&waits(name)), "{name}");
        }
        for name in ["a", "{a}", "x{a}y", "x{a}y}", "{a}{b", "{a{b}"] {
            assert!(is_in_one_slot(name), "{name}");
            for key in [lock_channel(name), rwlock_channel(name), semaphore_channel(name), waits(name)] {
                assert_eq!(slot(name), slot(&key), "{name}");
            }
        }
    }

    #[test]
    fn slots_are_the_servers() {
        assert_eq!(slot("123456789"), 0x31c3);
        assert_eq!(slot("lk"), slot("redisson_lock__channel:{lk}"));
        assert_eq!(slot("}a{b}c"), slot("b"));
        assert_ne!(slot("{}x"), slot(""));
    }

    #[test]
    fn each_trap_is_told_from_the_others() {
        for (name, trap) in [
            ("order:42", None),
            ("}a{b}", None),
            ("a{b", Some(ClusterTrap::Unclosed)),
            ("}{", Some(ClusterTrap::Unclosed)),
            ("{}x", Some(ClusterTrap::Empty)),
            ("{}{x}", Some(ClusterTrap::Empty)),
            ("a}b", Some(ClusterTrap::OnlyClosed)),
        ] {
            assert_eq!(ClusterTrap::of(name), trap, "{name}");
        }
    }

    proptest! {
        #![proptest_config(Config { cases: 1000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn two_names_share_their_furniture_only_if_one_is_the_other_in_braces(
            one in "[ab{}:]{1,6}", other in "[ab{}:]{1,6}",
        ) {
            let is_other_in_braces = one == format!("{{{other}}}") || other == format!("{{{one}}}");
            assert!(one == other || waits(&one) != waits(&other) || is_other_in_braces, "{one} and {other}");
        }

        #[test]
        fn nothing_of_a_name_is_in_another_prefix_nor_shared_with_it(
            one in "(redisson_lock_queue|leasehold_waits|[ab{}]{0,3}):", other in "[ab{}]{0,3}:",
            name in "[ab{}:]{1,4}", another in "[ab{}:]{1,4}",
        ) {
            let (Ok(ours), Ok(theirs)) = (Key::new(&one, &name), Key::new(&other, &another)) else { return Ok(()) };
            if one == other {
                return Ok(());
            }
            let tag = tag(theirs.full());
            let furniture = [
                format!("redisson_lock_queue:{tag}"), lock_channel(theirs.full()), waits(theirs.full()),
                latch_channel(theirs.full()), format!("{tag}:timeout"), format!("{tag}:x:rwlock_timeout:1"),
            ];
            assert!(furniture.iter().all(|key| !key.starts_with(&one)), "{ours:?} and {theirs:?}");
            assert_ne!(waits(ours.full()), waits(theirs.full()));
        }

        #[test]
        fn all_of_a_name_is_in_its_slot_unless_it_is_known_for_a_trap(name in "[ab{}:锁]{1,8}") {
            assert!(slot(&name) < 16384);
            let keys = [lock_channel(&name), rwlock_channel(&name), semaphore_channel(&name), waits(&name)];
            let is_together = keys.iter().all(|key| slot(key) == slot(&name));
            assert!(is_together || !is_in_one_slot(&name), "{name}");
        }
    }
}
