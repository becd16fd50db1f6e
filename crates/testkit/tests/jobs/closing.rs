//! A client that is shut down while its job runs: the run is written down, or the shutdown says that it goes on.

use std::time::Duration;

use leasehold_core::Run;

use crate::{World, every_second, seconds, state, work};

#[tokio::test(start_paused = true)]
async fn a_run_that_finishes_within_a_shutdown_is_written_down_as_done() {
    let mut world = World::new();
    let client = world.client();
    let job = every_second(&client).finish_on_loss();
    world.fleet.spawn(async move { job.run(async |_: &Run| work(10).await).await });
    seconds(2).await;
    client.shutdown("30s").await.unwrap();
    let state = state(&world.client()).await;
    assert_eq!((state.totals.done, state.totals.lost, state.totals.died), (1, 0, 0));
    world.fleet.join_next().await.unwrap().unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_that_does_not_end_keeps_a_shutdown_no_longer_than_it_may_take() {
    let mut world = World::new();
    let client = world.client();
    let job = every_second(&client).finish_on_loss();
    world.fleet.spawn(async move { job.run(async |_: &Run| work(100).await).await });
    seconds(2).await;
    let before = world.clock.now();
    let error = client.shutdown("30s").await.unwrap_err();
    assert_eq!(before.until(world.clock.now()).as_secs(), 30);
    assert!(error.to_string().contains("taken for dead: 1"), "{error}");
    assert_eq!(state(&world.client()).await.totals.died, 1, "as far as anybody can know");
    seconds(100).await;
    assert_eq!(state(&world.client()).await.totals.done, 1, "it came to its end all the same");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_dropped_keeps_no_shutdown() {
    let mut world = World::new();
    let client = world.client();
    let job = every_second(&client);
    world.fleet.spawn(async move { job.run(async |_: &Run| work(100).await).await });
    seconds(2).await;
    world.fleet.shutdown().await;
    let before = world.clock.now();
    client.shutdown("30s").await.unwrap();
    assert!(before.until(world.clock.now()) < Duration::from_secs(1));
}
