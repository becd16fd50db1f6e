//! The console on a socket: connections, TLS, limits, and a stop in order.
//!
//! HTTP/1.1 only. A connection that says nothing, says its headers too slowly or reads nothing of what it is told is
//! closed; there are never more than so many, and never more than so many of one address. Stopping takes no new connections, ends streams and waits, and lets answers that are on their way finish.

use std::{fmt, io, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use hyper::{Request, body::Incoming};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use leasehold::time::Clock;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::{
    access::network,
    console::Console,
    pressed::Pressed,
    routes::router,
    seats::{Seat, Seats},
};

/// How long to wait after a connection could not be taken: there may be no more descriptors.
const BREATH: Duration = Duration::from_millis(100);

/// The most bytes of headers.
const HEADERS: usize = 32 * 1024;

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// How much of it there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Connections of one address at a time. Behind a proxy all have the same.
    pub per_peer: usize,
    /// How long the other end may read nothing of what is written to it.
    pub stuck: Duration,
    /// How long the headers of a request may take, a handshake too, and how long a connection may say nothing.
    pub patience: Duration,
    /// How long answers may take when the server stops.
    pub goodbye: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 2048,
            per_peer: 1536,
            stuck: Duration::from_secs(60),
            patience: Duration::from_secs(10),
            goodbye: Duration::from_secs(5),
        }
    }
}

/// A certificate and its key.
#[derive(Clone)]
pub struct Tls(Arc<ServerConfig>);

/// A socket that waits for its console.
#[derive(Debug)]
#[must_use = "a server does nothing until it runs"]
pub struct Server {
    listener: TcpListener,
    tls: Option<Tls>,
    limits: Limits,
}

impl Tls {
    /// Reads a chain of certificates and the key of the first, both as PEM.
    ///
    /// # Errors
    /// A sentence that says which file makes no sense. It never says what is in it.
    pub fn load(certificates: &Path, key: &Path) -> Result<Self, String> {
        let bad = |file: &Path, why: &dyn fmt::Display| format!("cannot use {}: {why}", file.display());
        let chain =
            CertificateDer::pem_file_iter(certificates).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|error| bad(certificates, &error))?;
        if chain.is_empty() {
            return Err(bad(certificates, &"there is no certificate in it"));
        }
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| bad(key, &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let versions = versions.map_err(|error| bad(certificates, &error))?;
        let config = versions.with_no_client_auth().with_single_cert(chain, private);
        config.map(|config| Self(Arc::new(config))).map_err(|error| bad(key, &error))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Server {
    /// Takes the address.
    ///
    /// # Cancel safety
    /// Nothing stays behind if it is dropped.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self { listener, tls: None, limits: Limits::default() })
    }

    /// Speaks TLS, and nothing else.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// With other limits than the usual ones.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` completes, then ends in order.
    ///
    /// # Cancel safety
    /// Dropping the future closes every connection where it stands. A lock that was being acquired is withdrawn.
    pub async fn run(self, console: Console, stop: impl Future<Output = ()>) {
        let Self { listener, tls, limits } = self;
        let serving = Serving {
            router: router(console.clone()),
            tls: tls.map(|Tls(config)| TlsAcceptor::from(config)),
            limits,
            stopping: watch::Sender::new(false),
        };
        let (places, mut open) = (Arc::new(Semaphore::new(limits.connections)), JoinSet::new());
        let (mut stop, seats) = (std::pin::pin!(stop), Seats::default());
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(_) = open.join_next(), if !open.is_empty() => {}
                taken = accept(&listener, &places) => {
                    if let Some((socket, peer, place)) = taken {
                        if let Some(seat) = seats.take(network(peer.ip()), limits.per_peer) {
                            open.spawn(serving.clone().connection(socket, Peer(peer), (place, seat)));
                        } else {
                            tracing::debug!(%peer, "too many connections of this address");
                        }
                    }
                }
            }
        }
        drop(listener);
        console.stop();
        serving.stopping.send_replace(true);
        let (clock, ended) = (Clock::boot(), async { while open.join_next().await.is_some() {} });
        tokio::select! {
            biased;
            () = ended => {}
            () = clock.pause(limits.goodbye) => tracing::info!("some connections did not end in time"),
        }
    }
}

/// The next connection, once there is room for one.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((socket, peer)) => Some((socket, peer, place)),
        Err(error) => {
            tracing::debug!(%error, "a connection could not be taken");
            Clock::boot().pause(BREATH).await;
            None
        }
    }
}

/// What every connection needs.
#[derive(Clone)]
struct Serving {
    router: Router,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    stopping: watch::Sender<bool>,
}

impl Serving {
    async fn connection(self, socket: TcpStream, peer: Peer, _place: (OwnedSemaphorePermit, Seat)) {
        // An event is small and wanted now.
        drop(socket.set_nodelay(true));
        let socket = Pressed::new(socket, self.limits.stuck);
        let Some(tls) = &self.tls else { return self.speak(socket, peer).await };
        match tokio::time::timeout(self.limits.patience, tls.accept(socket)).await {
            Ok(Ok(socket)) => self.speak(socket, peer).await,
            Ok(Err(error)) => tracing::debug!(%error, "no handshake"),
            Err(_) => tracing::debug!("a handshake came too slowly"),
        }
    }

    async fn speak(&self, socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, peer: Peer) {
        let service = self.router.clone().map_request(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer);
            request
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.patience)
            .max_buf_size(HEADERS)
            .serve_connection(TokioIo::new(socket), TowerToHyperService::new(service));
        let mut connection = std::pin::pin!(connection);
        let mut stopping = self.stopping.subscribe();
        // The guard that it answers with must not live on.
        let stopped = async { drop(stopping.wait_for(|stopping| *stopping).await) };
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => ended,
            () = stopped => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended");
        }
    }
}
