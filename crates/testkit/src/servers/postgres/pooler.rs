//! PgBouncer before a PostgreSQL, lending connections for one transaction at a time.

use std::{
    fs,
    net::SocketAddr,
    ops::{Deref, DerefMut},
    path::Path,
};

use super::{Postgres, says_welcome};
use crate::servers::{Recipe, Server, StartError, humble};

const PACKAGE: &str = "pgbouncer";

/// One PgBouncer.
#[derive(Debug)]
pub struct Pooler(Server);

impl Pooler {
    /// Starts a pooler in transaction mode before this server.
    ///
    /// # Errors
    /// [`StartError`], with the end of its own log where there is one.
    pub fn start(server: &Postgres) -> Result<Self, StartError> {
        Self::start_sized(server, 8)
    }

    /// The same with so many sessions to lend for each database.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_sized(server: &Postgres, sessions: usize) -> Result<Self, StartError> {
        let program = humble::forever(&humble::find("pgbouncer", PACKAGE, &[])?);
        let recipe = Recipe { program: humble::program(program), package: PACKAGE, arguments, answers };
        let behind = server.port();
        Server::start_prepared(recipe, |port, folder| {
            humble::give(folder)?;
            let settings = format!(
                "[databases]\n* = host=127.0.0.1 port={behind} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
                 listen_port = {port}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = {sessions}\n\
                 max_client_conn = 1000\nunix_socket_dir =\nignore_startup_parameters = extra_float_digits\n\
                 server_login_retry = 1\n"
            );
            fs::write(folder.join("pgbouncer.ini"), settings)?;
            Ok(())
        })
        .map(Self)
    }

    /// The URL of a database through it.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@{}/{database}", self.address())
    }
}

impl Deref for Pooler {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

impl DerefMut for Pooler {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.0
    }
}

fn arguments(_port: u16, folder: &Path) -> Vec<String> {
    let program = humble::find("pgbouncer", PACKAGE, &[]).map(|path| path.display().to_string());
    let settings = folder.join("pgbouncer.ini").display().to_string();
    humble::arguments(&program.unwrap_or_else(|_| "pgbouncer".to_owned()), vec![settings])
}

fn answers(address: SocketAddr) -> bool {
    says_welcome(address, b"user\0postgres\0database\0postgres\0\0").unwrap_or(false)
}
