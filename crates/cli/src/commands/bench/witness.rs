//! Who is inside: counts that would come out wrong if two held what only one may hold.
//!
//! Adding one is done in two steps with a pause between them, as programs do that need a lock for it. None of it is
//! atomic as a whole, so it is exact only if the lock is.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};

/// What one lock, read-write lock or semaphore guards.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    value: AtomicU64,
    entered: AtomicU64,
    fence: AtomicU64,
    writers: AtomicI64,
    readers: AtomicI64,
}

impl Witness {
    /// Adds one, alone if the lock is any good. Says what is wrong, if anything is.
    pub(crate) async fn add(&self, fence: u64) -> Result<(), String> {
        let inside = self.writers.fetch_add(1, SeqCst) + 1 + self.readers.load(SeqCst);
        let before = self.fence.swap(fence, SeqCst);
        let seen = self.value.load(SeqCst);
        tokio::task::yield_now().await;
        self.value.store(seen + 1, SeqCst);
        self.entered.fetch_add(1, SeqCst);
        self.writers.fetch_sub(1, SeqCst);
        match (inside, before < fence) {
            (1, true) => Ok(()),
            (1, false) => Err(format!("fence {fence} came after fence {before}")),
            _ => Err(format!("{inside} were inside where one may be")),
        }
    }

    /// Looks in, with up to `most` others, while nobody writes.
    pub(crate) async fn look(&self, most: i64) -> Result<(), String> {
        let inside = self.readers.fetch_add(1, SeqCst) + 1;
        let writers = self.writers.load(SeqCst);
        tokio::task::yield_now().await;
        self.readers.fetch_sub(1, SeqCst);
        match (writers, inside <= most) {
            (0, true) => Ok(()),
            (0, false) => Err(format!("{inside} were inside where {most} may be")),
            _ => Err(format!("{writers} wrote while others read")),
        }
    }

    /// Whether the sum is what it should be.
    pub(crate) fn sum(&self) -> Result<(), String> {
        let (value, entered) = (self.value.load(SeqCst), self.entered.load(SeqCst));
        if value == entered {
            Ok(())
        } else {
            Err(format!("the counter is {value} after {entered} increments"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn one_after_the_other_is_right() {
        let witness = Witness::default();
        let done = runtime().block_on(async {
            witness.add(1).await?;
            witness.add(2).await?;
            witness.look(1).await
        });
        assert_eq!((done, witness.sum()), (Ok(()), Ok(())));
    }

    #[test]
    fn two_at_a_time_are_found_out() {
        let witness = Witness::default();
        let (first, second) = runtime().block_on(async { tokio::join!(witness.add(1), witness.add(2)) });
        assert!(first.is_ok() && second.is_err());
        assert_eq!(witness.sum(), Err("the counter is 1 after 2 increments".to_owned()));
    }

    #[test]
    fn a_fence_that_does_not_grow_is_found_out() {
        let witness = Witness::default();
        let again = runtime().block_on(async { (witness.add(7).await, witness.add(7).await) });
        assert_eq!(again, (Ok(()), Err("fence 7 came after fence 7".to_owned())));
    }

    #[test]
    fn readers_beside_a_writer_or_too_many_are_found_out() {
        let witness = Witness::default();
        runtime().block_on(async {
            let mut writing = pin!(witness.add(1));
            assert!(writing.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            assert_eq!(witness.look(9).await, Err("1 wrote while others read".to_owned()));
            writing.await.unwrap();
            let (first, second) = tokio::join!(witness.look(1), witness.look(1));
            assert!(first.is_ok() && second == Err("2 were inside where 1 may be".to_owned()));
        });
    }
}
