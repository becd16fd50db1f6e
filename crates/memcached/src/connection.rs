//! One connection to memcached, and the few requests we make of it.
//!
//! An exchange takes the connection by value and gives it back with the answers, read whole: dropped half-way, the
//! connection is closed with it, and no other request can be given answers that were meant for this one. What is not
//! understood ends the connection as well.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream},
    net::TcpStream,
    time::timeout,
};

use crate::{config::MemcachedConfig, error::Fault};

/// No line of an answer that we ask for is longer.
const LINE: u64 = 8 << 10;

/// No value that we ask for is longer.
const VALUE: usize = 64 << 20;

/// A connection with no request on its way.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufStream<TcpStream>,
    command_timeout: Duration,
}

/// The answer to one meta command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// Two letters.
    pub(crate) code: [u8; 2],
    /// Each begins with a letter that says what it is.
    flags: Vec<String>,
    pub(crate) value: Option<Vec<u8>>,
}

impl Reply {
    /// The number behind the flag of this letter.
    pub(crate) fn number(&self, letter: char) -> Option<u64> {
        self.flags.iter().find_map(|flag| flag.strip_prefix(letter)?.parse().ok())
    }

    pub(crate) fn garbled(&self) -> Fault {
        let code = String::from_utf8_lossy(&self.code);
        Fault::Garbled(format!("{code} {}", self.flags.join(" ")))
    }
}

impl Connection {
    pub(crate) async fn open(config: &MemcachedConfig) -> Result<Self, Fault> {
        let dial = TcpStream::connect((config.host.as_str(), config.port));
        let stream = match timeout(config.connect_timeout, dial).await {
            Ok(dialled) => dialled.map_err(Fault::Unreachable)?,
            Err(late) => return Err(Fault::Unreachable(late.into())),
        };
        // Requests are small and waited for.
        stream.set_nodelay(true).map_err(Fault::Unreachable)?;
        let connection = Self { stream: BufStream::new(stream), command_timeout: config.command_timeout };
        match &config.login {
            None => Ok(connection),
            Some((user, password)) => connection.log_in(user, password).await,
        }
    }

    async fn log_in(self, user: &str, password: &str) -> Result<Self, Fault> {
        let login = format!("{user} {password}");
        let request = format!("set login 0 0 {}\r\n{login}\r\n", login.len());
        self.within(async move |mut connection| {
            connection.send(request.as_bytes()).await?;
            match connection.line().await?.as_str() {
                "STORED" => Ok((connection, ())),
                line => Err(understood(line)),
            }
        })
        .await
        .map(|(connection, ())| connection)
    }

    /// Sends meta commands together and reads one answer for each.
    pub(crate) async fn ask(self, request: &[u8], replies: usize) -> Result<(Self, Vec<Reply>), Fault> {
        self.within(async move |mut connection| {
            connection.send(request).await?;
            let mut answers = Vec::with_capacity(replies);
            for _ in 0..replies {
                answers.push(connection.reply().await?);
            }
            Ok((connection, answers))
        })
        .await
    }

    /// Sends a command of the old sort, whose answer is many lines and then `END`.
    pub(crate) async fn list(self, command: &str) -> Result<(Self, Vec<String>), Fault> {
        self.within(async move |mut connection| {
            connection.send(format!("{command}\r\n").as_bytes()).await?;
            let mut lines = Vec::new();
            loop {
                match connection.line().await? {
                    line if line == "END" => return Ok((connection, lines)),
                    line if is_refusal(&line) => return Err(Fault::Refused(line)),
                    line => lines.push(line),
                }
            }
        })
        .await
    }

    async fn within<T>(
        self,
        exchange: impl AsyncFnOnce(Self) -> Result<(Self, T), Fault>,
    ) -> Result<(Self, T), Fault> {
        let patience = self.command_timeout;
        match timeout(patience, exchange(self)).await {
            Ok(exchanged) => exchanged,
            Err(late) => Err(Fault::Broken(late.into())),
        }
    }

    async fn send(&mut self, request: &[u8]) -> Result<(), Fault> {
        self.stream.write_all(request).await.map_err(Fault::Broken)?;
        self.stream.flush().await.map_err(Fault::Broken)
    }

    async fn reply(&mut self) -> Result<Reply, Fault> {
        let line = self.line().await?;
        let mut words = line.split(' ');
        let code: [u8; 2] =
            words.next().and_then(|word| word.as_bytes().try_into().ok()).ok_or_else(|| understood(&line))?;
        let value = match &code {
            b"VA" => {
                let length =
                    words.next().and_then(|word| word.parse().ok()).ok_or_else(|| understood(&line))?;
                Some(self.value(length).await?)
            }
            b"HD" | b"EN" | b"NF" | b"NS" | b"EX" => None,
            _ => return Err(understood(&line)),
        };
        Ok(Reply { code, flags: words.map(ToOwned::to_owned).collect(), value })
    }

    async fn value(&mut self, length: usize) -> Result<Vec<u8>, Fault> {
        if length > VALUE {
            return Err(Fault::Garbled(format!("a value of {length} bytes")));
        }
        let mut value = vec![0; length + 2];
        self.stream.read_exact(&mut value).await.map_err(Fault::Broken)?;
        match value.split_off(length).as_slice() {
            b"\r\n" => Ok(value),
            _ => Err(Fault::Garbled("a value longer than it said".to_owned())),
        }
    }

    async fn line(&mut self) -> Result<String, Fault> {
        let mut line = Vec::new();
        (&mut self.stream).take(LINE).read_until(b'\n', &mut line).await.map_err(Fault::Broken)?;
        if line.pop() != Some(b'\n') {
            return Err(Fault::Broken(io::ErrorKind::UnexpectedEof.into()));
        }
        line.pop_if(|last| *last == b'\r');
        Ok(String::from_utf8_lossy(&line).into_owned())
    }
}

fn is_refusal(line: &str) -> bool {
    ["ERROR", "CLIENT_ERROR", "SERVER_ERROR", "BUSY"].iter().any(|word| line.starts_with(word))
}

/// A line that is no answer to what was asked.
fn understood(line: &str) -> Fault {
    let line: String = line.chars().take(100).collect();
    // A bare "ERROR" is a server that does not know the command.
    if is_refusal(&line) && line != "ERROR" { Fault::Refused(line) } else { Fault::Garbled(line) }
}

#[cfg(test)]
mod tests {
    use proptest::{
        collection::vec, prelude::any, prop_oneof, proptest, strategy::Strategy, test_runner::Config,
    };
    use tokio::net::TcpListener;

    use super::*;

    /// Lines that look like answers, and anything.
    fn answer() -> impl Strategy<Value = Vec<u8>> {
        let line = "(VA|HD|EN|NF|NS|EX|ME|END|ERROR|STAT) ?-?[0-9]{0,21}( [a-z][0-9]{0,21}){0,3}\r?\n[ab]{0,4}(\r\n)?";
        prop_oneof![vec(any::<u8>(), 0..60), line.prop_map(String::into_bytes)]
    }

    /// A server that answers this to whatever it is asked, and hangs up.
    async fn asked(answer: Vec<u8>) -> [Result<(), Fault>; 2] {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let config = MemcachedConfig::new("127.0.0.1", listener.local_addr().unwrap().port());
        let serve = async {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.write_all(&answer).await.unwrap();
                stream.shutdown().await.unwrap();
                // Read to the end, so that the answer is not lost with a reset.
                drop(stream.read_to_end(&mut Vec::new()).await);
            }
        };
        let ask = async {
            let connection = Connection::open(&config).await?;
            let (_, replies) = connection.ask(b"mg a v\r\n", 1).await?;
            let _ = replies[0].number('t');
            Ok(())
        };
        let list = async { Connection::open(&config).await?.list("stats").await.map(drop) };
        let both = async { [ask.await, list.await] };
        tokio::join!(serve, both).1
    }

    proptest! {
        #![proptest_config(Config { cases: 300, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_answer_makes_it_panic(answer in answer()) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let ended = runtime.block_on(asked(answer.clone()));
            let is_late = |fault: &Fault| matches!(fault, Fault::Broken(error) if error.kind() == io::ErrorKind::TimedOut);
            assert!(ended.iter().filter_map(|ended| ended.as_ref().err()).all(|fault| !is_late(fault)), "{answer:?}");
        }
    }
}
