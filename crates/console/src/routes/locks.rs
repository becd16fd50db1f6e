//! The names in use, a page at a time, and everything known of one.

use std::{fmt::Write as _, time::Duration};

use axum::extract::State;
use jiff::Timestamp;
use leasehold::backend::{LockPage, LockState};
use serde::Deserialize;
use serde_json::json;

use super::{Answer, Asked, Name, answer, limit};
use crate::{
    console::Console,
    problem::Problem,
    view::{FindingView, LockView, PastView},
};

/// So many names one request looks at, when most are not what is looked for. A page that a store fills only in part counts
/// as a full one: it has looked through more than it found.
const LOOKED_AT: usize = 5000;

/// Names asked for at a time while searching.
const PAGE: usize = 500;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Wanted {
    prefix: String,
    q: String,
    held_over: String,
    cursor: String,
    limit: Option<usize>,
}

/// What a name must have to be shown.
struct Filter {
    text: String,
    held_over: Option<Duration>,
}

pub(super) async fn list(State(console): State<Console>, Asked(wanted): Asked<Wanted>) -> Answer {
    let limit = limit(wanted.limit, 1000)?;
    let filter = Filter::of(&wanted)?;
    let mut cursor = Some(wanted.cursor).filter(|cursor| !cursor.is_empty());
    let (mut found, mut scanned, mut looked_at) = (Vec::new(), 0, 0);
    loop {
        // A store may not be able to go on within a page, so no more is asked for than there is room for.
        let room = limit - found.len();
        let size = if filter.is_none() { room } else { room.min(PAGE) };
        let LockPage { locks, next } = console.store().list(&wanted.prefix, cursor.as_deref(), size).await?;
        scanned += locks.len();
        looked_at += if locks.len() < size { PAGE } else { locks.len() };
        found.extend(locks.into_iter().filter(|lock| filter.lets(lock)));
        cursor = next;
        if cursor.is_none() || found.len() >= limit || filter.is_none() || looked_at >= LOOKED_AT {
            break;
        }
    }
    let now = Timestamp::now();
    let locks: Vec<_> = found.iter().map(|lock| LockView::of(lock, now)).collect();
    answer(json!({ "locks": locks, "next": cursor, "scanned": scanned }))
}

pub(super) async fn show(State(console): State<Console>, Name(name): Name) -> Answer {
    let store = console.store();
    let state = store.inspect(&name).await?;
    let lock = LockView::of_any(&name, state.as_ref(), Timestamp::now());
    let cells = store.info().capabilities.cells;
    let past = if cells { store.history(&name).await? } else { Vec::new() };
    let past: Vec<_> = past.iter().map(PastView::of).collect();
    let note = (!cells).then_some("this store keeps no values beside its locks, so it has no history");
    let findings = store.examine_name(&name).unwrap_or_default();
    let findings: Vec<_> = findings.iter().map(FindingView::of).collect();
    answer(json!({ "lock": lock, "history": past, "history_note": note, "findings": findings,
        "cli": format!("leasehold show -- {}", quoted(&name)) }))
}

impl Filter {
    fn of(wanted: &Wanted) -> Result<Self, Problem> {
        let held_over = match wanted.held_over.as_str() {
            "" => None,
            text => Some(
                humantime::parse_duration(text)
                    .map_err(|_| Problem::config("held_over is a length of time; write it like 30s or 5m"))?,
            ),
        };
        Ok(Self { text: wanted.q.to_lowercase(), held_over })
    }

    fn is_none(&self) -> bool {
        self.text.is_empty() && self.held_over.is_none()
    }

    fn lets(&self, lock: &LockState) -> bool {
        let old = |limit| lock.holders.iter().any(|holder| holder.held_for > limit);
        self.held_over.is_none_or(old) && (self.text.is_empty() || self.is_in(lock))
    }

    fn is_in(&self, lock: &LockState) -> bool {
        let has = |text: &str| text.to_lowercase().contains(&self.text);
        let holders = lock.holders.iter().map(|holder| (&holder.who, &holder.label));
        let waiters = lock.waiters.iter().map(|waiter| (&waiter.who, &waiter.label));
        has(&lock.name)
            || holders.chain(waiters).any(|(who, label)| {
                [&who.host, &who.program, &who.user].into_iter().chain(label).any(|text| has(text))
            })
    }
}

/// A word as a shell reads it, whatever is in it. A line break in what is pasted would be taken for its end, and other
/// control characters for keys: those are written out, as Bash, zsh and ksh read them.
fn quoted(name: &str) -> String {
    if name.chars().any(char::is_control) {
        let escaped = name.chars().fold(String::new(), |mut escaped, letter| {
            match letter {
                '\\' | '\'' => escaped.extend(['\\', letter]),
                _ if letter.is_control() => {
                    for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                        let _ = write!(escaped, "\\{byte:03o}");
                    }
                }
                _ => escaped.push(letter),
            }
            escaped
        });
        return format!("$'{escaped}'");
    }
    format!("'{}'", name.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_word_to_a_shell() {
        assert_eq!(quoted("order:42"), "'order:42'");
        assert_eq!(quoted("a\nrm -r 'b'\\\u{85}"), r"$'a\012rm -r \'b\'\\\302\205'");
        assert_eq!(quoted("it's $(rm -r)"), r"'it'\''s $(rm -r)'");
    }
}
