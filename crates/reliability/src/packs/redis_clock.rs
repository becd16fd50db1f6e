//! One Redis whose clock is set forward and back. Leases end by the server's clock, so a step forward ends them early:
//! this row shows what that costs. Nobody compares that clock with another, so a step back only makes leases longer.
//!
//! The clock is moved by a library that is preloaded into the server alone, and compiled here: it takes a C compiler.

use std::{
    io,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use leasehold_testkit::servers::{
    StartError,
    redis::{Keeps, Redis, Setup},
};
use tempfile::TempDir;

use super::{Pack, redis_single};
use crate::{clock::rest, dice::Dice};

const FORWARD: &str = "clock set forward";
const BACK: &str = "clock set back";

struct Skewed {
    redis: Redis,
    folder: TempDir,
}

pub(super) fn start() -> Result<Box<dyn Pack>, StartError> {
    let folder = TempDir::with_prefix("leasehold-clock-")?;
    set(folder.path(), 0)?;
    compile(folder.path())?;
    let setup = Setup::new().with_keeps(Keeps::EveryWrite);
    let setup = setup.with_variable("SKEW_FILE", folder.path().join("skew"));
    let redis = Redis::start_as(&setup.with_variable("LD_PRELOAD", folder.path().join("clock.so")))?;
    Ok(Box::new(Skewed { redis, folder }))
}

impl Pack for Skewed {
    fn url(&self) -> String {
        self.redis.url()
    }

    fn version(&self) -> String {
        redis_single::version(&self.redis)
    }

    fn faults(&self) -> &'static [&'static str] {
        &[FORWARD, BACK]
    }

    /// Wrong by up to two leases for a while, and then right again.
    fn inflict(&mut self, fault: &str, lease: Duration, dice: &mut Dice) -> io::Result<()> {
        let step = i64::try_from(dice.between(lease / 4, lease * 2).as_millis()).unwrap_or(0);
        set(self.folder.path(), if fault == FORWARD { step } else { -step })?;
        rest(dice.between(Duration::ZERO, lease));
        set(self.folder.path(), 0)
    }

    fn leftovers(&self, killed: &[String]) -> io::Result<Vec<String>> {
        redis_single::leftovers(&self.redis, killed)
    }
}

/// Always as many bytes, so that no reader sees half of it.
fn set(folder: &Path, milliseconds: i64) -> io::Result<()> {
    use std::os::unix::fs::FileExt as _;
    let file = std::fs::File::options().create(true).write(true).truncate(false).open(folder.join("skew"))?;
    file.write_all_at(format!("{milliseconds:+019}\n").as_bytes(), 0)
}

fn compile(folder: &Path) -> Result<(), StartError> {
    let source = folder.join("clock.c");
    std::fs::write(&source, include_str!("redis_clock.c"))?;
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(folder.join("clock.so")).arg(source);
    let status = compiler.stdin(Stdio::null()).status();
    let missing = |_| StartError::NotInstalled { program: "cc".to_owned(), package: "gcc" };
    if status.map_err(missing)?.success() {
        return Ok(());
    }
    Err(StartError::System(io::Error::other("the clock does not compile: see what the compiler says")))
}
