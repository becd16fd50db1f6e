//! Where things are in etcd. All of it is text that `etcdctl get --prefix leasehold/` shows.
//!
//! ```text
//! leasehold/name/NAME/hs/ID   holds NAME, shared
//! leasehold/name/NAME/hx/ID   holds NAME, exclusively or by permits
//! leasehold/name/NAME/fs/ID   stands in line, to share
//! leasehold/name/NAME/fx/ID   stands in line, for anything else
//! leasehold/name/NAME/ws/ID   waits outside of the line, to share; wx for anything else, wo for a latch
//! leasehold/name/NAME/latch   the latch
//! leasehold/broken/ID         who broke this acquisition; a client watches those of its own
//! leasehold/cell/NAME         a cell
//! ```
//!
//! A slash in a name is written `%2F` and a percent sign `%25`, so that no name is within another's folder and the keys of
//! all names with a prefix begin with that prefix, which is what rights are given by.

use leasehold_core::{
    ClaimId, ClientId, Key,
    backend::{ClaimSpec, Mode},
};

/// Before every name.
pub(crate) const NAMES: &str = "leasehold/name/";

/// Before every mark of a forced release.
const BROKEN: &str = "leasehold/broken/";

/// Before every cell.
const CELLS: &str = "leasehold/cell/";

/// The folder of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folder(String);

/// A stretch of keys, `end` not included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) key: Vec<u8>,
    pub(crate) end: Vec<u8>,
}

impl Folder {
    pub(crate) fn of(key: &Key) -> Self {
        Self(format!("{NAMES}{}/", escaped(key.full())))
    }

    /// All that is known of the name.
    pub(crate) fn all(&self) -> Stretch {
        Stretch::beginning(&self.0)
    }

    /// All who hold it.
    pub(crate) fn holders(&self) -> Stretch {
        self.part("h")
    }

    /// Those who hold it and share it with nobody.
    pub(crate) fn excluding(&self) -> Stretch {
        self.part("hx/")
    }

    /// All who stand in line.
    pub(crate) fn line(&self) -> Stretch {
        self.part("f")
    }

    /// Those who stand in line and let nobody after them pass.
    pub(crate) fn blocking_line(&self) -> Stretch {
        self.part("fx/")
    }

    /// Those who wait outside of the line for what only one can have.
    pub(crate) fn crowd(&self) -> Stretch {
        self.part("wx/")
    }

    /// All who wait outside of the line.
    pub(crate) fn outside(&self) -> Stretch {
        self.part("w")
    }

    pub(crate) fn latch(&self) -> Vec<u8> {
        format!("{}latch", self.0).into_bytes()
    }

    /// Where this acquisition is while it holds.
    pub(crate) fn held(&self, mode: Mode, id: ClaimId) -> Vec<u8> {
        let part = if mode == Mode::Shared { "hs" } else { "hx" };
        format!("{}{part}/{id}", self.0).into_bytes()
    }

    /// Where this acquisition is while it waits.
    pub(crate) fn waiting(&self, spec: &ClaimSpec) -> Vec<u8> {
        let part = match (spec.mode, spec.fair) {
            (Mode::Open, _) => "wo",
            (Mode::Shared, true) => "fs",
            (_, true) => "fx",
            (Mode::Shared, false) => "ws",
            (_, false) => "wx",
        };
        format!("{}{part}/{}", self.0, spec.id).into_bytes()
    }

    /// Every place where an acquisition of this mode can be.
    pub(crate) fn places(&self, mode: Mode, id: ClaimId) -> Vec<Vec<u8>> {
        let parts: &[&str] = match mode {
            Mode::Shared => &["hs", "fs", "ws"],
            Mode::Open => &["wo"],
            _ => &["hx", "fx", "wx"],
        };
        parts.iter().map(|part| format!("{}{part}/{id}", self.0).into_bytes()).collect()
    }

    fn part(&self, part: &str) -> Stretch {
        Stretch::beginning(&format!("{}{part}", self.0))
    }
}

impl Stretch {
    /// All keys that begin with this text.
    pub(crate) fn beginning(text: &str) -> Self {
        let mut end = text.as_bytes().to_vec();
        // Texts of ours end with a letter, a slash or a part of UTF-8: none of them is the last byte there is.
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        Self { key: text.as_bytes().to_vec(), end }
    }
}

/// What a key is about: the name, the part of its folder, and who.
pub(crate) fn parse(key: &[u8]) -> Option<(String, &str, &str)> {
    let rest = std::str::from_utf8(key).ok()?.strip_prefix(NAMES)?;
    let (name, rest) = rest.split_once('/')?;
    let (part, id) = rest.split_once('/').unwrap_or((rest, ""));
    Some((unescaped(name), part, id))
}

/// All names that begin with this prefix.
pub(crate) fn names(prefix: &str) -> Stretch {
    Stretch::beginning(&format!("{NAMES}{}", escaped(prefix)))
}

/// The first key after the folder of this name.
pub(crate) fn after(name: &str) -> Vec<u8> {
    Folder(format!("{NAMES}{}/", escaped(name))).all().end
}

/// Where it is told who broke an acquisition.
pub(crate) fn broken(id: ClaimId) -> Vec<u8> {
    format!("{BROKEN}{id}").into_bytes()
}

/// Where it is told who broke any acquisition of this client.
pub(crate) fn breaks(client: ClientId) -> Stretch {
    Stretch::beginning(&format!("{BROKEN}{client}:"))
}

/// The acquisition that such a key is about.
pub(crate) fn broken_id(key: &[u8]) -> Option<ClaimId> {
    std::str::from_utf8(key).ok()?.strip_prefix(BROKEN)?.parse().ok()
}

pub(crate) fn cell(name: &str) -> Vec<u8> {
    format!("{CELLS}{name}").into_bytes()
}

pub(crate) fn cells(prefix: &str) -> Stretch {
    Stretch::beginning(&format!("{CELLS}{prefix}"))
}

pub(crate) fn cell_name(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key).ok()?.strip_prefix(CELLS)
}

pub(crate) fn escaped(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2F")
}

fn unescaped(text: &str) -> String {
    text.replace("%2F", "/").replace("%25", "%")
}

#[cfg(test)]
mod tests {
    use proptest::{proptest, test_runner::Config};

    use super::*;

    proptest! {
        #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_name_is_within_another(one in "[a%/2F5锁]{1,8}", other in "[a%/2F5锁]{1,8}") {
            let folder = |name: &str| Folder::of(&Key::new("", name).unwrap());
            let key = [folder(&other).all().key, b"latch".to_vec()].concat();
            let all = folder(&one).all();
            assert_eq!(all.key <= key && key < all.end, one == other);
            assert_eq!(parse(&key).unwrap(), (other.clone(), "latch", ""));
            let begins = names(&one);
            assert_eq!(begins.key <= key && key < begins.end, other.starts_with(&one));
        }

        #[test]
        fn no_key_makes_it_panic(tail in "[a-z0-9%/锁.:~-]{0,40}", bytes: Vec<u8>) {
            let beginning = names("").key;
            for key in [bytes.clone(), [beginning, tail.into_bytes()].concat(), [CELLS.as_bytes(), &bytes].concat()] {
                drop(parse(&key));
                let _ = (cell_name(&key), broken_id(&key));
            }
        }
    }
}
