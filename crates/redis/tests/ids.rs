//! Unique ids on a real server, by the hundred thousand.

mod common;

use std::{collections::HashSet, sync::Arc};

use common::Stage;
use leasehold_core::Id;
use tokio::task::JoinSet;

/// How many each task makes.
const EACH: usize = 10_000;

/// Ten tasks of two clients make ids at once; half-way each client gives its number back, and takes one of the two again. A
/// hundred thousand ids are a hundred thousand different ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_ids_of_two_clients_are_all_different() {
    let Some(stage) = Stage::set().await else { return };
    let mut made: Vec<Id> = Vec::new();
    let clients = [stage.client().await, stage.client().await];
    for _ in 0..2 {
        let mut tasks = JoinSet::new();
        for client in &clients {
            let ids = Arc::new(client.ids("orders").machines(0..=1).claim().await.unwrap());
            for _ in 0..5 {
                let ids = ids.clone();
                tasks.spawn(async move {
                    let mut made = Vec::new();
                    for _ in 0..EACH / 2 {
                        made.push(ids.next().await.unwrap());
                    }
                    made
                });
            }
        }
        made.extend(tasks.join_all().await.into_iter().flatten());
        for client in &clients {
            client.idle().await;
        }
    }
    assert_eq!(made.len(), 10 * EACH);
    let distinct: HashSet<Id> = made.iter().copied().collect();
    assert_eq!(distinct.len(), made.len());
    let cells: Vec<String> = stage.raw(&["KEYS", "*ids:orders:*"]).await;
    assert!(cells.iter().any(|name| name.contains("ids:ids:orders:")), "what is reserved stays: {cells:?}");
}
