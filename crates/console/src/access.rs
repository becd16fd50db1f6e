//! Who may do what: two roles, each with a token.
//!
//! Only hashes of tokens are kept, and hashes are compared in constant time, so neither memory nor time gives a token
//! away. Wrong tokens are counted by who sent them, and past a limit that peer is told to wait. A right token always passes:
//! behind a proxy all are one peer, and somebody who guesses there must not cost others their leases. So it is the length of
//! a token that keeps it from being guessed, not the limit. Of more peers than can be remembered the rest are counted together.
//!
//! What is given out to be brought back, the ticket of a lock, bears a seal that only the operator's token makes.

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The shortest token that is accepted: less can be guessed.
const SHORTEST: usize = 16;

/// So many wrong tokens of a peer within [`WINDOW`] are answered as such.
const WRONG: u32 = 20;
const WINDOW: Duration = Duration::from_secs(10);

/// So many peers are told apart.
const PEERS: usize = 1024;

/// What makes the key of seals another one than the hash that tokens are compared by.
const SEALS: &str = "leasehold console tickets 1 ";

/// What a request may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Came without a token.
    Nobody,
    /// Sees everything, changes nothing.
    Viewer,
    /// May break, acquire, renew and release.
    Operator,
}

/// The tokens, as hashes.
#[derive(Default)]
pub struct Access {
    operator: Option<[u8; 32]>,
    viewer: Option<[u8; 32]>,
    /// What tickets are sealed with.
    seals: Option<[u8; 32]>,
    open: bool,
    wrong: Mutex<Wrong>,
}

/// Wrong tokens: since when, and how many.
type Count = (Instant, u32);

#[derive(Default)]
struct Wrong {
    peers: HashMap<IpAddr, Count>,
    rest: Option<Count>,
}

/// What became of a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Known(Role),
    Wrong,
    TooMany,
}

impl Access {
    /// For a server on loopback that was told no token: whoever reaches it may look, and one token made for this run
    /// lets its bearer act. Returns that token; it is kept nowhere.
    ///
    /// # Panics
    /// If the operating system has no randomness to give.
    pub fn open() -> (Self, String) {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        let token = hexadecimal(&bytes);
        let access = Self {
            operator: Some(digest(&token)),
            seals: Some(seals(&token)),
            open: true,
            ..Self::default()
        };
        (access, token)
    }

    /// With these tokens; every request but for the page itself needs one.
    ///
    /// # Errors
    /// A sentence, for a token that is too short, or if both are the same or neither is given.
    pub fn with_tokens(operator: Option<&str>, viewer: Option<&str>) -> Result<Self, String> {
        for (token, whose) in [(operator, "operator's"), (viewer, "viewer's")] {
            // A header carries nothing else than this.
            if token.is_some_and(|token| {
                token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic())
            }) {
                return Err(format!(
                    "the {whose} token needs at least {SHORTEST} characters, all of them ASCII and no spaces; make one with `openssl rand -hex 32`"
                ));
            }
        }
        match (operator, viewer) {
            (None, None) => return Err("there is no token".to_owned()),
            (Some(operator), Some(viewer)) if operator == viewer => {
                return Err("operator and viewer have the same token; give each their own".to_owned());
            }
            _ => {}
        }
        let (operator, viewer, seals) = (operator.map(digest), viewer.map(digest), operator.map(seals));
        Ok(Self { operator, viewer, seals, ..Self::default() })
    }

    /// Whether everybody who reaches the server may look.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Whose token this is that this peer sent.
    pub(crate) fn judge(&self, token: &str, peer: IpAddr) -> Verdict {
        self.judge_at(token, network(peer), Instant::now())
    }

    fn judge_at(&self, token: &str, peer: IpAddr, now: Instant) -> Verdict {
        let given = digest(token);
        let is = |known: &Option<[u8; 32]>| known.is_some_and(|known| known.ct_eq(&given).into());
        // Both are always compared, so that the time tells nothing.
        match (is(&self.operator), is(&self.viewer)) {
            (true, _) => Verdict::Known(Role::Operator),
            (false, true) => Verdict::Known(Role::Viewer),
            (false, false) => self.wrong.lock().unwrap_or_else(PoisonError::into_inner).count(peer, now),
        }
    }

    /// The text with a seal behind it. Without an operator there is none, and nothing that would want one.
    pub(crate) fn seal(&self, text: &str) -> String {
        let seal = self.mac(text).map_or_else(String::new, |mac| hexadecimal(&mac.finalize().into_bytes()));
        format!("{text}/{seal}")
    }

    /// Whether this is the seal of the text, ours or that of another console with the same operator's token.
    pub(crate) fn is_sealed(&self, text: &str, seal: &str) -> bool {
        let (Some(mac), Some(seal)) = (self.mac(text), bytes(seal)) else { return false };
        mac.verify_slice(&seal).is_ok()
    }

    fn mac(&self, text: &str) -> Option<Hmac<Sha256>> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.seals?).ok()?;
        Some(mac.chain_update(text.as_bytes()))
    }
}

impl Wrong {
    fn count(&mut self, peer: IpAddr, now: Instant) -> Verdict {
        if self.peers.len() >= PEERS {
            self.peers.retain(|_, (since, _)| now < *since + WINDOW);
        }
        let known = self.peers.get(&peer).copied();
        let is_one_of_the_rest = known.is_none() && self.peers.len() >= PEERS;
        let before = if is_one_of_the_rest { self.rest } else { known };
        let (since, count) = before.filter(|(since, _)| now < *since + WINDOW).unwrap_or((now, 0));
        let counted = (since, count.saturating_add(1));
        if is_one_of_the_rest {
            self.rest = Some(counted);
        } else {
            self.peers.insert(peer, counted);
        }
        if count >= WRONG { Verdict::TooMany } else { Verdict::Wrong }
    }
}

/// Whoever has one address of the sixth kind has very many: they are one peer.
pub(crate) fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("open", &self.open).finish_non_exhaustive()
    }
}

/// Bytes as digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

fn seals(token: &str) -> [u8; 32] {
    digest(&[SEALS, token].concat())
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATOR: &str = "operator-0123456789";
    const VIEWER: &str = "viewer-0123456789";
    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    #[test]
    fn each_token_has_its_role_and_no_other_has_one() {
        let access = Access::with_tokens(Some(OPERATOR), Some(VIEWER)).unwrap();
        assert_eq!(access.judge(OPERATOR, PEER), Verdict::Known(Role::Operator));
        assert_eq!(access.judge(VIEWER, PEER), Verdict::Known(Role::Viewer));
        for wrong in ["", "operator-012345678", "operator-01234567890", "Operator-0123456789"] {
            assert_eq!(access.judge(wrong, PEER), Verdict::Wrong, "{wrong:?}");
        }
    }

    #[test]
    fn weak_tokens_are_refused() {
        for (operator, viewer) in [(None, None), (Some("short"), None), (Some(OPERATOR), Some("short"))] {
            assert!(Access::with_tokens(operator, viewer).is_err());
        }
        assert!(Access::with_tokens(Some(OPERATOR), Some(OPERATOR)).is_err());
        for token in ["operator 0123456789", "opérateur-0123456789", "operator-012345678\n"] {
            assert!(Access::with_tokens(Some(token), None).is_err(), "{token:?}");
        }
    }

    #[test]
    fn whoever_guesses_is_told_to_wait_and_a_right_token_of_the_same_address_passes() {
        let access = Access::with_tokens(Some(OPERATOR), None).unwrap();
        let (now, other) = (Instant::now(), IpAddr::from([10, 0, 0, 2]));
        for guess in 0..WRONG {
            assert_eq!(access.judge_at(&format!("guess-{guess}"), PEER, now), Verdict::Wrong);
        }
        assert_eq!(access.judge_at("guess", PEER, now), Verdict::TooMany);
        assert_eq!(access.judge_at(OPERATOR, PEER, now), Verdict::Known(Role::Operator));
        assert_eq!(
            access.judge_at("guess", PEER, now),
            Verdict::TooMany,
            "a right one forgives no wrong one"
        );
        assert_eq!(access.judge_at(OPERATOR, other, now), Verdict::Known(Role::Operator));
        assert_eq!(access.judge_at("guess", other, now), Verdict::Wrong);
        assert_eq!(access.judge_at("guess", PEER, now + WINDOW), Verdict::Wrong);
    }

    #[test]
    fn however_many_guess_few_are_remembered_and_few_guesses_looked_at() {
        let access = Access::with_tokens(Some(OPERATOR), None).unwrap();
        let (now, peer) = (Instant::now(), |number: u32| IpAddr::from(number.to_be_bytes()));
        let verdicts = (0..100_000).map(|number| access.judge_at("guess", peer(number), now));
        let looked_at = verdicts.filter(|verdict| *verdict == Verdict::Wrong).count();
        assert_eq!(looked_at, PEERS + WRONG as usize);
        assert_eq!(access.wrong.lock().unwrap().peers.len(), PEERS);
        assert_eq!(access.judge_at(OPERATOR, peer(200_000), now), Verdict::Known(Role::Operator));
    }

    #[test]
    fn a_network_of_the_sixth_kind_is_one_peer() {
        let near: [IpAddr; 2] = ["2001:db8::1", "2001:db8::2:3"].map(|text| text.parse().unwrap());
        assert_eq!(network(near[0]), network(near[1]));
        assert_eq!(network("::ffff:10.0.0.1".parse().unwrap()), PEER);
    }

    #[test]
    fn a_seal_is_of_one_text_and_of_one_operators_token() {
        let access = |token| Access::with_tokens(Some(token), None).unwrap();
        let sealed = access(OPERATOR).seal("lh1/a");
        let (text, seal) = sealed.rsplit_once('/').unwrap();
        assert!(access(OPERATOR).is_sealed(text, seal), "another console with this token");
        assert!(!access(OPERATOR).is_sealed("lh1/b", seal) && !access(VIEWER).is_sealed(text, seal));
        for wrong in ["", "0", "zz", &seal[2..], &seal.replace(&seal[..1], "x")] {
            assert!(!access(OPERATOR).is_sealed(text, wrong), "{wrong}");
        }
        let viewers = Access::with_tokens(None, Some(VIEWER)).unwrap();
        assert!(!viewers.is_sealed(text, "") && !viewers.is_sealed(text, seal));
    }

    #[test]
    fn a_token_made_for_a_run_is_long_and_new_each_time() {
        let ((access, token), (_, other)) = (Access::open(), Access::open());
        assert_eq!(token.len(), 64);
        assert_ne!(token, other);
        assert_eq!(access.judge(&token, PEER), Verdict::Known(Role::Operator));
        assert!(!format!("{access:?}").contains(&token));
    }
}
