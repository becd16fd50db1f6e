//! From a URL to a client: the table of stores.

use std::time::Duration;

use leasehold_core::{Client, ClientBuilder, Key, Operation, Result, Who, backend::Memory};

use crate::url::{StoreUrl, config};

/// What a program may say about its clients besides the URL.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// What goes before every name; a `prefix` in the URL wins.
    pub prefix: Option<String>,
    /// The lease of locks that do not say; a `ttl` in the URL wins.
    pub ttl: Option<Duration>,
    /// Who we are to others; this process, unless said.
    pub who: Option<Who>,
    /// How many claims may wait at a time; see [`ClientBuilder::max_waiting`].
    pub max_waiting: Option<usize>,
}

/// Opens the store at this URL.
///
/// | URL | store |
/// |---|---|
/// | `memory:` | this process |
/// | `sqlite:PATH` | a file on this machine, for many processes (feature `sqlite`) |
/// | `postgres://HOST/DATABASE` | a PostgreSQL (feature `postgres`) |
/// | `mysql://HOST/DATABASE`, `mariadb://HOST/DATABASE` | a MySQL or MariaDB (feature `mysql`) |
/// | `redis://HOST`, `rediss://HOST`, `redis+unix:///SOCKET` | one Redis or Valkey (feature `redis`) |
/// | `redis+sentinel://HOST,HOST,HOST/NAME` | the primary that these sentinels watch under this name |
/// | `redis+replicas://HOST,HOST` | whichever of these is the primary |
/// | `redis+cluster://HOST,HOST` | the cluster that these are part of |
/// | `redlock+redis://HOST,HOST,HOST,HOST,HOST` | most of these, which know nothing of each other |
/// | `etcd://HOST,HOST,HOST`, `etcds://HOST` | etcd, by its members (feature `etcd`) |
/// | `zookeeper://USER:PASSWORD@HOST,HOST,HOST/CHROOT` | the ensemble that these are part of (feature `zookeeper`) |
/// | `mongodb://HOST,HOST/DATABASE`, `mongodb+srv://NAME/DATABASE` | a MongoDB, alone or as a replica set (feature `mongodb`) |
/// | `memcached://HOST` | one memcached, best effort (feature `memcached`) |
///
/// Options after a `?`: `prefix` goes before every name and ends with its only colon, as `shop:` does; `ttl` is the
/// lease of locks that do not say; SQLite knows `busy_timeout` besides, Redis `db`, `username`, `command_timeout`,
/// `connect_timeout`, `tls_ca`, `layout`, `wait_replicas`, `replica_timeout`, `sentinel_username` and
/// `sentinel_password`, ZooKeeper `session_timeout`, `command_timeout` and `connect_timeout`, etcd `username`,
/// `command_timeout`, `connect_timeout` and `tls_ca`, PostgreSQL and MySQL `command_timeout`, `connect_timeout`,
/// `connections`, `sslmode` and `tls_ca`, and PostgreSQL `listen`, MongoDB `collection`, `command_timeout` and all that
/// its driver knows, memcached `command_timeout` and `connect_timeout`.
///
/// # Errors
/// `Config` if the URL makes no sense, `Unsupported` if this build has no such store, and whatever opening the
/// store brings. No error repeats the URL: it may carry a password.
///
/// # Cancel safety
/// Nothing stays behind if it is dropped.
pub async fn connect(url: &str) -> Result<Client> {
    connect_with(url, Settings::default()).await
}

/// As [`connect`], with what the program says about itself.
///
/// # Cancel safety
/// Nothing stays behind if it is dropped.
pub async fn connect_with(url: &str, settings: Settings) -> Result<Client> {
    let mut url = StoreUrl::parse(url)?;
    let prefix: Option<String> = url.take("prefix").map(Into::into).or(settings.prefix);
    Key::beginning(prefix.as_deref().unwrap_or(""), "").map_err(|error| error.during(Operation::Connect))?;
    let ttl = url.take_duration("ttl")?.or(settings.ttl);
    // Apart: it has room for the handshakes of every store, and is awaited once.
    let mut builder = Box::pin(open(&mut url)).await?;
    if let Some(prefix) = prefix {
        builder = builder.prefix(&prefix);
    }
    if let Some(ttl) = ttl {
        builder = builder.ttl(ttl);
    }
    if let Some(claims) = settings.max_waiting {
        builder = builder.max_waiting(claims);
    }
    if let Some(who) = settings.who {
        builder = builder.who(who);
    }
    Ok(builder.build())
}

async fn open(url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    match url.scheme {
        "memory" => {
            url.finish(&["prefix", "ttl"])?;
            Ok(Client::builder(Memory::new()))
        }
        "sqlite" => open_sqlite(url).await,
        "postgres" | "postgresql" => open_postgres(url).await,
        "mysql" | "mariadb" => open_mysql(url).await,
        scheme if scheme == "redis+unix" || is_redis(scheme) => open_redis(url).await,
        "redlock+redis" | "redlock+rediss" => open_redlock(url).await,
        "etcd" | "etcds" => open_etcd(url).await,
        "zookeeper" => open_zookeeper(url).await,
        "mongodb" | "mongodb+srv" => open_mongodb(url).await,
        "memcached" => open_memcached(url).await,
        other => Err(config(format!(
            "no store is called {other:?}; there are memory:, sqlite:PATH, postgres://HOST/DATABASE, \
             mysql://HOST/DATABASE, redis://HOST, redis+sentinel://, redis+replicas://, redis+cluster://, \
             redlock+redis://, zookeeper://HOST, etcd://HOST, mongodb://HOST and memcached://HOST"
        ))),
    }
}

/// `redis`, and `rediss` for TLS, alone or with the word for how several servers belong together.
fn is_redis(scheme: &str) -> bool {
    let (family, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
    matches!(family, "redis" | "rediss") && matches!(kind, "" | "sentinel" | "replicas" | "cluster")
}

#[cfg(feature = "sqlite")]
async fn open_sqlite(url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    let busy_timeout = url.take_duration("busy_timeout")?;
    url.finish(&["prefix", "ttl", "busy_timeout"])?;
    if url.rest.is_empty() {
        return Err(config("a SQLite store needs a file; write it like sqlite:locks.db"));
    }
    let mut sqlite = leasehold_sql::SqliteConfig::new(url.rest);
    if let Some(busy_timeout) = busy_timeout {
        sqlite = sqlite.with_busy_timeout(busy_timeout);
    }
    Ok(Client::builder(leasehold_sql::Sqlite::open(sqlite).await?))
}

#[cfg(feature = "postgres")]
async fn open_postgres(url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    let postgres = leasehold_sql::PostgresConfig::from_url(url.whole)?;
    Ok(Client::builder(leasehold_sql::Postgres::open(postgres).await?))
}

#[cfg(feature = "mysql")]
async fn open_mysql(url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    let mysql = leasehold_sql::MySqlConfig::from_url(url.whole)?;
    Ok(Client::builder(leasehold_sql::MySql::open(mysql).await?))
}

#[cfg(feature = "redis")]
async fn open_redis(url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    let redis = leasehold_redis::RedisConfig::from_url(url.whole)?;
    Ok(Client::builder(leasehold_redis::Redis::open(redis).await?))
}

#[cfg(feature = "redis")]
async fn open_redlock(url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    Ok(Client::builder(leasehold_redis::redlock(url.whole).await?))
}

#[cfg(feature = "zookeeper")]
async fn open_zookeeper(url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    let zookeeper = leasehold_zookeeper::ZooKeeperConfig::from_url(url.whole)?;
    Ok(Client::builder(leasehold_zookeeper::ZooKeeper::open(zookeeper).await?))
}

#[cfg(not(feature = "zookeeper"))]
#[expect(clippy::unused_async, reason = "the same shape with and without the store")]
async fn open_zookeeper(_url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    Err(left_out("ZooKeeper", "zookeeper"))
}

#[cfg(feature = "etcd")]
async fn open_etcd(url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    let etcd = leasehold_etcd::EtcdConfig::from_url(url.whole)?;
    Ok(Client::builder(leasehold_etcd::Etcd::open(etcd).await?))
}

#[cfg(not(feature = "etcd"))]
#[expect(clippy::unused_async, reason = "the same shape with and without the store")]
async fn open_etcd(_url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    Err(left_out("etcd", "etcd"))
}

#[cfg(feature = "mongodb")]
async fn open_mongodb(url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    let mongodb = leasehold_mongodb::MongodbConfig::from_url(url.whole)?;
    Ok(Client::builder(leasehold_mongodb::Mongodb::open(mongodb).await?))
}

#[cfg(feature = "memcached")]
async fn open_memcached(url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    let memcached = leasehold_memcached::MemcachedConfig::from_url(url.whole)?;
    Ok(Client::builder(leasehold_memcached::Memcached::open(memcached).await?))
}

#[cfg(not(feature = "sqlite"))]
#[expect(clippy::unused_async, reason = "the same shape with and without the store")]
async fn open_sqlite(_url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    Err(left_out("SQLite", "sqlite"))
}

#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "the same shape with and without the store")]
async fn open_postgres(_url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    Err(left_out("PostgreSQL", "postgres"))
}

#[cfg(not(feature = "mysql"))]
#[expect(clippy::unused_async, reason = "the same shape with and without the store")]
async fn open_mysql(_url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    Err(left_out("MySQL", "mysql"))
}

#[cfg(not(feature = "redis"))]
#[expect(clippy::unused_async, reason = "the same shape with and without the store")]
async fn open_redis(_url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    Err(left_out("Redis", "redis"))
}

#[cfg(not(feature = "redis"))]
#[expect(clippy::unused_async, reason = "the same shape with and without the store")]
async fn open_redlock(_url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    Err(left_out("Redis", "redis"))
}

#[cfg(not(feature = "mongodb"))]
#[expect(clippy::unused_async, reason = "the same shape with and without the store")]
async fn open_mongodb(_url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    Err(left_out("MongoDB", "mongodb"))
}

#[cfg(not(feature = "memcached"))]
#[expect(clippy::unused_async, reason = "the same shape with and without the store")]
async fn open_memcached(_url: &mut StoreUrl<'_>) -> Result<ClientBuilder> {
    Err(left_out("memcached", "memcached"))
}

#[cfg(not(all(
    feature = "sqlite",
    feature = "postgres",
    feature = "mysql",
    feature = "redis",
    feature = "zookeeper",
    feature = "etcd",
    feature = "mongodb",
    feature = "memcached"
)))]
fn left_out(store: &str, feature: &str) -> leasehold_core::Error {
    use leasehold_core::{Error, ErrorKind, Operation};
    let message = format!("this build has no {store}; build it with the feature `{feature}`");
    Error::new(ErrorKind::Unsupported, Operation::Connect, message)
}
