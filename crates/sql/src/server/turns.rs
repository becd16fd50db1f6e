//! Steps on one name within this process, one after the other once they got in each other's way.
//!
//! A row is written on the condition that nobody else wrote it, so of many who try at the same time one gets on. Those of
//! one process need not learn that from the server again and again: who was outrun waits for its turn here.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::OwnedMutexGuard;

/// Beyond so many names, those that nobody waits for are forgotten.
const MOST: usize = 64;

/// The lines of those who were outrun, by name.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<Arc<str>, Line>>);

type Line = Arc<tokio::sync::Mutex<()>>;

/// It is somebody's turn until this is dropped.
pub(super) type Turn = OwnedMutexGuard<()>;

impl Turns {
    /// Completes when it is our turn, in the order of those who ask.
    pub(super) async fn wait(&self, name: Arc<str>) -> Turn {
        self.line(name).lock_owned().await
    }

    fn line(&self, name: Arc<str>) -> Line {
        // Nothing that could panic happens while the map is locked.
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() > MOST {
            lines.retain(|_, line| Arc::strong_count(line) > 1);
        }
        lines.entry(name).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_name_is_one_line_and_lines_without_anybody_are_forgotten() {
        let turns = Turns::default();
        let turn = turns.wait("a".into()).await;
        for number in 0..=MOST {
            drop(turns.wait(number.to_string().into()).await);
        }
        assert!(turns.line("a".into()).try_lock().is_err(), "it is still somebody's turn");
        assert_eq!(turns.0.lock().expect("whole").len(), 2, "the one that is used, and the newest");
        drop(turn);
        assert!(turns.line("a".into()).try_lock().is_ok());
    }
}
