//! Commands of four letters: one word there, a text back, and the connection ends.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// How long a server that runs may take for an answer. One that is paused takes longer, and is found out by it.
const ANSWER: Duration = Duration::from_secs(1);

/// Asks one word.
pub(super) fn ask(address: SocketAddr, word: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.write_all(word.as_bytes())?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    Ok(said)
}

/// What a server is, if it serves.
pub(super) fn mode(address: SocketAddr) -> Option<String> {
    let said = ask(address, "srvr").ok()?;
    said.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned)
}
