//! What becomes of a test whose server is not installed: it fails and says so, or it is counted aloud as skipped.
//! It never passes in silence.

use std::io::Write;

use super::StartError;

/// What to do when a server is not installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The test fails with the reason: the default.
    Fail,
    /// The test is skipped, and a line on stderr says so: `skipped: redis-server is not installed`.
    Skip,
}

impl Missing {
    /// The variable that allows servers to be missing, when it is `1`.
    pub const VARIABLE: &str = "LEASEHOLD_ALLOW_MISSING";

    /// As the environment says.
    pub fn policy() -> Self {
        Self::of(std::env::var(Self::VARIABLE).ok().as_deref())
    }

    fn of(value: Option<&str>) -> Self {
        if value == Some("1") { Self::Skip } else { Self::Fail }
    }

    /// The server if it started; `None`, counted aloud, if it is not installed and may be missing.
    ///
    /// # Panics
    /// If it did not start for any other reason, or must not be missing: that is the test's failure.
    pub fn judge<T>(self, started: Result<T, StartError>) -> Option<T> {
        // Not by `eprintln!`, which a harness captures: a skip must be seen and counted.
        self.judge_aloud(started, &mut std::io::stderr())
    }

    fn judge_aloud<T>(self, started: Result<T, StartError>, aloud: &mut dyn Write) -> Option<T> {
        match started {
            Ok(server) => Some(server),
            Err(StartError::NotInstalled { program, .. }) if self == Self::Skip => {
                drop(writeln!(aloud, "skipped: {program} is not installed"));
                None
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Starts a server for a test: `let Some(redis) = start_or_skip(Redis::start) else { return };`
///
/// # Panics
/// If it does not start, unless it is not installed and [`Missing::VARIABLE`] allows that.
pub fn start_or_skip<T>(start: impl FnOnce() -> Result<T, StartError>) -> Option<T> {
    Missing::policy().judge(start())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing() -> Result<(), StartError> {
        Err(StartError::NotInstalled { program: "no-such-server".to_owned(), package: "none" })
    }

    #[test]
    fn only_one_word_allows_a_server_to_be_missing() {
        assert_eq!(Missing::of(Some("1")), Missing::Skip);
        for value in [None, Some(""), Some("0"), Some("yes")] {
            assert_eq!(Missing::of(value), Missing::Fail);
        }
    }

    #[test]
    fn a_missing_server_is_skipped_aloud_where_allowed() {
        let mut said = Vec::new();
        assert_eq!(Missing::Skip.judge_aloud(missing(), &mut said), None);
        assert_eq!(String::from_utf8(said).unwrap(), "skipped: no-such-server is not installed\n");
        assert_eq!(Missing::Skip.judge(Ok(7)), Some(7));
    }

    #[test]
    #[should_panic(expected = "no-such-server is not installed; install the package none")]
    fn a_missing_server_fails_the_test_otherwise() {
        Missing::Fail.judge(missing());
    }

    #[test]
    #[should_panic(expected = "did not answer")]
    fn a_broken_server_fails_the_test_whatever_is_allowed() {
        let broken = StartError::NotReady { program: "x".to_owned(), log: String::new() };
        Missing::Skip.judge(Err::<(), _>(broken));
    }
}
