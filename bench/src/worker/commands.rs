//! What our client sends to acquire and release a lock, found by looking over the server's shoulder (`MONITOR`). So
//! the limit is always that of the very commands that are compared with it, whatever becomes of them.

use std::{
    io::{BufRead, BufReader, Read as _, Write as _},
    net::TcpStream,
};

use leasehold_workload::{Ask, Lock as _, Peer as _};

use super::ours::Ours;

/// The name that the commands are found with; it is replaced by others.
const NAME: &[u8] = b"bench:probe";

/// The words of one command.
pub(super) type Command = Vec<Vec<u8>>;

/// The commands of one acquisition and of its release.
#[derive(Debug, Default)]
pub(super) struct Pair {
    pub(super) acquire: Vec<Command>,
    pub(super) release: Vec<Command>,
}

impl Pair {
    /// Watches our client.
    pub(super) fn observe(ask: &Ask, address: &str) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| error.to_string())?.block_on(watch(ask, address))
    }

    /// The same for another name, as bytes to send.
    pub(super) fn named(&self, name: &str) -> (Vec<u8>, Vec<u8>) {
        (encode(&self.acquire, name), encode(&self.release, name))
    }

    pub(super) fn is_whole(&self) -> bool {
        !self.acquire.is_empty() && !self.release.is_empty()
    }
}

async fn watch(ask: &Ask, address: &str) -> Result<Pair, String> {
    let name = String::from_utf8_lossy(NAME).into_owned();
    let peer = Ours::connect(ask).await?;
    let lock = peer.lock(&name);
    // What only the first acquisition brings with it, such as the scripts, is not part of a pair.
    lock.release(lock.acquire().await?).await?;
    let failed = |error: std::io::Error| format!("cannot watch the server: {error}");
    let mut shoulder = Shoulder::look_over(address).map_err(failed)?;
    let held = lock.acquire().await?;
    let acquire = shoulder.seen().map_err(failed)?;
    lock.release(held).await?;
    let release = shoulder.seen().map_err(failed)?;
    Ok(Pair { acquire, release })
}

struct Shoulder {
    seen: BufReader<TcpStream>,
    mark: TcpStream,
}

impl Shoulder {
    fn look_over(address: &str) -> std::io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(b"MONITOR\r\n")?;
        let mut seen = BufReader::new(stream);
        seen.read_line(&mut String::new())?;
        Ok(Self { seen, mark: TcpStream::connect(address)? })
    }

    /// The commands about our name that clients sent since.
    fn seen(&mut self) -> std::io::Result<Vec<Command>> {
        self.mark.write_all(b"ECHO bench:mark\r\n")?;
        let mut answer = [0; 17];
        self.mark.read_exact(&mut answer)?;
        let mut commands = Vec::new();
        loop {
            let mut line = Vec::new();
            if self.seen.read_until(b'\n', &mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let Some((from, words)) = read(&line) else { continue };
            if words.iter().any(|word| word == b"bench:mark") {
                return Ok(commands);
            }
            if !from.ends_with(b"lua") && words.iter().any(|word| word == NAME) {
                commands.push(words);
            }
        }
    }
}

/// `+TIME [DB FROM] "word" "word"`: from whom, and the words.
fn read(line: &[u8]) -> Option<(&[u8], Command)> {
    let (open, close) =
        (line.iter().position(|byte| *byte == b'[')?, line.iter().position(|byte| *byte == b']')?);
    let mut words = Vec::new();
    let mut rest = line.get(close + 1..)?.iter();
    while rest.any(|byte| *byte == b'"') {
        words.push(word(&mut rest)?);
    }
    Some((line.get(open + 1..close)?, words))
}

/// A word up to its closing quotation mark, with what the server escapes.
fn word(rest: &mut std::slice::Iter<'_, u8>) -> Option<Vec<u8>> {
    let mut word = Vec::new();
    loop {
        match rest.next()? {
            b'"' => return Some(word),
            b'\\' => word.push(match rest.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'a' => 7,
                b'b' => 8,
                b'x' => {
                    let digits = [*rest.next()?, *rest.next()?];
                    u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
                }
                other => *other,
            }),
            byte => word.push(*byte),
        }
    }
}

fn encode(commands: &[Command], name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for command in commands {
        bytes.extend(format!("*{}\r\n", command.len()).bytes());
        for word in command {
            let word = if word == NAME { name.as_bytes() } else { word };
            bytes.extend(format!("${}\r\n", word.len()).bytes());
            bytes.extend_from_slice(word);
            bytes.extend(b"\r\n");
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_shows_is_read_back_word_by_word() {
        let line = b"+1.5 [0 127.0.0.1:4] \"EVALSHA\" \"a\\\"b\" \"\" \"\\x00\\n\"\r\n";
        let (from, words) = read(line).unwrap();
        assert_eq!(from, b"0 127.0.0.1:4");
        assert_eq!(words, [&b"EVALSHA"[..], b"a\"b", b"", b"\0\n"]);
    }

    #[test]
    fn commands_are_the_same_for_another_name() {
        let pair = Pair { acquire: vec![vec![b"GET".to_vec(), NAME.to_vec()]], ..Pair::default() };
        assert_eq!(pair.named("x").0, b"*2\r\n$3\r\nGET\r\n$1\r\nx\r\n");
    }
}
