//! Where in a program's code a lock was asked for: what an operator wants to know of a holder that will not let go.
//!
//! Here it is a reference that the compiler made, and costs nothing to keep; from a store it is the text that somebody
//! wrote. Information for people, like the rest of [`Who`](crate::Who).

use std::{fmt, panic::Location, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A line of code, as `file:line`.
#[derive(Clone)]
pub struct CallSite(Inner);

#[derive(Clone)]
enum Inner {
    Code(&'static Location<'static>),
    Text(Arc<str>),
}

impl CallSite {
    /// The line that calls the function that calls this, if that function tracks its caller.
    #[track_caller]
    pub fn caller() -> Self {
        Self(Inner::Code(Location::caller()))
    }
}

impl From<&str> for CallSite {
    fn from(text: &str) -> Self {
        Self(Inner::Text(text.into()))
    }
}

impl fmt::Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Code(location) => write!(f, "{}:{}", location.file(), location.line()),
            Inner::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallSite({self})")
    }
}

/// One that was written and read again is the same.
impl PartialEq for CallSite {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Inner::Code(one), Inner::Code(other)) => {
                one.line() == other.line() && one.file() == other.file()
            }
            _ => self.to_string() == other.to_string(),
        }
    }
}

impl Eq for CallSite {}

impl Serialize for CallSite {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CallSite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Ok(Self::from(&*text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_code_survives_its_text() {
        let site = CallSite::caller();
        let text = serde_json::to_string(&site).unwrap();
        assert!(text.contains("call_site.rs:"), "{text}");
        assert_eq!(serde_json::from_str::<CallSite>(&text).unwrap(), site);
        assert_ne!(CallSite::from("a.rs:1"), site);
    }
}
