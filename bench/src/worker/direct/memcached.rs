//! memcached, which has no client library in common use here: the meta commands over a socket. To take and to give back
//! are each a look with the server's time, then a write on condition of what was seen.

use std::sync::Arc;

use leasehold_workload::{Ask, Lock, Peer};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufStream},
    net::TcpStream,
    sync::Mutex,
};

use super::{record, text};

const FREE: &str = "free";

pub(super) struct Memcached(Arc<Mutex<BufStream<TcpStream>>>);

#[derive(Clone)]
pub(super) struct Named {
    stream: Arc<Mutex<BufStream<TcpStream>>>,
    key: String,
}

impl Peer for Memcached {
    type Lock = Named;

    fn version() -> String {
        "sockets".to_owned()
    }

    async fn connect(ask: &Ask) -> Result<Self, String> {
        let stream = TcpStream::connect(ask.url.trim_start_matches("memcached://")).await.map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        let mut stream = BufStream::new(stream);
        let set = ask_for(&mut stream, "ms bare:clock 0 T3600\r\n\r\n").await?;
        if !set.starts_with("HD") {
            return Err(format!("the clock could not be set: {set}"));
        }
        Ok(Self(Arc::new(Mutex::new(stream))))
    }

    fn lock(&self, name: &str) -> Named {
        Named { stream: self.0.clone(), key: format!("bare:{name}") }
    }
}

impl Lock for Named {
    type Held = ();

    async fn acquire(&self) -> Result<(), String> {
        self.replace(|found| found.is_none_or(|value| value == FREE), &record()).await
    }

    async fn release(&self, (): ()) -> Result<(), String> {
        self.replace(|found| found.is_some_and(|value| value != FREE), FREE).await
    }
}

impl Named {
    async fn replace(&self, fits: impl Fn(Option<&str>) -> bool, value: &str) -> Result<(), String> {
        let mut stream = self.stream.lock().await;
        let look = format!("mg bare:clock t c\r\nmg {} v c\r\n", self.key);
        ask_for(&mut stream, &look).await?;
        let head = line(&mut stream).await?;
        let mut words = head.split(' ');
        let (found, guard) = match words.next() {
            Some("VA") => {
                let length: usize = words.next().unwrap_or_default().parse().map_err(text)?;
                let mut found = vec![0; length + 2];
                stream.read_exact(&mut found).await.map_err(text)?;
                let version = words.find_map(|word| word.strip_prefix('c')).unwrap_or_default();
                (String::from_utf8(found).ok(), format!("C{version}"))
            }
            _ => (None, "ME".to_owned()),
        };
        if !fits(found.as_deref().map(str::trim_end)) {
            return Err("somebody else has the item".to_owned());
        }
        let write = format!("ms {} {} {guard} T60\r\n{value}\r\n", self.key, value.len());
        let written = ask_for(&mut stream, &write).await?;
        if written.starts_with("HD") { Ok(()) } else { Err(format!("not written: {written}")) }
    }
}

/// Sends this; the first line of the answer.
async fn ask_for(stream: &mut BufStream<TcpStream>, request: &str) -> Result<String, String> {
    stream.write_all(request.as_bytes()).await.map_err(text)?;
    stream.flush().await.map_err(text)?;
    line(stream).await
}

async fn line(stream: &mut BufStream<TcpStream>) -> Result<String, String> {
    let mut line = String::new();
    stream.read_line(&mut line).await.map_err(text)?;
    Ok(line.trim_end().to_owned())
}
