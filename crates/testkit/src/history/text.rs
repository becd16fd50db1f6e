//! A history as text, one event per line, so that every process of a run can write a file of its own and one checker
//! can read them all.
//!
//! The fields are separated by tabs and the name comes last, percent-escaped where it has a tab, a line break or a
//! percent sign, so a line can be cut with `cut` and read by eye.

use std::{fmt, fs, io, path::Path, str::FromStr};

use super::{Act, Event, Mode, Phase};

/// Reads what one process wrote. A last line without its end is left out: its writer was killed in the middle of it.
///
/// # Errors
/// If the file cannot be read, or another line is no event.
pub fn read_file(file: &Path) -> io::Result<Vec<Event>> {
    let text = fs::read_to_string(file)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let wrong = |problem: String| io::Error::other(format!("{}: {problem}", file.display()));
    whole.lines().map(|line| line.parse().map_err(wrong)).collect()
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, process, operation, phase, name, owner, act } = self;
        write!(f, "{at}\t{process}\t{operation}\t{}\t{owner}\t{act}\t{}", phase.word(), escaped(name))
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire { mode: Mode::Exclusive } => f.write_str("acquire exclusive"),
            Self::Acquire { mode: Mode::Shared } => f.write_str("acquire shared"),
            Self::Acquire { mode: Mode::Permits { take, of } } => write!(f, "acquire permits {take} {of}"),
            Self::Granted { fence, deadline } => write!(f, "granted {fence} {deadline}"),
            Self::Renewed { deadline } => write!(f, "renewed {deadline}"),
            Self::Release => f.write_str("release"),
            Self::Lost => f.write_str("lost"),
            Self::Check => f.write_str("check"),
            Self::Held { deadline } => write!(f, "held {deadline}"),
            Self::Write { read, value, fence } => write!(f, "write {read} {value} {fence}"),
            Self::Read { value } => write!(f, "read {value}"),
        }
    }
}

/// Reads one line back; the error says which part of it is not one.
impl FromStr for Event {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [at, process, operation, phase, owner, act, name] = fields[..] else {
            return Err(format!("an event has seven fields, not {}: {line:?}", fields.len()));
        };
        Ok(Self {
            at: number(at)?,
            process: u32::try_from(number(process)?).map_err(|error| error.to_string())?,
            operation: number(operation)?,
            phase: Phase::of_word(phase).ok_or_else(|| format!("{phase:?} is not a phase"))?,
            name: unescaped(name)?,
            owner: number(owner)?,
            act: act.parse()?,
        })
    }
}

impl FromStr for Act {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(' ').collect();
        Ok(match words[..] {
            ["acquire", "exclusive"] => Self::Acquire { mode: Mode::Exclusive },
            ["acquire", "shared"] => Self::Acquire { mode: Mode::Shared },
            ["acquire", "permits", take, of] => {
                let count =
                    |text| number(text).and_then(|number| u32::try_from(number).map_err(|e| e.to_string()));
                Self::Acquire { mode: Mode::Permits { take: count(take)?, of: count(of)? } }
            }
            ["granted", fence, deadline] => {
                Self::Granted { fence: number(fence)?, deadline: number(deadline)? }
            }
            ["renewed", deadline] => Self::Renewed { deadline: number(deadline)? },
            ["release"] => Self::Release,
            ["lost"] => Self::Lost,
            ["check"] => Self::Check,
            ["held", deadline] => Self::Held { deadline: number(deadline)? },
            ["write", read, value, fence] => {
                Self::Write { read: number(read)?, value: number(value)?, fence: number(fence)? }
            }
            ["read", value] => Self::Read { value: number(value)? },
            _ => return Err(format!("{text:?} is not an act")),
        })
    }
}

impl Phase {
    const WORDS: [(Self, &'static str); 5] = [
        (Self::Asked, "asked"),
        (Self::Done, "done"),
        (Self::Failed, "failed"),
        (Self::Unknown, "unknown"),
        (Self::Noticed, "noticed"),
    ];

    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(phase, _)| *phase == self).map_or("unknown", |(_, word)| word)
    }

    fn of_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, known)| *known == word).map(|(phase, _)| *phase)
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|error| format!("{text:?} is not a number: {error}"))
}

fn escaped(name: &str) -> String {
    name.replace('%', "%25").replace('\t', "%09").replace('\n', "%0A").replace('\r', "%0D")
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut parts = text.split('%');
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        name.push(char::from(code.ok_or_else(|| format!("{text:?} has a stray percent sign"))?));
        name.push_str(&part[2..]);
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::any, proptest, test_runner::Config};

    use super::*;

    #[test]
    fn every_sort_of_event_survives_its_text() {
        let acts = [
            Act::Acquire { mode: Mode::Exclusive },
            Act::Acquire { mode: Mode::Shared },
            Act::Acquire { mode: Mode::Permits { take: 2, of: 7 } },
            Act::Granted { fence: 5, deadline: u64::MAX },
            Act::Renewed { deadline: 12 },
            Act::Release,
            Act::Lost,
            Act::Check,
            Act::Held { deadline: 13 },
            Act::Write { read: 1, value: 2, fence: 3 },
            Act::Read { value: 4 },
        ];
        for (index, act) in acts.into_iter().enumerate() {
            let (phase, _) = Phase::WORDS[index % 5];
            let name = "100%\tsure\r\nof 锁".to_owned();
            let event = Event { at: 1, process: 2, operation: 3, phase, name, owner: 4, act };
            let line = event.to_string();
            assert!(!line.contains('\n') && line.matches('\t').count() == 6, "{line:?}");
            assert_eq!(line.parse::<Event>(), Ok(event));
        }
    }

    #[test]
    fn a_file_whose_writer_was_killed_is_read_to_its_last_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        let line = "1\t2\t3\tdone\t4\trelease\tname";
        fs::write(&file, format!("{line}\n{line}\n{}", &line[..9])).unwrap();
        assert_eq!(read_file(&file).unwrap().len(), 2);
        fs::write(&file, format!("{}\n{line}\n", &line[..9])).unwrap();
        assert!(read_file(&file).is_err());
        fs::write(&file, "").unwrap();
        assert_eq!(read_file(&file).unwrap(), []);
    }

    #[test]
    fn other_lines_are_refused() {
        let good = "1\t2\t3\tdone\t4\trelease\tname";
        assert!(good.parse::<Event>().is_ok());
        for (from, to) in
            [("done", "gone"), ("release", "dance"), ("1", "x"), ("name", "%zz"), ("\tname", "")]
        {
            assert!(good.replacen(from, to, 1).parse::<Event>().is_err(), "{from} -> {to}");
        }
    }

    proptest! {
        #![proptest_config(Config { cases: 1000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn any_name_survives_the_text_and_keeps_to_its_line(name in any::<String>(), at in any::<u64>(), owner in any::<u64>()) {
            let act = Act::Granted { fence: at, deadline: owner };
            let event = Event { at, process: 2, operation: 3, phase: Phase::Done, name, owner, act };
            let text = format!("{event}\n");
            assert_eq!(text.lines().count(), 1, "{text:?}");
            assert_eq!(text.lines().next().unwrap().parse::<Event>(), Ok(event));
        }

        #[test]
        fn no_line_makes_reading_panic(line in "[0-9]{0,3}\t[0-9]\t[0-9]\t(done|asked)\t[0-9]\t(granted|read|acquire permits) [0-9 ]{0,5}\t[%a-f0-9锁]{0,6}|.{0,40}") {
            drop(line.parse::<Event>());
        }
    }
}
