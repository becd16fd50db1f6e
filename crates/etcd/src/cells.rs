//! Cells: one key each; its version is the revision at which it was last written.
//!
//! A cell that ends has a lease of its own. What a write leaves of such a lease, its own if it was too late or that of the
//! value before, is ended at once: leases of a day would pile up. One that cannot be ended ends by itself.

use std::time::Duration;

use leasehold_core::{
    Operation, Result,
    backend::{Cell, CellPage, CellWrite, Expect},
};

use crate::{
    error::Fault,
    names::{self, Stretch},
    proto::{KeyValue, RangeRequest, RangeResponse, TxnRequest},
    session,
    store::Shared,
    txn,
    wire::path,
};

pub(crate) async fn read(store: &Shared, name: &str) -> Result<Option<Cell>> {
    let request = RangeRequest { key: names::cell(name), ..RangeRequest::default() };
    let found: RangeResponse = store.wire.call(path::RANGE, request).await.map_err(refused)?;
    Ok(found.kvs.into_iter().find_map(cell))
}

pub(crate) async fn write(
    store: &Shared,
    name: &str,
    expect: Expect,
    value: &[u8],
    ttl: Option<Duration>,
) -> Result<CellWrite> {
    let lease = match ttl {
        Some(ttl) => session::grant(&store.wire, ttl).await.map_err(refused)?.id,
        None => 0,
    };
    let key = names::cell(name);
    let expected = match expect {
        Expect::Absent => txn::no_key(&key),
        Expect::Version(version) => txn::written_at(&key, version.cast_signed()),
    };
    let request = TxnRequest {
        compare: vec![expected],
        success: vec![txn::get(key.clone()), txn::put(key, value.to_vec(), lease)],
        failure: Vec::new(),
    };
    let answer = store.wire.txn(request).await.map_err(refused)?;
    let left = if answer.succeeded { answer.first(0).map_or(0, |before| before.lease) } else { lease };
    if left != 0 {
        drop(session::revoke(&store.wire, left).await);
    }
    let version = answer.revision().cast_unsigned();
    Ok(if answer.succeeded { CellWrite::Written(version) } else { CellWrite::Conflict })
}

pub(crate) async fn list(
    store: &Shared,
    prefix: &str,
    cursor: Option<&str>,
    limit: usize,
) -> Result<CellPage> {
    let Stretch { key, end } = names::cells(prefix);
    // The first key after another is that one with a zero behind it.
    let key = cursor.map_or(key, |cursor| [names::cell(cursor), vec![0]].concat());
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let request = RangeRequest { key, range_end: end, limit, ..RangeRequest::default() };
    let found: RangeResponse = store.wire.call(path::RANGE, request).await.map_err(refused)?;
    let cells: Vec<Cell> = found.kvs.into_iter().filter_map(cell).collect();
    let next = cells.last().filter(|_| found.more).map(|cell| cell.name.clone());
    Ok(CellPage { cells, next })
}

fn cell(kv: KeyValue) -> Option<Cell> {
    let name = names::cell_name(&kv.key)?.to_owned();
    Some(Cell { name, version: kv.mod_revision.cast_unsigned(), value: kv.value })
}

fn refused(fault: Fault) -> leasehold_core::Error {
    fault.into_error(Operation::Cell)
}
