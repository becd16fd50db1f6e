//! What whoever runs this wants.

use std::path::PathBuf;

use crate::sections;

/// The options.
#[derive(Clone, Debug, Default)]
pub(crate) struct Args {
    /// A minute or two: one round of everything, small; it shows that all of it runs and is exact.
    pub(crate) quick: bool,
    /// One section and no other.
    pub(crate) only: Option<String>,
    /// Where the page goes; plots go to a folder beside it.
    pub(crate) page: Option<PathBuf>,
    /// What is checked out.
    pub(crate) commit: String,
    /// Where other libraries are described.
    pub(crate) peers: PathBuf,
    /// Where they are built.
    pub(crate) out: PathBuf,
    /// Builds them first.
    pub(crate) build: bool,
}

impl Args {
    pub(crate) fn read(words: &[String]) -> Result<Self, String> {
        let mut args = Self {
            commit: "unknown".to_owned(),
            peers: PathBuf::from("bench/peers"),
            out: PathBuf::from("target/peers"),
            ..Self::default()
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().cloned().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--quick" => args.quick = true,
                "--build-peers" => args.build = true,
                "--only" => args.only = Some(section(value()?)?),
                "--page" => args.page = Some(value()?.into()),
                "--commit" => args.commit = value()?,
                "--peers" => args.peers = value()?.into(),
                "--out" => args.out = value()?.into(),
                other => return Err(format!("unknown option {other:?}")),
            }
        }
        Ok(args)
    }

    /// How often each thing is measured.
    pub(crate) fn rounds(&self) -> usize {
        if self.quick { 1 } else { 5 }
    }

    /// One number for a quick run, another for a full one.
    pub(crate) fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }
}

fn section(name: String) -> Result<String, String> {
    let names: Vec<&str> = sections::ALL.iter().map(|section| section.name).collect();
    if names.contains(&name.as_str()) {
        return Ok(name);
    }
    Err(format!("no section is called {name:?}; there are {}", names.join(", ")))
}
