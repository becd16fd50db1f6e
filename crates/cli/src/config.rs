//! Which store: from the command line, the environment, a file, or the user's own folder, in that order.
//!
//! A store's URL may carry a password. It is never printed, and no message repeats what a file or a variable holds.

use std::{
    env, fmt, fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use leasehold::{Client, Who};

use crate::{args, exit::Failure};

/// Name of the configuration file, in the working folder and in the user's configuration folder.
const FILE: &str = "leasehold.toml";

/// The words a configuration file may use.
const KEYS: [&str; 2] = ["store", "prefix"];

/// What was said on the command line. The environment is read by hand: the reader of the command line would take
/// a variable for an argument, and show it in its messages.
#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    /// The store, as a URL [env: LEASEHOLD_STORE] [default: a SQLite file in the user's state folder]
    ///
    /// `sqlite:PATH` is a file on this machine, `memory:` is gone with the process. A URL with a password belongs
    /// into LEASEHOLD_STORE or the configuration file: other users can read command lines.
    #[arg(long, value_name = "URL", global = true, help_heading = args::EVERYWHERE)]
    store: Option<String>,

    /// What goes before every name; a `prefix` in the store's URL wins [env: LEASEHOLD_PREFIX]
    #[arg(long, value_name = "P", global = true, help_heading = args::EVERYWHERE)]
    prefix: Option<String>,

    /// The configuration file [default: leasehold.toml here, then in the user's configuration folder]
    #[arg(long, value_name = "F", global = true, help_heading = args::EVERYWHERE)]
    config: Option<PathBuf>,
}

/// A store that was chosen.
pub(crate) struct Settings {
    store: String,
    prefix: Option<String>,
}

impl Options {
    /// Settles what is open from the file and the defaults.
    pub(crate) fn resolve(self) -> Result<Settings, Failure> {
        let Self { store, prefix, config } = self;
        let store = store.map(Ok).or_else(|| variable("LEASEHOLD_STORE")).transpose()?;
        let prefix = prefix.map(Ok).or_else(|| variable("LEASEHOLD_PREFIX")).transpose()?;
        let found = match (&store, &prefix) {
            (Some(_), Some(_)) if config.is_none() => None,
            _ => read_file(config)?,
        };
        let (file_store, file_prefix) = found.map_or((None, None), |file| (file.store, file.prefix));
        let store = match store.or(file_store) {
            Some(store) => store,
            None => default_store()?,
        };
        Ok(Settings { store, prefix: prefix.or(file_prefix) })
    }
}

impl Settings {
    /// Opens the store.
    ///
    /// # Cancel safety
    /// Nothing stays behind if it is dropped.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        self.connect_as(Who::here()).await
    }

    /// Opens the store as somebody: what others see of who holds a lock.
    ///
    /// # Cancel safety
    /// Nothing stays behind if it is dropped.
    pub(crate) async fn connect_as(&self, who: Who) -> Result<Client, Failure> {
        let mut settings = leasehold::Settings::default();
        settings.prefix.clone_from(&self.prefix);
        settings.who = Some(who);
        Ok(leasehold::connect_with(&self.store, settings).await?)
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("config", &self.config).finish_non_exhaustive()
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// A variable, if it is there and says anything.
fn variable(name: &str) -> Option<Result<String, Failure>> {
    let value = env::var_os(name).filter(|value| !value.is_empty())?;
    Some(value.into_string().map_err(|_| Failure::config(format!("{name} is not UTF-8"))))
}

#[derive(Default)]
struct ConfigFile {
    store: Option<String>,
    prefix: Option<String>,
}

/// The file that was named, or the first one there is.
fn read_file(named: Option<PathBuf>) -> Result<Option<ConfigFile>, Failure> {
    let must_exist = named.is_some();
    let places = match named {
        Some(path) => vec![path],
        None => [Some(PathBuf::from(FILE)), user_file()].into_iter().flatten().collect(),
    };
    for path in places {
        match fs::read_to_string(&path) {
            Ok(text) => return parse(&path, &text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => {}
            Err(error) => return Err(Failure::config(format!("{}: {error}", path.display()))),
        }
    }
    Ok(None)
}

fn user_file() -> Option<PathBuf> {
    Some(user_folder("XDG_CONFIG_HOME", ".config")?.join("leasehold").join(FILE))
}

/// Messages name the place, never the content: it may be a password.
fn parse(path: &Path, text: &str) -> Result<ConfigFile, Failure> {
    let refuse = |why: String| Failure::config(format!("{}: {why}", path.display()));
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        refuse(format!("line {line} is not TOML: {}", error.message()))
    })?;
    let mut file = ConfigFile::default();
    for (key, value) in table {
        let slot = match key.as_str() {
            "store" => &mut file.store,
            "prefix" => &mut file.prefix,
            _ => return Err(refuse(format!("unknown key {key:?}; did you mean {:?}?", nearest(&key)))),
        };
        let toml::Value::String(value) = value else {
            return Err(refuse(format!("{key} must be a text in quotes")));
        };
        *slot = Some(value);
    }
    Ok(file)
}

fn nearest(key: &str) -> &'static str {
    KEYS.into_iter().min_by_key(|known| distance(key, known)).unwrap_or(KEYS[0])
}

/// How many letters must be put in, left out or replaced to make one word of the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

/// A file of the user's own, in a folder that nobody else may enter.
fn default_store() -> Result<String, Failure> {
    let advice = "say where the locks live with --store or LEASEHOLD_STORE";
    let folder = user_folder("XDG_STATE_HOME", ".local/state");
    let folder = folder.ok_or_else(|| Failure::config(format!("there is no home folder; {advice}")))?;
    let folder = folder.join("leasehold");
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map_err(|error| Failure::config(format!("cannot make {}: {error}; {advice}", folder.display())))?;
    match folder.join("locks.db").to_str() {
        Some(path) if !path.contains('?') => Ok(format!("sqlite:{path}")),
        _ => Err(Failure::config(format!("{} cannot be written as a URL; {advice}", folder.display()))),
    }
}

/// A folder of the user's: from the variable if it is an absolute path, else below the home folder.
fn user_folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let chosen = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    chosen.or_else(|| {
        let home = env::home_dir().filter(|home| home.is_absolute())?;
        Some(home.join(below_home))
    })
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::any, proptest, test_runner::Config};

    use super::*;

    #[test]
    fn an_unknown_key_names_the_nearest_right_one() {
        for (wrong, right) in
            [("stroe", "store"), ("stor", "store"), ("Prefix", "prefix"), ("perfix", "prefix")]
        {
            let message = parse(Path::new("f"), &format!("{wrong} = \"x\"")).err().unwrap().message;
            assert_eq!(message, format!("f: unknown key {wrong:?}; did you mean {right:?}?"));
        }
    }

    #[test]
    fn what_a_file_holds_is_never_repeated() {
        for text in ["store = SECRET", "store = [\"SECRET\"]", "\n\nstore = \"redis://:SECRET@h", "SECRET"] {
            let failure = parse(Path::new("f"), text).err().unwrap();
            assert!(!failure.message.contains("SECRET"), "{}", failure.message);
        }
        let broken = parse(Path::new("f"), "prefix = \"a\"\n\nstore = \"redis").err().unwrap();
        assert!(broken.message.starts_with("f: line 3 "), "{}", broken.message);
    }

    #[test]
    fn nothing_shows_the_url() {
        let options =
            Options { store: Some("redis://:SECRET@h".into()), prefix: Some("p".into()), config: None };
        assert!(!format!("{options:?}").contains("SECRET"));
        assert!(!format!("{:?}", options.resolve().unwrap()).contains("SECRET"));
    }

    #[test]
    fn distances_are_counted_in_letters() {
        assert_eq!((distance("store", "store"), distance("", "abc"), distance("stroe", "store")), (0, 3, 2));
    }

    proptest! {
        #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_text_makes_reading_a_file_panic(text in "(store|prefix|[\"'=#.\\[\\]{}\n\\\\ a锁\u{1}]){0,20}") {
            drop(parse(Path::new("f"), &text));
        }

        #[test]
        fn no_damaged_file_has_its_store_repeated(damage in vec((any::<u16>(), "[\"'=#.\n\\[\\]{}\\\\ x]?"), 1..4)) {
            let mut text: Vec<char> = "prefix = \"p\"\nstore = \"redis://u:SECRET@h\"\n".chars().collect();
            for (place, new) in damage {
                let at = usize::from(place) % text.len();
                text.splice(at..=at, new.chars());
            }
            let text: String = text.into_iter().collect();
            if let Err(failure) = parse(Path::new("f"), &text) {
                assert!(!failure.message.contains("SECRET"), "{text:?}: {}", failure.message);
            }
        }
    }
}
