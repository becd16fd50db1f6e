//! Synchronous functions: the same attribute on the blocking front.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use leasehold::{Client, Error, ErrorKind, backend::BreakOutcome, blocking, locked};

use super::LONG;

/// Runs each test on each store.
fn on_each_store(test: impl Fn(blocking::Client)) {
    test(blocking::connect("memory:").unwrap());
    #[cfg(feature = "redis")]
    {
        use leasehold_testkit::servers::{redis::Redis, start_or_skip};
        let Some(server) = start_or_skip(Redis::start) else { return };
        test(blocking::connect(&server.url()).unwrap());
    }
}

fn is_held(locks: &blocking::Client, name: &str) -> bool {
    locks.inspect(name).unwrap().is_some_and(|state| !state.holders.is_empty())
}

struct Shop {
    locks: blocking::Client,
}

impl Shop {
    #[locked(client = self.locks, key = "order:{id}", wait = LONG)]
    fn ship(&self, id: u32, text: &str) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
        assert!(is_held(&self.locks, &format!("order:{id}")));
        if text.is_empty() {
            return Ok(0);
        }
        Ok(text.parse::<u32>()?)
    }

    #[locked(client = self.locks, key = "order:{id}", wait = LONG)]
    fn panics(&self, id: u32) -> Result<(), Error> {
        panic!("in the body of {id}")
    }

    #[locked(client = self.locks, key = "order:{id}", on_busy = skip)]
    fn skips<'a>(&self, id: u32, text: &'a mut String) -> Result<Option<&'a str>, Error> {
        text.push('!');
        Ok(Some(text))
    }

    #[locked(client = self.locks, key = "order:{id}", on_busy = call(when_busy))]
    fn calls(&self, id: u32) -> Result<&'static str, Error> {
        Ok("done")
    }

    #[locked(client = self.locks, key = "order:{id}", reentrant)]
    fn nests(&self, id: u32, deep: u32) -> Result<u64, Error> {
        if deep > 0 { self.nests(id, deep - 1) } else { Ok(leasehold::held().unwrap().fence()) }
    }

    #[locked(client = self.locks, key = "order:{id}", ttl = "900ms")]
    fn loses(&self, id: u32) -> Result<(), Error> {
        self.lose(id)
    }

    #[locked(client = self.locks, key = "order:{id}", ttl = "900ms", on_lost = finish)]
    fn loses_and_finishes(&self, id: u32) -> Result<(), Error> {
        self.lose(id)
    }

    /// Breaks the lock and waits until it is known to be lost.
    fn lose(&self, id: u32) -> Result<(), Error> {
        let name = format!("order:{id}");
        let holder = self.locks.inspect(&name)?.unwrap().holders[0].id;
        assert_eq!(self.locks.break_hold(&name, holder, "test")?, BreakOutcome::Broken);
        let held = leasehold::held().unwrap();
        while held.check().is_ok() {
            thread::yield_now();
        }
        Ok(())
    }
}

fn when_busy(error: Error) -> Result<&'static str, Error> {
    if error.kind() == ErrorKind::Busy { Ok("not now") } else { Err(error) }
}

#[test]
fn however_a_body_ends_its_lock_is_released() {
    on_each_store(|locks| {
        let shop = Shop { locks };
        assert_eq!(shop.ship(1, "").unwrap(), 0);
        assert_eq!(shop.ship(1, "7").unwrap(), 7);
        assert!(shop.ship(1, "none").is_err());
        assert!(!is_held(&shop.locks, "order:1"));
        assert!(catch_unwind(AssertUnwindSafe(|| shop.panics(1))).is_err());
        assert_eq!(shop.ship(1, "7").unwrap(), 7);
    });
}

#[test]
fn a_busy_lock_is_left_alone() {
    on_each_store(|locks| {
        let shop = Shop { locks };
        let mut text = "text".to_owned();
        let guard = shop.locks.lock("order:1").acquire().unwrap();
        assert_eq!(shop.skips(1, &mut text).unwrap(), None);
        assert_eq!(shop.calls(1).unwrap(), "not now");
        guard.release().unwrap();
        assert_eq!(shop.skips(1, &mut text).unwrap(), Some("text!"));
        assert_eq!(shop.calls(1).unwrap(), "done");
    });
}

#[test]
fn a_function_enters_what_the_one_around_it_holds() {
    on_each_store(|locks| {
        let shop = Shop { locks };
        let fence = shop.nests(1, 3).unwrap();
        assert!(shop.nests(1, 0).unwrap() > fence);
        assert!(!is_held(&shop.locks, "order:1"));
    });
}

#[test]
fn a_loss_is_an_error_unless_it_does_not_matter() {
    on_each_store(|locks| {
        let shop = Shop { locks };
        assert_eq!(shop.loses(1).unwrap_err().kind(), ErrorKind::Lost);
        shop.loses_and_finishes(1).unwrap();
    });
}

#[test]
fn threads_take_turns() {
    on_each_store(|locks| {
        let inside = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| alone(&locks, &inside).unwrap());
            }
        });
        assert_eq!(inside.load(Ordering::SeqCst), 0);
    });
}

#[locked(client = locks, key = "a")]
fn alone(locks: &blocking::Client, inside: &AtomicU32) -> Result<(), Error> {
    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
    thread::yield_now();
    inside.fetch_sub(1, Ordering::SeqCst);
    Ok(())
}

#[locked(client = locks, key = "a")]
fn with_the_async_client(locks: &Client) -> Result<u64, Error> {
    Ok(leasehold::held().unwrap().fence())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_asynchronous_client_serves_a_synchronous_function() {
    let locks = leasehold::connect("memory:").await.unwrap();
    assert_eq!(with_the_async_client(&locks).unwrap(), 1);
}

#[tokio::test]
async fn a_client_that_would_wait_for_its_own_thread_is_refused() {
    let locks = leasehold::connect("memory:").await.unwrap();
    assert_eq!(with_the_async_client(&locks).unwrap_err().kind(), ErrorKind::WouldDeadlock);
}
