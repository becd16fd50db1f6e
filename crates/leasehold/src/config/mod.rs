//! Clients from `leasehold.toml` and the environment.
//!
//! ```toml
//! store = "redis://${REDIS_HOST:-127.0.0.1}"   # switch the store here
//! prefix = "shop:"                             # goes before every name
//! ttl = "30s"                                  # the lease of locks that do not say
//!
//! [clients.reports]                            # a client of its own; what it does not say is as above
//! store = "sqlite:reports.db"
//!
//! [profiles.test]                              # what is different with LEASEHOLD_PROFILE=test
//! store = "memory:"
//! ```
//!
//! `profile = "…"` in the file chooses a profile too. `LEASEHOLD_STORE`, `LEASEHOLD_PREFIX` and `LEASEHOLD_TTL` win over
//! what the file says of the default client, and so of each client that says nothing of its own. In every text `${VAR}` is a
//! variable that must be set, `${VAR:-text}` one that need not be, and `$${` a dollar and a brace. Only what is used is looked
//! up: a variable of another profile may be unset.
//!
//! A store's URL may carry a password: no message repeats what the file or a variable holds.

mod file;
mod variables;

use std::{
    collections::BTreeMap,
    env, fmt, fs, io,
    path::{Path, PathBuf},
};

use self::file::{File, Section, Text};
use crate::{Client, Error, Operation, Result, Settings, Span, ambient, connect_with};

/// Name of the file, in the working folder and in the user's configuration folder.
const FILE: &str = "leasehold.toml";

/// The variable that names another file.
const PLACE: &str = "LEASEHOLD_CONFIG";

/// What a program is told about its clients; see the [README](crate) for the file.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), leasehold::Error> {
/// let config = leasehold::Config::parse(r#"
///     store = "${SHOP_LOCKS:-memory:}"
///     [clients.reports]
///     prefix = "reports:"
/// "#)?;
/// let (locks, reports) = (config.connect().await?, config.connect_to("reports").await?);
/// assert_eq!(reports.prefix(), "reports:");
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Config {
    /// Where it was read, for messages.
    place: String,
    file: File,
    profile: Option<String>,
    /// What wins over the file, but for what it says of a client by name.
    said: Section,
}

/// What the configuration says of one client.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ClientConfig {
    /// Its store, as a URL. It may carry a password, so `Debug` does not show it.
    pub store: Option<String>,
    /// What goes before every name.
    pub prefix: Option<String>,
    /// The lease of locks that do not say.
    pub ttl: Option<std::time::Duration>,
}

impl Config {
    /// As the environment has it: the file, if there is one, and the variables that win over it.
    ///
    /// The file is the one that `LEASEHOLD_CONFIG` names, or else `leasehold.toml` in the working folder, or else in the
    /// user's configuration folder.
    ///
    /// # Errors
    /// `Config` if a file or a variable makes no sense, with the file and the line.
    pub fn from_env() -> Result<Self> {
        let named = variable(PLACE)?.map(PathBuf::from);
        let mut config = Self::load(named.as_deref())?;
        let said = |name| Ok::<_, Error>(variable(name)?.map(Text::plain));
        let (store, prefix) = (said("LEASEHOLD_STORE")?, said("LEASEHOLD_PREFIX")?);
        config.said = Section { store, prefix, ttl: said("LEASEHOLD_TTL")?, line: None };
        Ok(config)
    }

    /// The file of this name, or the first there is; without one, an empty configuration. The environment chooses the
    /// profile and fills in variables, but wins over nothing.
    ///
    /// # Errors
    /// `Config` if the file makes no sense, or is named and cannot be read.
    pub fn load(named: Option<&Path>) -> Result<Self> {
        let places = match named {
            Some(path) => vec![path.to_owned()],
            None => [Some(PathBuf::from(FILE)), user_file()].into_iter().flatten().collect(),
        };
        for path in places {
            match fs::read_to_string(&path) {
                Ok(text) => {
                    return Self::read(&path.display().to_string(), &text, variable("LEASEHOLD_PROFILE")?);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => {}
                Err(error) => return Err(refused(format!("{}: {error}", path.display()))),
            }
        }
        Ok(Self::default())
    }

    /// The text of a file.
    ///
    /// # Errors
    /// `Config` if it makes no sense, with the line.
    pub fn parse(text: &str) -> Result<Self> {
        Self::read(FILE, text, None)
    }

    fn read(place: &str, text: &str, profile: Option<String>) -> Result<Self> {
        let file = File::parse(text).map_err(|(line, why)| refused(format!("{place}:{line}: {why}")))?;
        let config = Self { place: place.to_owned(), file, profile, said: Section::default() };
        config.chosen_profile()?;
        Ok(config)
    }

    /// The same with this profile, whatever the file or the environment choose.
    ///
    /// # Errors
    /// `Config` if there is no such profile; it says which one was meant.
    pub fn with_profile(mut self, profile: &str) -> Result<Self> {
        self.profile = Some(profile.to_owned());
        self.chosen_profile()?;
        Ok(self)
    }

    /// The names of the clients that have one.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.file.base.clients.keys().map(String::as_str)
    }

    /// What is said of the default client.
    ///
    /// # Errors
    /// `Config` if a variable is missing or a length of time is none, with the line.
    pub fn client(&self) -> Result<ClientConfig> {
        self.settle(&self.of_all(self.chosen_profile()?))
    }

    /// What is said of the client of this name.
    ///
    /// # Errors
    /// As for [`client`](Self::client); and if there is no such name, with the one that was meant.
    pub fn client_named(&self, name: &str) -> Result<ClientConfig> {
        let base = &self.file.base;
        let Some(own) = base.clients.get(name) else {
            return Err(self.unknown("client", name, base.clients.keys()));
        };
        let profile = self.chosen_profile()?;
        let mut sections: Vec<&Section> =
            profile.and_then(|profile| profile.clients.get(name)).into_iter().collect();
        sections.push(own);
        sections.extend(self.of_all(profile));
        self.settle(&sections)
    }

    /// Opens the default client.
    ///
    /// # Errors
    /// As for [`client`](Self::client) and [`connect`](crate::connect()); `Config` if no store is chosen.
    ///
    /// # Cancel safety
    /// Nothing stays behind if it is dropped.
    pub async fn connect(&self) -> Result<Client> {
        self.client()?.connect().await
    }

    /// Opens the client of this name.
    ///
    /// # Errors
    /// As for [`client_named`](Self::client_named) and [`connect`](crate::connect()).
    ///
    /// # Cancel safety
    /// Nothing stays behind if it is dropped.
    pub async fn connect_to(&self, name: &str) -> Result<Client> {
        self.client_named(name)?.connect().await
    }

    /// Opens every client and [installs](crate::install) it: the default one, and those with names.
    ///
    /// # Errors
    /// Those of opening them; then none is installed. `Config` if one is installed already.
    ///
    /// # Cancel safety
    /// Either all are installed or none is.
    pub async fn install(&self) -> Result<()> {
        let mut clients = vec![(None, self.connect().await?)];
        for name in self.names() {
            clients.push((Some(name), self.connect_to(name).await?));
        }
        ambient::install_all(clients)
    }

    fn chosen_profile(&self) -> Result<Option<&file::Clients>> {
        let in_file = self.file.profile.as_ref().map(|text| self.expand(text)).transpose()?;
        let Some(name) = self.profile.clone().or(in_file) else { return Ok(None) };
        match self.file.profiles.get(&name) {
            Some(profile) => Ok(Some(profile)),
            None => Err(self.unknown("profile", &name, self.file.profiles.keys())),
        }
    }

    /// What is said of the default client, and so of every other that says nothing of its own.
    fn of_all<'a>(&'a self, profile: Option<&'a file::Clients>) -> Vec<&'a Section> {
        let profile = profile.map(|profile| &profile.section);
        [Some(&self.said), profile, Some(&self.file.base.section)].into_iter().flatten().collect()
    }

    /// The first who says it has it.
    fn settle(&self, sections: &[&Section]) -> Result<ClientConfig> {
        let first = |part: fn(&Section) -> Option<&Text>| sections.iter().find_map(|section| part(section));
        let expand = |text: Option<&Text>| text.map(|text| self.expand(text)).transpose();
        let ttl = match first(|section| section.ttl.as_ref()) {
            None => None,
            Some(text) => {
                let not_one =
                    |_| self.at(text, "ttl is not a length of time; write it like \"30s\" or \"5m\"");
                Some(Span::from(self.expand(text)?).get().map_err(not_one)?)
            }
        };
        let (store, prefix) =
            (first(|section| section.store.as_ref()), first(|section| section.prefix.as_ref()));
        Ok(ClientConfig { store: expand(store)?, prefix: expand(prefix)?, ttl })
    }

    fn expand(&self, text: &Text) -> Result<String> {
        if text.line.is_none() {
            return Ok(text.raw.clone());
        }
        let look = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        variables::expand(&text.raw, look).map_err(|why| self.at(text, &why))
    }

    fn at(&self, text: &Text, why: &str) -> Error {
        match text.line {
            Some(line) => refused(format!("{}:{line}: {why}", self.place)),
            None => refused(format!("from the environment: {why}")),
        }
    }

    fn unknown<'a>(&self, what: &str, name: &str, known: impl Iterator<Item = &'a String>) -> Error {
        let place = &self.place;
        match file::nearest(name, known.map(String::as_str)) {
            Some(meant) => refused(format!("{place}: no {what} is called {name:?}; did you mean {meant:?}?")),
            None => refused(format!("{place}: no {what} is called {name:?}; write [{what}s.{name}]")),
        }
    }
}

impl ClientConfig {
    /// Opens it.
    ///
    /// # Errors
    /// As for [`connect`](crate::connect()); `Config` if no store is chosen.
    ///
    /// # Cancel safety
    /// Nothing stays behind if it is dropped.
    pub async fn connect(self) -> Result<Client> {
        let Some(store) = self.store else {
            let message = "no store is chosen; set LEASEHOLD_STORE, or write store = \"redis://HOST\" into leasehold.toml";
            return Err(Error::config(Operation::Connect, message));
        };
        let settings = Settings { prefix: self.prefix, ttl: self.ttl, ..Settings::default() };
        connect_with(&store, settings).await
    }
}

/// Opens the default client that the environment describes; see [`Config`].
///
/// # Errors
/// As for [`Config::from_env`] and [`Config::connect`].
///
/// # Cancel safety
/// Nothing stays behind if it is dropped.
pub async fn from_env() -> Result<Client> {
    Config::from_env()?.connect().await
}

/// `Client::from_env()`, for those who have this trait in scope: the same as [`from_env`](from_env()).
pub trait FromEnv: Sized {
    /// Opens the default client that the environment describes.
    fn from_env() -> impl Future<Output = Result<Self>> + Send;
}

impl FromEnv for Client {
    fn from_env() -> impl Future<Output = Result<Self>> + Send {
        from_env()
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names().collect();
        let profiles: Vec<&String> = self.file.profiles.keys().collect();
        let mut out = f.debug_struct("Config");
        out.field("place", &self.place).field("profile", &self.profile);
        out.field("names", &names).field("profiles", &profiles).finish_non_exhaustive()
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("ClientConfig");
        out.field("prefix", &self.prefix).field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

/// A variable, if it is there and says anything.
fn variable(name: &str) -> Result<Option<String>> {
    let Some(value) = env::var_os(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    value.into_string().map(Some).map_err(|_| refused(format!("{name} is not UTF-8")))
}

/// Below `XDG_CONFIG_HOME` if that is an absolute path, else below the home folder.
fn user_file() -> Option<PathBuf> {
    let chosen = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(env::home_dir().filter(|home| home.is_absolute())?.join(".config"));
    Some(chosen.or_else(home)?.join("leasehold").join(FILE))
}

fn refused(message: String) -> Error {
    Error::config(Operation::Connect, message)
}

type Named<T> = BTreeMap<String, T>;
