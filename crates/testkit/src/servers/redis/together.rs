//! Several servers at once: started side by side, and waited for until they agree.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use super::Redis;
use crate::servers::StartError;

/// How long servers may take to agree on anything. A failed election is repeated after seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts so many servers side by side.
pub(super) fn start(
    count: usize,
    one: impl Fn(usize) -> Result<Redis, StartError> + Sync,
) -> Result<Vec<Redis>, StartError> {
    let one = &one;
    thread::scope(|scope| {
        let starting: Vec<_> = (0..count).map(|index| scope.spawn(move || one(index))).collect();
        let started = starting.into_iter().map(|thread| match thread.join() {
            Ok(server) => server,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        // All are joined before the first error is returned, so that those that did start end here.
        started.collect::<Vec<_>>().into_iter().collect()
    })
}

/// Looks again and again until there is something to see.
///
/// # Errors
/// If there is not within a minute.
#[expect(clippy::disallowed_methods, reason = "servers are waited for where there may be no runtime")]
pub(super) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> io::Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return Ok(seen);
        }
        if Instant::now() > end {
            let message = format!("the servers did not come so far within a minute: {what}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// What kept servers that run from working together, with the ends of their logs.
pub(super) fn not_ready<'a>(error: &io::Error, servers: impl IntoIterator<Item = &'a Redis>) -> StartError {
    let logs = servers.into_iter().map(|server| format!("\n{}:\n{}", server.address(), server.log()));
    StartError::NotReady {
        program: "a topology of Redis".to_owned(),
        log: format!("{error}{}", logs.collect::<String>()),
    }
}
