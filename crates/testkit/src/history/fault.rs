//! What was done to a run, and when: the windows that losses and outages are measured against.

use std::{fmt, str::FromStr};

/// One fault, from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// What was done, in a few words.
    pub kind: String,
    /// To whom.
    pub hit: Hit,
    /// When it began, on the history's clock.
    pub from: u64,
    /// When it was over and healed.
    pub until: u64,
}

/// Who a fault befalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// The store.
    Store,
    /// A process of the workload, which stood still meanwhile.
    Stopped(u32),
    /// A process of the workload, which ended at the beginning of the window.
    Killed(u32),
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, hit, from, until } = self;
        match hit {
            Hit::Store => write!(f, "{from}\t{until}\tstore\t{kind}"),
            Hit::Stopped(process) => write!(f, "{from}\t{until}\tstopped {process}\t{kind}"),
            Hit::Killed(process) => write!(f, "{from}\t{until}\tkilled {process}\t{kind}"),
        }
    }
}

/// Reads one line back; the error says which part of it is not one.
impl FromStr for Window {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [from, until, hit, kind] = fields[..] else {
            return Err(format!("a fault has four fields, not {}: {line:?}", fields.len()));
        };
        let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
        let process = |text: &str| text.parse::<u32>().map_err(|error| format!("{text:?}: {error}"));
        let hit = match hit.split_once(' ') {
            None if hit == "store" => Hit::Store,
            Some(("stopped", id)) => Hit::Stopped(process(id)?),
            Some(("killed", id)) => Hit::Killed(process(id)?),
            _ => return Err(format!("{hit:?} does not say who was hit")),
        };
        Ok(Self { kind: kind.to_owned(), hit, from: number(from)?, until: number(until)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sort_of_window_survives_its_text() {
        for hit in [Hit::Store, Hit::Stopped(7), Hit::Killed(8)] {
            let window = Window { kind: "kill the store".to_owned(), hit, from: 3, until: 9 };
            assert_eq!(window.to_string().parse(), Ok(window));
        }
        for line in ["", "1\t2\tstore", "1\t2\tmoon\tx", "1\tx\tstore\tx", "1\t2\tkilled x\tx"] {
            assert!(line.parse::<Window>().is_err(), "{line:?}");
        }
    }
}
