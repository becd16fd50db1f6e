//! MariaDB and MySQL. Real processes; see [`servers`](super).
//!
//! Root needs no password, and nobody waits for the disk: a crash of the process loses nothing all the same.

use std::{
    fs,
    io::{self, Read},
    net::{SocketAddr, TcpStream},
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};

use super::{Recipe, Server, StartError, humble};

/// How long it may take to greet.
const ANSWER: Duration = Duration::from_millis(500);

/// MySQL makes its root for the socket alone.
const LOOPBACK: &str = "CREATE USER IF NOT EXISTS root@'127.0.0.1';
GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
";

/// Whose server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Brand {
    /// `mariadbd`: what Debian and Ubuntu have.
    MariaDb,
    /// `mysqld`, of MySQL itself: the program that [`Brand::MYSQL`] names, else the one on the path.
    MySql,
}

impl Brand {
    /// The variable that names MySQL's program.
    pub const MYSQL: &str = "LEASEHOLD_MYSQLD";

    /// The one to test with: MySQL if its program is named, else MariaDB.
    pub fn to_test() -> Self {
        if std::env::var_os(Self::MYSQL).is_some() { Self::MySql } else { Self::MariaDb }
    }

    fn package(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadb-server-core",
            Self::MySql => "mysql-server-core",
        }
    }

    fn program(self) -> Result<&'static str, StartError> {
        static MARIADB: OnceLock<&'static str> = OnceLock::new();
        static MYSQL: OnceLock<&'static str> = OnceLock::new();
        let (known, name) = match self {
            Self::MariaDb => (&MARIADB, "mariadbd"),
            Self::MySql => (&MYSQL, "mysqld"),
        };
        if let Some(program) = known.get() {
            return Ok(program);
        }
        let named = std::env::var_os(Self::MYSQL).map(PathBuf::from).filter(|_| self == Self::MySql);
        let found = match named {
            Some(named) => named,
            None => humble::find(name, self.package(), &[])?,
        };
        Ok(known.get_or_init(|| humble::forever(&found)))
    }

    fn prepare(self, folder: &Path) -> Result<(), StartError> {
        humble::give(folder)?;
        let data = format!("--datadir={}", folder.join("data").display());
        match self {
            Self::MariaDb => {
                let install = humble::find("mariadb-install-db", self.package(), &[])?;
                let words = [
                    "--no-defaults",
                    &data,
                    "--auth-root-authentication-method=normal",
                    "--skip-test-db",
                    "--innodb-log-file-size=10M",
                ];
                humble::run(&install, &words, folder)
            }
            Self::MySql => {
                let words = ["--no-defaults", "--initialize-insecure", &data, "--secure-file-priv=NULL"];
                humble::run(Path::new(self.program()?), &words, folder)?;
                Ok(fs::write(folder.join("init.sql"), LOOPBACK)?)
            }
        }
    }
}

/// One MariaDB or MySQL. Its superuser is `root`, who needs no password.
#[derive(Debug)]
pub struct MySql(Server);

impl MySql {
    /// Starts a server.
    ///
    /// # Errors
    /// [`StartError`], with the end of the server's own log where there is one.
    pub fn start(brand: Brand) -> Result<Self, StartError> {
        let (program, package) = (humble::program(brand.program()?), brand.package());
        let arguments = match brand {
            Brand::MariaDb => mariadb,
            Brand::MySql => mysql,
        };
        let recipe = Recipe { program, package, arguments, answers };
        Server::start_prepared(recipe, |_, folder| brand.prepare(folder)).map(Self)
    }

    /// The URL of a database of its superuser; `mysql`, which every server has, for those that will be created.
    pub fn url(&self, database: &str) -> String {
        format!("mysql://root@{}/{database}", self.address())
    }
}

impl Deref for MySql {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

impl DerefMut for MySql {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.0
    }
}

fn mariadb(port: u16, folder: &Path) -> Vec<String> {
    let mut own = common(port, folder);
    own.extend(["--performance-schema=OFF", "--innodb-log-file-size=10M"].map(str::to_owned));
    humble::arguments(Brand::MariaDb.program().unwrap_or("mariadbd"), own)
}

fn mysql(port: u16, folder: &Path) -> Vec<String> {
    let mut own = common(port, folder);
    own.extend(["--secure-file-priv=NULL", "--mysqlx=OFF"].map(str::to_owned));
    own.push(format!("--init-file={}", folder.join("init.sql").display()));
    humble::arguments(Brand::MySql.program().unwrap_or("mysqld"), own)
}

fn common(port: u16, folder: &Path) -> Vec<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    vec![
        "--no-defaults".to_owned(),
        format!("--datadir={}", path("data")),
        format!("--port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--socket={}", path("s.sock")),
        format!("--pid-file={}", path("pid")),
        format!("--tmpdir={}", folder.display()),
        "--skip-log-bin".to_owned(),
        "--innodb-flush-log-at-trx-commit=2".to_owned(),
        "--innodb-buffer-pool-size=32M".to_owned(),
        "--skip-name-resolve".to_owned(),
        "--max-connections=600".to_owned(),
    ]
}

/// Whether it greets with its version.
fn answers(address: SocketAddr) -> bool {
    greets(address).unwrap_or(false)
}

fn greets(address: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    Ok(head[4] == 10)
}
