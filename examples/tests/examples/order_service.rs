//! The order service, twice, on one PostgreSQL.

use std::{
    io::{Read, Write},
    net::TcpStream,
    process::Command,
    sync::Arc,
    thread,
};

use leasehold::tower::checks;
use leasehold_testkit::servers::{Shared, postgres::Postgres};

use crate::running::{Running, Stage};

const CLIENTS: usize = 8;
const ADDED_BY_EACH: usize = 5;

/// The tests use different orders.
static POSTGRES: Shared<Postgres> = Shared::new();

/// Where one of the services listens.
struct Address(String);

#[test]
fn the_total_is_exact_when_many_add_to_one_order_through_two_services() {
    let Some(postgres) = POSTGRES.get_or_skip(Postgres::start) else { return };
    let (services, addresses): (Vec<Running>, Vec<Address>) =
        [start(&postgres), start(&postgres)].into_iter().unzip();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let service = &addresses[client % 2];
            scope.spawn(move || (0..ADDED_BY_EACH).for_each(|_| service.add_until_done("/orders/1/add/3")));
        }
    });
    let exact = (3 * CLIENTS * ADDED_BY_EACH).to_string();
    for service in &addresses {
        assert_eq!(service.ask("GET", "/orders/1").1.lines().last(), Some(&*exact));
    }
    services.into_iter().for_each(Running::interrupt);
}

#[test]
fn an_order_that_is_busy_is_answered_with_423_and_who_has_it() {
    let Some(postgres) = POSTGRES.get_or_skip(Postgres::start) else { return };
    let (_running, service) = start(&postgres);
    let locks = leasehold::blocking::connect(&postgres.url("postgres")).unwrap();
    let guard = locks.lock("order:2").label("reprice").acquire().unwrap();
    // The same order, however its number is written.
    let (status, answer) = service.ask("POST", "/orders/002/add/1");
    assert_eq!(status, 423, "{answer}");
    assert!(answer.to_lowercase().contains("retry-after: 1") && answer.contains("reprice"), "{answer}");
    assert_eq!(service.ask("POST", "/orders/%32/add/1").0, 400);
    guard.release().unwrap();
    assert_eq!(service.ask("POST", "/orders/2/add/1").0, 200);
}

#[test]
fn a_stale_fence_is_refused_by_the_database_and_nothing_is_written() {
    let Some(postgres) = POSTGRES.get_or_skip(Postgres::start) else { return };
    let (_running, service) = start(&postgres);
    assert_eq!(service.ask("POST", "/orders/3/add/5").0, 200);
    later_holder_writes(&postgres, "order:3");
    let (status, answer) = service.ask("POST", "/orders/3/add/5");
    assert!(status == 409 && answer.contains("is stale"), "{status}: {answer}");
    assert_eq!(service.ask("GET", "/orders/3").1.lines().last(), Some("5"));
}

/// A holder whose fence is greater than any the service will have in this test.
fn later_holder_writes(postgres: &Postgres, order: &str) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (database, connection) =
            tokio_postgres::connect(&postgres.url("postgres"), tokio_postgres::NoTls).await.unwrap();
        runtime.spawn(connection);
        let passed = database.execute(checks::postgres::PASS, &[&order, &1_000_000_i64]).await.unwrap();
        assert_eq!(passed, 1);
    });
}

fn start(postgres: &Arc<Postgres>) -> (Running, Address) {
    let (mut stage, url) = (Stage::new(), postgres.url("postgres"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_order_service"));
    let running =
        stage.start(command.arg("127.0.0.1:0").env("DATABASE_URL", &url).env("LEASEHOLD_STORE", &url));
    (running, Address(stage.wait_for("listening on ")))
}

impl Address {
    /// As a client does that is told to come back later.
    fn add_until_done(&self, path: &str) {
        loop {
            match self.ask("POST", path) {
                (200, _) => return,
                (423, _) => {}
                (status, answer) => panic!("{status}: {answer}"),
            }
        }
    }

    /// The status, and the whole answer.
    fn ask(&self, method: &str, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.0).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }
}
