//! How acquisitions end: leases, forced release, withdrawal, the death of a session.

use std::{sync::Arc, time::Duration};

use leasehold_core::{
    ErrorKind,
    backend::{
        ClaimSpec, Life, Mode,
        record::{Moment, Record},
    },
};

use crate::{
    model::Said,
    world::{
        World, attempt, break_hold, broken, claim, fair, permits, plain, release, renew, secs, session,
        withdraw,
    },
};

#[test]
fn a_lease_ends_exactly_at_its_end() {
    let mut world = World::new();
    let (first, second) = (plain(1, Mode::Exclusive), plain(2, Mode::Exclusive));
    assert_eq!(world.attempt(&first), Said::Granted { fence: 1, granted: secs(30) });
    world.pass(Duration::from_micros(29_999_999));
    assert!(matches!(world.attempt(&second), Said::Busy { .. }));
    world.pass(Duration::from_micros(1));
    assert_eq!(world.attempt(&second), Said::Granted { fence: 2, granted: secs(30) });
    assert_eq!(Said::from(world.take(&renew(&first, secs(30)), None).answer), Said::Lost(None));
    assert_eq!(world.release(&first), Said::Gone(None));
}

#[test]
fn asking_again_finds_the_same_grant_and_what_is_left_of_it() {
    let mut world = World::new();
    let claim = plain(1, Mode::Shared);
    assert_eq!(world.attempt(&claim), Said::Granted { fence: 1, granted: secs(30) });
    world.pass(secs(12));
    assert_eq!(world.attempt(&claim), Said::Granted { fence: 1, granted: secs(18) });
}

#[test]
fn a_renewal_that_comes_late_does_not_cut_a_lease_short() {
    let mut world = World::new();
    let holder = plain(1, Mode::Exclusive);
    assert!(matches!(world.attempt(&holder), Said::Granted { .. }));
    assert_eq!(Said::from(world.take(&renew(&holder, secs(600)), None).answer), Said::Renewed(secs(600)));
    assert_eq!(Said::from(world.take(&renew(&holder, secs(5)), None).answer), Said::Renewed(secs(5)));
    world.pass(secs(599));
    assert!(matches!(world.attempt(&plain(2, Mode::Shared)), Said::Busy { .. }));
}

#[test]
fn a_waiter_without_a_sign_of_life_loses_its_place() {
    let mut world = World::new();
    let (holder, quiet, lively) =
        (plain(1, Mode::Exclusive), fair(2, Mode::Exclusive), fair(3, Mode::Exclusive));
    assert!(matches!(world.attempt(&holder), Said::Granted { .. }));
    assert!(matches!(world.attempt(&quiet), Said::Busy { place: Some(1), .. }));
    for place in [2, 2, 2, 1] {
        let said = world.attempt(&lively);
        assert!(matches!(said, Said::Busy { place: Some(at), .. } if at == place), "{said:?}");
        world.pass(secs(5));
    }
}

#[test]
fn the_holder_hears_who_broke_it_and_the_fence_moves_on() {
    let mut world = World::new();
    let (holder, next) = (plain(1, Mode::Exclusive), plain(2, Mode::Exclusive));
    assert!(matches!(world.attempt(&holder), Said::Granted { .. }));
    assert_eq!(Said::from(world.take(&break_hold(&next, "typo"), None).answer), Said::NotHeld);
    assert_eq!(Said::from(world.take(&break_hold(&holder, "stuck"), None).answer), Said::Broken);
    assert_eq!(world.attempt(&next), Said::Granted { fence: 3, granted: secs(30) });
    let lost = Said::Lost(Some(broken("stuck")));
    assert_eq!(Said::from(world.take(&renew(&holder, secs(30)), None).answer), lost);
    assert_eq!(Said::from(world.take(&renew(&holder, secs(30)), None).answer), lost, "it may ask again");
    assert_eq!(world.release(&holder), Said::Gone(Some(broken("stuck"))));
    assert_eq!(world.release(&holder), Said::Gone(None));
}

#[test]
fn a_late_request_does_not_undo_a_forced_release() {
    let mut world = World::new();
    let holder = plain(1, Mode::Exclusive);
    assert!(matches!(world.attempt(&holder), Said::Granted { .. }));
    assert_eq!(Said::from(world.take(&break_hold(&holder, "stuck"), None).answer), Said::Broken);
    assert_eq!(world.attempt(&holder), Said::Refused(ErrorKind::Lost));
    let renewal = world.take(&renew(&holder, secs(30)), None).answer;
    assert_eq!(Said::from(renewal), Said::Lost(Some(broken("stuck"))), "it would go on under an old fence");
}

#[test]
fn a_withdrawn_request_finds_nothing_to_win_however_late_within_a_minute() {
    let mut world = World::new();
    let claim = plain(1, Mode::Exclusive);
    assert_eq!(Said::from(world.take(&withdraw(&claim), None).answer), Said::Gone(None));
    world.pass(secs(59));
    assert_eq!(world.attempt(&claim), Said::Refused(ErrorKind::Lost));
    assert!(
        matches!(world.attempt(&plain(2, Mode::Exclusive)), Said::Granted { .. }),
        "others are not refused"
    );
}

#[test]
fn a_withdrawal_repeated_leaves_no_second_trace() {
    let mut world = World::new();
    let claim = plain(1, Mode::Exclusive);
    assert!(world.take(&withdraw(&claim), None).changed);
    let once = world.record.encode();
    for _ in 0..10 {
        assert_eq!(Said::from(world.take(&withdraw(&claim), None).answer), Said::Gone(None));
    }
    assert_eq!(world.record.encode(), once);
}

#[test]
fn everything_is_forgotten_in_time() {
    let mut world = World::new();
    let claims = [plain(1, permits(2, 2)), plain(2, permits(1, 2)), plain(3, permits(1, 2))];
    for claim in &claims {
        let _ = world.attempt(claim);
    }
    assert_eq!(Said::from(world.take(&break_hold(&claims[0], "stuck"), None).answer), Said::Broken);
    assert_eq!(Said::from(world.take(&withdraw(&claims[1]), None).answer), Said::Released);
    world.pass(secs(90));
    assert!(world.record.expire(world.now));
    assert!(world.record.is_vacant());
    assert_eq!(world.record.fence(), 2);
    assert_eq!(world.attempt(&claims[2]), Said::Granted { fence: 3, granted: secs(30) });
}

#[test]
fn a_record_begins_above_the_floor_it_is_given() {
    let mut world = World { record: Record::new(41), ..World::new() };
    assert_eq!(world.attempt(&plain(1, Mode::Exclusive)), Said::Granted { fence: 42, granted: secs(30) });
}

#[test]
fn the_dead_hold_nothing_and_stand_in_no_line_but_what_is_detached_stays() {
    let mut world = World::new();
    let holder = plain(1, Mode::Exclusive);
    let (first, second) = (fair(2, Mode::Exclusive), fair(3, Mode::Exclusive));
    for claim in [&holder, &first, &second] {
        let _ = world.attempt(claim);
    }
    world.dead.extend([session(1), session(2)]);
    assert_eq!(world.attempt(&second), Said::Granted { fence: 2, granted: secs(30) });
    assert_eq!(world.release(&second), Said::Released);
    let ticket = Arc::new(ClaimSpec { life: Life::Detached, ..claim(4, Mode::Exclusive) });
    assert!(matches!(world.attempt(&ticket), Said::Granted { .. }));
    world.dead.push(session(4));
    assert!(matches!(world.attempt(&plain(5, Mode::Exclusive)), Said::Busy { .. }));
}

#[test]
fn whoever_waits_for_a_detached_hold_can_be_rung_and_leaves_the_line_with_its_process() {
    let mut world = World::new();
    let ticket = Arc::new(ClaimSpec { life: Life::Detached, fair: true, ..claim(2, Mode::Exclusive) });
    let (holder, next) = (plain(1, Mode::Exclusive), plain(3, Mode::Exclusive));
    for claim in [&holder, &ticket, &next] {
        let _ = world.attempt(claim);
    }
    let wake = world.take(&release(&holder), None).wake;
    assert_eq!((wake[0].id, wake[0].session), (ticket.id, Some(session(2))));
    world.dead.push(session(2));
    assert!(matches!(world.attempt(&next), Said::Granted { .. }));
}

#[test]
fn a_clock_at_its_end_or_set_back_panics_nowhere() {
    let mut world = World::new();
    let endless = Arc::new(ClaimSpec { ttl: Duration::MAX, ..claim(1, Mode::Exclusive) });
    assert!(matches!(world.attempt(&endless), Said::Granted { .. }));
    assert!(matches!(world.attempt(&fair(2, Mode::Shared)), Said::Busy { .. }));
    for now in [Moment(0), Moment(u64::MAX - 1), Moment(u64::MAX), Moment(5)] {
        world.now = now;
        for step in [attempt(&endless), attempt(&fair(2, Mode::Shared)), renew(&endless, Duration::MAX)] {
            let _ = world.take(&step, None);
        }
        let _ = (world.living(), world.take(&withdraw(&endless), None), world.take(&release(&endless), None));
    }
}
