//! A server of its own for each test, and a plain HTTP client that sends exactly what it is told to.

use std::{net::SocketAddr, time::Duration};

use leasehold::{
    Client,
    backend::{Memory, Recorded},
};
use leasehold_console::{Access, Console, ConsoleBuilder, Limits, Server};
use leasehold_testkit::scripted::{Script, Scripted};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
};

pub(crate) const OPERATOR: &str = "operator-token-of-the-tests";
pub(crate) const VIEWER: &str = "viewer-token-of-the-tests";

/// What only a hang reaches.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Every route, with a method and a body that it would take.
pub(crate) const ROUTES: [(&str, &str); 22] = [
    ("GET", "/"),
    ("GET", "/index.html"),
    ("GET", "/nothing/here"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/api/v1/session"),
    ("GET", "/api/v1/overview"),
    ("GET", "/api/v1/locks"),
    ("GET", "/api/v1/locks/x"),
    ("GET", "/api/v1/waits"),
    ("GET", "/api/v1/audit"),
    ("GET", "/api/v1/jobs"),
    ("GET", "/api/v1/elections"),
    ("GET", "/api/v1/store"),
    ("GET", "/api/v1/openapi.json"),
    ("POST", "/api/v1/locks/x/break"),
    ("POST", "/api/v1/locks/x/acquire"),
    ("POST", "/api/v1/locks/x/renew"),
    ("POST", "/api/v1/locks/x/release"),
    ("POST", "/api/v1/jobs/x/pause"),
    ("POST", "/api/v1/jobs/x/resume"),
];

/// A server that runs.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) client: Client,
    backend: Recorded<Memory>,
    stop: std::sync::Mutex<Option<oneshot::Sender<()>>>,
    task: JoinHandle<()>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Served {
    /// With both tokens.
    pub(crate) async fn start() -> Self {
        Self::with(Access::with_tokens(Some(OPERATOR), Some(VIEWER)).unwrap(), |builder| builder).await
    }

    pub(crate) async fn with(access: Access, set: impl FnOnce(ConsoleBuilder) -> ConsoleBuilder) -> Self {
        Self::limited(access, set, Limits::default()).await
    }

    pub(crate) async fn limited(
        access: Access,
        set: impl FnOnce(ConsoleBuilder) -> ConsoleBuilder,
        limits: Limits,
    ) -> Self {
        let backend = Memory::new();
        let client = Client::new(backend.clone());
        Self::serve(backend, client, access, set, limits).await
    }

    /// With a store that this script plays.
    pub(crate) async fn scripted(script: &Script) -> Self {
        let backend = Memory::new();
        let client = Client::new(Scripted::new(backend.clone(), script.clone()));
        let access = Access::with_tokens(Some(OPERATOR), Some(VIEWER)).unwrap();
        Self::serve(backend, client, access, |builder| builder, Limits::default()).await
    }

    async fn serve(
        backend: Recorded<Memory>,
        client: Client,
        access: Access,
        set: impl FnOnce(ConsoleBuilder) -> ConsoleBuilder,
        limits: Limits,
    ) -> Self {
        let console = set(Console::builder(client.clone(), access)).build();
        let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap().limits(limits);
        let address = server.address().unwrap();
        let (stop, stopped) = oneshot::channel();
        let task =
            client.runtime().spawn(async move { server.run(console, async { drop(stopped.await) }).await });
        Self { address, client, backend, stop: Some(stop).into(), task }
    }

    /// Another client of the same store.
    pub(crate) fn other(&self) -> Client {
        Client::new(self.backend.clone())
    }

    /// Says that it should stop.
    pub(crate) fn ask_to_stop(&self) {
        drop(self.stop.lock().unwrap().take());
    }

    /// Stops it in order, and waits for that.
    pub(crate) async fn stop(mut self) {
        self.ask_to_stop();
        tokio::time::timeout(LIMIT, &mut self.task).await.expect("the server stops").unwrap();
    }

    /// Sends this text, and reads the one answer to it.
    pub(crate) async fn send(&self, text: &str) -> Answer {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(text.as_bytes()).await.unwrap();
        let mut read = Vec::new();
        let done = tokio::time::timeout(LIMIT, socket.read_to_end(&mut read)).await;
        // A server that does not want the rest of what we send may close hard after its answer.
        drop(done.expect("the server answers and closes"));
        Answer::read(&String::from_utf8_lossy(&read))
    }

    /// A request with these headers and no others but what it takes to be one.
    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let host = format!("Host: {}", self.address);
        let length = format!("Content-Length: {}", body.len());
        let mut lines = vec![format!("{method} {path} HTTP/1.1"), "Connection: close".to_owned(), length];
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            lines.push(host);
        }
        lines.extend(headers.iter().map(|&header| header.to_owned()));
        self.send(&format!("{}\r\n\r\n{body}", lines.join("\r\n"))).await
    }

    /// Looks, as an operator.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[&format!("Authorization: Bearer {OPERATOR}")], "").await
    }

    /// Does something, as an operator, in the proper way.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        let token = format!("Authorization: Bearer {OPERATOR}");
        self.ask("POST", path, &[&token, "X-Leasehold: 1", "Content-Type: application/json"], body).await
    }
}

impl Answer {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("an answer: {text:?}"));
        Self { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// What is said in a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| *found == name).map(|(_, value)| value).next()
    }
}
