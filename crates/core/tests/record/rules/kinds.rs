//! What a name is in use as, and who may use it besides: locks, semaphores, latches.

use leasehold_core::{
    ErrorKind,
    backend::{
        LatchStep, Mode,
        record::{Step, Wake},
    },
};

use crate::{
    model::Said,
    world::{World, attempt, claim_id, fair, permits, plain, recount, secs, session},
};

#[test]
fn every_pair_of_kinds_on_one_name_excludes_shares_or_conflicts() {
    let modes = [Mode::Exclusive, Mode::Shared, permits(1, 3), permits(1, 2)];
    let outcomes = [
        ["busy", "busy", "conflict", "conflict", "conflict"],
        ["busy", "granted", "conflict", "conflict", "conflict"],
        ["conflict", "conflict", "granted", "conflict", "conflict"],
        ["conflict", "conflict", "conflict", "granted", "conflict"],
    ];
    for (held, expected) in modes.into_iter().zip(outcomes) {
        for (wanted, expected) in modes.into_iter().chain([Mode::Open]).zip(expected) {
            let mut world = World::new();
            assert!(matches!(world.attempt(&plain(1, held)), Said::Granted { .. }));
            assert_eq!(
                word(&world.attempt(&plain(2, wanted))),
                expected,
                "{wanted:?} on a name held {held:?}"
            );
        }
        let mut world = World::new();
        assert!(matches!(world.attempt(&plain(1, held)), Said::Granted { .. }));
        for step in [LatchStep::Read, LatchStep::Arm { count: 1 }, countdown(1)] {
            assert_eq!(
                world.latch(step),
                Said::Refused(ErrorKind::Conflict),
                "{step:?} on a name held {held:?}"
            );
        }
    }
}

#[test]
fn an_armed_latch_is_no_lock_and_an_open_one_is_nothing() {
    let mut world = World::new();
    assert_eq!(world.attempt(&plain(1, Mode::Open)), Said::Granted { fence: 0, granted: secs(30) });
    assert_eq!(world.latch(LatchStep::Arm { count: 1 }), Said::Count(1));
    for mode in [Mode::Exclusive, Mode::Shared, permits(1, 3)] {
        assert_eq!(world.attempt(&plain(2, mode)), Said::Refused(ErrorKind::Conflict));
    }
    assert_eq!(world.latch(countdown(1)), Said::Count(0));
    assert!(world.record.is_vacant());
    assert!(matches!(world.attempt(&plain(2, Mode::Exclusive)), Said::Granted { .. }));
}

#[test]
fn a_count_repeated_counts_once_and_arming_again_changes_nothing() {
    let mut world = World::new();
    assert_eq!(world.latch(LatchStep::Arm { count: 70 }), Said::Count(70));
    assert_eq!(world.latch(LatchStep::Arm { count: 5 }), Said::Count(70));
    for id in 1..=66 {
        assert_eq!(world.latch(countdown(id)), Said::Count(70 - id));
    }
    for id in 3..=66 {
        assert_eq!(world.latch(countdown(id)), Said::Count(4), "count {id} was counted twice");
    }
    assert_eq!(world.latch(LatchStep::Read), Said::Count(4));
}

#[test]
fn an_opened_latch_wakes_all_who_wait_for_it() {
    let mut world = World::new();
    assert_eq!(world.latch(LatchStep::Arm { count: 2 }), Said::Count(2));
    let waiters = [fair(1, Mode::Open), plain(2, Mode::Open), plain(3, Mode::Open)];
    for waiter in &waiters {
        assert_eq!(word(&world.attempt(waiter)), "busy");
    }
    assert!(world.take(&Step::Latch(countdown(1)), None).wake.is_empty(), "one count is not enough");
    let wake = world.take(&Step::Latch(countdown(2)), None).wake;
    assert!(wake.iter().all(|Wake { alone, .. }| !alone));
    for waiter in &waiters {
        assert!(wake.iter().any(|wake| wake.id == waiter.id));
        assert_eq!(word(&world.attempt(waiter)), "granted");
    }
    assert!(world.record.is_vacant());
}

#[test]
fn whoever_waited_for_a_latch_does_not_bar_a_lock_once_it_opened() {
    let mut world = World::new();
    assert_eq!(world.latch(LatchStep::Arm { count: 1 }), Said::Count(1));
    assert_eq!(word(&world.attempt(&fair(1, Mode::Open))), "busy");
    assert_eq!(world.latch(countdown(1)), Said::Count(0));
    assert_eq!(word(&world.attempt(&plain(2, Mode::Exclusive))), "granted");
}

#[test]
fn the_dead_do_not_keep_a_name_from_becoming_something_else() {
    let mut world = World::new();
    let (semaphore, queued) = (plain(1, permits(3, 3)), plain(2, permits(1, 3)));
    assert_eq!(word(&world.attempt(&semaphore)), "granted");
    assert_eq!(word(&world.attempt(&queued)), "busy");
    world.dead.push(session(1));
    assert_eq!(word(&world.attempt(&plain(3, Mode::Exclusive))), "conflict", "one of them lives");
    world.dead.push(session(2));
    assert!(world.living().is_none(), "people see a free name");
    assert_eq!(world.clone().latch(LatchStep::Arm { count: 2 }), Said::Count(2));
    assert_eq!(word(&world.attempt(&plain(3, Mode::Exclusive))), "granted");
    world.dead.push(session(3));
    assert_eq!(world.latch(LatchStep::Arm { count: 2 }), Said::Count(2));
}

#[test]
fn permits_add_up_to_the_size_and_a_big_request_in_line_is_not_starved_by_small_ones() {
    let mut world = World::new();
    let (small, big, late) = (plain(1, permits(1, 3)), fair(2, permits(3, 3)), plain(3, permits(1, 3)));
    assert_eq!(word(&world.attempt(&small)), "granted");
    assert_eq!(word(&world.attempt(&big)), "busy");
    assert_eq!(word(&world.attempt(&late)), "busy", "there are permits, but somebody is before us");
    assert_eq!(world.release(&small), Said::Released);
    assert_eq!(word(&world.attempt(&late)), "busy");
    assert_eq!(word(&world.attempt(&big)), "granted");
}

#[test]
fn readers_pass_readers_in_line_but_not_a_writer() {
    let mut world = World::new();
    let (writer, first, second) = (fair(1, Mode::Exclusive), fair(2, Mode::Shared), plain(3, Mode::Shared));
    let (late, holder) = (fair(4, Mode::Exclusive), plain(5, Mode::Exclusive));
    assert_eq!(word(&world.attempt(&holder)), "granted");
    assert_eq!(word(&world.attempt(&first)), "busy");
    assert_eq!(world.release(&holder), Said::Released);
    assert_eq!(word(&world.attempt(&writer)), "busy");
    assert_eq!(word(&world.attempt(&second)), "busy", "the writer is before it");
    assert_eq!(world.release(&writer), Said::Released);
    assert_eq!(word(&world.attempt(&second)), "granted", "only a reader is before it");
    assert_eq!(word(&world.attempt(&late)), "busy");
    assert_eq!(word(&world.attempt(&first)), "granted", "it came before the writer");
}

#[test]
fn entering_again_keeps_the_fence_and_a_downgrade_lets_readers_in() {
    let mut world = World::new();
    let (owner, reader) = (plain(1, Mode::Exclusive), plain(2, Mode::Shared));
    assert_eq!(world.attempt(&owner), Said::Granted { fence: 1, granted: secs(30) });
    world.pass(secs(10));
    for (exclusive, shared) in [(2, 0), (1, 0), (1, 1)] {
        let said = Said::from(world.take(&recount(&owner, exclusive, shared), None).answer);
        assert_eq!(said, Said::Renewed(secs(20)), "a recount is no renewal");
        assert_eq!(word(&world.attempt(&reader)), "busy");
    }
    assert_eq!(Said::from(world.take(&recount(&owner, 0, 1), None).answer), Said::Renewed(secs(20)));
    assert_eq!(world.attempt(&reader), Said::Granted { fence: 2, granted: secs(30) });
    assert_eq!(world.attempt(&owner), Said::Granted { fence: 1, granted: secs(20) });
}

#[test]
fn a_crowd_outside_the_line_is_listed_in_part_and_still_waits() {
    let mut world = World::new();
    let holder = plain(1, Mode::Exclusive);
    assert_eq!(word(&world.attempt(&holder)), "granted");
    let crowd: Vec<_> = (2..=70).map(|serial| plain(serial, Mode::Exclusive)).collect();
    for waiter in &crowd {
        assert_eq!(word(&world.attempt(waiter)), "busy");
    }
    let late = crowd.last().expect("a crowd");
    let Said::Busy { retry_after, .. } = world.attempt(late) else { panic!("it is held") };
    assert!(retry_after <= secs(1), "nobody can wake it: it must look again soon");
    let Said::Busy { waiters, place, .. } = world.attempt(&fair(100, Mode::Exclusive)) else {
        panic!("it is held")
    };
    assert_eq!((waiters, place), (64, Some(1)), "the line itself has no end");
    assert_eq!(world.release(&crowd[0]), Said::Released);
    let before = world.record.clone();
    assert!(world.take(&attempt(late), None).changed, "there is room on the list again");
    assert_ne!(before, world.record);
    assert_eq!(world.release(late), Said::Released);
}

fn countdown(id: u64) -> LatchStep {
    LatchStep::CountDown { id: claim_id(session(9), id) }
}

fn word(said: &Said) -> &'static str {
    match said {
        Said::Granted { .. } => "granted",
        Said::Busy { .. } => "busy",
        Said::Refused(ErrorKind::Conflict) => "conflict",
        other => panic!("not an answer to a good attempt: {other:?}"),
    }
}
