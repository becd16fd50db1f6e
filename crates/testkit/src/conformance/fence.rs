//! Fences grow, whatever ends a hold.

use leasehold_core::backend::{BreakOutcome, Mode};

use super::{
    Fixture,
    probe::{ghost, permits, take},
};

/// Across release, drop, expiry, forced release, shutdown and other names in between, each fence is greater.
pub(super) async fn fences_grow_whatever_ends_a_hold(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("grows"));
    let mut last = 0;
    let mut grown = |fence: u64| {
        assert!(fence > last, "{fence} after {last}");
        last = fence;
    };
    let released = take(&client.lock(&name)).await;
    grown(released.fence());
    released.release().await.unwrap();

    let dropped = client.lock(&name).acquire().await.unwrap();
    grown(dropped.fence());
    drop(dropped);

    client.idle().await;
    let expired = ghost(&fixture, &name, Mode::Exclusive, fixture.brief().await).await;
    grown(expired.fence);

    let broken = client.lock(&name).acquire().await.unwrap();
    grown(broken.fence());
    assert_eq!(client.break_hold(&name, broken.id(), "test").await.unwrap(), BreakOutcome::Broken);

    let closing = fixture.client().await;
    let closed = closing.lock(&name).acquire().await.unwrap();
    grown(closed.fence());
    closing.shutdown("20s").await.unwrap();

    for _ in 0..30 {
        take(&client.lock(&fixture.name("other"))).await.release().await.unwrap();
    }
    let last = client.lock(&name).acquire().await.unwrap();
    grown(last.fence());
    last.release().await.unwrap();
}

/// Readers have fences of their own, and a writer's exceeds them all.
pub(super) async fn readers_have_fences_of_their_own(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("readers"));
    let before = take(&client.lock(&name)).await;
    let mut fences = vec![before.fence()];
    before.release().await.unwrap();
    let mut readers = Vec::new();
    for client in [&client, &other, &client] {
        readers.push(take(&client.rwlock(&name).read()).await);
    }
    fences.extend(readers.iter().map(leasehold_core::Guard::fence));
    drop(readers);
    let writer = client.rwlock(&name).write().acquire().await.unwrap();
    fences.push(writer.fence());
    assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
    writer.release().await.unwrap();
}

/// Permits have fences of their own, the dead holder's included.
pub(super) async fn permits_have_fences_of_their_own(fixture: Fixture) {
    let (client, name) = (fixture.client().await, fixture.name("permits"));
    let one = take(&client.semaphore(&name, 3).permits(1)).await;
    let dead = ghost(&fixture, &name, permits(2, 3), fixture.brief().await).await;
    let two = client.semaphore(&name, 3).permits(2).acquire().await.unwrap();
    let fences = [one.fence(), dead.fence, two.fence()];
    assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
    one.release().await.unwrap();
    two.release().await.unwrap();
    let lock = client.lock(&name).acquire().await.unwrap();
    assert!(lock.fence() > fences[2], "the name is a lock now, and its fences go on");
    lock.release().await.unwrap();
}

/// What operators see is the fence a holder has.
pub(super) async fn the_store_shows_the_fence_it_gave(fixture: Fixture) {
    let (client, other, name) = (fixture.client().await, fixture.client().await, fixture.name("shows"));
    let guard = take(&client.lock(&name)).await;
    let state = super::probe::state(&other, &name).await;
    assert_eq!((state.holders[0].fence, state.fence), (guard.fence(), guard.fence()));
    assert_eq!(guard.guarantee(), client.info().guarantee);
    guard.release().await.unwrap();
}
