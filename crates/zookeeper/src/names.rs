//! How names and acquisitions are written as nodes.
//!
//! A name becomes one node below the root: what a path cannot hold is percent-encoded, injectively. Names of our own that
//! are no locks begin with a tilde, which an encoded name never does.
//!
//! An acquisition is `ID[+FLAGS]__KIND__SEQUENCE`: the kinds `lock` and `rlock` are kazoo's, `permit` and `open` ours.

use std::{fmt::Write as _, num::NonZeroU32};

use leasehold_core::{ClaimId, backend::Mode};

/// Where sessions show that they live.
pub(crate) const SESSIONS: &str = "~sessions";

/// Where cells live.
pub(crate) const CELLS: &str = "~cells";

/// The latch of a name, beside those who wait for it.
pub(crate) const LATCH: &str = "~latch";

/// What the mark of a forced release begins with.
const BROKEN: &str = "~broken-";

/// The node of a name.
pub(crate) fn encode(name: &str) -> String {
    let mut node = String::with_capacity(name.len());
    for (at, letter) in name.char_indices() {
        let is_dots = matches!(name, "." | "..");
        if is_dots || (at == 0 && letter == '~') || !is_plain(letter) {
            for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a string cannot fail.
                let _ = write!(node, "%{byte:02X}");
            }
        } else {
            node.push(letter);
        }
    }
    node
}

/// Whether a path may hold it as it is; the ranges are ZooKeeper's, which knows characters of 16 bits only.
fn is_plain(letter: char) -> bool {
    let refused = ['\u{0}'..='\u{1f}', '\u{7f}'..='\u{9f}', '\u{e000}'..='\u{f8ff}', '\u{fff0}'..=char::MAX];
    letter != '/' && letter != '%' && !refused.iter().any(|range| range.contains(&letter))
}

/// The name of a node; `None` if it is no name of ours.
pub(crate) fn decode(node: &str) -> Option<String> {
    if node.starts_with('~') {
        return None;
    }
    let mut bytes = Vec::with_capacity(node.len());
    let mut rest = node.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let digits = tail.get(..2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    let name = String::from_utf8(bytes).ok()?;
    (encode(&name) == node).then_some(name)
}

/// The node that tells a holder who broke its lock.
pub(crate) fn mark(id: ClaimId) -> String {
    format!("{BROKEN}{id}")
}

/// Whether a node is the mark of a forced release.
pub(crate) fn is_mark(node: &str) -> bool {
    node.starts_with(BROKEN)
}

/// How a contender stands in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    /// Like everybody.
    Plain,
    /// It asked for the fair line.
    Fair,
    /// Only to see whether it is its turn: otherwise it leaves at once.
    Try,
}

/// What an acquisition's node is called, up to the sequence that the server adds.
pub(crate) fn prefix(id: ClaimId, mode: Mode, stand: Stand) -> String {
    let flag = match stand {
        Stand::Plain => "",
        Stand::Fair => "+fair",
        Stand::Try => "+try",
    };
    match mode {
        Mode::Shared => format!("{id}{flag}__rlock__"),
        Mode::Permits { take, of } => format!("{id}{flag}+{take}of{of}__permit__"),
        Mode::Open => format!("{id}__open__"),
        _ => format!("{id}{flag}__lock__"),
    }
}

/// An acquisition as its node's name tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contender {
    pub(crate) node: String,
    pub(crate) id: ClaimId,
    pub(crate) mode: Mode,
    pub(crate) stand: Stand,
    /// Its place: the server's sequence. It is a signed 32-bit number that goes on below zero when it overflows; taken
    /// as unsigned it keeps its order through that.
    pub(crate) order: u32,
}

impl Contender {
    /// Reads a node's name; `None` if it is none of ours nor of kazoo's.
    pub(crate) fn parse(node: &str) -> Option<Self> {
        let (head, sequence) = node.rsplit_once("__")?;
        let (who, kind) = head.rsplit_once("__")?;
        let order = sequence.parse::<i32>().ok()?.cast_unsigned();
        let mut parts = who.split('+');
        let id = id(parts.next()?)?;
        let (mut stand, mut permits) = (Stand::Plain, None);
        for part in parts {
            match part.split_once("of") {
                _ if part == "fair" => stand = Stand::Fair,
                _ if part == "try" => stand = Stand::Try,
                Some((take, of)) => permits = Some((take.parse::<NonZeroU32>().ok()?, of.parse().ok()?)),
                None => return None,
            }
        }
        let mode = match (kind, permits) {
            ("lock", None) => Mode::Exclusive,
            ("rlock", None) => Mode::Shared,
            ("open", None) => Mode::Open,
            ("permit", Some((take, of))) => Mode::Permits { take, of },
            _ => return None,
        };
        Some(Self { node: node.to_owned(), id, mode, stand, order })
    }
}

/// Ours, or the 32 digits kazoo makes.
fn id(text: &str) -> Option<ClaimId> {
    let is_kazoo = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_kazoo {
        return text.parse().ok();
    }
    let groups = [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]];
    format!("{}:0", groups.join("-")).parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert_eq, proptest, test_runner::Config};

    use super::*;

    #[test]
    fn odd_names_become_nodes_and_names_again() {
        for name in [".", "..", "~cells", "a/b", "100%", "锁", "%2E", "\u{e000}", "a b"] {
            let node = encode(name);
            assert!(!node.contains('/') && !node.starts_with('~') && node != "." && node != "..", "{node}");
            assert_eq!(decode(&node).as_deref(), Some(name));
        }
        for node in [CELLS, "%zz", "%2", "%41"] {
            assert_eq!(decode(node), None, "{node}");
        }
    }

    #[test]
    fn kazoos_nodes_are_contenders_and_curators_are_not() {
        let kazoo = Contender::parse("0123456789abcdef0123456789abcdef__lock__0000000012").unwrap();
        assert_eq!((kazoo.mode, kazoo.order), (Mode::Exclusive, 12));
        let reader = Contender::parse("0123456789abcdef0123456789abcdef__rlock__0000000013").unwrap();
        assert_eq!(reader.mode, Mode::Shared);
        assert_eq!(Contender::parse("_c_6a2e5fd5-6f0b-4c1c-8a3a-0c6c0d3ad1f0-lock-0000000001"), None);
    }

    #[test]
    fn the_order_goes_on_when_the_sequence_overflows() {
        let node = |sequence| format!("0123456789abcdef0123456789abcdef__lock__{sequence}");
        let last = Contender::parse(&node("2147483647")).unwrap();
        let next = Contender::parse(&node("-2147483648")).unwrap();
        assert!(last.order < next.order);
    }

    proptest! {
        #![proptest_config(Config { cases: 500, failure_persistence: None, ..Config::default() })]

        #[test]
        fn every_name_survives_its_node(name in "\\PC{1,40}") {
            prop_assert_eq!(decode(&encode(&name)), Some(name));
        }

        #[test]
        fn no_node_makes_it_panic(
            node in "\\PC{0,40}|[%~a-f0-9]{0,12}|[0-9a-f]{32}[+](fair|try|[0-9]{0,11}of[0-9]{0,11})__(lock|rlock|permit|open)__-?[0-9]{0,12}"
        ) {
            let _ = decode(&node);
            if let Some(contender) = Contender::parse(&node) {
                prop_assert_eq!(contender.node, node);
            }
        }

        #[test]
        fn an_acquisition_is_read_back(take in 1..9_u32, more in 0..9_u32, stand in 0..3_usize, kind in 0..3) {
            let id: ClaimId = "00000000-0000-0000-0000-000000000001:7".parse().unwrap();
            let mode = match kind {
                0 => Mode::Exclusive,
                1 => Mode::Shared,
                _ => Mode::Permits { take: take.try_into().unwrap(), of: (take + more).try_into().unwrap() },
            };
            let stand = [Stand::Plain, Stand::Fair, Stand::Try][stand];
            let read = Contender::parse(&format!("{}0000000003", prefix(id, mode, stand))).unwrap();
            prop_assert_eq!((read.id, read.mode, read.stand, read.order), (id, mode, stand, 3));
        }
    }
}
