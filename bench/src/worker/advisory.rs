//! `pg_advisory_lock`, PostgreSQL's own: a session that asks for a lock blocks until it has it.
//!
//! Whoever waits needs a session of its own, and a server has a hundred of them or so. So there are a few here, and tasks
//! wait for one as they would for one of a pool.

use std::sync::{Arc, Mutex, PoisonError};

use leasehold_workload::{Ask, Lock, Peer};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tokio_postgres::{Client, NoTls, Statement};

use super::text;

/// Sessions of one process.
const SESSIONS: usize = 16;

#[derive(Clone)]
pub(crate) struct Advisory {
    url: String,
    room: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Session>>>,
}

pub(crate) struct Session {
    client: Client,
    lock: Statement,
    unlock: Statement,
    /// Ends with it.
    _driver: JoinSet<()>,
}

#[derive(Clone)]
pub(crate) struct Named {
    all: Advisory,
    name: String,
}

impl Peer for Advisory {
    type Lock = Named;

    fn version() -> String {
        "PostgreSQL's own".to_owned()
    }

    async fn connect(ask: &Ask) -> Result<Self, String> {
        Ok(Self { url: ask.url.clone(), room: Arc::new(Semaphore::new(SESSIONS)), idle: Arc::default() })
    }

    fn lock(&self, name: &str) -> Named {
        Named { all: self.clone(), name: name.to_owned() }
    }
}

impl Lock for Named {
    type Held = (OwnedSemaphorePermit, Session);

    async fn acquire(&self) -> Result<Self::Held, String> {
        let permit = self.all.room.clone().acquire_owned().await.map_err(text)?;
        let idle = self.all.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let session = match idle {
            Some(session) => session,
            None => Session::open(&self.all.url).await?,
        };
        session.client.query_one(&session.lock, &[&self.name]).await.map_err(text)?;
        Ok((permit, session))
    }

    async fn release(&self, (permit, session): Self::Held) -> Result<(), String> {
        let row = session.client.query_one(&session.unlock, &[&self.name]).await.map_err(text)?;
        if !row.try_get::<_, bool>(0).map_err(text)? {
            return Err("the session did not have the lock".to_owned());
        }
        self.all.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
        drop(permit);
        Ok(())
    }
}

impl Session {
    async fn open(url: &str) -> Result<Self, String> {
        let (client, wire) = tokio_postgres::connect(url, NoTls).await.map_err(text)?;
        let mut driver = JoinSet::new();
        // A connection that broke shows as a statement that failed.
        driver.spawn(async move { drop(wire.await) });
        let lock = client.prepare("SELECT pg_advisory_lock(hashtext($1))").await.map_err(text)?;
        let unlock = client.prepare("SELECT pg_advisory_unlock(hashtext($1))").await.map_err(text)?;
        Ok(Self { client, lock, unlock, _driver: driver })
    }
}
