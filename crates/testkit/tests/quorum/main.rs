//! A quorum of stores passes the suite, and keeps its promises while members fail, stall, forget and lose answers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod contention;
mod faults;
mod fences;
mod renewal;
mod world;

use std::future::ready;

use leasehold_core::time::Clock;
use leasehold_testkit::conformance::Fixture;

use self::world::World;

leasehold_testkit::conformance!(five_memory_stores, paused, {
    let world = World::new(5);
    let clock = world.clock.clone();
    Fixture::backends(move || ready(world.quorum(&[]))).clock(clock)
});

leasehold_testkit::conformance!(four_memory_stores_of_which_one_is_down, paused, {
    let world = World::new(4);
    let clock: Clock = world.clock.clone();
    let down = World::scripts(4);
    world::fail(&down[..1]);
    Fixture::backends(move || ready(world.quorum(&down))).clock(clock)
});
