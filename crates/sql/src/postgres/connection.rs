//! One connection: made, driven by a task of its own, closed when it is dropped.

use std::{future::poll_fn, pin::pin, sync::Arc, time::Duration};

use leasehold_core::Result;
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer, pki_types::pem::PemObject};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinHandle,
    time::timeout,
};
use tokio_postgres::{AsyncMessage, Client, NoTls, config::TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    PostgresConfig,
    error::{not_connected, not_connected_in_time},
    prepared::Known,
};
use crate::server::{
    Tried,
    pool::Pooled,
    url::{Tls, config},
};

/// Hears what other sessions notify.
pub(super) type Ear = Arc<dyn Fn(&str) + Send + Sync>;

/// How to make connections.
#[derive(Clone)]
pub(super) struct Connector {
    client: tokio_postgres::Config,
    tls: Option<MakeRustlsConnect>,
    connect_timeout: Duration,
}

/// A connection and the task that drives it.
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) known: Known,
    driver: JoinHandle<()>,
    closed: bool,
}

impl Connector {
    /// Reads the certificates to trust, if the connection is to be encrypted.
    pub(super) fn new(postgres: &PostgresConfig) -> Result<Self> {
        let common = &postgres.common;
        let tls = match common.tls {
            Tls::Off => None,
            Tls::Verified => Some(MakeRustlsConnect::new(trusting(roots(common.tls_ca.as_deref())?)?)),
        };
        let mut client = postgres.client.clone();
        if common.session.is_some() && client.get_hosts().len() > 1 {
            // Whoever asks about sessions has to ask the server that they are on.
            client.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        Ok(Self { client, tls, connect_timeout: common.connect_timeout })
    }

    /// For connections that we do not give up by ourselves for longer than this, though nobody answers.
    pub(super) fn outlasting(&self, patience: Duration) -> Self {
        let mut own = self.clone();
        // Without a timeout the system would give up what is not answered after a quarter of an hour.
        own.client.keepalives(false).tcp_user_timeout(patience * 2 + Duration::from_secs(60));
        own
    }

    pub(super) async fn connect(&self) -> Tried<Connection> {
        self.connect_hearing(Arc::new(|_: &str| {})).await
    }

    /// A connection whose notifications `ear` hears.
    pub(super) async fn connect_hearing(&self, ear: Ear) -> Tried<Connection> {
        let connecting = async {
            match &self.tls {
                None => self.client.connect(NoTls).await.map(|(client, wire)| drive(client, wire, ear)),
                Some(tls) => {
                    self.client.connect(tls.clone()).await.map(|(client, wire)| drive(client, wire, ear))
                }
            }
        };
        let connected =
            timeout(self.connect_timeout, connecting).await.map_err(|_| not_connected_in_time())?;
        connected.map_err(|error| not_connected(&error))
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("tls", &self.tls.is_some()).finish_non_exhaustive()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "it lives as long as its connection, which ends it when dropped"
)]
fn drive<S, T>(client: Client, wire: tokio_postgres::Connection<S, T>, ear: Ear) -> Connection
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let driver = tokio::spawn(async move {
        let mut wire = pin!(wire);
        while let Some(Ok(message)) = poll_fn(|cx| wire.as_mut().get_mut().poll_message(cx)).await {
            if let AsyncMessage::Notification(notification) = message {
                ear(notification.payload());
            }
        }
    });
    Connection { client, known: Known::default(), driver, closed: false }
}

impl Connection {
    /// Completes when the connection has ended.
    pub(super) async fn ended(&mut self) {
        // However it ended, it did.
        let _ = (&mut self.driver).await;
    }

    /// It is of no more use.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Pooled for Connection {
    fn is_alive(&self) -> bool {
        !self.closed && !self.client.is_closed() && !self.driver.is_finished()
    }
}

fn roots(file: Option<&std::path::Path>) -> Result<RootCertStore> {
    let Some(file) = file else {
        return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
    };
    let unusable =
        |why: &dyn std::fmt::Display| config(format!("tls_ca {} cannot be used: {why}", file.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unusable(&error))? {
        roots.add(certificate.map_err(|error| unusable(&error))?).map_err(|error| unusable(&error))?;
    }
    if roots.is_empty() {
        return Err(unusable(&"it has no certificate"));
    }
    Ok(roots)
}

fn trusting(roots: RootCertStore) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = versions.map_err(|error| config(format!("TLS cannot be set up: {error}")))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its end would let others in while we still believe.
    #[test]
    fn a_sessions_connection_is_not_given_up_by_our_own_system() {
        let url = "postgres://one,two/db?session=1h&target_session_attrs=any";
        let postgres = PostgresConfig::from_url(url).expect("a good URL");
        let plain = Connector::new(&postgres).expect("nothing to read");
        assert!(plain.client.get_keepalives());
        assert_eq!(plain.client.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        let patience = Duration::from_secs(3600);
        let own = plain.outlasting(patience);
        assert!(!own.client.get_keepalives());
        assert!(own.client.get_tcp_user_timeout().is_some_and(|timeout| *timeout > patience));
    }
}
