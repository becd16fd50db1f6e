//! Cells: one item each, `VERSION UNTIL VALUE`.
//!
//! A version begins at the server's time, as fences do, so that one which was given is not given again after the cell
//! is gone. A cell may be evicted like everything in memcached.

use std::time::Duration;

use leasehold_core::{
    Result,
    backend::{Cell, CellPage, CellWrite, Expect, record::Moment},
};

use crate::{
    admin,
    error::foreign,
    items::{self, Seen, Write},
    names::Sort,
    pool::Pool,
    tick::{LAG, Tick},
};

pub(crate) async fn read(pool: &Pool, name: &str) -> Result<Option<Cell>> {
    let seen = items::look(pool, Sort::Cell, name).await?;
    let found = found(&seen, name);
    seen.leave(pool);
    found
}

pub(crate) async fn write(
    pool: &Pool,
    name: &str,
    expect: Expect,
    value: &[u8],
    ttl: Option<Duration>,
) -> Result<CellWrite> {
    let seen = items::look(pool, Sort::Cell, name).await?;
    let wanted = match expect {
        Expect::Absent => None,
        Expect::Version(version) => Some(version),
    };
    let now = seen.now;
    let old = match seen.content.as_deref().map(opened) {
        Some(None) => return Err(foreign(&Sort::Cell.key(name))),
        Some(Some((version, _, _))) => version,
        None => 0,
    };
    if found(&seen, name)?.map(|cell| cell.version) != wanted {
        seen.leave(pool);
        return Ok(CellWrite::Conflict);
    }
    let version = now.floor().max(old + 1);
    let until = ttl.map(|ttl| Moment((now.moment().0).saturating_add(micros(ttl + LAG))));
    let content = sealed(version, until, value);
    let life = until.map_or(0, |until| now.life_until(until));
    match seen.write(pool, name, &content, life).await? {
        Write::Written => Ok(CellWrite::Written(version)),
        Write::Outrun => Ok(CellWrite::Conflict),
    }
}

/// One page, ordered by name.
pub(crate) async fn list(pool: &Pool, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
    let now = items::now(pool).await?;
    let mut page = CellPage::default();
    let mut names = admin::names(pool, Sort::Cell, prefix, cursor).await?.into_iter().peekable();
    while names.peek().is_some() {
        let some: Vec<String> = names.by_ref().take(admin::TOGETHER).collect();
        for (name, content) in items::look_at_all(pool, &admin::keys(Sort::Cell, &some)).await? {
            let Some(cell) = live(name, &content, now) else { continue };
            if page.cells.len() == limit.max(1) {
                page.next = page.cells.last().map(|cell| cell.name.clone());
                return Ok(page);
            }
            page.cells.push(cell);
        }
    }
    Ok(page)
}

fn found(seen: &Seen, name: &str) -> Result<Option<Cell>> {
    let Some(content) = &seen.content else { return Ok(None) };
    opened(content).ok_or_else(|| foreign(&Sort::Cell.key(name)))?;
    Ok(live(name.to_owned(), content, seen.now))
}

/// The cell, unless its time is over.
fn live(name: String, content: &[u8], now: Tick) -> Option<Cell> {
    let (version, until, value) = opened(content)?;
    let lives = until.is_none_or(|until| until > now.moment());
    lives.then(|| Cell { name, version, value: value.to_vec() })
}

fn sealed(version: u64, until: Option<Moment>, value: &[u8]) -> Vec<u8> {
    let until = until.map_or_else(|| "-".to_owned(), |until| until.0.to_string());
    let mut content = format!("{version} {until} ").into_bytes();
    content.extend_from_slice(value);
    content
}

fn opened(content: &[u8]) -> Option<(u64, Option<Moment>, &[u8])> {
    let mut parts = content.splitn(3, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(parts.next()?).ok();
    let version = word()?.parse().ok().filter(|version| *version < u64::MAX)?;
    let until = match word()? {
        "-" => None,
        text => Some(Moment(text.parse().ok()?)),
    };
    Some((version, until, parts.next()?))
}

fn micros(duration: Duration) -> u64 {
    duration.as_micros().try_into().unwrap_or(u64::MAX)
}
