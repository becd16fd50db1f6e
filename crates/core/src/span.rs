//! Lengths of time as users give them: a [`Duration`], or text such as `"30s"`, `"250ms"` or `"1h 30m"`.
//!
//! Options are set in builders that cannot fail, so a text that is not a duration is kept as such and surfaces
//! when the lock is asked for, as an error of kind `Config`.

use std::time::Duration;

/// A length of time, or the text that was not one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span(Result<Duration, String>);

impl Span {
    /// The length of time, or what is wrong with the text.
    pub(crate) fn read(&self) -> Result<Duration, &str> {
        self.0.as_ref().copied().map_err(String::as_str)
    }

    /// The length of time, or what is wrong with the text.
    pub fn get(self) -> Result<Duration, String> {
        self.0
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(Ok(duration))
    }
}

impl From<&str> for Span {
    fn from(text: &str) -> Self {
        Self(humantime::parse_duration(text).map_err(|error| {
            format!(
                "{text:?} is not a length of time ({error}); write it like \"30s\", \"250ms\" or \"1h 30m\""
            )
        }))
    }
}

impl From<String> for Span {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::any, proptest, test_runner::Config};

    use super::*;

    #[test]
    fn text_and_durations_mean_the_same() {
        assert_eq!(Span::from("250ms"), Span::from(Duration::from_millis(250)));
        assert_eq!(Span::from("1h 30m"), Span::from(Duration::from_secs(5400)));
    }

    #[test]
    fn other_texts_say_what_to_write() {
        for text in ["", "5", "-1s", "5 parsecs", "99999999999999999999s"] {
            let message = Span::from(text).get().unwrap_err();
            assert!(message.contains("write it like"), "{message}");
        }
    }

    proptest! {
        #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_text_makes_reading_a_length_of_time_panic(text in "([0-9]{0,21}[ ]?(ns|us|ms|s|m|h|days|y|µs)?[ .]?){0,3}|.{0,20}") {
            drop(Span::from(text).get());
        }

        #[test]
        fn a_length_of_time_is_read_as_it_is_written(nanos in any::<u64>()) {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(Span::from(humantime::format_duration(duration).to_string()), duration.into());
        }
    }
}
