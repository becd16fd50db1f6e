//! A limit for a run that must not take long: when it is over, it says what was still going on, and the program ends.
//!
//! Servers and workers end with the program. What a run had found by then was said when it was found.

use std::{
    process::exit,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

/// A limit that is kept while this lives.
#[derive(Clone, Debug)]
pub struct Limit {
    at_work: Arc<Mutex<Vec<&'static str>>>,
    /// Dropped with the last of us: then there is nothing to wait for.
    _over: Option<mpsc::Sender<()>>,
}

impl Limit {
    /// None at all.
    pub fn none() -> Self {
        Self { at_work: Arc::default(), _over: None }
    }

    /// Ends the program after this time, unless it is dropped before. `say` is told why.
    pub fn of(time: Duration, say: fn(&str)) -> Self {
        let (over, ended) = mpsc::channel();
        let at_work = Arc::<Mutex<Vec<_>>>::default();
        let seen = at_work.clone();
        thread::spawn(move || {
            if ended.recv_timeout(time) == Err(mpsc::RecvTimeoutError::Timeout) {
                say(&message(time, &seen.lock().unwrap_or_else(PoisonError::into_inner)));
                exit(1);
            }
        });
        Self { at_work, _over: Some(over) }
    }

    /// Does something that is named if it takes too long.
    pub fn during<T>(&self, name: &'static str, work: impl FnOnce() -> T) -> T {
        self.change(|at_work| at_work.push(name));
        let done = work();
        self.change(|at_work| at_work.retain(|other| *other != name));
        done
    }

    fn change(&self, change: impl FnOnce(&mut Vec<&'static str>)) {
        change(&mut self.at_work.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn message(time: Duration, at_work: &[&str]) -> String {
    let stores = if at_work.is_empty() { "nothing".to_owned() } else { at_work.join(", ") };
    format!(
        "the run has not ended within its {} minutes; still going on: {stores}; either this machine is too busy for it, or \
         something hangs: try `cargo xtask reliability --short --store {}` alone",
        time.as_secs() / 60,
        at_work.first().unwrap_or(&"NAME")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_at_work_is_named_until_it_is_done() {
        let limit = Limit::none();
        let seen = limit.during("etcd", || limit.at_work.lock().unwrap().clone());
        assert_eq!(seen, ["etcd"]);
        assert!(limit.at_work.lock().unwrap().is_empty());
        let words = message(Duration::from_secs(600), &seen);
        assert!(words.contains("within its 10 minutes") && words.contains("--store etcd"), "{words}");
    }
}
