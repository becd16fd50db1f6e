//! What operators do: look at a name, list names, break a hold.
//!
//! Names are found by `SCAN`, a step at a time, never by `KEYS`. In a Redis that others use as well only what looks like
//! a lock is listed: hashes whose fields are holders, and strings that are ours by their value or by what lies beside
//! them.

use futures_util::future::join_all;
use leasehold_core::{
    ClaimId, Error, Operation, Result,
    backend::{BreakOutcome, Broken, Kind, LockPage, LockState},
};
use redis::Value;

use crate::{
    answer::{View, list as values, text},
    connect::{Node, Weight},
    error::misfit,
    names, people, scripts, sites,
    store::Shared,
};

/// Keys looked through in one step of a scan.
const STEP: usize = 500;

/// Names looked at in one write.
const TOGETHER: usize = 64;

/// Steps of one page at most: in a large database an empty page with a cursor is better than a long silence.
const STEPS: usize = 100;

pub(crate) async fn inspect(store: &Shared, name: &str) -> Result<Option<LockState>> {
    let view = look(store, name, Wanted::Whole).await?;
    let Some(mut state) = state(store, name, &view).await else { return Ok(None) };
    sites::fill(&*store.topology, &mut state).await;
    Ok(Some(state))
}

/// What a look is for.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    /// One name, whatever is there.
    Whole,
    /// One of many names: what is too long for a holder is not fetched.
    Listed,
}

async fn look(store: &Shared, name: &str, wanted: Wanted) -> Result<View> {
    let wanted = match wanted {
        Wanted::Whole => "",
        Wanted::Listed => "listed",
    };
    let answer = store.topology.run(name, Weight::Plain, &scripts::LOOK, |command| {
        command.arg(1).arg(name).arg(wanted);
    });
    View::read(&answer.await.map_err(|fault| fault.into_error(Operation::Inspect))?)
}

async fn state(store: &Shared, name: &str, view: &View) -> Option<LockState> {
    let scene = &view.scene;
    let kind = match scene.kind.as_str() {
        "none" | "idle" if view.line.is_empty() => return None,
        "lock" | "read" | "write" if !scene.rows.iter().all(|row| people::is_holder(&row.holder)) => {
            return None;
        }
        "none" | "idle" | "lock" | "read" | "write" | "plain" => Kind::Lock,
        "semaphore" => Kind::Semaphore { of: u32::try_from(scene.number).unwrap_or(u32::MAX) },
        "latch" | "counter" => Kind::Latch { count: scene.number.max(0).cast_unsigned() },
        _ => return None,
    };
    let (presence, topology) = (&store.presence, &*store.topology);
    let holders = people::holders(presence, topology, scene).await;
    // A lock whose readers are all dead is about to go.
    if kind == Kind::Lock && holders.is_empty() && view.line.is_empty() && scene.rows.is_empty() {
        return None;
    }
    let mut state = LockState::new(name, kind, scene.fence);
    state.waiters = people::waiters(presence, topology, view, &holders).await;
    state.holders = holders;
    Some(state)
}

/// Whether a name is to be listed, in a database that others may use as well.
fn is_listed(view: &View) -> bool {
    match view.scene.kind.as_str() {
        "plain" => view.scene.rows.iter().all(|row| people::is_holder(&row.holder)),
        "none" | "idle" | "counter" => false,
        _ => true,
    }
}

/// Where a listing goes on: which server, which type, which step of its scan, after which name of that step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cursor {
    node: usize,
    pass: usize,
    scan: u64,
    after: String,
}

const PASSES: [&str; 2] = ["hash", "string"];

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, '.');
        Some(Self {
            node: parts.next()?.parse().ok()?,
            pass: parts.next()?.parse().ok().filter(|pass| *pass < PASSES.len())?,
            scan: parts.next()?.parse().ok()?,
            after: parts.next()?.to_owned(),
        })
    }

    fn text(&self) -> String {
        format!("{}.{}.{}.{}", self.node, self.pass, self.scan, self.after)
    }

    /// The next step, or `None` after the last.
    fn next(self, scan: u64, nodes: usize) -> Option<Self> {
        let Self { node, pass, .. } = self;
        let after = String::new();
        match scan {
            0 if pass + 1 < PASSES.len() => Some(Self { node, pass: pass + 1, scan: 0, after }),
            0 if node + 1 < nodes => Some(Self { node: node + 1, pass: 0, scan: 0, after }),
            0 => None,
            scan => Some(Self { node, pass, scan, after }),
        }
    }
}

pub(crate) async fn list(
    store: &Shared,
    prefix: &str,
    cursor: Option<&str>,
    limit: usize,
) -> Result<LockPage> {
    let nodes = store.topology.nodes();
    let unknown = || Error::config(Operation::Inspect, "this cursor is from no listing; begin without one");
    let mut cursor = cursor.map_or(Some(Cursor::default()), Cursor::parse).ok_or_else(unknown)?;
    let mut page = LockPage::default();
    for _ in 0..STEPS {
        let node = nodes.get(cursor.node).ok_or_else(unknown)?;
        let (scan, names) = step(node, prefix, &cursor).await?;
        let after = cursor.after.clone();
        // Keys of others may have names that none of our locks can have.
        let ours = |name: &String| *name > after && !store.topology.splits(name);
        let mut names = names.into_iter().filter(ours).peekable();
        while names.peek().is_some() {
            let room = limit - page.locks.len();
            if room == 0 {
                page.next = Some(cursor.text());
                return Ok(page);
            }
            let some: Vec<String> = names.by_ref().take(room.min(TOGETHER)).collect();
            let views = join_all(some.iter().map(|name| look(store, name, Wanted::Listed))).await;
            for (name, view) in some.into_iter().zip(views) {
                let view = view?;
                if is_listed(&view)
                    && let Some(state) = state(store, &name, &view).await
                {
                    page.locks.push(state);
                }
                cursor.after = name;
            }
        }
        match cursor.next(scan, nodes.len()) {
            Some(next) => cursor = next,
            None => return Ok(page),
        }
    }
    page.next = Some(cursor.text());
    Ok(page)
}

/// One step of a scan: where it goes on, and the names found, in order.
async fn step(node: &Node, prefix: &str, cursor: &Cursor) -> Result<(u64, Vec<String>)> {
    let mut command = redis::cmd("SCAN");
    command.arg(cursor.scan).arg("MATCH").arg(format!("{}*", escaped(prefix)));
    command.arg("COUNT").arg(STEP).arg("TYPE").arg(PASSES[cursor.pass]);
    let answer = node.wire.call(command).await.map_err(|fault| fault.into_error(Operation::Inspect))?;
    let parts = values(&answer).and_then(|parts| {
        let [next, found] = parts else { return None };
        Some((text(next)?.parse().ok()?, values(found)?))
    });
    let (next, found): (u64, &[Value]) = parts.ok_or_else(|| misfit(Operation::Inspect, &answer))?;
    let mut names: Vec<String> =
        found.iter().filter_map(text).filter(|name| !names::is_furniture(name)).collect();
    names.sort_unstable();
    names.dedup();
    Ok((next, names))
}

/// A prefix as a pattern that matches itself.
fn escaped(prefix: &str) -> String {
    let special = |letter| matches!(letter, '*' | '?' | '[' | ']' | '\\' | '^' | '-');
    prefix.chars().flat_map(|letter| special(letter).then_some('\\').into_iter().chain([letter])).collect()
}

pub(crate) async fn break_hold(
    store: &Shared,
    name: &str,
    id: ClaimId,
    broken: &Broken,
) -> Result<BreakOutcome> {
    let view = look(store, name, Wanted::Whole).await?;
    let found = people::found(&view.scene).into_iter().find(|found| found.id == id);
    // Even if it holds no more: this may be the second time it is asked for, after an answer that was lost.
    let (holder, permits) = found
        .map_or_else(|| (id.to_string().into_bytes(), Vec::new()), |found| (found.holder, found.permits));
    let mark = serde_json::to_string(broken).unwrap_or_default();
    let verb = store.topology.verb();
    // Conditional on the holder: if it changed hands since we looked, nothing happens.
    let answer = store.topology.run(name, Weight::Plain, &scripts::BREAK, |command| {
        command.arg(1).arg(name).arg(&holder).arg(verb).arg(&permits).arg(&mark);
        command.arg(names::breaks(id.client())).arg(id.to_string());
    });
    match answer.await.map_err(|fault| fault.into_error(Operation::Break))? {
        Value::Int(1) => Ok(BreakOutcome::Broken),
        Value::Int(0) => Ok(BreakOutcome::NotHeld),
        other => Err(misfit(Operation::Break, &other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_matches_itself() {
        assert_eq!(escaped("a*[b]?{c}"), "a\\*\\[b\\]\\?{c}");
    }

    #[test]
    fn a_cursor_survives_its_text() {
        let cursor = Cursor { node: 1, pass: 1, scan: 77, after: "a.b".to_owned() };
        assert_eq!(Cursor::parse(&cursor.text()), Some(cursor));
        for bad in ["", "1", "1.2.3.", "x.0.0.", "0.0.0"] {
            assert_eq!(Cursor::parse(bad), None, "{bad}");
        }
    }
}
