//! What operators see: one name, or a page of names.
//!
//! memcached has no order and no way to ask for keys by their beginning. Its crawler can write out all of them, which is
//! what a listing goes by: slow on a large cache, and none of a lock's business. It walks the hash table; walking the
//! lists of what was used last would miss items that are moved between them meanwhile.

use std::time::Duration;

use leasehold_core::{
    Error, ErrorKind, Operation, Result,
    backend::{LockPage, LockState},
    time::Clock,
};

use crate::{
    error::Fault,
    items,
    names::{Called, Sort, decoded},
    pool::Pool,
    store, tick,
};

/// How many items are read in one request.
pub(crate) const TOGETHER: usize = 64;

/// How many names one page looks at beyond those it shows: what has run out is not shown.
const BLANKS: usize = 4096;

/// The crawler serves one at a time; how often it is asked again, and after what pause.
const ASKS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(20);

/// Everything known of one name.
pub(crate) async fn inspect(pool: &Pool, name: &str) -> Result<Option<LockState>> {
    let seen = items::look(pool, Sort::Record, name).await?;
    let (now, content) = (seen.now, seen.content.clone());
    seen.leave(pool);
    let Some(content) = content else { return Ok(None) };
    let record = store::decoded(name, &content)?;
    Ok(record.view(name, &store::around(now)).map(believed))
}

/// One page of names in use, ordered by name. It may be short, even empty, and not the last: `next` tells.
pub(crate) async fn list(pool: &Pool, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
    let now = items::now(pool).await?;
    let limit = limit.max(1);
    let (mut page, mut seen, mut last) = (LockPage::default(), 0, None);
    let mut names = names(pool, Sort::Record, prefix, cursor).await?.into_iter().peekable();
    while names.peek().is_some() {
        let some: Vec<String> = names.by_ref().take(TOGETHER).collect();
        for (name, content) in items::look_at_all(pool, &keys(Sort::Record, &some)).await? {
            if page.locks.len() == limit || seen == limit.saturating_add(BLANKS) {
                page.next = last;
                return Ok(page);
            }
            let record = store::decoded(&name, &content).map_err(|error| error.about(&name))?;
            page.locks.extend(record.view(&name, &store::around(now)).map(believed));
            (last, seen) = (Some(name), seen + 1);
        }
    }
    Ok(page)
}

/// The leases as their holders believe them.
fn believed(mut state: LockState) -> LockState {
    state.holders.iter_mut().for_each(tick::shorten);
    state
}

pub(crate) fn keys(sort: Sort, names: &[String]) -> Vec<String> {
    names.iter().map(|name| sort.key(name)).collect()
}

/// All names of this sort that begin with `prefix` and come after `cursor`, in order.
pub(crate) async fn names(
    pool: &Pool,
    sort: Sort,
    prefix: &str,
    cursor: Option<&str>,
) -> Result<Vec<String>> {
    let (mut names, mut hashed) = (Vec::new(), Vec::new());
    for line in dump(pool).await? {
        let key = line.strip_prefix("key=").and_then(|rest| decoded(rest.split(' ').next()?));
        let Some(key) = key else { continue };
        match sort.name(&key) {
            Some(Called::Written(name)) => names.push(name),
            Some(Called::Hashed) => hashed.push(key),
            None => {}
        }
    }
    for keys in hashed.chunks(TOGETHER) {
        names.extend(items::look_at_all(pool, keys).await?.into_iter().map(|(name, _)| name));
    }
    names.retain(|name| name.starts_with(prefix) && cursor.is_none_or(|cursor| name.as_str() > cursor));
    names.sort_unstable();
    // The crawler may meet an item twice when it is moved meanwhile.
    names.dedup();
    Ok(names)
}

async fn dump(pool: &Pool) -> Result<Vec<String>> {
    for _ in 0..ASKS {
        // A connection of its own: the crawler writes to it from another thread than its own commands.
        match pool.fresh().await?.list("lru_crawler metadump hash").await {
            Err(Fault::Refused(line)) if line.starts_with("BUSY") => Clock::boot().pause(PAUSE).await,
            Err(Fault::Refused(line)) if line.contains("not allowed") || line.contains("disabled") => {
                let message =
                    "this memcached does not list its keys; start it with its crawler (-o lru_crawler)";
                return Err(Error::new(ErrorKind::Unsupported, Operation::Inspect, message));
            }
            dumped => return dumped.map(|(_, lines)| lines).map_err(Fault::of_read),
        }
    }
    let message = "memcached's crawler is busy; try again later";
    Err(Error::new(ErrorKind::Unavailable, Operation::Inspect, message))
}
