//! One connection, and what a text of several statements is answered with.

use std::time::Duration;

use mysql_async::{Conn, Opts, Row, prelude::Queryable};
use tokio::time::timeout;

use super::error::{ends_connection, failed, not_connected, not_connected_in_time, unfinished};
use crate::server::{Tried, pool::Pooled};

/// A connection, and whether it can be trusted to be in step.
pub(super) struct Connection {
    client: Conn,
    broken: bool,
}

/// The answer to one statement.
#[derive(Debug, Default)]
pub(super) struct Answered {
    /// Rows changed; two for one that was there before an upsert.
    pub(super) affected: u64,
    /// Rows shown.
    pub(super) rows: Vec<Row>,
}

impl Connection {
    pub(super) async fn connect(options: Opts, patience: Duration) -> Tried<Self> {
        let connected = timeout(patience, Conn::new(options)).await.map_err(|_| not_connected_in_time())?;
        let client = connected.map_err(|error| not_connected(&error))?;
        Ok(Self { client, broken: false })
    }

    /// It is of no more use.
    pub(super) fn close(&mut self) {
        self.broken = true;
    }

    /// Sends statements in one go, each a transaction of its own, and reads all their answers.
    pub(super) async fn ask(&mut self, statements: &str) -> Tried<Vec<Answered>> {
        // Until all is read it is out of step, and stays so should we be dropped.
        self.broken = true;
        let mut answers = Vec::new();
        let asked = read(&mut self.client, statements, &mut answers).await;
        match asked {
            Ok(()) => {
                self.broken = false;
                Ok(answers)
            }
            Err(error) => {
                self.broken = ends_connection(&error);
                Err(if answers.is_empty() { failed(&error) } else { unfinished(&error) })
            }
        }
    }
}

async fn read(client: &mut Conn, statements: &str, answers: &mut Vec<Answered>) -> mysql_async::Result<()> {
    let mut result = client.query_iter(statements).await?;
    loop {
        let affected = result.affected_rows();
        let rows = result.collect::<Row>().await;
        // The first statement is done once we get here, whatever becomes of the next.
        answers.push(Answered { affected, rows: Vec::new() });
        if let Some(answer) = answers.last_mut() {
            answer.rows = rows?;
        }
        if result.is_empty() {
            return Ok(());
        }
    }
}

impl Pooled for Connection {
    fn is_alive(&self) -> bool {
        !self.broken
    }
}
