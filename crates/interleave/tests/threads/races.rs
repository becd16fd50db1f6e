//! The races, one test each, named after what must be true of every order.

use std::sync::atomic::Ordering;

use leasehold_core::{Client, Lock, Outcome, Owner, backend::Loss};
use shuttle::future::block_on;

use crate::{
    explore,
    stage::{NAME, Stage, TTL, beside, cut, let_go},
};

/// Both sorts of clients: those whose store answers on the spot take other ways through the engine.
fn each_sort(stage: &Stage) -> [Client; 2] {
    [stage.near(), stage.far()]
}

/// So many stand in line.
async fn until_waiting(lock: &Lock, count: usize) {
    while !matches!(lock.attempt().await, Ok(Outcome::Busy(busy)) if busy.waiters == count) {
        shuttle::future::yield_now().await;
    }
}

#[test]
fn the_keeper_never_outlives_a_release() {
    explore("the_keeper_never_outlives_a_release", || {
        block_on(async {
            for how in 0..3 {
                let stage = Stage::new();
                let client = stage.far();
                let guard = client.lock(NAME).acquire().await.unwrap();
                // The renewal is on its way while the lock is given back.
                stage.until_renewal();
                let_go(how, guard).await;
                stage.is_tidy(&client).await;
                stage.until_renewal();
                stage.is_tidy(&client).await;
            }
        });
    });
}

#[test]
fn whoever_waits_is_woken() {
    explore("whoever_waits_is_woken", || {
        block_on(async {
            let stage = Stage::new();
            let clients = [stage.near(), stage.far(), stage.near()];
            let tasks = clients.clone().map(|client| {
                let inside = stage.uses();
                beside(async move {
                    let guard = client.lock(NAME).acquire().await.unwrap();
                    inside.await;
                    guard.release().await.unwrap();
                })
            });
            for task in tasks {
                task.await.unwrap();
            }
            for client in &clients {
                stage.is_tidy(client).await;
            }
        });
    });
}

#[test]
fn a_cohort_hands_on_to_everybody_under_growing_fences() {
    explore("a_cohort_hands_on_to_everybody_under_growing_fences", || {
        block_on(async {
            let stage = Stage::new();
            for client in each_sort(&stage) {
                let fences = std::sync::Arc::new(shuttle::sync::Mutex::new(Vec::new()));
                let tasks = [0, 1, 2].map(|how| {
                    let (lock, inside, fences) = (client.lock(NAME).cohort(2), stage.uses(), fences.clone());
                    beside(async move {
                        let guard = lock.acquire().await.unwrap();
                        fences.lock().unwrap().push(guard.fence());
                        inside.await;
                        let_go(how, guard).await;
                    })
                });
                for task in tasks {
                    task.await.unwrap();
                }
                let fences = fences.lock().unwrap().clone();
                assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
                stage.is_tidy(&client).await;
            }
        });
    });
}

#[test]
fn who_stands_behind_a_winner_of_its_cohort_asks_no_store() {
    explore("who_stands_behind_a_winner_of_its_cohort_asks_no_store", || {
        block_on(async {
            let stage = Stage::new();
            for client in each_sort(&stage) {
                let lock = client.lock(NAME).cohort(2);
                let first = lock.acquire().await.unwrap();
                let tasks = [0, 1, 2].map(|_| {
                    let lock = lock.clone();
                    beside(async move {
                        let guard = lock.acquire().await.unwrap();
                        let member = (guard.fence(), guard.id());
                        guard.release().await.unwrap();
                        member
                    })
                });
                until_waiting(&lock, 3).await;
                let mut members = vec![(first.fence(), first.id())];
                first.release().await.unwrap();
                for task in tasks {
                    members.push(task.await.unwrap());
                }
                members.sort_unstable();
                let ids: Vec<_> = members.iter().map(|(_, id)| *id).collect();
                assert!(ids[0] == ids[1] && ids[2] == ids[3], "two acquisitions for four: {members:?}");
                stage.is_tidy(&client).await;
            }
        });
    });
}

#[test]
fn who_comes_while_one_of_its_cohort_asks_waits_for_what_it_wins() {
    explore("who_comes_while_one_of_its_cohort_asks_waits_for_what_it_wins", || {
        block_on(async {
            let stage = Stage::new();
            // A store that answers on the spot has no request to save.
            let client = stage.far();
            let lock = client.lock(NAME).cohort(2);
            let is_first = std::sync::Arc::new(shuttle::sync::atomic::AtomicBool::new(true));
            let [one, other] = [0, 1].map(|_| {
                let (lock, is_first) = (lock.clone(), is_first.clone());
                beside(async move {
                    let guard = lock.acquire().await.unwrap();
                    if is_first.swap(false, Ordering::SeqCst) {
                        until_waiting(&lock, 1).await;
                    }
                    let id = guard.id();
                    guard.release().await.unwrap();
                    id
                })
            });
            assert_eq!(one.await.unwrap(), other.await.unwrap(), "one acquisition for both");
            stage.is_tidy(&client).await;
        });
    });
}

#[test]
fn whoever_goes_away_while_it_is_served_leaves_the_lock_to_others() {
    explore("whoever_goes_away_while_it_is_served_leaves_the_lock_to_others", || {
        block_on(async {
            let stage = Stage::new();
            for client in each_sort(&stage) {
                for lock in [client.lock(NAME), client.lock(NAME).fair(), client.lock(NAME).cohort(8)] {
                    let first = lock.acquire().await.unwrap();
                    let fickle = beside({
                        let lock = lock.clone();
                        async move { drop(cut(3, lock.acquire()).await) }
                    });
                    let next = beside({
                        let (lock, inside) = (lock.clone(), stage.uses());
                        async move {
                            let guard = lock.acquire().await.unwrap();
                            inside.await;
                            guard.release().await.unwrap();
                        }
                    });
                    first.release().await.unwrap();
                    fickle.await.unwrap();
                    next.await.unwrap();
                    stage.is_tidy(&client).await;
                }
            }
        });
    });
}

#[test]
fn a_shutdown_leaves_nothing_and_nobody_holds_after_it() {
    explore("a_shutdown_leaves_nothing_and_nobody_holds_after_it", || {
        block_on(async {
            let stage = Stage::new();
            for client in each_sort(&stage) {
                let tasks = [client.lock(NAME), client.lock(NAME).cohort(4)].map(|lock| {
                    beside(async move {
                        // It may be refused; what it gets it may lose at once.
                        let guard = lock.acquire().await.ok()?;
                        drop(guard.check());
                        Some(guard)
                    })
                });
                drop(client.shutdown(TTL).await);
                for task in tasks {
                    if let Some(guard) = task.await.unwrap() {
                        assert!(guard.check().is_err(), "held after the shutdown");
                    }
                }
                stage.is_tidy(&client).await;
            }
        });
    });
}

#[test]
fn whoever_watches_hears_of_a_loss_and_of_a_renewal() {
    explore("whoever_watches_hears_of_a_loss_and_of_a_renewal", || {
        block_on(async {
            let stage = Stage::new();
            let (client, operator) = (stage.far(), stage.near());
            let guard = std::sync::Arc::new(client.lock(NAME).acquire().await.unwrap());
            let (known, id) = (guard.deadline(), guard.id());
            let later = beside({
                let guard = guard.clone();
                async move { guard.renewed(known).await }
            });
            let later = stage.in_time(later).await;
            assert!(later > known || guard.check().is_err());
            let told = [guard.clone(), guard.clone()].map(|guard| beside(async move { guard.lost().await }));
            let broken =
                beside(async move { operator.break_hold(NAME, id, "it was its turn").await.unwrap() });
            drop(guard.extend(TTL).await);
            drop(broken.await.unwrap());
            for told in told {
                // The keeper may have come too late to renew it even once.
                let loss = stage.in_time(told).await;
                assert!(matches!(loss, Loss::Broken(_) | Loss::Expired), "{loss:?}");
            }
            assert!(guard.check().is_err());
            drop(guard);
            stage.is_tidy(&client).await;
        });
    });
}

#[test]
fn a_deadline_only_grows_whoever_renews() {
    explore("a_deadline_only_grows_whoever_renews", || {
        block_on(async {
            let stage = Stage::new();
            let client = stage.far();
            let guard = std::sync::Arc::new(client.lock(NAME).acquire().await.unwrap());
            let tasks = [1, 2].map(|part| {
                let guard = guard.clone();
                beside(async move {
                    let before = guard.deadline();
                    guard.extend(TTL / part).await.unwrap();
                    assert!(guard.deadline() >= before, "it went back");
                })
            });
            stage.until_renewal();
            for task in tasks {
                task.await.unwrap();
            }
            assert!(guard.remaining() > TTL * 2 / 5, "{:?}", guard.remaining());
            drop(guard);
            stage.is_tidy(&client).await;
        });
    });
}

#[test]
fn one_may_enter_while_another_leaves() {
    explore("one_may_enter_while_another_leaves", || {
        block_on(async {
            let stage = Stage::new();
            for client in each_sort(&stage) {
                let me = Owner::new();
                let first = client.lock(NAME).owner(&me).acquire().await.unwrap();
                let tasks = [0, 1].map(|how| {
                    let lock = client.lock(NAME).owner(&me);
                    beside(async move {
                        let guard = lock.acquire().await.unwrap();
                        guard.check().unwrap();
                        let_go(how, guard).await;
                    })
                });
                let_go(2, first).await;
                for task in tasks {
                    task.await.unwrap();
                }
                stage.is_tidy(&client).await;
            }
        });
    });
}
