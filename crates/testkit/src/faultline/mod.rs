//! Faultline: a proxy between a client and a server that breaks what goes through it, on command.
//!
//! It runs on a thread of its own, so its verbs work from any test, blocking or not, and go on while the test's runtime
//! is stuck. Verbs on the whole line act on every connection, present and future, until taken back; verbs on a request
//! act on the first requests that contain the given bytes, and say when they have.
//!
//! | verb | what the client sees | what the server sees |
//! |---|---|---|
//! | [`cut`](Faultline::cut) | a reset | a reset |
//! | [`refuse`](Faultline::refuse) | a reset right after connecting | nothing |
//! | [`stall`](Faultline::stall) | silence, on a connection that stays open | silence |
//! | [`silence`](Faultline::silence) | silence on what is open now, for ever; new connections work | silence |
//! | [`delay`](Faultline::delay) | every request and every answer comes later | the same |
//! | [`half_close`](Faultline::half_close) | the end of the stream | requests that still come |
//! | [`swallow_reply`](Faultline::swallow_reply) | a reset instead of the answer | a request that it carried out |
//! | [`hold_request`](Faultline::hold_request) | silence | the request, when [`Held::deliver`] says so |
//!
//! Requests and answers are told apart by the protocol of Redis ([`Speech::Resp`]), or taken as they arrive
//! ([`Speech::Pieces`]), which is right for protocols where one request is one write.

mod connection;
mod resp;
mod rules;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use tokio::{net::TcpListener, sync::oneshot};

pub use self::rules::{Held, Hit, Speech};
use self::{connection::carry, rules::Rules};

/// A proxy in front of one server. Ends with its value, and resets what is open then.
#[derive(Debug)]
pub struct Faultline {
    address: SocketAddr,
    rules: Arc<Rules>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Faultline {
    /// Listens on a free port of this machine and carries everything to this server.
    ///
    /// # Errors
    /// If there is no port, or no thread.
    pub fn before(server: SocketAddr, speech: Speech) -> io::Result<Self> {
        let rules = Arc::new(Rules::new(speech));
        let (stop, stopped) = oneshot::channel();
        let (bound, listens) = mpsc::sync_channel(1);
        let shared = rules.clone();
        let thread = std::thread::Builder::new().name("faultline".to_owned()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(bound.send(Err(error))),
            };
            runtime.block_on(async {
                match TcpListener::bind(("127.0.0.1", 0)).await {
                    Ok(listener) => {
                        drop(bound.send(listener.local_addr()));
                        listen(listener, server, shared, stopped).await;
                    }
                    Err(error) => drop(bound.send(Err(error))),
                }
            });
        })?;
        let address = listens.recv().map_err(io::Error::other)??;
        Ok(Self { address, rules, stop: Some(stop), thread: Some(thread) })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Resets every open connection, on both sides. New ones are made as before.
    pub fn cut(&self) {
        self.rules.cut();
    }

    /// Resets every new connection, or no longer.
    pub fn refuse(&self, refuse: bool) {
        self.rules.change(|state| state.refuses = refuse);
    }

    /// Carries nothing in either direction, while connections stay open, or goes on with what was kept.
    pub fn stall(&self, stall: bool) {
        self.rules.change(|state| state.stalls = stall);
    }

    /// Carries nothing any more on every open connection, which stays open for as long as this lives: half-open, as
    /// after a cut that nobody was told of. New ones are made as before.
    pub fn silence(&self) {
        self.rules.silence();
    }

    /// Everything takes this much longer, in each direction. Zero for no longer.
    pub fn delay(&self, by: Duration) {
        self.rules.change(|state| state.delay = by);
    }

    /// Ends what the client hears on every open connection; what it says still arrives.
    pub fn half_close(&self) {
        self.rules.half_close();
    }

    /// The next `times` requests that contain these bytes are carried out, and their answers never arrive: the
    /// connection is reset instead. Anything after such a request on the same connection is lost with it.
    #[must_use = "it says when it has happened"]
    pub fn swallow_reply(&self, containing: &[u8], times: usize) -> Hit {
        self.rules.swallow(containing, times)
    }

    /// The next request that contains these bytes, and what follows it on its connection, is kept until it is let go,
    /// even if the client gives up meanwhile.
    #[must_use = "it says when it has happened, and lets the request go"]
    pub fn hold_request(&self, containing: &[u8]) -> Held {
        self.rules.hold(containing)
    }

    /// How many connections are open now.
    pub fn connections(&self) -> usize {
        self.rules.connections()
    }
}

impl Drop for Faultline {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // Nobody listens to it if the thread has ended.
            let _ = stop.send(());
        }
        self.cut();
        if let Some(thread) = self.thread.take() {
            // It ends by itself now; a panic on it was printed.
            drop(thread.join());
        }
    }
}

async fn listen(
    listener: TcpListener,
    server: SocketAddr,
    rules: Arc<Rules>,
    mut stopped: oneshot::Receiver<()>,
) {
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((client, _)) = accepted {
                tokio::runtime::Handle::current().spawn(carry(client, server, rules.clone()));
            },
            _ = &mut stopped => return,
        }
    }
}
