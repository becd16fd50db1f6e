//! Many who want the same: never two have it, and somebody always gets it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold_core::{ClaimId, Client};
use leasehold_testkit::scripted::{Fault, Script, Verb};
use tokio::task::JoinSet;

use crate::{
    fences::Dice,
    world::{REQUESTS, World},
};

/// Who is in the critical section. A holder that was told of a loss is not.
#[derive(Clone, Default)]
struct Section(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    holder: Option<ClaimId>,
    fence: u64,
    entered: usize,
}

impl Section {
    /// Holds the lock a few times for a little while, and checks that nobody else does.
    async fn visit(self, client: Client, times: usize, mut dice: Dice) {
        let mut left = times;
        while left > 0 {
            let Ok(guard) = client.lock("a").ttl("3s").wait("300s").acquire().await else { continue };
            {
                let mut inside = self.0.lock().unwrap();
                assert_eq!(inside.holder, None, "two are inside");
                assert!(guard.fence() > inside.fence, "{} after {}", guard.fence(), inside.fence);
                inside.holder = Some(guard.id());
                inside.fence = guard.fence();
                inside.entered += 1;
            }
            left -= 1;
            tokio::select! {
                _ = guard.lost() => {}
                () = tokio::time::sleep(Duration::from_millis(dice.below(6000))) => {}
            }
            self.0.lock().unwrap().holder = None;
            drop(guard.release().await);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_never_hold_over_random_schedules() {
    for seed in 0..40 {
        let (world, section) = (World::new(5), Section::default());
        let mut visitors = JoinSet::new();
        for visitor in 0..3 {
            let scripts: Vec<Script> =
                (0..5).map(|member| Script::seeded(seed * 100 + visitor * 10 + member)).collect();
            let client = world.client(&scripts);
            visitors.spawn(section.clone().visit(client, 4, Dice::new(seed * 7 + visitor)));
        }
        while let Some(visited) = visitors.join_next().await {
            visited.unwrap();
        }
        assert_eq!(section.0.lock().unwrap().entered, 12, "seed {seed}");
    }
}

/// All requests take a while, and another while at each member: contenders meet half-way all the time.
#[tokio::test(start_paused = true)]
async fn twenty_contenders_who_split_the_votes_all_get_their_turn() {
    let (world, section, mut dice) = (World::new(5), Section::default(), Dice::new(1));
    let mut visitors = JoinSet::new();
    let mut all = Vec::new();
    for visitor in 0..20 {
        let scripts = World::scripts(5);
        for script in &scripts {
            for verb in REQUESTS.into_iter().filter(|verb| *verb != Verb::Changed) {
                script.always(verb, Fault::Slow(Duration::from_millis(1 + dice.below(20))));
            }
        }
        let client = world.client(&scripts);
        all.extend(scripts);
        let section = section.clone();
        visitors.spawn(async move {
            for _ in 0..3 {
                let guard = client.lock("a").wait("3600s").acquire().await.unwrap();
                assert!(section.0.lock().unwrap().holder.replace(guard.id()).is_none(), "two are inside");
                tokio::task::yield_now().await;
                section.0.lock().unwrap().holder = None;
                guard.release().await.unwrap();
            }
            visitor
        });
    }
    let start = world.clock.now();
    while let Some(visited) = visitors.join_next().await {
        visited.unwrap();
    }
    let took = start.until(world.clock.now());
    let tries: usize = all.iter().map(|script| script.calls(Verb::Attempt)).sum::<usize>() / 5;
    println!("60 turns took {took:?} and {tries} votes");
    assert!(took < Duration::from_secs(60), "{took:?} for 60 turns");
}
