//! What goes wrong in a world, and when: the weather of its stores, a machine that sleeps, a client that is shut down.

use std::{sync::atomic::Ordering, time::Duration};

use leasehold_testkit::scripted::{Dice, Weather};

use super::{ledger::Ledger, world::World};

/// Lets things go wrong for a while, and ends with changeable weather everywhere.
pub(crate) async fn rage(world: &World, ledger: &Ledger, mut dice: Dice) {
    for _ in 0..dice.below(6) {
        pause(&mut dice, 4_000).await;
        let scripts = &world.scripts;
        let script = &scripts[dice.below(scripts.len() as u64) as usize];
        match dice.below(10) {
            0..=2 => script.weather(Weather::Unrenewed),
            3..=4 => script.weather(Weather::Down),
            5 => {
                world.was_stalled.store(true, Ordering::SeqCst);
                script.weather(Weather::Stalled)
            }
            6 if world.may_be_mute => script.weather(Weather::Mute),
            7 => {
                ledger.suspends(&world.clock, Duration::from_millis(dice.below(3_000)));
                script
            }
            8 if dice.chance(40) => {
                close(world, ledger, &mut dice).await;
                script
            }
            _ => script,
        };
        pause(&mut dice, 5_000).await;
        script.weather(Weather::Changeable);
    }
}

async fn close(world: &World, ledger: &Ledger, dice: &mut Dice) {
    let index = dice.below(world.clients.len() as u64) as usize;
    let limit = Duration::from_millis(500 + dice.below(4_000));
    let start = tokio::time::Instant::now();
    ledger.closes(index);
    // It may not get through in time, but it must end in time.
    drop(world.clients[index].shutdown(limit).await);
    let passed = start.elapsed();
    assert!(passed <= limit + Duration::from_millis(10), "a shutdown within {limit:?} took {passed:?}");
}

async fn pause(dice: &mut Dice, most: u64) {
    tokio::time::sleep(Duration::from_millis(dice.below(most))).await;
}
