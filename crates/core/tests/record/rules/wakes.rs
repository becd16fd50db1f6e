//! Who is woken: nobody whose turn has come may sleep on.

use std::sync::Arc;

use leasehold_core::{
    ClaimId,
    backend::{
        ClaimSpec, Mode,
        record::{Step, Wake},
    },
};

use crate::{
    model::Said,
    world::{World, attempt, break_hold, fair, permits, plain, recount, release, secs, session},
};

#[test]
fn a_release_wakes_the_line_before_the_rest() {
    let mut world = World::new();
    let (holder, other, first) =
        (plain(1, Mode::Exclusive), plain(2, Mode::Exclusive), fair(3, Mode::Exclusive));
    world.all_attempt(&[&holder, &other, &first]);
    let wake = world.take(&release(&holder), None).wake;
    let expected = [(first.id, Some(session(3)), true), (other.id, Some(session(2)), false)];
    let got: Vec<_> = wake.iter().map(|Wake { id, session, alone }| (*id, *session, *alone)).collect();
    assert_eq!(got[0], expected[0]);
    assert_eq!((got[1].0, got[1].1), (expected[1].0, expected[1].1));
}

#[test]
fn nobody_is_woken_when_no_chance_rose() {
    let mut world = World::new();
    let (holder, waiter) = (plain(1, Mode::Exclusive), plain(2, Mode::Exclusive));
    world.all_attempt(&[&holder, &waiter]);
    for step in [attempt(&holder), attempt(&waiter), recount(&holder, 2, 0), release(&plain(7, Mode::Shared))]
    {
        assert!(world.take(&step, None).wake.is_empty(), "{step:?}");
    }
}

#[test]
fn a_release_a_forced_release_an_expiry_and_a_withdrawal_wake() {
    let (holder, writer, reader) = (plain(1, Mode::Shared), fair(2, Mode::Exclusive), plain(3, Mode::Shared));
    let mut world = World::new();
    world.all_attempt(&[&holder, &writer, &reader]);
    assert_eq!(world.clone().rung(&release(&holder)), [writer.id]);
    assert_eq!(world.clone().rung(&break_hold(&holder, "stuck")), [writer.id]);
    assert_eq!(world.clone().rung(&release(&writer)), [reader.id], "the reader only waited for the writer");
    world.pass(secs(14));
    world.all_attempt(&[&writer, &reader]);
    world.pass(secs(14));
    world.all_attempt(&[&writer, &reader]);
    world.pass(secs(2));
    assert_eq!(world.rung(&release(&plain(9, Mode::Shared))), [writer.id], "any step notices the expiry");
}

#[test]
fn a_downgrade_reaches_the_readers_behind_a_writer_that_cannot_win() {
    let mut world = World::new();
    let (holder, writer, reader) =
        (plain(1, Mode::Exclusive), plain(2, Mode::Exclusive), plain(3, Mode::Shared));
    world.all_attempt(&[&holder, &writer, &reader]);
    assert!(world.rung(&recount(&holder, 0, 1)).contains(&reader.id));
    assert!(matches!(world.attempt(&reader), Said::Granted { .. }));
}

#[test]
fn a_reader_is_reached_past_a_writer_that_lets_the_line_pass() {
    let mut world = World::new();
    let (holder, first) = (plain(1, Mode::Exclusive), fair(2, Mode::Shared));
    let (writer, reader) = (plain(3, Mode::Exclusive), plain(4, Mode::Shared));
    world.all_attempt(&[&holder, &first, &writer, &reader]);
    let rung = world.rung(&release(&holder));
    assert!(rung.contains(&first.id) && rung.contains(&reader.id), "{rung:?}");
}

#[test]
fn whoever_wins_from_the_line_wakes_those_who_waited_behind_it() {
    let mut world = World::new();
    let (holder, first, second) = (plain(1, permits(3, 3)), fair(2, permits(1, 3)), fair(3, permits(1, 3)));
    world.all_attempt(&[&holder, &first, &second]);
    assert_eq!(world.release(&holder), Said::Released);
    assert!(matches!(world.attempt(&second), Said::Busy { .. }), "woken together, but not its turn");
    assert_eq!(world.rung(&attempt(&first)), [second.id]);
    assert!(matches!(world.attempt(&second), Said::Granted { .. }));
}

#[test]
fn permits_of_the_dead_wake_everybody_they_suffice_for() {
    let mut world = World::new();
    let (dead, asleep, asking) = (plain(1, permits(3, 3)), plain(2, permits(1, 3)), plain(3, permits(1, 3)));
    world.all_attempt(&[&dead, &asleep]);
    world.dead.push(session(1));
    assert_eq!(world.rung(&attempt(&asking)), [asleep.id], "it was asked for one permit and found three");
    assert!(matches!(world.attempt(&asleep), Said::Granted { .. }));
}

impl World {
    fn all_attempt(&mut self, specs: &[&Arc<ClaimSpec>]) {
        for spec in specs {
            let said = self.attempt(spec);
            assert!(matches!(said, Said::Granted { .. } | Said::Busy { .. }), "{said:?}");
        }
    }

    /// Takes the step in the name of whoever it is about and says whose bells a store rings for it.
    fn rung(&mut self, step: &Step) -> Vec<ClaimId> {
        let asker = match step {
            Step::Attempt { spec, .. } => Some(spec.id.client()),
            _ => None,
        };
        let wake = self.take(step, asker).wake;
        crate::invariants::ring(&wake, self)
    }
}
