//! Names of keys and channels: Redisson's rules for its own, and the same rules for ours.
//!
//! Everything about a name shares its hash tag, so that it lives in one slot of a cluster. The rule only asks whether
//! the name has an opening brace; scripts apply the same rule by themselves (`scripts/name.lua`) and are given nothing
//! but the name.

use leasehold_core::ClientId;

/// What stands between the braces of everything that belongs to a name.
fn tag(name: &str) -> String {
    if name.contains('{') { name.to_owned() } else { format!("{{{name}}}") }
}

/// Where unlocks of locks are told.
pub(crate) fn lock_channel(name: &str) -> String {
    format!("redisson_lock__channel:{}", tag(name))
}

/// Where one waiter of the fair line is told that it is the head.
pub(crate) fn head_channel(name: &str, holder: &str) -> String {
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
#[cfg_attr(not(test), expect(dead_code, reason = "single servers have no slots; clusters will ask"))]
pub(crate) fn slot(key: &str) -> u16 {
    let tagged = key.find('{').and_then(|open| {
        let rest = &key[open + 1..];
        rest.find('}').filter(|close| *close > 0).map(|close| &rest[..close])
    });
    crc16(tagged.unwrap_or(key).as_bytes()) % 16384
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
    fn slots_are_the_servers() {
        assert_eq!(slot("123456789"), 0x31c3);
        assert_eq!(slot("lk"), slot("redisson_lock__channel:{lk}"));
        assert_eq!(slot("}a{b}c"), slot("b"));
        assert_ne!(slot("{}x"), slot(""));
    }
}
