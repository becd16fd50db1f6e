//! Ids that are unique, whoever makes them and whatever clocks do.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use leasehold_core::{
    Client, ErrorKind, Id, IdSpace, Ids,
    backend::{BreakOutcome, CellWrite, Expect},
};
use tokio::task::JoinSet;

use super::{
    Fixture,
    probe::{eventually, joined, refusal, settled},
};
use crate::scripted::{Fault, Script, Verb};

/// An hour, in nanoseconds of a clock that is set.
const HOUR: i64 = 3_600_000_000_000;

/// Ids whose machine number can only be this one.
fn only(client: &Client, name: &str, number: u16) -> IdSpace {
    client.ids(name).machines(number..=number)
}

async fn some(ids: &Ids, count: usize) -> Vec<Id> {
    let mut made = Vec::new();
    for _ in 0..count {
        made.push(ids.next().await.unwrap());
    }
    made
}

#[track_caller]
fn assert_growing(ids: &[Id]) {
    assert!(ids.is_sorted_by(|one, next| one < next), "ids of one number must grow: {ids:?}");
}

/// Many tasks of several clients make ids at once, and no id comes twice.
pub(super) async fn ids_of_many_are_unique(fixture: Fixture) {
    let (name, mut tasks, mut machines) = (fixture.name("many"), JoinSet::new(), BTreeSet::new());
    for _ in 0..3 {
        let ids = Arc::new(fixture.client().await.ids(&name).claim().await.unwrap());
        machines.insert(ids.machine());
        for _ in 0..3 {
            let ids = ids.clone();
            tasks.spawn(async move { some(&ids, 2000).await });
        }
    }
    assert_eq!(machines.len(), 3);
    let made = joined(tasks).await;
    for ids in &made {
        assert_growing(ids);
    }
    let distinct: BTreeSet<Id> = made.iter().flatten().copied().collect();
    assert_eq!(distinct.len(), 9 * 2000);
    assert!(distinct.iter().all(|id| machines.contains(&id.machine())));
}

/// A number that is held is not given twice; whoever has it next makes greater ids than all before.
pub(super) async fn a_number_passes_on_above_all_before(fixture: Fixture) {
    let (one, other, name) = (fixture.client().await, fixture.client().await, fixture.name("next"));
    let first = only(&one, &name, 5).claim().await.unwrap();
    let before = some(&first, 5000).await;
    let taken = refusal(only(&other, &name, 5).claim().await);
    assert_eq!(taken.kind(), ErrorKind::Busy);
    assert!(taken.to_string().contains("all 1 machine numbers are taken"), "{taken}");
    first.release().await.unwrap();
    let second = only(&other, &name, 5).claim().await.unwrap();
    let after = some(&second, 10).await;
    assert_growing(&[before, after].concat());
    second.release().await.unwrap();
    settled(&one, &format!("ids:{name}:5")).await;
    settled(&other, &format!("ids:{name}:5")).await;
}

/// One whose number was taken from it makes no more ids once it knows; those it made before are not made again.
pub(super) async fn a_lost_number_makes_no_more_ids(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("lost"));
    let old = only(&client, &name, 9).ttl(fixture.brief().await).claim().await.unwrap();
    let lock = format!("ids:{name}:9");
    assert_eq!(other.break_hold(&lock, old.guard().id(), "moved").await.unwrap(), BreakOutcome::Broken);
    let new = only(&other, &name, 9).claim().await.unwrap();
    let mut made = Vec::new();
    let refused = loop {
        match old.next().await {
            Ok(id) => made.push(id),
            Err(error) => break error,
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    assert_eq!(refused.kind(), ErrorKind::Lost, "{refused}");
    assert_eq!(refusal(old.next().await).kind(), ErrorKind::Lost, "for good");
    made.extend(some(&new, 10).await);
    assert_growing(&made);
    new.release().await.unwrap();
    drop(old);
    settled(&client, &lock).await;
}

/// The answer to a reservation is lost: it is found to be made, and nothing is made twice.
pub(super) async fn a_lost_answer_costs_no_id(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("answer"));
    script.next(Verb::WriteCell, [Fault::Lost]);
    let ids = only(&client, &name, 3).claim().await.unwrap();
    assert_growing(&some(&ids, 100).await);
    ids.release().await.unwrap();
    settled(&client, &format!("ids:{name}:3")).await;
}

/// Ranges and names that are none are refused before anything is sent.
pub(super) async fn spaces_without_sense_are_refused(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("sense"));
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    for machines in [1..=1024, 7..=6] {
        let error = refusal(client.ids(&name).machines(machines).claim().await);
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    }
    assert_eq!(refusal(client.ids("").claim().await).kind(), ErrorKind::Config);
    assert_eq!(refusal(client.ids(&name).ttl("soon").claim().await).kind(), ErrorKind::Config);
}

/// The clock is set back and forth while ids are made and while their number passes on: they only grow.
pub(super) async fn ids_grow_through_steps_of_the_clock(fixture: Fixture) {
    let (clock, name) = (fixture.time(), fixture.name("steps"));
    let mut made = Vec::new();
    for (round, ahead) in [0, -HOUR, HOUR, 0, -2 * HOUR, 2 * HOUR, 1, -1].into_iter().enumerate() {
        let client = fixture.client().await;
        let ids = only(&client, &name, 1).claim().await.unwrap();
        made.extend(some(&ids, 100).await);
        clock.set_wall(ahead);
        made.extend(some(&ids, 5000).await);
        // Beyond what is reserved, so that it has to look at the clock as it is now.
        clock.pause(Duration::from_secs(11)).await;
        made.extend(some(&ids, 5000).await);
        if round == 0 {
            clock.pause(Duration::from_secs(11)).await;
            made.push(ids.next().await.unwrap());
            assert_eq!(made.last().unwrap().time(), clock.wall(), "a clock that goes on is followed");
        }
        ids.release().await.unwrap();
    }
    assert_growing(&made);
}

/// A clock that is set back before the first id does not shrink what is reserved: ids up to there may be made, and a
/// successor begins above them, whatever its clock shows.
pub(super) async fn what_is_reserved_is_never_given_back(fixture: Fixture) {
    let (clock, name) = (fixture.time(), fixture.name("shrinks"));
    let (one, other) = (fixture.client().await, fixture.client().await);
    let first = only(&one, &name, 1).claim().await.unwrap();
    clock.pause(Duration::from_secs(11)).await;
    clock.set_wall(-HOUR / 60);
    let mut made = some(&first, 10).await;
    clock.pause(Duration::from_secs(45)).await;
    made.extend(some(&first, 10).await);
    first.release().await.unwrap();
    clock.set_wall(-HOUR / 40);
    let second = only(&other, &name, 1).claim().await.unwrap();
    made.extend(some(&second, 10).await);
    assert_growing(&made);
}

/// Where the reservation of a number cannot be read, or leaves no time, another number is taken.
pub(super) async fn a_spoilt_number_is_passed_over(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("spoilt"));
    let backend = fixture.backend(&Script::new()).await;
    let first = client.ids(&name).machines(0..=2).claim().await.unwrap();
    let (held, id) = (first.machine(), first.guard().id());
    for (machine, text) in
        (0..=2).filter(|machine| *machine != held).zip(["nonsense", &format!("{} 1 {id}", u64::MAX)])
    {
        let cell = format!("ids:ids:{name}:{machine}");
        let written = backend.write_cell(&cell, Expect::Absent, text.as_bytes(), None).await.unwrap();
        assert!(matches!(written, CellWrite::Written(_)), "{cell}");
    }
    let refused = refusal(client.ids(&name).machines(0..=2).claim().await);
    assert!(matches!(refused.kind(), ErrorKind::Internal | ErrorKind::Unsupported), "{refused}");
    first.release().await.unwrap();
    for _ in 0..8 {
        let again = client.ids(&name).machines(0..=2).claim().await.unwrap();
        assert_eq!(again.machine(), held);
        again.release().await.unwrap();
    }
}

/// A process that slept for longer than its lease makes no id when it wakes.
pub(super) async fn one_who_slept_beyond_the_lease_makes_no_id(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("slept"));
    let ids = client.ids(&name).ttl("10s").claim().await.unwrap();
    ids.next().await.unwrap();
    fixture.time().suspend(Duration::from_secs(11));
    assert_eq!(refusal(ids.next().await).kind(), ErrorKind::Lost);
}

/// Without a word from the store no id is made beyond what was reserved; with one they go on.
pub(super) async fn nothing_is_made_beyond_what_was_reserved(fixture: Fixture) {
    let script = Script::new();
    let (client, name) = (fixture.scripted(&script).await, fixture.name("reserved"));
    let ids = client.ids(&name).ttl("1h").claim().await.unwrap();
    let before = some(&ids, 10).await;
    script.always(Verb::WriteCell, Fault::Err(ErrorKind::Unavailable));
    fixture.time().pause(Duration::from_secs(9)).await;
    assert_growing(&[before, some(&ids, 10).await].concat());
    fixture.time().pause(Duration::from_secs(2)).await;
    assert_eq!(refusal(ids.next().await).kind(), ErrorKind::Unavailable);
    script.heal();
    eventually(async || ids.next().await.is_ok()).await;
}

/// There are 1024 numbers, each is given once, and whoever comes then is told.
pub(super) async fn numbers_are_given_to_all_and_no_more(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("all"));
    let mut claimed = Vec::new();
    for _ in 0..1024 {
        claimed.push(client.ids(&name).claim().await.unwrap());
    }
    let machines: BTreeSet<u16> = claimed.iter().map(Ids::machine).collect();
    assert_eq!((machines.len(), machines.first(), machines.last()), (1024, Some(&0), Some(&1023)));
    let refused = refusal(client.ids(&name).claim().await);
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert!(refused.to_string().contains("all 1024 machine numbers are taken"), "{refused}");
    let given = claimed.swap_remove(700);
    let free = given.machine();
    given.release().await.unwrap();
    assert_eq!(client.ids(&name).claim().await.unwrap().machine(), free);
}
