//! Items: read with the server's time, and written only if they are still what was read.
//!
//! A value is `LENGTH NAME CONTENT`: the name in it tells a hashed key's name, and that the item is ours.

use leasehold_core::{Error, ErrorKind, Operation, Result};

use crate::{
    connection::{Connection, Reply},
    error::{Fault, foreign, without_versions},
    names::{CLOCK, Sort},
    pool::Pool,
    tick::{ERA, Tick},
};

/// The longest value that is sent: memcached's usual limit is a megabyte, and a write that is over it also removes what
/// was there before.
const LONGEST: usize = 900 << 10;

/// An item as it was found, or that there is none, and the connection that found it.
#[derive(Debug)]
pub(crate) struct Seen {
    connection: Connection,
    key: String,
    /// The server's time.
    pub(crate) now: Tick,
    /// What it holds.
    pub(crate) content: Option<Vec<u8>>,
    version: u64,
}

/// What became of a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Written,
    /// Somebody else wrote first.
    Outrun,
}

/// Reads the item of a name.
pub(crate) async fn look(pool: &Pool, sort: Sort, name: &str) -> Result<Seen> {
    let key = sort.key(name);
    let request = format!("mg {CLOCK} t c\r\nmg {key} v c\r\n");
    let (mut connection, mut replies) = pool.read(request.as_bytes(), 2).await?;
    if replies[0].code == *b"EN" {
        connection = start_clock(connection).await.map_err(Fault::of_read)?;
        (connection, replies) = connection.ask(request.as_bytes(), 2).await.map_err(Fault::of_read)?;
    }
    let now = time(&replies[0])?;
    let item = &mut replies[1];
    let version = item.number('c').unwrap_or_default();
    let content = match item.value.take() {
        None if item.code == *b"EN" => None,
        None => return Err(item.garbled().of_read()),
        Some(value) => match opened(value) {
            Some((found, content)) if found == name => Some(content),
            _ => return Err(foreign(&key)),
        },
    };
    Ok(Seen { connection, key, now, content, version })
}

impl Seen {
    /// Writes the item, to live for so many seconds, if it is still as it was seen. The same connection is the same
    /// server process, so a version that fits is the version that was read.
    pub(crate) async fn write(self, pool: &Pool, name: &str, content: &[u8], life: u64) -> Result<Write> {
        let value = sealed(name, content);
        if value.len() > LONGEST {
            let message = "too many hold or wait for this name for one item of memcached";
            return Err(Error::new(ErrorKind::Unavailable, Operation::Inspect, message));
        }
        let guard = if self.content.is_some() { format!("C{}", self.version) } else { "ME".to_owned() };
        let mut request = format!("ms {} {} {guard} T{life}\r\n", self.key, value.len()).into_bytes();
        request.extend_from_slice(&value);
        request.extend_from_slice(b"\r\n");
        let (connection, replies) = self.connection.ask(&request, 1).await.map_err(Fault::of_write)?;
        let written = match &replies[0].code {
            b"HD" => Write::Written,
            b"NS" | b"EX" | b"NF" => Write::Outrun,
            _ => return Err(replies[0].garbled().of_write()),
        };
        pool.give_back(connection);
        Ok(written)
    }

    /// Nothing is to be written.
    pub(crate) fn leave(self, pool: &Pool) {
        pool.give_back(self.connection);
    }
}

/// Reads many items in one request: what each of them holds, by the name in it. Those that are gone are left out.
pub(crate) async fn look_at_all(pool: &Pool, keys: &[String]) -> Result<Vec<(String, Vec<u8>)>> {
    let request = keys.iter().map(|key| format!("mg {key} v\r\n")).collect::<Vec<_>>().concat();
    let (connection, replies) = pool.read(request.as_bytes(), keys.len()).await?;
    pool.give_back(connection);
    Ok(replies.into_iter().filter_map(|reply| opened(reply.value?)).collect())
}

/// The server's time.
pub(crate) async fn now(pool: &Pool) -> Result<Tick> {
    let (mut connection, mut replies) = pool.read(format!("mg {CLOCK} t c\r\n").as_bytes(), 1).await?;
    if replies[0].code == *b"EN" {
        connection = start_clock(connection).await.map_err(Fault::of_read)?;
        let again = connection.ask(format!("mg {CLOCK} t c\r\n").as_bytes(), 1).await;
        (connection, replies) = again.map_err(Fault::of_read)?;
    }
    pool.give_back(connection);
    time(&replies[0])
}

/// Makes the clock's item, unless somebody else was faster.
async fn start_clock(connection: Connection) -> Result<Connection, Fault> {
    let request = format!("ms {CLOCK} 0 ME T{ERA}\r\n\r\n");
    let (connection, replies) = connection.ask(request.as_bytes(), 1).await?;
    match &replies[0].code {
        b"HD" | b"NS" => Ok(connection),
        _ => Err(replies[0].garbled()),
    }
}

/// A server that gives no versions would take any write of who read before for one of who read last.
fn time(reply: &Reply) -> Result<Tick> {
    if reply.number('c').is_none_or(|version| version == 0) {
        return Err(without_versions());
    }
    let left = reply.number('t').and_then(Tick::until_the_end);
    left.ok_or_else(|| foreign(CLOCK))
}

fn sealed(name: &str, content: &[u8]) -> Vec<u8> {
    let mut value = format!("{} {name} ", name.len()).into_bytes();
    value.extend_from_slice(content);
    value
}

fn opened(mut value: Vec<u8>) -> Option<(String, Vec<u8>)> {
    let blank = value.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&value[..blank]).ok()?.parse().ok()?;
    let end = blank.checked_add(1)?.checked_add(length)?;
    let name = std::str::from_utf8(value.get(blank + 1..end)?).ok()?.to_owned();
    if value.get(end) != Some(&b' ') {
        return None;
    }
    let content = value.split_off(end + 1);
    Some((name, content))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::any, proptest, test_runner::Config};

    use super::*;

    proptest! {
        #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_value_makes_it_panic(length in "[0-9+-]{0,22}", tail in vec(any::<u8>(), 0..40)) {
            drop(opened(tail.clone()));
            drop(opened([length.as_bytes(), b" ", &tail].concat()));
        }

        #[test]
        fn every_value_is_read_back(name in "\\PC{0,20}", content in vec(any::<u8>(), 0..40)) {
            assert_eq!(opened(sealed(&name, &content)), Some((name, content)));
        }
    }

    #[test]
    fn a_value_is_read_back_whatever_is_in_it() {
        for (name, content) in [("a", &b""[..]), ("a b 7 ", b" 3 x"), ("锁", b"\0\r\n\xff")] {
            assert_eq!(opened(sealed(name, content)), Some((name.to_owned(), content.to_vec())));
        }
        for foreign in [&b""[..], b"x", b"1 ", b"3 ab", b"2 abc", b"99999999999999999999 a ", b"1 \xff x"] {
            assert_eq!(opened(foreign.to_vec()), None, "{foreign:?}");
        }
    }
}
