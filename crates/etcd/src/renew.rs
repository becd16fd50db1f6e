//! Renewals: leases go on, and the keys they are for are looked at by a majority, side by side in one round trip.
//!
//! A lease alone proves nothing: the key may have been deleted, and a leader that was replaced without knowing it may still
//! say that a lease goes on. So both are asked at once, and the lease's answer counts only if it is not of an earlier term
//! than the majority's: then the key was there, and its leader led, after the renewal was sent.

use futures_util::future::join_all;
use leasehold_core::{
    Error, ErrorKind, Operation, Result,
    backend::{Renew, Renewal},
    time::Clock,
};

use crate::{
    claim::broken,
    error::Fault,
    names::{self, Folder},
    proto::{KeyValue, TxnRequest, TxnResponse},
    session::{self, Lease, Prolonged},
    store::Shared,
    txn,
};

/// How many fit in one transaction with two acts each; a server takes 128 acts unless told otherwise.
const CHUNK: usize = 50;

/// Renews all of these.
pub(crate) async fn renew(store: &Shared, batch: &[Renew]) -> Vec<Result<Renewal>> {
    let chunks = batch.chunks(CHUNK).map(|chunk| renew_some(store, chunk));
    join_all(chunks).await.into_iter().flatten().collect()
}

async fn renew_some(store: &Shared, chunk: &[Renew]) -> Vec<Result<Renewal>> {
    let known: Vec<Option<Lease>> = chunk.iter().map(|renew| fitting(store, renew)).collect();
    let ids: Vec<i64> = known.iter().flatten().map(|lease| lease.id).collect();
    let sent = Clock::boot().now();
    let (seen, prolonged) = tokio::join!(look(store, chunk), session::prolong(&store.wire, &ids));
    let seen = match seen {
        Ok(seen) => seen,
        Err(fault) => return chunk.iter().map(|_| Err(fault.clone().into_error(Operation::Renew))).collect(),
    };
    let mut prolonged = prolonged.map(Vec::into_iter);
    let each = chunk.iter().zip(known).enumerate().map(|(at, (renew, lease))| {
        let answer = lease.map(|lease| match &mut prolonged {
            Ok(answers) => answers.next().map(|answer| (lease.prolonged(sent, answer, seen.term()), answer)),
            Err(_) => None,
        });
        let (key, mark) = (seen.first(2 * at).cloned(), seen.first(2 * at + 1).and_then(broken));
        let term = seen.term();
        let unanswered = prolonged.as_ref().err().cloned();
        async move {
            let Some(key) = key else {
                store.session.forget(renew.id);
                return Ok(Renewal::Lost(mark));
            };
            match answer {
                Some(Some((lease, answer))) if lease.id == key.lease => {
                    judge(store, renew, lease, answer, term)
                }
                Some(None) => Err(unanswered
                    .unwrap_or_else(|| Fault::Unknown("a lease was not answered".to_owned()))
                    .into_error(Operation::Renew)),
                _ => anew(store, renew, &key).await,
            }
        }
    });
    join_all(each).await
}

/// The lease we know an acquisition to hold by, if it is long enough.
fn fitting(store: &Shared, renew: &Renew) -> Option<Lease> {
    store.session.held(renew.id).filter(|lease| lease.ttl >= renew.ttl)
}

async fn look(store: &Shared, chunk: &[Renew]) -> Result<TxnResponse, Fault> {
    let acts = chunk.iter().flat_map(|renew| {
        let key = Folder::of(&renew.key).held(renew.mode, renew.id);
        [txn::get(key), txn::get(names::broken(renew.id))]
    });
    store.wire.txn(TxnRequest { success: acts.collect(), ..TxnRequest::default() }).await
}

fn judge(store: &Shared, renew: &Renew, lease: Lease, answer: Prolonged, term: u64) -> Result<Renewal> {
    if answer.ttl.is_zero() {
        store.session.forget(renew.id);
        return Ok(Renewal::Lost(None));
    }
    if !answer.counts_beside(term) {
        let message = "the leader changed meanwhile, so this does not count; try again";
        return Err(Error::new(ErrorKind::Unavailable, Operation::Renew, message));
    }
    store.session.update(renew.id, lease);
    Ok(Renewal::Renewed { granted: answer.ttl.min(renew.ttl) })
}

/// Renews what hangs on a lease we do not know, or on one that is too short: its length never changes, so the key moves.
async fn anew(store: &Shared, renew: &Renew, key: &KeyValue) -> Result<Renewal> {
    let refused = |fault: Fault| fault.into_error(Operation::Renew);
    let wire = &store.wire;
    let Some(lease) = session::look(wire, key.lease).await.map_err(refused)? else {
        return Ok(Renewal::Lost(None));
    };
    if lease.ttl >= renew.ttl {
        let sent = Clock::boot().now();
        let ids = [lease.id];
        let (seen, prolonged) =
            tokio::join!(look(store, std::slice::from_ref(renew)), session::prolong(wire, &ids));
        let (seen, prolonged) = (seen.map_err(refused)?, prolonged.map_err(refused)?);
        if seen.first(0).is_none() {
            return Ok(Renewal::Lost(seen.first(1).and_then(broken)));
        }
        let Some(answer) = prolonged.first() else { return Ok(Renewal::Lost(None)) };
        return judge(store, renew, lease.prolonged(sent, *answer, seen.term()), *answer, seen.term());
    }
    let longer = session::grant(wire, renew.ttl).await.map_err(refused)?;
    let request = TxnRequest {
        compare: vec![txn::made_at(&key.key, key.create_revision)],
        success: vec![txn::move_to(key.key.clone(), longer.id)],
        failure: vec![txn::get(names::broken(renew.id))],
    };
    let answer = wire.txn(request).await.map_err(refused)?;
    if !answer.succeeded {
        store.session.give_back(longer);
        return Ok(Renewal::Lost(answer.first(0).and_then(broken)));
    }
    store.session.update(renew.id, longer);
    Ok(Renewal::Renewed { granted: longer.left().min(renew.ttl) })
}
