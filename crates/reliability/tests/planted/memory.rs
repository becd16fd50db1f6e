//! Scenes on the memory store, in virtual time.

use std::time::Duration;

use leasehold::{Client, backend::Memory, time::Clock};
use leasehold_testkit::{
    history,
    scripted::{Fault, Script, ScriptedRecords, Verb},
};

use crate::scene::Scene;

/// Two clients of one store, the first of which plays a script.
fn clients(clock: &Clock) -> (Script, [Client; 2]) {
    let (script, store) = (Script::new(), Memory::with_clock(clock.clone()));
    let client = |script: &Script| {
        let scripted = ScriptedRecords::new(store.clone(), script.clone());
        Client::builder(scripted).clock(clock.clone()).build()
    };
    let clients = [client(&script), client(&Script::new())];
    (script, clients)
}

/// The answer to a grant takes two seconds of a lease of three: its holder believes for one more, and not for three.
pub(crate) async fn a_slow_grant_is_not_believed_for_longer() -> bool {
    let clock = Clock::test();
    let (script, [first, second]) = clients(&clock);
    let (scene, mode) = (Scene::new(clock), history::Mode::Exclusive);
    script.next(Verb::Attempt, [Fault::Slow(Duration::from_secs(2))]);
    let _held = scene.take(&first.lock("name").ttl("3s").no_renew(), 1, mode).await.unwrap();
    let _next = scene.take(&second.lock("name").wait("10s"), 2, mode).await.unwrap();
    scene.is_sound();
    true
}

/// What was waited for longer than its lease lasts is held when it is there.
pub(crate) async fn what_was_waited_for_long_is_held() -> bool {
    let (_script, [first, second]) = clients(&Clock::test());
    let _gone = first.lock("name").ttl("20s").no_renew().acquire().await.unwrap();
    let guard = second.lock("name").ttl("3s").wait("60s").acquire().await.unwrap();
    guard.check().unwrap_or_else(|error| panic!("it was over before it began: {error}"));
    true
}
