//! Statements that the server keeps parsed and planned: to plan one of ours takes it several times as long as to run it.
//!
//! Behind a pooler a connection is lent for one transaction, and what one client has prepared is met by another. So a
//! statement is prepared by SQL, not by the protocol, and its name has a digest of its text: whoever meets the name meets
//! the statement. A server that does not have it, or has it already, says so before it has done anything; then the other
//! way is tried, and last the statement as it is. Where a session is found to have forgotten again and again, statements
//! are sent as they are from then on: some poolers clear what they take back.

use std::fmt::Write as _;

use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow, error::SqlState};

/// A statement, and the types of its parameters.
#[derive(Debug)]
pub(super) struct Prepared {
    text: &'static str,
    types: &'static [&'static str],
    digest: u64,
}

/// What a parameter is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'v> {
    Text(&'v str),
    Number(i64),
    Null,
}

/// What a connection was seen to have.
#[derive(Debug, Default)]
pub(super) struct Known {
    statements: Vec<u64>,
    /// How often in a row it had forgotten one.
    missed: u32,
}

/// After so many it is not asked to remember any more.
const FORGETFUL: u32 = 8;

/// A way to have a statement done.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// By its name alone.
    Called,
    /// Named first, then called.
    Made,
    /// As it is.
    Plain,
}

impl Prepared {
    pub(super) const fn new(types: &'static [&'static str], text: &'static str) -> Self {
        let mut sum = digest(SEED, text.as_bytes());
        let mut at = 0;
        while at < types.len() {
            sum = digest(sum, types[at].as_bytes());
            at += 1;
        }
        Self { text, types, digest: sum }
    }

    /// Has it done once, as a transaction of its own.
    pub(super) async fn perform(
        &self,
        client: &Client,
        known: &mut Known,
        values: &[Value<'_>],
    ) -> Result<Vec<SimpleQueryRow>, tokio_postgres::Error> {
        for way in known.ways(self.digest) {
            match client.simple_query(&self.request(*way, values)).await {
                Err(error) if is_about_the_name(&error) => known.wrong(self.digest, *way),
                done => {
                    if done.is_ok() {
                        known.right(self.digest, *way);
                    }
                    return done.map(rows);
                }
            }
        }
        client.simple_query(&self.request(Way::Plain, values)).await.map(rows)
    }

    fn request(&self, way: Way, values: &[Value<'_>]) -> String {
        let mut request = String::with_capacity(1024);
        let name = format!("leasehold_{:016x}", self.digest);
        match way {
            Way::Called => {}
            Way::Made => {
                let _ = write!(request, "PREPARE {name} ({}) AS {};", self.types.join(", "), self.text);
            }
            Way::Plain => {
                self.fill(&mut request, values);
                return request;
            }
        }
        let _ = write!(request, "EXECUTE {name}");
        for (at, value) in values.iter().enumerate() {
            request.push(if at == 0 { '(' } else { ',' });
            value.write(&mut request);
        }
        request.push(')');
        request
    }

    /// The text with its parameters in their places.
    fn fill(&self, request: &mut String, values: &[Value<'_>]) {
        let mut parts = self.text.split('$');
        request.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let (number, rest) = part.split_at(1);
            let at = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            if let Some((value, of)) = at.and_then(|at| Some((values.get(at)?, self.types.get(at)?))) {
                request.push('(');
                value.write(request);
                let _ = write!(request, "::{of})");
            }
            request.push_str(rest);
        }
    }
}

impl Known {
    /// What to try before the statement as it is.
    fn ways(&self, digest: u64) -> &'static [Way] {
        if self.missed >= FORGETFUL {
            &[]
        } else if self.statements.contains(&digest) {
            &[Way::Called, Way::Made]
        } else {
            &[Way::Made, Way::Called]
        }
    }

    fn right(&mut self, digest: u64, way: Way) {
        if matches!(way, Way::Called) {
            self.missed = 0;
        }
        if !self.statements.contains(&digest) {
            self.statements.push(digest);
        }
    }

    fn wrong(&mut self, digest: u64, way: Way) {
        if matches!(way, Way::Called) && self.statements.contains(&digest) {
            self.statements.retain(|known| *known != digest);
            self.missed += 1;
        }
    }
}

impl Value<'_> {
    /// As a literal, read the same whatever `standard_conforming_strings` says.
    fn write(self, request: &mut String) {
        match self {
            Self::Null => request.push_str("NULL"),
            Self::Number(number) => {
                let _ = write!(request, "{number}");
            }
            Self::Text(text) => {
                request.push_str("E'");
                for letter in text.chars() {
                    if matches!(letter, '\'' | '\\') {
                        request.push(letter);
                    }
                    request.push(letter);
                }
                request.push('\'');
            }
        }
    }
}

fn rows(messages: Vec<SimpleQueryMessage>) -> Vec<SimpleQueryRow> {
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    };
    messages.into_iter().filter_map(row).collect()
}

/// The server has no statement of that name, or has one already, or one that tables made anew no longer fit: it did
/// nothing.
fn is_about_the_name(error: &tokio_postgres::Error) -> bool {
    [&SqlState::INVALID_SQL_STATEMENT_NAME, &SqlState::DUPLICATE_PSTATEMENT, &SqlState::FEATURE_NOT_SUPPORTED]
        .into_iter()
        .any(|code| error.code() == Some(code))
}

const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, which is enough to tell a few texts of ours and of our other versions apart.
const fn digest(seed: u64, text: &[u8]) -> u64 {
    let mut digest = seed;
    let mut at = 0;
    while at < text.len() {
        digest = (digest ^ text[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: Prepared = Prepared::new(&["text", "bigint"], "SELECT $2 + 1, $1, $2");

    #[test]
    fn a_name_says_which_text_it_is() {
        let other = Prepared::new(&["text", "bigint"], "SELECT $2 + 2, $1, $2");
        assert_ne!(SUM.digest, other.digest);
        assert_ne!(SUM.digest, Prepared::new(&["text", "integer"], SUM.text).digest);
        let called = SUM.request(Way::Called, &[Value::Text("a"), Value::Number(-1)]);
        assert_eq!(called, format!("EXECUTE leasehold_{:016x}(E'a',-1)", SUM.digest));
        let made = SUM.request(Way::Made, &[Value::Text("a"), Value::Number(-1)]);
        let before =
            format!("PREPARE leasehold_{:016x} (text, bigint) AS SELECT $2 + 1, $1, $2;", SUM.digest);
        assert_eq!(made, format!("{before}{called}"));
    }

    #[test]
    fn a_session_that_forgets_again_and_again_is_not_asked_to_remember() {
        let mut known = Known::default();
        known.right(2, Way::Made);
        known.wrong(2, Way::Called);
        known.right(1, Way::Called);
        for _ in 0..FORGETFUL {
            known.right(1, Way::Made);
            assert!(matches!(known.ways(1), [Way::Called, Way::Made]));
            assert!(matches!(known.ways(2), [Way::Made, Way::Called]));
            // One that it never had is none that it forgot, and one that others made neither.
            known.wrong(2, Way::Called);
            known.wrong(1, Way::Made);
            known.wrong(1, Way::Called);
        }
        assert!(known.ways(1).is_empty() && known.ways(2).is_empty());
    }

    #[test]
    fn parameters_stand_in_their_places() {
        let filled = SUM.request(Way::Plain, &[Value::Text("$2"), Value::Null]);
        assert_eq!(filled, "SELECT (NULL::bigint) + 1, (E'$2'::text), (NULL::bigint)");
    }

    #[test]
    fn no_text_ends_its_literal() {
        for (text, literal) in
            [("it's", "E'it''s'"), ("\\", "E'\\\\'"), ("\\'; DROP", "E'\\\\''; DROP'"), ("锁", "E'锁'")]
        {
            let mut request = String::new();
            Value::Text(text).write(&mut request);
            assert_eq!(request, literal);
        }
    }
}
