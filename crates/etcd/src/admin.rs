//! What people see and do: who holds and who waits, and the forced release.

use std::{collections::BTreeMap, time::Duration};

use leasehold_core::{
    ClaimId, Error, Key, Operation, Result,
    backend::{BreakOutcome, Broken, Kind, LockPage, LockState, Mode, Waiter},
};

use crate::{
    claim::holders,
    entry::Entry,
    error::Fault,
    names::{self, Folder, Stretch},
    proto::{KeyValue, RangeRequest, RangeResponse, TxnRequest},
    scene::{self, Held},
    session,
    store::Shared,
    txn,
    wire::path,
};

/// How long it is remembered who broke a lock after its lease would have been over.
const MEMORY: Duration = Duration::from_secs(60);

/// How many keys are read at a time for a listing.
const KEYS: i64 = 512;

/// Everything known of one name.
pub(crate) async fn inspect(store: &Shared, key: &Key) -> Result<Option<LockState>> {
    let found = range(store, Folder::of(key).all(), 0).await?;
    view(store, key.full(), &found.kvs).await
}

/// Names in use, a page at a time, in the order of their keys. A cursor is the last name of the page before.
pub(crate) async fn list(
    store: &Shared,
    prefix: &str,
    cursor: Option<&str>,
    limit: usize,
) -> Result<LockPage> {
    let Stretch { mut key, end } = names::names(prefix);
    if let Some(cursor) = cursor {
        key = names::after(cursor);
    }
    let mut page = LockPage::default();
    loop {
        let found = range(store, Stretch { key: key.clone(), end: end.clone() }, KEYS).await?;
        let mut names = by_name(&found.kvs);
        if found.more && names.len() > 1 {
            // The last one may go on in the next stretch.
            names.pop_last();
        }
        for (_, (name, kvs)) in names {
            if page.locks.len() >= limit {
                page.next = page.locks.last().map(|state| state.name.clone());
                return Ok(page);
            }
            key = names::after(&name);
            let whole = if found.more {
                inspect(store, &Key::existing("", &name)?).await
            } else {
                view(store, &name, &kvs).await
            };
            page.locks.extend(whole?);
        }
        if !found.more {
            return Ok(page);
        }
    }
}

/// The keys of each name, in the order of keys.
fn by_name(kvs: &[KeyValue]) -> BTreeMap<Vec<u8>, (String, Vec<KeyValue>)> {
    let mut names: BTreeMap<Vec<u8>, (String, Vec<KeyValue>)> = BTreeMap::new();
    for kv in kvs {
        if let Some((name, _, _)) = names::parse(&kv.key) {
            let order = names::after(&name);
            names.entry(order).or_insert_with(|| (name, Vec::new())).1.push(kv.clone());
        }
    }
    names
}

async fn range(store: &Shared, stretch: Stretch, limit: i64) -> Result<RangeResponse> {
    let request = RangeRequest { key: stretch.key, range_end: stretch.end, limit, ..RangeRequest::default() };
    store.wire.call(path::RANGE, request).await.map_err(|fault: Fault| fault.into_error(Operation::Inspect))
}

/// What these keys of one name mean; `None` if it is not in use.
async fn view(store: &Shared, name: &str, kvs: &[KeyValue]) -> Result<Option<LockState>> {
    let (mut held, mut waiters, mut latch) = (Vec::new(), Vec::<(bool, i64, Waiter)>::new(), None);
    for kv in kvs {
        let Some((_, part, id)) = names::parse(&kv.key) else { continue };
        match part {
            "latch" => latch = Some(Kind::Latch { count: scene::count_of(kv)? }),
            "hs" | "hx" => held.push(scene::held(kv)?),
            _ => {
                let Ok(id) = id.parse::<ClaimId>() else { continue };
                let fair = part.starts_with('f');
                waiters.push((!fair, kv.create_revision, Entry::decode(&kv.value)?.waiter(id, fair)));
            }
        }
    }
    held.sort_unstable_by_key(|held: &Held| held.fence);
    waiters.sort_by_key(|(outside, came, _)| (*outside, *came));
    let modes = held.iter().map(|held| held.entry.mode).chain(waiters.iter().map(|(_, _, w)| w.mode));
    let kind = latch.or_else(|| modes.into_iter().find_map(kind_of));
    let Some(kind) = kind else { return Ok(None) };
    let fence = held.last().map_or(0, |held| held.fence.cast_unsigned());
    let mut state = LockState::new(name, kind, fence);
    state.holders = holders(store, &held).await;
    state.waiters = waiters.into_iter().map(|(_, _, waiter)| waiter).collect();
    Ok(Some(state))
}

fn kind_of(mode: Mode) -> Option<Kind> {
    match mode {
        Mode::Exclusive | Mode::Shared => Some(Kind::Lock),
        Mode::Permits { of, .. } => Some(Kind::Semaphore { of: of.get() }),
        _ => None,
    }
}

/// Force-releases exactly this acquisition. Its lease ends with it, so that no late request of it can win again.
pub(crate) async fn break_hold(
    store: &Shared,
    key: &Key,
    id: ClaimId,
    broken: &Broken,
) -> Result<BreakOutcome> {
    let refused = |fault: Fault| fault.into_error(Operation::Break);
    let found = range(store, Folder::of(key).holders(), 0).await?;
    let named = |kv: &&KeyValue| names::parse(&kv.key).is_some_and(|(_, _, found)| found == id.to_string());
    let Some(held) = found.kvs.iter().find(named) else { return Ok(BreakOutcome::NotHeld) };
    let lease = session::look(&store.wire, held.lease).await.map_err(refused)?;
    let keep = lease.map_or(MEMORY, |lease| lease.ttl + MEMORY);
    let mark = session::grant(&store.wire, keep).await.map_err(refused)?;
    let told = serde_json::to_vec(broken).map_err(|error| {
        Error::config(Operation::Break, "the reason cannot be written down").because(error)
    })?;
    let request = TxnRequest {
        compare: vec![txn::made_at(&held.key, held.create_revision)],
        success: vec![txn::delete(held.key.clone()), txn::put(names::broken(id), told, mark.id)],
        failure: Vec::new(),
    };
    let answer = store.wire.txn(request).await.map_err(refused)?;
    let ended = if answer.succeeded { held.lease } else { mark.id };
    // The lock is broken by now, whatever becomes of its lease.
    if let Err(fault) = session::revoke(&store.wire, ended).await {
        tracing::debug!(?fault, "a lease was left to run out");
    }
    Ok(if answer.succeeded { BreakOutcome::Broken } else { BreakOutcome::NotHeld })
}
