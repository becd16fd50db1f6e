//! What operators do: look, list, force-release; and what is found by an id alone.

use std::borrow::Cow;

use futures_util::future::{join_all, try_join_all};
use leasehold_core::{
    ClaimId, Error, ErrorKind, Operation,
    backend::{BreakOutcome, Broken, Busy, LockPage, LockState, Mode, Release},
};
use zookeeper_client::{CreateMode, Stat};

use crate::{
    book::Book,
    error::{Fault, or_none},
    latch,
    line::{Downgraded, Line},
    names::{self, Contender, Stand},
    session::Session,
    store::POLL,
    tag::Tag,
};

/// The most holders a busy answer names.
const NAMED: usize = 16;

/// How long the mark of a forced release waits for a holder to read it.
const MARK_LIFE: i64 = 3600 * 1000;

/// The text of a node in here; `None` if it is gone.
pub(crate) async fn read_node(
    session: &Session,
    parent: &str,
    node: &str,
) -> Result<Option<(Vec<u8>, Stat)>, Fault> {
    let path = format!("{parent}/{node}");
    or_none(session.answered(session.client.get_data(&path)).await.map(Some))
}

/// The nodes that bear this id, as the leader knows them.
pub(crate) async fn traces(
    session: &Session,
    parent: &str,
    id: ClaimId,
) -> Result<Vec<(Contender, Stat)>, Fault> {
    // What was sent on a connection that is gone may be committed where we have not heard of it yet.
    or_none(session.answered(session.client.sync(parent)).await)?;
    let line = Line::of(session.children(parent).await?);
    let mut found = Vec::new();
    for contender in line.contenders.into_iter().filter(|contender| contender.id == id) {
        let path = format!("{parent}/{}", contender.node);
        if let Some(stat) = session.answered(session.client.check_stat(&path)).await? {
            found.push((contender, stat));
        }
    }
    Ok(found)
}

/// Removes the nodes that bear this id; says whether there were any.
pub(crate) async fn remove_traces(session: &Session, parent: &str, id: ClaimId) -> Result<bool, Fault> {
    let mut removed = false;
    for (contender, _) in traces(session, parent, id).await? {
        removed |= session.delete(&format!("{parent}/{}", contender.node)).await?;
    }
    Ok(removed)
}

/// Removes what failed tries by this id have left, and nothing else of it.
pub(crate) async fn remove_tries(session: &Session, parent: &str, id: ClaimId) -> Result<(), Fault> {
    for (contender, _) in traces(session, parent, id).await? {
        if contender.stand == Stand::Try {
            session.delete(&format!("{parent}/{}", contender.node)).await?;
        }
    }
    Ok(())
}

/// What one who has to wait is told: who holds the name, and who else waits.
pub(crate) async fn busy(
    session: &Session,
    book: &Book,
    (parent, node): (&str, &str),
    (line, downgraded): (&Line, &Downgraded),
) -> Result<Busy, Fault> {
    let (holders, mut waiters) = line.parted(downgraded);
    waiters.retain(|waiter| waiter.stand != Stand::Try);
    let place = waiters.iter().position(|waiter| waiter.node == node);
    let read = holders.iter().take(NAMED).map(|holder| read_node(session, parent, &holder.node));
    let read = join_all(read).await;
    let mut busy = Busy::default();
    for (holder, read) in holders.into_iter().zip(read) {
        if let Some((data, stat)) = read? {
            let mut named = Tag::decode(holder, &data).holder(holder, &stat, session.now());
            named.remaining = book.remaining(named.id).unwrap_or(named.remaining);
            busy.holders.push(named);
        }
    }
    busy.waiters = waiters.len().saturating_sub(usize::from(place.is_some()));
    busy.ahead = place.unwrap_or(0);
    busy.place = place.map(|place| place + 1);
    busy.retry_after = Some(POLL);
    Ok(busy)
}

/// Releases an acquisition by its id alone.
pub(crate) async fn release(session: &Session, parent: &str, id: ClaimId) -> Result<Release, Fault> {
    if remove_traces(session, parent, id).await? {
        return Ok(Release::Released);
    }
    Ok(Release::Gone(take_mark(session, parent, id).await?))
}

/// Who broke this acquisition, if somebody did.
pub(crate) async fn mark(session: &Session, parent: &str, id: ClaimId) -> Result<Option<Broken>, Fault> {
    let read = read_node(session, parent, &names::mark(id)).await?;
    Ok(read.and_then(|(data, _)| serde_json::from_slice(&data).ok()))
}

/// The same, and the mark is read for the last time.
pub(crate) async fn take_mark(session: &Session, parent: &str, id: ClaimId) -> Result<Option<Broken>, Fault> {
    let broken = mark(session, parent, id).await?;
    if broken.is_some() {
        session.delete(&format!("{parent}/{}", names::mark(id))).await?;
    }
    Ok(broken)
}

/// Everything known of one name.
pub(crate) async fn inspect(
    session: &Session,
    book: &Book,
    parent: &str,
    name: &str,
) -> Result<Option<LockState>, Fault> {
    session.catch_up(parent).await?;
    let line = Line::of(session.children(parent).await?);
    forget_old_marks(session, parent, &line).await?;
    let Some(kind) = line.kind() else { return Ok(None) };
    let kind = latch::counted(session, parent, kind).await?;
    let reads = line.contenders.iter().map(|contender| read_node(session, parent, &contender.node));
    let texts = join_all(reads).await;
    let mut people = Vec::new();
    let (mut living, mut downgraded) = (Line::default(), Downgraded::new());
    for (contender, text) in line.contenders.iter().zip(texts) {
        let Some((data, stat)) = text? else { continue };
        let tag = Tag::decode(contender, &data);
        if tag.shared {
            downgraded.insert(contender.node.clone());
        }
        living.contenders.push(contender.clone());
        people.push((tag, stat));
    }
    let mut state = LockState::new(name, kind, 0);
    let (holders, _) = living.parted(&downgraded);
    let holding: std::collections::HashSet<&str> = holders.iter().map(|holder| &*holder.node).collect();
    for (contender, (tag, stat)) in living.contenders.iter().zip(people) {
        if holding.contains(&*contender.node) {
            let mut holder = tag.holder(contender, &stat, session.now());
            holder.remaining = book.remaining(holder.id).unwrap_or(holder.remaining);
            state.fence = state.fence.max(holder.fence);
            state.holders.push(holder);
        } else if contender.stand != Stand::Try {
            state.waiters.push(tag.waiter(contender, &stat, session.now()));
        }
    }
    let in_use = line.latch || !state.holders.is_empty() || !state.waiters.is_empty();
    Ok(in_use.then_some(state))
}

/// Marks that no holder came for: it is long dead.
async fn forget_old_marks(session: &Session, parent: &str, line: &Line) -> Result<(), Fault> {
    for mark in &line.marks {
        let path = format!("{parent}/{mark}");
        let stat = session.answered(session.client.check_stat(&path)).await?;
        if stat.is_some_and(|stat| stat.ctime + MARK_LIFE < session.now()) {
            session.delete(&path).await?;
        }
    }
    Ok(())
}

/// Names in use, sorted; the cursor is the last one looked at.
pub(crate) async fn list(
    session: &Session,
    book: &Book,
    root: &str,
    (prefix, cursor, limit): (&str, Option<&str>, usize),
) -> Result<LockPage, Fault> {
    session.catch_up(root).await?;
    let children = session.children(root).await?;
    let mut names: Vec<String> = children
        .iter()
        .filter_map(|node| names::decode(node))
        .filter(|name| name.starts_with(prefix) && cursor.is_none_or(|cursor| name.as_str() > cursor))
        .collect();
    names.sort_unstable();
    let is_more = names.len() > limit;
    names.truncate(limit);
    let next = names.last().filter(|_| is_more).cloned();
    let paths: Vec<String> = names.iter().map(|name| format!("{root}/{}", names::encode(name))).collect();
    let states = names.iter().zip(&paths).map(|(name, path)| inspect(session, book, path, name));
    let states = try_join_all(states).await?;
    Ok(LockPage { locks: states.into_iter().flatten().collect(), next })
}

/// Force-releases a holder: its mark and its end are one transaction.
pub(crate) async fn break_hold(
    session: &Session,
    book: &Book,
    parent: &str,
    id: ClaimId,
    broken: &Broken,
) -> Result<BreakOutcome, Fault> {
    let state = inspect(session, book, parent, "").await?;
    if !state.is_some_and(|state| state.holders.iter().any(|holder| holder.id == id)) {
        return Ok(BreakOutcome::NotHeld);
    }
    let line = Line::of(session.children(parent).await?);
    let Some(contender) = line.contenders.into_iter().find(|contender| contender.id == id) else {
        return Ok(BreakOutcome::NotHeld);
    };
    let path = format!("{parent}/{}", contender.node);
    let mark = format!("{parent}/{}", names::mark(id));
    let text = serde_json::to_vec(broken).unwrap_or_default();
    let mut writer = session.client.new_multi_writer();
    writer.add_create(&mark, &text, &session.options(CreateMode::Persistent))?;
    writer.add_delete(&path, None)?;
    let committed = writer.commit();
    let committed = async move { committed.await.map_err(|error| refused(&error)) };
    match session.answered(committed).await {
        Ok(_) => Ok(BreakOutcome::Broken),
        Err(fault) if fault.is_no_node() => Ok(BreakOutcome::NotHeld),
        Err(fault) => Err(fault),
    }
}

/// Why a transaction as a whole was not carried out.
fn refused(error: &zookeeper_client::MultiWriteError) -> zookeeper_client::Error {
    use zookeeper_client::MultiWriteError;
    match error {
        MultiWriteError::RequestFailed { source } | MultiWriteError::OperationFailed { source, .. } => {
            source.clone()
        }
    }
}

/// A name in use by a program that lays its locks out in another way.
pub(crate) fn foreign(line: &Line) -> Error {
    let node = line.foreign.as_deref().unwrap_or_default();
    let message = format!(
        "this name is in use by another program (node {node:?}), which would not see our locks; choose another name"
    );
    Error::new(ErrorKind::Conflict, Operation::Acquire, message)
}

/// What a claim in this mode wants the name to be, for messages.
pub(crate) fn noun(mode: Mode) -> Cow<'static, str> {
    match mode {
        Mode::Permits { of, .. } => format!("a semaphore of {of}").into(),
        Mode::Open => "a latch".into(),
        _ => "a lock".into(),
    }
}
