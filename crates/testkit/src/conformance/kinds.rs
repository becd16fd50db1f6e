//! One name, several kinds: every pair of them.
//!
//! A lock and a read-write lock of one name are one lock. A name in use as a semaphore or a latch is neither, and says
//! what it is in use as; so does a semaphore of another size. When the use ends, the name is free to become anything.

use leasehold_core::{Client, ErrorKind, Guard, Result};

use super::{
    Fixture,
    probe::{refusal, settled},
};

/// A way to use a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Lock,
    Read,
    Write,
    /// Two permits of three.
    Semaphore,
    /// One permit of seven.
    OtherSemaphore,
    Latch,
}

use Use::{Latch, Lock, OtherSemaphore, Read, Semaphore, Write};

/// What comes of a second use beside a first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    /// Both hold.
    Together,
    /// The second must wait.
    Busy,
    /// The second is refused, and told what the first is.
    Conflict(&'static str),
}

fn expected(first: Use, second: Use) -> Beside {
    match (first, second) {
        (Read, Read) | (OtherSemaphore, OtherSemaphore) | (Latch, Latch) => Beside::Together,
        (Lock | Read | Write, Lock | Read | Write) | (Semaphore, Semaphore) => Beside::Busy,
        (Lock | Read | Write, _) => Beside::Conflict("a lock"),
        (Semaphore, _) => Beside::Conflict("a semaphore of 3"),
        (OtherSemaphore, _) => Beside::Conflict("a semaphore of 7"),
        (Latch, _) => Beside::Conflict("a latch"),
    }
}

/// Begins a use; `None` if it must wait.
async fn begin(client: &Client, name: &str, how: Use) -> Result<Option<Option<Guard>>> {
    let lock = match how {
        Lock => client.lock(name),
        Read => client.rwlock(name).read(),
        Write => client.rwlock(name).write(),
        Semaphore => client.semaphore(name, 3).permits(2),
        OtherSemaphore => client.semaphore(name, 7).permits(1),
        Latch => return client.latch(name).arm(1).await.map(|_| Some(None)),
    };
    Ok(lock.try_acquire().await?.map(Some))
}

async fn end(client: &Client, name: &str, begun: Option<Guard>) {
    match begun {
        Some(guard) => guard.release().await.unwrap(),
        None => assert_eq!(client.latch(name).count_down().await.unwrap(), 0),
    }
}

async fn pair(fixture: &Fixture, first: Use, second: Use) {
    let (one, other, name) = (fixture.client().await, fixture.client().await, fixture.name("pair"));
    let begun = begin(&one, &name, first).await.unwrap().expect("nobody else is there");
    let pair = format!("{first:?} then {second:?}");
    let answer = begin(&other, &name, second).await;
    match expected(first, second) {
        Beside::Together if second == Latch => assert!(answer.unwrap().is_some(), "{pair}"),
        Beside::Together => end(&other, &name, answer.unwrap().expect(&pair)).await,
        Beside::Busy => assert!(answer.unwrap().is_none(), "{pair}"),
        Beside::Conflict(found) => {
            let error = refusal(answer);
            assert_eq!((error.kind(), error.name()), (ErrorKind::Conflict, Some(&*name)), "{pair}: {error}");
            assert!(error.to_string().contains(found), "{pair}: {error}");
        }
    }
    end(&one, &name, begun).await;
    let next =
        begin(&other, &name, second).await.unwrap().unwrap_or_else(|| panic!("{pair}: the name is not free"));
    end(&other, &name, next).await;
    settled(&one, &name).await;
    settled(&other, &name).await;
}

async fn pairs(fixture: &Fixture, uses: &[Use]) {
    for first in uses {
        for second in uses {
            pair(fixture, *first, *second).await;
        }
    }
}

/// Locks and read-write locks are one lock.
pub(super) async fn locks_and_read_write_locks_are_one(fixture: Fixture) {
    pairs(&fixture, &[Lock, Read, Write]).await;
}

/// Locks and semaphores exclude each other by kind, and semaphores of other sizes too.
pub(super) async fn locks_and_semaphores_conflict(fixture: Fixture) {
    pairs(&fixture, &[Lock, Read, Write, Semaphore, OtherSemaphore]).await;
}

/// Locks and latches exclude each other by kind.
pub(super) async fn locks_and_latches_conflict(fixture: Fixture) {
    pairs(&fixture, &[Lock, Read, Write, Latch]).await;
}

/// Semaphores and latches exclude each other by kind.
pub(super) async fn semaphores_and_latches_conflict(fixture: Fixture) {
    pairs(&fixture, &[Semaphore, OtherSemaphore, Latch]).await;
}

/// Whoever waits for one kind is not served by another: the conflict is told while it waits, too.
pub(super) async fn a_conflict_is_told_at_once_however_patient(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("patient"));
    other.latch(&name).arm(1).await.unwrap();
    for lock in [client.lock(&name), client.rwlock(&name).read(), client.lock(&name).wait("1h")] {
        assert_eq!(refusal(lock.acquire().await).kind(), ErrorKind::Conflict);
    }
    other.latch(&name).count_down().await.unwrap();
    let guard = other.lock(&name).acquire().await.unwrap();
    assert_eq!(refusal(client.latch(&name).wait().await).kind(), ErrorKind::Conflict);
    assert_eq!(refusal(client.latch(&name).count().await).kind(), ErrorKind::Conflict);
    guard.release().await.unwrap();
    settled(&client, &name).await;
}
