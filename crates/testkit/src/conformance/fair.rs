//! First come, first served, for those who ask for it.

use std::sync::{Arc, Mutex, PoisonError};

use leasehold_core::{
    Client, Guard,
    backend::{Attempt, Mode},
};
use tokio::task::{AbortHandle, JoinSet};

use super::{
    Fixture,
    probe::{Stopwatch, joined, settled, spec, take, until_waiting},
};
use crate::scripted::Script;

/// The order in which a line was served.
#[derive(Clone, Debug, Default)]
struct Served(Arc<Mutex<Vec<usize>>>);

impl Served {
    fn note(&self, number: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    }

    fn order(&self) -> Vec<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Stands in line and notes when it is served; returns when it is seen to stand there, behind `before` others.
async fn stand(
    tasks: &mut JoinSet<()>,
    client: &Client,
    name: &str,
    (before, number): (usize, usize),
    served: &Served,
) -> AbortHandle {
    let (lock, served) = (client.lock(name).fair(), served.clone());
    let standing = tasks.spawn(async move {
        let guard: Guard = lock.acquire().await.unwrap();
        served.note(number);
        guard.release().await.unwrap();
    });
    until_waiting(client, name, before + 1).await;
    standing
}

/// Ten who came one after the other are served in that order, whichever client they belong to.
pub(super) async fn ten_are_served_in_the_order_they_came(fixture: Fixture) {
    let (clients, name) = ([fixture.client().await, fixture.client().await], fixture.name("line"));
    let holder = take(&clients[0].lock(&name).fair()).await;
    let (mut tasks, served) = (JoinSet::new(), Served::default());
    for number in 0..10 {
        stand(&mut tasks, &clients[number % 2], &name, (number, number), &served).await;
    }
    let watch = Stopwatch::start(&fixture);
    holder.release().await.unwrap();
    joined(tasks).await;
    watch.was_prompt();
    assert_eq!(served.order(), (0..10).collect::<Vec<_>>());
    settled(&clients[0], &name).await;
    settled(&clients[1], &name).await;
}

/// Those who gave up are out of the line at once, and the others keep their order.
pub(super) async fn those_who_gave_up_are_skipped(fixture: Fixture) {
    let (clients, name) = ([fixture.client().await, fixture.client().await], fixture.name("gave-up"));
    let holder = take(&clients[0].lock(&name).fair()).await;
    let (mut tasks, served) = (JoinSet::new(), Served::default());
    let mut standing = Vec::new();
    for number in 0..6 {
        standing.push(stand(&mut tasks, &clients[number % 2], &name, (number, number), &served).await);
    }
    for (gone, number) in [0, 2, 5].into_iter().enumerate() {
        standing[number].abort();
        until_waiting(&clients[0], &name, 5 - gone).await;
    }
    holder.release().await.unwrap();
    while let Some(ended) = tasks.join_next().await {
        assert!(ended.is_ok() || ended.unwrap_err().is_cancelled());
    }
    assert_eq!(served.order(), [1, 3, 4]);
    settled(&clients[0], &name).await;
    settled(&clients[1], &name).await;
}

/// One who died in line holds nobody up for longer than a place in line lasts.
pub(super) async fn the_dead_in_line_are_skipped(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("dead"));
    let holder = take(&client.lock(&name).fair()).await;
    let backend = fixture.backend(&Script::new()).await;
    for before in 0..2 {
        let mut dead = spec(&name, Mode::Exclusive, fixture.brief().await);
        Arc::make_mut(&mut dead).fair = true;
        let mut claim = backend.claim(dead);
        until_in_line(&mut *claim, &client, &name, before + 1).await;
    }
    let (mut tasks, served) = (JoinSet::new(), Served::default());
    stand(&mut tasks, &client, &name, (2, 7), &served).await;
    holder.release().await.unwrap();
    joined(tasks).await;
    assert_eq!(served.order(), [7]);
    settled(&client, &name).await;
}

/// Waits at the store itself until the claim is seen to stand in line.
async fn until_in_line(
    claim: &mut dyn leasehold_core::backend::Claim,
    client: &Client,
    name: &str,
    place: usize,
) {
    while super::probe::waiters(client, name).await < place {
        assert!(matches!(claim.attempt().await.unwrap(), Attempt::Busy(_)));
        // The first wait arms the bell; stores with a line join it at the next try.
        drop(tokio::time::timeout(std::time::Duration::from_millis(1), claim.changed()).await);
    }
}

/// One who does not stand in line lets it pass, even one who came before it.
pub(super) async fn others_let_the_line_pass(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("pass"));
    let holder = take(&client.lock(&name)).await;
    let (mut tasks, served) = (JoinSet::new(), Served::default());
    let (pushing, noted) = (other.lock(&name), served.clone());
    tasks.spawn(async move {
        let guard = pushing.acquire().await.unwrap();
        noted.note(1);
        guard.release().await.unwrap();
    });
    until_waiting(&client, &name, 1).await;
    stand(&mut tasks, &client, &name, (1, 2), &served).await;
    holder.release().await.unwrap();
    joined(tasks).await;
    assert_eq!(served.order(), [2, 1]);
    settled(&client, &name).await;
    settled(&other, &name).await;
}
