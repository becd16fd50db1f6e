//! PostgreSQL: a row that nobody has is taken by one prepared statement, on the server's clock and with the next fence,
//! and given back by another on condition of its version. The row is as ours is: a new one begins above those that were
//! removed, and all can be found that are due for that.

use std::sync::Arc;

use leasehold_workload::{Ask, Lock, Peer};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, Statement};

use super::{record, text};

const SETUP: &str = "CREATE TABLE IF NOT EXISTS bare
    (name text COLLATE \"C\" PRIMARY KEY, version bigint NOT NULL, fence bigint NOT NULL, moment bigint NOT NULL, due bigint,
     record text) WITH (fillfactor = 50);
    CREATE INDEX IF NOT EXISTS bare_due ON bare (due);
    CREATE TABLE IF NOT EXISTS bare_floor (name text PRIMARY KEY, value bigint NOT NULL);
    INSERT INTO bare_floor VALUES ('floor', 0) ON CONFLICT DO NOTHING";

const TAKE: &str = "INSERT INTO bare AS r
    SELECT $1, m.value + 1, m.value + 1, t.now, ((t.now + 90000000) / 600000000 + 1) * 600000000, $2
    FROM bare_floor m, (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now OFFSET 0) t
    WHERE m.name = 'floor'
    ON CONFLICT (name) DO UPDATE SET version = r.version + 1, fence = r.fence + 1, moment = excluded.moment,
      due = excluded.due, record = excluded.record
    WHERE r.record IS NULL
    RETURNING version, fence, moment, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

const GIVE_BACK: &str =
    "UPDATE bare SET version = version + 1, record = NULL WHERE name = $1 AND version = $2 RETURNING version";

pub(super) struct Postgres(Arc<Session>);

struct Session {
    client: Client,
    take: Statement,
    give_back: Statement,
    /// Ends with it.
    _driver: JoinSet<()>,
}

#[derive(Clone)]
pub(super) struct Named {
    session: Arc<Session>,
    name: String,
}

impl Peer for Postgres {
    type Lock = Named;

    fn version() -> String {
        "tokio-postgres".to_owned()
    }

    async fn connect(ask: &Ask) -> Result<Self, String> {
        let (client, wire) = tokio_postgres::connect(&ask.url, NoTls).await.map_err(text)?;
        let mut driver = JoinSet::new();
        // A connection that broke shows as a statement that failed.
        driver.spawn(async move { drop(wire.await) });
        client.batch_execute(SETUP).await.map_err(text)?;
        let take = client.prepare(TAKE).await.map_err(text)?;
        let give_back = client.prepare(GIVE_BACK).await.map_err(text)?;
        Ok(Self(Arc::new(Session { client, take, give_back, _driver: driver })))
    }

    fn lock(&self, name: &str) -> Named {
        Named { session: self.0.clone(), name: name.to_owned() }
    }
}

impl Lock for Named {
    type Held = i64;

    async fn acquire(&self) -> Result<i64, String> {
        let Session { client, take, .. } = &*self.session;
        let row = client.query_one(take, &[&self.name, &record()]).await.map_err(text)?;
        row.try_get(0).map_err(text)
    }

    async fn release(&self, version: i64) -> Result<(), String> {
        let Session { client, give_back, .. } = &*self.session;
        client.query_one(give_back, &[&self.name, &version]).await.map(drop).map_err(text)
    }
}
