//! Fences grow, whatever majority grants.

use std::time::Duration;

use leasehold_core::{Client, ErrorKind, Guard};
use leasehold_testkit::scripted::{Fault, Verb};

use crate::world::{World, always, fail, heal};

/// A small source of chance that a seed repeats.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    /// Two different members of five, or one, or none.
    pub(crate) fn minority(&mut self) -> Vec<usize> {
        let mut members: Vec<usize> = (0..5).collect();
        for at in 0..2 {
            let other = at + self.below(5 - at as u64) as usize;
            members.swap(at, other);
        }
        members.truncate(self.below(3) as usize);
        members
    }

    fn fault(&mut self) -> Fault {
        match self.below(5) {
            0 => Fault::Err(ErrorKind::Unavailable),
            1 => Fault::Never,
            2 => Fault::Lost,
            3 => Fault::Slow(Duration::from_millis(self.below(400))),
            _ => Fault::Late(Duration::from_millis(self.below(400))),
        }
    }
}

/// Lets one member alone count on.
async fn put_ahead(world: &World, at: usize, count: usize) {
    let alone = Client::builder(world.stores[at].clone()).clock(world.clock.clone()).build();
    for _ in 0..count {
        alone.lock("a").acquire().await.unwrap().release().await.unwrap();
    }
}

async fn patient(client: &Client) -> Guard {
    client.lock("a").ttl("4s").wait("600s").acquire().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn fences_grow_strictly_through_the_failure_of_any_minority() {
    for seed in 0..150 {
        let (world, mut dice, mut last) = (World::new(5), Dice::new(seed), 0);
        for round in 0..12 {
            let scripts = World::scripts(5);
            let client = world.client(&scripts);
            for at in dice.minority() {
                always(std::slice::from_ref(&scripts[at]), dice.fault());
            }
            let guard = patient(&client).await;
            assert!(guard.fence() > last, "seed {seed}, round {round}: {} after {last}", guard.fence());
            last = guard.fence();
            if dice.below(2) == 0 {
                guard.release().await.unwrap();
            } else {
                drop(guard);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn fences_grow_strictly_though_any_minority_forgets_all_it_knew() {
    for seed in 0..150 {
        let (world, mut dice, mut last) = (World::new(5), Dice::new(seed), 0);
        for round in 0..12 {
            let guard = patient(&world.client(&[])).await;
            assert!(guard.fence() > last, "seed {seed}, round {round}: {} after {last}", guard.fence());
            last = guard.fence();
            guard.release().await.unwrap();
            dice.minority().into_iter().for_each(|at| world.restart(at));
        }
    }
}

/// Members count for themselves: without the second round a majority that is behind would repeat a fence.
#[tokio::test(start_paused = true)]
async fn the_second_round_carries_a_fence_to_a_majority_before_it_is_handed_out() {
    let (world, scripts) = (World::new(5), World::scripts(5));
    put_ahead(&world, 0, 9).await;
    fail(&scripts[3..]);
    let first = patient(&world.client(&scripts)).await;
    assert_eq!(first.fence(), 10);
    for at in 0..3 {
        assert_eq!(world.seen(at, "a").await.unwrap().fence, 10, "member {at}");
    }
    let fence = first.fence();
    first.release().await.unwrap();
    let others = World::scripts(5);
    fail(&others[..2]);
    let second = patient(&world.client(&others)).await;
    assert!(second.fence() > fence, "{} after {fence}, by another majority", second.fence());
}

#[tokio::test(start_paused = true)]
async fn a_fence_that_no_majority_was_raised_to_is_not_handed_out() {
    let (world, scripts) = (World::new(3), World::scripts(3));
    put_ahead(&world, 0, 1).await;
    for script in &scripts {
        script.always(Verb::Raise, Fault::Err(ErrorKind::Unavailable));
    }
    let client = world.client(&scripts);
    assert_eq!(client.lock("a").try_acquire().await.unwrap_err().kind(), ErrorKind::Unavailable);
    client.idle().await;
    assert_eq!(world.held("a").await, [0, 0, 0]);
    heal(&scripts);
    assert!(client.lock("a").try_acquire().await.unwrap().is_some());
}
