//! Who may do what: two roles, each with a token.
//!
//! Only hashes of tokens are kept, and hashes are compared in constant time, so neither memory nor time gives a token
//! away. Wrong tokens are counted: past a limit they are refused without being looked at, while right ones still pass.

use std::{
    fmt::{self, Write as _},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The shortest token that is accepted: less can be guessed.
const SHORTEST: usize = 16;

/// So many wrong tokens within [`WINDOW`] are looked at.
const WRONG: u32 = 20;
const WINDOW: Duration = Duration::from_secs(10);

/// What a request may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    open: bool,
    wrong: Mutex<Option<(Instant, u32)>>,
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
        let access = Self { operator: Some(digest(&token)), open: true, ..Self::default() };
        (access, token)
    }

    /// With these tokens; every request but for the page itself needs one.
    ///
    /// # Errors
    /// A sentence, for a token that is too short, or if both are the same or neither is given.
    pub fn with_tokens(operator: Option<&str>, viewer: Option<&str>) -> Result<Self, String> {
        for (token, whose) in [(operator, "operator's"), (viewer, "viewer's")] {
            if token.is_some_and(|token| token.len() < SHORTEST || token.chars().any(char::is_whitespace)) {
                return Err(format!(
                    "the {whose} token needs at least {SHORTEST} characters and no spaces; make one with `openssl rand -hex 32`"
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
        Ok(Self { operator: operator.map(digest), viewer: viewer.map(digest), ..Self::default() })
    }

    /// Whether everybody who reaches the server may look.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Whose token this is.
    pub(crate) fn judge(&self, token: &str) -> Verdict {
        let given = digest(token);
        let is = |known: &Option<[u8; 32]>| known.is_some_and(|known| known.ct_eq(&given).into());
        // Both are always compared, so that the time tells nothing.
        match (is(&self.operator), is(&self.viewer)) {
            (true, _) => Verdict::Known(Role::Operator),
            (false, true) => Verdict::Known(Role::Viewer),
            (false, false) => self.count_wrong(Instant::now()),
        }
    }

    fn count_wrong(&self, now: Instant) -> Verdict {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, count) = wrong.filter(|(since, _)| now < *since + WINDOW).unwrap_or((now, 0));
        *wrong = Some((since, count.saturating_add(1)));
        if count >= WRONG { Verdict::TooMany } else { Verdict::Wrong }
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

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATOR: &str = "operator-0123456789";
    const VIEWER: &str = "viewer-0123456789";

    #[test]
    fn each_token_has_its_role_and_no_other_has_one() {
        let access = Access::with_tokens(Some(OPERATOR), Some(VIEWER)).unwrap();
        assert_eq!(access.judge(OPERATOR), Verdict::Known(Role::Operator));
        assert_eq!(access.judge(VIEWER), Verdict::Known(Role::Viewer));
        for wrong in ["", "operator-012345678", "operator-01234567890", "Operator-0123456789"] {
            assert_eq!(access.judge(wrong), Verdict::Wrong, "{wrong:?}");
        }
    }

    #[test]
    fn weak_tokens_are_refused() {
        for (operator, viewer) in [(None, None), (Some("short"), None), (Some(OPERATOR), Some("short"))] {
            assert!(Access::with_tokens(operator, viewer).is_err());
        }
        assert!(Access::with_tokens(Some(OPERATOR), Some(OPERATOR)).is_err());
        assert!(Access::with_tokens(Some("operator 0123456789"), None).is_err());
    }

    #[test]
    fn guessing_is_slowed_down_and_the_right_token_still_passes() {
        let access = Access::with_tokens(Some(OPERATOR), None).unwrap();
        let verdicts: Vec<_> = (0..1000).map(|guess| access.judge(&format!("guess-{guess}"))).collect();
        let looked_at = verdicts.iter().filter(|verdict| **verdict == Verdict::Wrong).count();
        assert!(looked_at <= 2 * WRONG as usize, "{looked_at}");
        assert_eq!(access.judge(OPERATOR), Verdict::Known(Role::Operator));
    }

    #[test]
    fn the_window_moves_on() {
        let (access, _) = Access::open();
        let now = Instant::now();
        for _ in 0..=WRONG {
            access.count_wrong(now);
        }
        assert_eq!(access.count_wrong(now), Verdict::TooMany);
        assert_eq!(access.count_wrong(now + WINDOW), Verdict::Wrong);
    }

    #[test]
    fn a_token_made_for_a_run_is_long_and_new_each_time() {
        let ((access, token), (_, other)) = (Access::open(), Access::open());
        assert_eq!(token.len(), 64);
        assert_ne!(token, other);
        assert_eq!(access.judge(&token), Verdict::Known(Role::Operator));
        assert!(!format!("{access:?}").contains(&token));
    }
}
