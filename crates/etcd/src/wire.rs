//! How requests get to etcd and answers back: one connection per server, one of them in use at a time.
//!
//! A request is sent once. If it surely did not arrive, the next server is tried; if nobody can say, the caller is told so
//! and asks again, by the same id. A server that fails or is silent is left for the next one. Servers keep each other
//! informed: any of them answers for all.

use std::{
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt;
use leasehold_core::{Error, ErrorKind, Operation, Result, backend::Finding};
use prost::Message;
use tokio::time::timeout;
use tonic::{
    Request, Streaming,
    client::Grpc,
    codegen::http::uri::PathAndQuery,
    metadata::{Ascii, MetadataValue},
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint},
};
use tonic_prost::ProstCodec;

use crate::{
    config::EtcdConfig,
    error::{Fault, Refusal},
    proto::{AuthenticateRequest, AuthenticateResponse, TxnRequest, TxnResponse},
};

/// What the server has for us, by its name.
pub(crate) mod path {
    pub(crate) const TXN: &str = "/etcdserverpb.KV/Txn";
    pub(crate) const RANGE: &str = "/etcdserverpb.KV/Range";
    pub(crate) const GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
    pub(crate) const REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
    pub(crate) const KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
    pub(crate) const TIME_TO_LIVE: &str = "/etcdserverpb.Lease/LeaseTimeToLive";
    pub(crate) const WATCH: &str = "/etcdserverpb.Watch/Watch";
    pub(crate) const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";
    pub(crate) const STATUS: &str = "/etcdserverpb.Maintenance/Status";
    pub(crate) const ALARM: &str = "/etcdserverpb.Maintenance/Alarm";
    pub(crate) const MEMBERS: &str = "/etcdserverpb.Cluster/MemberList";
}

/// How often a silent connection that something is expected from is asked whether it lives. A server breaks with whoever asks
/// more often than every five seconds, or asks while nothing is expected.
const PULSE: Duration = Duration::from_secs(7);

/// How long it may take to say so.
const PULSE_ANSWER: Duration = Duration::from_secs(3);

/// The way to the servers.
#[derive(Debug)]
pub(crate) struct Wire {
    channels: Vec<Channel>,
    current: AtomicUsize,
    config: EtcdConfig,
    token: RwLock<Option<MetadataValue<Ascii>>>,
    closed: AtomicBool,
}

impl Wire {
    /// Prepares the connections; they are made when they are first used.
    pub(crate) fn new(config: &EtcdConfig) -> Result<Self> {
        let channels = config.uris().map(|uri| channel(&uri, config)).collect::<Result<Vec<_>>>()?;
        Ok(Self {
            channels,
            current: AtomicUsize::new(0),
            config: config.clone(),
            token: RwLock::default(),
            closed: AtomicBool::new(false),
        })
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Carries out a transaction.
    pub(crate) async fn txn(&self, txn: TxnRequest) -> Result<TxnResponse, Fault> {
        self.call(path::TXN, txn).await
    }

    /// Sends a request and awaits its answer.
    pub(crate) async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Fault>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let mut renewed = false;
        let mut left = self.channels.len();
        loop {
            let at = self.current.load(Ordering::Relaxed);
            let answer = self.ask(at, path, request.clone()).await;
            match answer {
                Err(Fault::NotSent(_)) if left > 1 => left -= 1,
                Err(ref fault) if fault.refusal() == Some(Refusal::Token) && !renewed => {
                    renewed = true;
                    self.authenticate().await?;
                }
                answer => return answer,
            }
        }
    }

    /// Asks one server, which is left for the next one if it does not answer.
    pub(crate) async fn ask<Q, A>(&self, at: usize, path: &'static str, request: Q) -> Result<A, Fault>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Fault::Closed);
        }
        let mut grpc = self.grpc(at);
        let request = self.signed(request);
        let asking = async {
            grpc.ready().await.map_err(|error| Fault::NotSent(chain(&error)))?;
            let path = PathAndQuery::from_static(path);
            let answer = grpc.unary(request, path, ProstCodec::default()).await;
            answer.map(tonic::Response::into_inner).map_err(|status| Fault::of(&status))
        };
        let answer = timeout(self.config.command_timeout, asking).await;
        let answer = answer.unwrap_or_else(|_| Err(Fault::Unknown("no answer in time".to_owned())));
        if let Err(Fault::NotSent(_) | Fault::Unknown(_) | Fault::Refused(Refusal::NotNow, _)) = &answer {
            self.leave(at);
        }
        answer
    }

    /// Opens a stream both ways, for as long as both like.
    pub(crate) async fn stream<Q, A>(
        &self,
        path: &'static str,
        requests: impl futures_util::Stream<Item = Q> + Send + 'static,
    ) -> Result<(usize, Streaming<A>), Fault>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Fault::Closed);
        }
        let at = self.current.load(Ordering::Relaxed);
        let mut grpc = self.grpc(at);
        let mut request = self.signed(requests);
        // A member that has lost its leader ends the stream, instead of being silent on it for ever.
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        let opening = async {
            grpc.ready().await.map_err(|error| Fault::NotSent(chain(&error)))?;
            let opened =
                grpc.streaming(request, PathAndQuery::from_static(path), ProstCodec::default()).await;
            opened.map(tonic::Response::into_inner).map_err(|status| Fault::of(&status))
        };
        let opened = timeout(self.config.command_timeout, opening).await;
        let opened = opened.unwrap_or_else(|_| Err(Fault::Unknown("no answer in time".to_owned())));
        if opened.is_err() {
            self.leave(at);
        }
        Ok((at, opened?))
    }

    /// Sends some requests on a stream of their own and collects one answer to each.
    pub(crate) async fn exchange<Q, A>(&self, path: &'static str, requests: Vec<Q>) -> Result<Vec<A>, Fault>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let count = requests.len();
        let exchanging = async {
            let (_, answers) = self.stream::<Q, A>(path, futures_util::stream::iter(requests)).await?;
            let answers: Vec<Result<A, _>> = answers.take(count).collect().await;
            answers.into_iter().collect::<Result<Vec<A>, _>>().map_err(|status| Fault::of(&status))
        };
        let at = self.current.load(Ordering::Relaxed);
        match timeout(self.config.command_timeout, exchanging).await {
            Ok(Ok(answers)) if answers.len() == count => Ok(answers),
            Ok(Err(fault)) => Err(fault),
            _ => {
                self.leave(at);
                Err(Fault::Unknown("no answer in time".to_owned()))
            }
        }
    }

    /// Tells the servers who we are, if we have credentials at all.
    pub(crate) async fn authenticate(&self) -> Result<(), Fault> {
        let Some(name) = self.config.username.clone() else { return Ok(()) };
        let password = self.config.password.clone().unwrap_or_default();
        let mut last = None;
        for _ in 0..self.channels.len() {
            let at = self.current.load(Ordering::Relaxed);
            let request = AuthenticateRequest { name: name.clone(), password: password.clone() };
            self.set_token(None);
            match self.ask::<_, AuthenticateResponse>(at, path::AUTHENTICATE, request).await {
                Ok(answer) => {
                    self.set_token(answer.token.parse().ok());
                    return Ok(());
                }
                Err(Fault::NotSent(text)) => last = Some(Fault::NotSent(text)),
                Err(fault) => return Err(fault),
            }
        }
        last.map_or(Ok(()), Err)
    }

    /// How many servers we know of.
    /// What there is to say of what others could hear.
    pub(crate) fn encryption(&self) -> Option<Finding> {
        let finding = Finding::unencrypted(self.config.hosts()).filter(|_| !self.config.tls)?;
        Some(finding.remedy("let the members listen with TLS, and write the store URL with etcds://"))
    }

    pub(crate) fn len(&self) -> usize {
        self.channels.len()
    }

    /// Goes on with the next server, if this is still the one in use.
    pub(crate) fn leave(&self, at: usize) {
        let next = (at + 1) % self.channels.len();
        // Whoever comes second finds that the first has moved on already.
        let _moved = self.current.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn grpc(&self, at: usize) -> Grpc<Channel> {
        Grpc::new(self.channels[at].clone()).max_decoding_message_size(64 << 20)
    }

    fn signed<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &*self.token.read().unwrap_or_else(PoisonError::into_inner) {
            request.metadata_mut().insert("authorization", token.clone());
        }
        request
    }

    fn set_token(&self, token: Option<MetadataValue<Ascii>>) {
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = token;
    }
}

fn channel(uri: &str, config: &EtcdConfig) -> Result<Channel> {
    let refused = |error| {
        Error::config(Operation::Connect, "the connection cannot be made this way").because(chain(&error))
    };
    let mut endpoint = Endpoint::from_shared(uri.to_owned())
        .map_err(refused)?
        .connect_timeout(config.connect_timeout)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(PULSE)
        .keep_alive_timeout(PULSE_ANSWER)
        .keep_alive_while_idle(false);
    if config.tls {
        endpoint = endpoint.tls_config(tls(config)?).map_err(refused)?;
    }
    Ok(endpoint.connect_lazy())
}

fn tls(config: &EtcdConfig) -> Result<ClientTlsConfig> {
    let Some(file) = &config.tls_ca else { return Ok(ClientTlsConfig::new().with_webpki_roots()) };
    let pem = std::fs::read(file).map_err(|error| {
        let message = format!("the certificates in {} cannot be read", file.display());
        Error::new(ErrorKind::Config, Operation::Connect, message).because(error)
    })?;
    Ok(ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)))
}

/// An error and what it came from, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
