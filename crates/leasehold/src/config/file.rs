//! The file itself: which words it may use, and on which line each stands.
//!
//! It is read by hand from the parsed text, not by serde: serde's messages repeat what they found, which may be a
//! password, and know no nearest word.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::Named;

/// What is wrong, and on which line.
type Refused = (usize, String);

/// The words at the top, in a profile, and in a client.
const TOP: &[&str] = &["store", "prefix", "ttl", "profile", "clients", "profiles"];
const PROFILE: &[&str] = &["store", "prefix", "ttl", "clients"];
const CLIENT: &[&str] = &["store", "prefix", "ttl"];

/// A text of the file, with variables still in it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) raw: String,
    /// `None` if it does not come from a file: then there is nothing to fill in either.
    pub(super) line: Option<usize>,
}

impl Text {
    pub(super) fn plain(raw: String) -> Self {
        Self { raw, line: None }
    }
}

/// What may be said of a client.
#[derive(Clone, Default)]
pub(super) struct Section {
    pub(super) store: Option<Text>,
    pub(super) prefix: Option<Text>,
    pub(super) ttl: Option<Text>,
    /// Where the file names the client, if it does.
    pub(super) line: Option<usize>,
}

/// What is said of the default client, and of those with names.
#[derive(Clone, Default)]
pub(super) struct Clients {
    pub(super) section: Section,
    pub(super) clients: Named<Section>,
}

/// A whole file.
#[derive(Clone, Default)]
pub(super) struct File {
    pub(super) base: Clients,
    pub(super) profile: Option<Text>,
    pub(super) profiles: Named<Clients>,
}

impl File {
    pub(super) fn parse(text: &str) -> Result<Self, Refused> {
        let lines = Lines(text);
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            (lines.of(at), format!("this is not TOML: {}", error.message()))
        })?;
        let mut file = Self::default();
        for (key, value) in table.get_ref() {
            match key.get_ref().as_ref() {
                "profile" => file.profile = Some(lines.text("profile", value)?),
                "profiles" => {
                    for (name, value) in lines.table("profiles", value)? {
                        file.profiles.insert(name.get_ref().to_string(), lines.clients(value)?);
                    }
                }
                "clients" => file.base.clients = lines.named(value)?,
                word if lines.section(&mut file.base.section, word, value)? => {}
                _ => return Err(lines.unknown(key, TOP)),
            }
        }
        Lines::known_to_the_top(&file)?;
        Ok(file)
    }
}

type Key<'a> = Spanned<std::borrow::Cow<'a, str>>;
type Value<'a> = Spanned<DeValue<'a>>;

/// The text, for the numbers of its lines.
struct Lines<'a>(&'a str);

impl Lines<'_> {
    fn of(&self, at: usize) -> usize {
        1 + self.0.bytes().take(at).filter(|&byte| byte == b'\n').count()
    }

    fn text(&self, key: &str, value: &Value<'_>) -> Result<Text, Refused> {
        let line = self.of(value.span().start);
        match value.get_ref() {
            DeValue::String(raw) => Ok(Text { raw: raw.to_string(), line: Some(line) }),
            _ => Err((line, format!("{key} must be a text in quotes"))),
        }
    }

    fn table<'v, 'd>(&self, key: &str, value: &'v Value<'d>) -> Result<&'v DeTable<'d>, Refused> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table),
            _ => Err((self.of(value.span().start), format!("{key} must be a table; write [{key}.NAME]"))),
        }
    }

    /// Takes a word that every section has; says whether it was one.
    fn section(&self, section: &mut Section, word: &str, value: &Value<'_>) -> Result<bool, Refused> {
        let slot = match word {
            "store" => &mut section.store,
            "prefix" => &mut section.prefix,
            "ttl" => &mut section.ttl,
            _ => return Ok(false),
        };
        *slot = Some(self.text(word, value)?);
        Ok(true)
    }

    /// A profile.
    fn clients(&self, value: &Value<'_>) -> Result<Clients, Refused> {
        let mut clients = Clients::default();
        for (key, value) in self.table("profiles", value)? {
            match key.get_ref().as_ref() {
                "clients" => clients.clients = self.named(value)?,
                word if self.section(&mut clients.section, word, value)? => {}
                _ => return Err(self.unknown(key, PROFILE)),
            }
        }
        Ok(clients)
    }

    fn named(&self, value: &Value<'_>) -> Result<Named<Section>, Refused> {
        let mut named = Named::new();
        for (name, value) in self.table("clients", value)? {
            let mut section = Section { line: Some(self.of(name.span().start)), ..Section::default() };
            for (key, value) in self.table("clients", value)? {
                if !self.section(&mut section, key.get_ref(), value)? {
                    return Err(self.unknown(key, CLIENT));
                }
            }
            named.insert(name.get_ref().to_string(), section);
        }
        Ok(named)
    }

    /// A client that only a profile knows would be missing in all others.
    fn known_to_the_top(file: &File) -> Result<(), Refused> {
        for (profile, clients) in &file.profiles {
            let stray = clients.clients.iter().find(|(name, _)| !file.base.clients.contains_key(*name));
            let Some((name, section)) = stray else { continue };
            let meant = nearest(name, file.base.clients.keys().map(String::as_str));
            let meant = meant.map_or(String::new(), |meant| format!("; did you mean {meant:?}?"));
            let why = format!("profile {profile:?} has a client {name:?} that [clients] does not{meant}");
            return Err((section.line.unwrap_or(1), why));
        }
        Ok(())
    }

    fn unknown(&self, key: &Key<'_>, known: &[&str]) -> Refused {
        let (line, word) = (self.of(key.span().start), key.get_ref().as_ref());
        // In a damaged file the rest of a password may stand where a key should: only what looks like one is repeated.
        let is_word = word.len() <= 32
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let shown = if is_word { format!("unknown key {word:?}") } else { "unknown key".to_owned() };
        match nearest(word, known.iter().copied()) {
            Some(meant) => (line, format!("{shown}; did you mean {meant:?}?")),
            None => (line, format!("{shown}; there are {}", known.join(", "))),
        }
    }
}

/// The word that was meant, if one is near enough.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&word, &known.to_lowercase());
    let (distance, meant) = known.map(|known| (distance(known), known)).min()?;
    (distance <= 2.max(meant.len() / 2)).then_some(meant)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::any, proptest, test_runner::Config};

    use super::*;

    fn refusal(text: &str) -> (usize, String) {
        File::parse(text).err().expect("it makes no sense")
    }

    #[test]
    fn an_unknown_key_names_the_nearest_right_one_and_its_line() {
        for (text, line, said) in [
            ("stroe = \"x\"", 1, "unknown key \"stroe\"; did you mean \"store\"?"),
            ("\n\nPrefix = \"x\"", 3, "unknown key \"Prefix\"; did you mean \"prefix\"?"),
            (
                "ttl = \"1s\"\n[client.a]\nstore = \"x\"",
                2,
                "unknown key \"client\"; did you mean \"clients\"?",
            ),
            ("[clients.a]\n\nttll = \"x\"", 3, "unknown key \"ttll\"; did you mean \"ttl\"?"),
            ("[profiles.a]\nprofile = \"x\"", 2, "unknown key \"profile\"; did you mean \"prefix\"?"),
            ("[profiles.a.clients.b]\nstor = \"x\"", 2, "unknown key \"stor\"; did you mean \"store\"?"),
            (
                "colour = \"x\"",
                1,
                "unknown key \"colour\"; there are store, prefix, ttl, profile, clients, profiles",
            ),
        ] {
            assert_eq!(refusal(text), (line, said.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn what_is_of_the_wrong_kind_says_what_to_write() {
        assert_eq!(refusal("\nstore = 5"), (2, "store must be a text in quotes".to_owned()));
        assert_eq!(refusal("clients = \"x\"").1, "clients must be a table; write [clients.NAME]");
        assert_eq!(refusal("profiles.a = 1").1, "profiles must be a table; write [profiles.NAME]");
    }

    #[test]
    fn a_client_of_a_profile_must_be_one() {
        let text = "[clients.reports]\nttl = \"1s\"\n[profiles.test.clients.report]\nstore = \"memory:\"";
        let said =
            "profile \"test\" has a client \"report\" that [clients] does not; did you mean \"reports\"?";
        assert_eq!(refusal(text), (3, said.to_owned()));
        let inline = "# report\n[profiles.test]\nclients = { report = { ttl = \"1s\" } }\n[clients.reports]";
        assert_eq!(refusal(inline), (3, said.to_owned()));
    }

    #[test]
    fn what_a_file_holds_is_never_repeated() {
        for text in [
            "store = SECRET",
            "store = [\"SECRET\"]",
            "\n\nstore = \"redis://:SECRET@h",
            "SECRET",
            "clients = \"SECRET\"",
            "\"redis://:SECRET@h\" = 1",
        ] {
            let (_, why) = refusal(text);
            assert!(!why.contains("SECRET"), "{why}");
        }
        assert_eq!(refusal("prefix = \"a\"\n\nstore = \"redis").0, 3);
    }

    proptest! {
        #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_text_makes_reading_a_file_panic(
            text in "(store|prefix|ttl|profile|clients|profiles|[\"'=#.\\[\\]{}\n\\\\ a锁\u{1}]){0,20}|.{0,30}",
        ) {
            drop(File::parse(&text));
        }

        #[test]
        fn no_damaged_file_has_its_store_repeated(damage in vec((any::<u16>(), "[\"'=#.\n\\[\\]{}\\\\ x]?"), 1..4)) {
            let whole = "prefix = \"p\"\nstore = \"redis://u:SECRET@h\"\n[clients.a]\nstore = \"redis://u:SECRET@h\"\n";
            let mut text: Vec<char> = whole.chars().collect();
            for (place, new) in damage {
                let at = usize::from(place) % text.len();
                text.splice(at..=at, new.chars());
            }
            let text: String = text.into_iter().collect();
            if let Err((_, why)) = File::parse(&text) {
                assert!(!why.contains("SECRET"), "{text:?}: {why}");
            }
        }

        #[test]
        fn what_is_written_is_read_back(store in ".{0,20}", prefix in "[^\\pC]{0,20}") {
            let text = format!("store = {}\n[clients.a]\nprefix = {}", toml::Value::from(store.as_str()), toml::Value::from(prefix.as_str()));
            let file = File::parse(&text).map_err(|(_, why)| why).unwrap();
            assert!(file.base.section.store.is_some_and(|text| text.raw == store && text.line == Some(1)));
            assert!(file.base.clients["a"].prefix.as_ref().is_some_and(|text| text.raw == prefix && text.line == Some(3)));
        }
    }
}
