//! Counts the commands that clients send, by looking over the server's shoulder (`MONITOR`).
//!
//! The server's own count has what scripts do within them too. Looking costs the server time, so commands are counted
//! in a run of their own, never in one that is timed.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    thread::{self, JoinHandle},
};

/// Somebody looks.
pub(crate) struct Tap {
    mark: TcpStream,
    counting: JoinHandle<Counted>,
}

/// What was seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// Commands that clients sent.
    pub(crate) commands: u64,
    /// Keys that their scripts were given.
    pub(crate) keys: u64,
}

impl Tap {
    pub(crate) fn open(address: &str) -> Result<Self, String> {
        let open = || -> std::io::Result<Self> {
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(b"MONITOR\r\n")?;
            let mut seen = BufReader::with_capacity(1 << 16, stream);
            seen.read_line(&mut String::new())?;
            let counting = thread::spawn(move || count(seen));
            Ok(Self { mark: TcpStream::connect(address)?, counting })
        };
        open().map_err(|error| format!("cannot watch the server: {error}"))
    }

    /// Stops looking, once everything up to now was seen.
    pub(crate) fn close(mut self) -> Result<Counted, String> {
        let marked =
            self.mark.write_all(b"ECHO bench:mark\r\n").and_then(|()| self.mark.read_exact(&mut [0; 17]));
        marked.map_err(|error| format!("cannot watch the server: {error}"))?;
        self.counting.join().map_err(|_| "whoever counted commands is gone".to_owned())
    }
}

fn count(mut seen: BufReader<TcpStream>) -> Counted {
    let (mut counted, mut line) = (Counted::default(), Vec::new());
    loop {
        line.clear();
        // The server hangs up on one who reads too slowly; what was counted by then is too little, and shows.
        if !matches!(seen.read_until(b'\n', &mut line), Ok(read) if read > 0) {
            return counted;
        }
        let text = String::from_utf8_lossy(&line);
        let Some((from, words)) = text.split_once("] ") else { continue };
        if from.ends_with("lua") {
            continue;
        }
        if words.contains("\"bench:mark\"") {
            return counted;
        }
        counted.commands += 1;
        let mut words = words.split(' ');
        if words.next().is_some_and(|verb| verb.eq_ignore_ascii_case("\"evalsha\"")) {
            let keys = words.nth(1).map(|keys| keys.trim_matches('"'));
            counted.keys += keys.and_then(|keys| keys.parse::<u64>().ok()).unwrap_or(0);
        }
    }
}
