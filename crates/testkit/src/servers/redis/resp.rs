//! Just enough of the Redis protocol to ask a server about itself: one connection per request, no pipelining, no
//! binary values. Tests of a store use the store's own client.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// A short word, such as `OK`.
    Simple(String),
    /// An error in the server's words, such as `MOVED 93 127.0.0.1:7000`.
    Error(String),
    /// A number.
    Integer(i64),
    /// A value. What is no UTF-8 is replaced.
    Text(String),
    /// Nothing there.
    Nil,
    /// Several replies.
    List(Vec<Reply>),
}

impl Reply {
    /// The words of a simple reply, of an error, or of a value.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Simple(text) | Self::Error(text) | Self::Text(text) => Some(text),
            Self::Integer(_) | Self::Nil | Self::List(_) => None,
        }
    }

    /// The parts of a list; of anything else, none.
    pub fn parts(&self) -> &[Reply] {
        match self {
            Self::List(parts) => parts,
            _ => &[],
        }
    }
}

/// Sends one command and returns the first line of the answer, as the server wrote it.
pub(super) fn first_line(address: SocketAddr, words: &[&str], patience: Duration) -> io::Result<String> {
    line(&mut send(address, words, patience)?)
}

/// Sends one command and returns the answer.
pub(super) fn ask(address: SocketAddr, words: &[&str], patience: Duration) -> io::Result<Reply> {
    read(&mut send(address, words, patience)?)
}

fn send(address: SocketAddr, words: &[&str], patience: Duration) -> io::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_nodelay(true)?;
    let mut request = Vec::new();
    write!(request, "*{}\r\n", words.len())?;
    for word in words {
        write!(request, "${}\r\n{word}\r\n", word.len())?;
    }
    stream.write_all(&request)?;
    Ok(BufReader::new(stream))
}

fn read(from: &mut impl BufRead) -> io::Result<Reply> {
    let line = line(from)?;
    let (kind, rest) = line.split_at_checked(1).ok_or_else(|| strange(&line))?;
    Ok(match kind {
        "+" => Reply::Simple(rest.to_owned()),
        "-" => Reply::Error(rest.to_owned()),
        ":" => Reply::Integer(number(rest)?),
        "$" => match usize::try_from(number(rest)?) {
            Ok(length) => Reply::Text(value(from, length)?),
            Err(_) => Reply::Nil,
        },
        "*" => match usize::try_from(number(rest)?) {
            Ok(length) => Reply::List((0..length).map(|_| read(from)).collect::<io::Result<_>>()?),
            Err(_) => Reply::Nil,
        },
        _ => return Err(strange(&line)),
    })
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn value(from: &mut impl Read, length: usize) -> io::Result<String> {
    let mut bytes = vec![0; length + 2];
    from.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn number(text: &str) -> io::Result<i64> {
    text.parse().map_err(|_| strange(text))
}

fn strange(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not a reply of Redis: {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_as_they_are_written() {
        let bytes = b"*6\r\n+OK\r\n-ERR no\r\n:-7\r\n$4\r\na\r\nb\r\n$-1\r\n*-1\r\n";
        let expected = [
            Reply::Simple("OK".to_owned()),
            Reply::Error("ERR no".to_owned()),
            Reply::Integer(-7),
            Reply::Text("a\r\nb".to_owned()),
            Reply::Nil,
            Reply::Nil,
        ];
        assert_eq!(read(&mut &bytes[..]).unwrap().parts(), expected);
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        for bytes in [&b""[..], b"\r\n", b"HTTP/1.1 400\r\n", b"$9\r\nshort\r\n", b":x\r\n"] {
            assert!(read(&mut &*bytes).is_err(), "{bytes:?}");
        }
    }
}
