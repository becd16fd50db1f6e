//! Transactions, put together from conditions and acts: how our requests read.

use crate::{
    names::Stretch,
    proto::{
        By, Compare, DeleteRangeRequest, KeyValue, Number, Order, PutRequest, RangeRequest, RangeResponse,
        Relation, Request, RequestOp, Response, Target, TxnRequest, TxnResponse,
    },
};

/// Nothing is there: of a single key, or of all of a stretch.
pub(crate) fn absent(stretch: &Stretch) -> Compare {
    create(Relation::Equal, stretch.key.clone(), stretch.end.clone(), 0)
}

/// This key does not exist.
pub(crate) fn no_key(key: &[u8]) -> Compare {
    create(Relation::Equal, key.to_vec(), Vec::new(), 0)
}

/// This key exists.
pub(crate) fn exists(key: &[u8]) -> Compare {
    create(Relation::Greater, key.to_vec(), Vec::new(), 0)
}

/// This key was made at this revision, and has not been deleted since.
pub(crate) fn made_at(key: &[u8], revision: i64) -> Compare {
    create(Relation::Equal, key.to_vec(), Vec::new(), revision)
}

/// Nobody in this stretch came before this revision.
pub(crate) fn none_before(stretch: &Stretch, revision: i64) -> Compare {
    // Not true of an empty stretch, where zero is compared: there `absent` is asked for.
    create(Relation::Greater, stretch.key.clone(), stretch.end.clone(), revision - 1)
}

/// Nothing in this stretch was written after this revision. What was deleted is not noticed.
pub(crate) fn unchanged(stretch: &Stretch, since: i64) -> Compare {
    Compare {
        result: Relation::Less as i32,
        target: Target::Mod as i32,
        key: stretch.key.clone(),
        number: Some(Number::Mod(since + 1)),
        range_end: stretch.end.clone(),
    }
}

/// This key was last written at this revision; zero if it must not exist.
pub(crate) fn written_at(key: &[u8], revision: i64) -> Compare {
    Compare {
        result: Relation::Equal as i32,
        target: Target::Mod as i32,
        key: key.to_vec(),
        number: Some(Number::Mod(revision)),
        range_end: Vec::new(),
    }
}

fn create(relation: Relation, key: Vec<u8>, range_end: Vec<u8>, revision: i64) -> Compare {
    Compare {
        result: relation as i32,
        target: Target::Create as i32,
        key,
        number: Some(Number::Create(revision)),
        range_end,
    }
}

pub(crate) fn put(key: Vec<u8>, value: Vec<u8>, lease: i64) -> RequestOp {
    op(Request::Put(PutRequest { key, value, lease, ..PutRequest::default() }))
}

/// Writes a value and leaves the lease as it is.
pub(crate) fn rewrite(key: Vec<u8>, value: Vec<u8>) -> RequestOp {
    op(Request::Put(PutRequest { key, value, ignore_lease: true, ..PutRequest::default() }))
}

/// Moves a key to another lease and leaves the value as it is.
pub(crate) fn move_to(key: Vec<u8>, lease: i64) -> RequestOp {
    op(Request::Put(PutRequest { key, lease, ignore_value: true, ..PutRequest::default() }))
}

pub(crate) fn delete(key: Vec<u8>) -> RequestOp {
    op(Request::Delete(DeleteRangeRequest { key }))
}

pub(crate) fn get(key: Vec<u8>) -> RequestOp {
    op(Request::Range(RangeRequest { key, ..RangeRequest::default() }))
}

/// All of a stretch.
pub(crate) fn list(stretch: &Stretch) -> RequestOp {
    let (key, range_end) = (stretch.key.clone(), stretch.end.clone());
    op(Request::Range(RangeRequest { key, range_end, ..RangeRequest::default() }))
}

/// Who came last to a stretch, not after this revision unless that is zero; keys only.
pub(crate) fn latest(stretch: &Stretch, limit: i64, max_create_revision: i64) -> RequestOp {
    op(Request::Range(RangeRequest {
        key: stretch.key.clone(),
        range_end: stretch.end.clone(),
        limit,
        sort_order: Order::Descend as i32,
        sort_target: By::Create as i32,
        keys_only: true,
        max_create_revision,
        ..RangeRequest::default()
    }))
}

/// How many there are in a stretch.
pub(crate) fn count(stretch: &Stretch) -> RequestOp {
    let (key, range_end) = (stretch.key.clone(), stretch.end.clone());
    op(Request::Range(RangeRequest { key, range_end, count_only: true, ..RangeRequest::default() }))
}

pub(crate) fn nested(txn: TxnRequest) -> RequestOp {
    op(Request::Txn(txn))
}

fn op(request: Request) -> RequestOp {
    RequestOp { request: Some(request) }
}

impl TxnResponse {
    pub(crate) fn revision(&self) -> i64 {
        self.header.map_or(0, |header| header.revision)
    }

    pub(crate) fn term(&self) -> u64 {
        self.header.map_or(0, |header| header.raft_term)
    }

    /// What was read by the act at this place.
    pub(crate) fn range(&self, at: usize) -> Option<&RangeResponse> {
        match self.responses.get(at).and_then(|op| op.response.as_ref()) {
            Some(Response::Range(range)) => Some(range),
            _ => None,
        }
    }

    /// The first key read by the act at this place.
    pub(crate) fn first(&self, at: usize) -> Option<&KeyValue> {
        self.range(at).and_then(|range| range.kvs.first())
    }

    /// How many keys all acts of it deleted.
    pub(crate) fn deleted(&self) -> i64 {
        let deleted = |op: &crate::proto::ResponseOp| match &op.response {
            Some(Response::Delete(delete)) => delete.deleted,
            _ => 0,
        };
        self.responses.iter().map(deleted).sum()
    }
}
