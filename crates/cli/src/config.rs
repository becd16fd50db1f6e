//! Which store: from the command line, the environment, a file, or the user's own folder, in that order.
//!
//! A store's URL may carry a password. It is never printed, and no message repeats what a file or a variable holds.

use std::{env, fmt, fs, os::unix::fs::DirBuilderExt, path::PathBuf, time::Duration};

use leasehold::{Client, ClientConfig, Config, Who};

use crate::{args, exit::Failure};

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
    ttl: Option<Duration>,
}

impl Options {
    /// Settles what is open from the file and the defaults.
    pub(crate) fn resolve(self) -> Result<Settings, Failure> {
        let Self { store, prefix, config } = self;
        let store = store.map(Ok).or_else(|| variable("LEASEHOLD_STORE")).transpose()?;
        let prefix = prefix.map(Ok).or_else(|| variable("LEASEHOLD_PREFIX")).transpose()?;
        let file = match (&store, &prefix) {
            (Some(_), Some(_)) if config.is_none() => ClientConfig::default(),
            _ => Config::load(config.as_deref())?.client()?,
        };
        let store = match store.or(file.store) {
            Some(store) => store,
            None => default_store()?,
        };
        Ok(Settings { store, prefix: prefix.or(file.prefix), ttl: file.ttl })
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
        settings.ttl = self.ttl;
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
pub(crate) fn variable(name: &str) -> Option<Result<String, Failure>> {
    let value = env::var_os(name).filter(|value| !value.is_empty())?;
    Some(value.into_string().map_err(|_| Failure::config(format!("{name} is not UTF-8"))))
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
    use super::*;

    #[test]
    fn nothing_shows_the_url() {
        let options =
            Options { store: Some("redis://:SECRET@h".into()), prefix: Some("p".into()), config: None };
        assert!(!format!("{options:?}").contains("SECRET"));
        assert!(!format!("{:?}", options.resolve().unwrap()).contains("SECRET"));
    }
}
