//! etcd as it is run: alone, and as a cluster of several members. Each server is a real process; see [`servers`](super).
//!
//! Every verb blocks until it is done, or until a minute has passed; none needs a runtime. Waiting is for what the servers
//! themselves say, never for a time.

mod cluster;
mod http;

use std::{
    io,
    net::{SocketAddr, TcpStream},
    ops::{Deref, DerefMut},
    path::Path,
    time::Duration,
};

pub use self::cluster::Cluster;
use super::{Recipe, Server, StartError, free_port, make_certificates};

/// How long an etcd that runs may take to say that it is well. One that is paused takes longer, and is found out by it.
const ANSWER: Duration = Duration::from_millis(1500);

/// One etcd.
#[derive(Debug)]
pub struct Etcd(Server);

impl Etcd {
    /// Starts an etcd of one member, in a folder of its own.
    ///
    /// # Errors
    /// [`StartError`], with the end of the server's own log where there is one.
    pub fn start() -> Result<Self, StartError> {
        Self::start_with(&[])
    }

    /// Starts an etcd of one member with more arguments, as on its command line: `--quota-backend-bytes=…`.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_with(more: &[&str]) -> Result<Self, StartError> {
        let arguments = || {
            let peer = format!("http://127.0.0.1:{}", free_port()?);
            let more = more.iter().map(ToString::to_string);
            Ok(member("etcd", &peer, &format!("etcd={peer}")).into_iter().chain(more).collect())
        };
        Server::start_with(RECIPE, arguments).map(Self)
    }

    /// Starts one that its clients speak TLS with, by a certificate for `localhost`. The authority to trust is `ca.pem` in its
    /// folder. It may not have elected itself yet.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_secure() -> Result<Self, StartError> {
        let arguments = || {
            let peer = format!("http://127.0.0.1:{}", free_port()?);
            Ok(member("etcd", &peer, &format!("etcd={peer}")))
        };
        Server::start_with(Recipe { arguments: secure, answers: accepts, ..RECIPE }, arguments).map(Self)
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("etcd://{}", self.address())
    }

    /// Asks the server by its gateway for JSON: `ask("/v3/kv/compaction", r#"{"revision": 7}"#)`. Returns the whole answer.
    ///
    /// # Errors
    /// If the server does not answer in time, or answers with an error.
    pub fn ask(&self, path: &str, body: &str) -> io::Result<String> {
        http::ask(self.address(), path, body)
    }

    /// The sum of the server's own counts whose line begins so, such as `etcd_debugging_mvcc_events_total`.
    ///
    /// # Errors
    /// If the server does not answer in time.
    pub fn metric(&self, begins: &str) -> io::Result<f64> {
        let text = http::get(self.address(), "/metrics")?;
        let counts = text.lines().filter(|line| line.starts_with(begins));
        Ok(counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }

    /// Whether this member says that it leads.
    ///
    /// # Errors
    /// If the server does not answer in time.
    pub fn leads(&self) -> io::Result<bool> {
        let status = self.ask("/v3/maintenance/status", "{}")?;
        let number = |name: &str| {
            let rest = status.split_once(&format!("\"{name}\":\""))?.1;
            rest.split_once('"').map(|(number, _)| number.to_owned())
        };
        Ok(number("leader").is_some_and(|leader| leader != "0" && number("member_id") == Some(leader)))
    }
}

impl Deref for Etcd {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

impl DerefMut for Etcd {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.0
    }
}

const RECIPE: Recipe = Recipe { program: "etcd", package: "etcd-server", arguments, answers: is_well };

fn arguments(port: u16, folder: &Path) -> Vec<String> {
    let client = format!("http://127.0.0.1:{port}");
    vec![
        format!("--data-dir={}", folder.join("data").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
    ]
}

fn secure(port: u16, folder: &Path) -> Vec<String> {
    // A server without its certificates does not start, and says so.
    drop(make_certificates(folder));
    let client = format!("https://127.0.0.1:{port}");
    vec![
        format!("--data-dir={}", folder.join("data").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--cert-file={}", folder.join("server.pem").display()),
        format!("--key-file={}", folder.join("server.key").display()),
    ]
}

fn accepts(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, ANSWER).is_ok()
}

/// How a member finds the others.
fn member(name: &str, peer: &str, all: &str) -> Vec<String> {
    vec![
        format!("--name={name}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster={all}"),
        "--initial-cluster-state=new".to_owned(),
    ]
}

fn is_well(address: SocketAddr) -> bool {
    http::get(address, "/health").is_ok_and(|answer| answer.contains("\"true\""))
}
