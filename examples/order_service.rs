//! A service that changes one order at a time, however many of it run, and a database that refuses who comes too late.
//!
//! ```sh
//! export DATABASE_URL=postgres://postgres@127.0.0.1/shop LEASEHOLD_STORE=$DATABASE_URL
//! cargo run -p leasehold-examples --bin order_service 127.0.0.1:8080      # and again with another port
//! curl -X POST http://127.0.0.1:8080/orders/42/add/5
//! ```
//!
//! The lock is held while a request is served. Whoever finds an order busy for two seconds gets 423 and reads who has it. A
//! lock alone cannot stop a process that was frozen just before it writes; the fence does: 409, and nothing is written.

use std::{env, error::Error, sync::Arc};

use axum::{
    Router,
    extract::{Path, State},
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use leasehold::{
    Client, FromEnv,
    tower::{Held, LockLayer, checks},
};
use tokio::{net::TcpListener, sync::Mutex};

/// One connection for all; a service with more to do has a pool here.
type Database = Arc<Mutex<tokio_postgres::Client>>;

const ORDERS: &str = "CREATE TABLE IF NOT EXISTS orders (id bigint PRIMARY KEY, total bigint NOT NULL)";
const TOTAL: &str = "SELECT total FROM orders WHERE id = $1";
const WRITE: &str =
    "INSERT INTO orders (id, total) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET total = $2";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (database, connection) =
        tokio_postgres::connect(&env::var("DATABASE_URL")?, tokio_postgres::NoTls).await?;
    let database = Arc::new(Mutex::new(database));
    tokio::select! {
        ended = serve(&database) => ended,
        lost = connection => Err(lost.err().map_or("the database has closed the connection".into(), Into::into)),
    }
}

async fn serve(database: &Database) -> Result<(), Box<dyn Error>> {
    let locks = Client::from_env().await?;
    // Two who create one table at the same moment would be in each other's way.
    let tables = format!("{ORDERS}; {}", checks::postgres::TABLE);
    let create = async |_: &_| Ok::<_, Box<dyn Error>>(database.lock().await.batch_execute(&tables).await?);
    locks.lock("orders:tables").scope(create).await?;

    let one_at_a_time = LockLayer::checked(&locks, name_of_order).wait("2s").max_hold("30s");
    let app = Router::new()
        .route("/orders/{id}/add/{amount}", post(add).layer(one_at_a_time))
        .route("/orders/{id}", get(total))
        .with_state(database.clone());
    let listener = TcpListener::bind(env::args().nth(1).as_deref().unwrap_or("127.0.0.1:8080")).await?;
    println!("listening on {}", listener.local_addr()?);
    let pressed = async { drop(tokio::signal::ctrl_c().await) };
    axum::serve(listener, app).with_graceful_shutdown(pressed).await?;
    let farewell = locks.shutdown("5s").await?;
    println!("ends; cut off: {:?}", farewell.interrupted);
    Ok(())
}

/// The number, not the text: `42` and `042` are one order, and must be one lock; `%34%32` is refused.
fn name_of_order(request: &Parts) -> Result<Option<String>, &'static str> {
    let id = request.uri.path().split('/').nth(2).and_then(|id| id.parse::<i64>().ok());
    Ok(Some(format!("order:{}", id.ok_or("the id of an order is a number, written in digits")?)))
}

/// Reads, reckons, writes: all in one transaction that begins with the check of the fence.
async fn add(
    held: Held,
    State(database): State<Database>,
    Path((id, amount)): Path<(i64, i64)>,
) -> Result<String, Refusal> {
    let fence = held.fence().cast_signed();
    let mut database = database.lock().await;
    let transaction = database.transaction().await?;
    let passed = transaction.execute(checks::postgres::PASS, &[&held.name(), &fence]).await?;
    if passed == 0 {
        return Err(Refusal(StatusCode::CONFLICT, format!("fence {fence} is stale: a later one was here\n")));
    }
    let before: i64 = transaction.query_opt(TOTAL, &[&id]).await?.map_or(0, |row| row.get(0));
    let total = before.saturating_add(amount);
    transaction.execute(WRITE, &[&id, &total]).await?;
    transaction.commit().await?;
    println!("order {id}: {before} + {amount} = {total}, with fence {fence}");
    Ok(format!("{total}\n"))
}

async fn total(State(database): State<Database>, Path(id): Path<i64>) -> Result<String, Refusal> {
    let row = database.lock().await.query_opt(TOTAL, &[&id]).await?;
    Ok(format!("{}\n", row.map_or(0, |row| row.get::<_, i64>(0))))
}

/// What is answered when an order is not changed.
struct Refusal(StatusCode, String);

impl From<tokio_postgres::Error> for Refusal {
    fn from(error: tokio_postgres::Error) -> Self {
        println!("the database: {error}");
        Self(StatusCode::INTERNAL_SERVER_ERROR, "the database does not serve us now\n".to_owned())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}
