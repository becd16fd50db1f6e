//! Cells: one node each, changed by compare-and-set on the node's version.
//!
//! The version told to users is the id of the transaction that wrote the cell: it never repeats, not even for a cell
//! that was gone in between. A cell with a life of its own keeps that before its value and counts it on the server's
//! clock from its last write. What has run out is removed an hour later by whoever lists cells: not at once, because a
//! writer that has read it before must not meet a new node with an old version number.

use std::time::Duration;

use futures_util::future::try_join_all;
use leasehold_core::{
    Error, ErrorKind, Operation,
    backend::{Cell, CellPage, CellWrite, Expect},
};
use zookeeper_client::{CreateMode, Stat};

use crate::{
    error::{Fault, or_none},
    names::{CELLS, decode, encode},
    session::Session,
};

/// How long what has run out stays.
const GRACE: i64 = 3600 * 1000;

/// The life of a cell in milliseconds before its value; zero for ever.
const HEAD: usize = 8;

struct Found {
    cell: Cell,
    stat: Stat,
    /// When its life ends, on the server's clock.
    until: Option<i64>,
}

impl Found {
    fn is_over(&self, now: i64) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

fn path(root: &str, name: &str) -> String {
    format!("{root}/{CELLS}/{}", encode(name))
}

/// The cell as it is in the store, whether it has run out or not.
async fn find(session: &Session, root: &str, name: &str) -> Result<Option<Found>, Fault> {
    let read = session.answered(session.client.get_data(&path(root, name))).await.map(Some);
    let Some((data, stat)) = or_none(read)? else { return Ok(None) };
    let Some((head, value)) = data.split_first_chunk::<HEAD>() else { return Err(Fault::NotSent(odd())) };
    let life = i64::from_be_bytes(*head);
    let until = (life > 0).then(|| stat.mtime.saturating_add(life));
    let cell = Cell { name: name.to_owned(), version: stat.mzxid.cast_unsigned(), value: value.to_vec() };
    Ok(Some(Found { cell, stat, until }))
}

/// Whether it is still there, by the server's clock, which is asked only if that matters.
async fn lives(session: &Session, found: &Found) -> Result<bool, Fault> {
    Ok(found.until.is_none() || !found.is_over(session.prove().await?))
}

pub(crate) async fn read(session: &Session, root: &str, name: &str) -> Result<Option<Cell>, Fault> {
    session.catch_up(&path(root, name)).await?;
    match find(session, root, name).await? {
        Some(found) if lives(session, &found).await? => Ok(Some(found.cell)),
        _ => Ok(None),
    }
}

pub(crate) async fn write(
    session: &Session,
    root: &str,
    (name, expect): (&str, Expect),
    value: &[u8],
    ttl: Option<Duration>,
) -> Result<CellWrite, Fault> {
    let life = ttl.map_or(0, |ttl| i64::try_from(ttl.as_millis().max(1)).unwrap_or(i64::MAX));
    let data = [&life.to_be_bytes()[..], value].concat();
    let found = match find(session, root, name).await? {
        Some(found) => Some((lives(session, &found).await?, found)),
        None => None,
    };
    let written = match (expect, found) {
        (Expect::Absent, None) => {
            let options = session.options(CreateMode::Persistent);
            session.create(&path(root, name), &data, &options).await.map(|(stat, _)| stat)
        }
        (Expect::Absent, Some((false, found))) => rewrite(session, root, &found, &data).await,
        (Expect::Version(version), Some((true, found))) if version == found.cell.version => {
            rewrite(session, root, &found, &data).await
        }
        _ => return Ok(CellWrite::Conflict),
    };
    match written {
        Ok(stat) => Ok(CellWrite::Written(stat.mzxid.cast_unsigned())),
        Err(fault) if fault.is_node_exists() || fault.is_bad_version() || fault.is_no_node() => {
            Ok(CellWrite::Conflict)
        }
        Err(fault) => Err(fault),
    }
}

async fn rewrite(session: &Session, root: &str, found: &Found, data: &[u8]) -> Result<Stat, Fault> {
    let path = path(root, &found.cell.name);
    session.answered(session.client.set_data(&path, data, Some(found.stat.version))).await
}

pub(crate) async fn list(
    session: &Session,
    root: &str,
    (prefix, cursor, limit): (&str, Option<&str>, usize),
) -> Result<CellPage, Fault> {
    let children = session.children(&format!("{root}/{CELLS}")).await?;
    let mut names: Vec<String> = children
        .iter()
        .filter_map(|node| decode(node))
        .filter(|name| name.starts_with(prefix) && cursor.is_none_or(|cursor| name.as_str() > cursor))
        .collect();
    names.sort_unstable();
    let is_more = names.len() > limit;
    names.truncate(limit);
    let next = names.last().filter(|_| is_more).cloned();
    let found = try_join_all(names.iter().map(|name| find(session, root, name))).await?;
    let now = session.prove().await?;
    let mut cells = Vec::new();
    for found in found.into_iter().flatten() {
        if !found.is_over(now) {
            cells.push(found.cell);
        } else if found.is_over(now - GRACE) {
            let path = path(root, &found.cell.name);
            // Somebody may write it again at this moment: then it stays.
            drop(session.answered(session.client.delete(&path, Some(found.stat.version))).await);
        }
    }
    Ok(CellPage { cells, next })
}

fn odd() -> Error {
    let message = "this is not a cell of ours; was the path used by another program?";
    Error::new(ErrorKind::Internal, Operation::Cell, message)
}
