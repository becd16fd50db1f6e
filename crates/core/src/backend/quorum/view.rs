//! What operators see: what most of the members that answer see.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use futures_util::future::join_all;

use super::{Shared, vote};
use crate::{
    backend::{Backend, Finding, Holder, LockPage, LockState, Waiter},
    error::{Error, Operation, Result},
    id::ClaimId,
    key::Key,
};

/// Those who hold the name at more than half of the members heard: who has less holds nothing.
pub(super) fn holders(told: &[&[Holder]], heard: usize, quorum: usize) -> Vec<Holder> {
    let mut known: BTreeMap<ClaimId, Vec<&Holder>> = BTreeMap::new();
    for holder in told.iter().copied().flatten() {
        known.entry(holder.id).or_default().push(holder);
    }
    let held = known.into_values().filter(|seen| 2 * seen.len() > heard);
    let mut holders: Vec<Holder> = held.filter_map(|seen| one_of(&seen, quorum)).collect();
    holders.sort_by_key(|holder| Reverse(holder.held_for));
    holders
}

/// One holder as several members see it.
fn one_of(seen: &[&Holder], quorum: usize) -> Option<Holder> {
    let mut by_lease = seen.to_vec();
    by_lease.sort_by_key(|holder| Reverse(holder.remaining));
    // Its lease ends when it ends at so many that no majority is left.
    let mut holder = (*by_lease.get(quorum - 1).or(by_lease.last())?).clone();
    holder.held_for = seen.iter().map(|holder| holder.held_for).max()?;
    // A member that joined late may count ahead of the fence that the others were raised to.
    let alike = |fence: u64| seen.iter().filter(|holder| holder.fence == fence).count();
    holder.fence = seen.iter().map(|holder| holder.fence).max_by_key(|fence| alike(*fence))?;
    Some(holder)
}

/// What is found at the members: what is so at all that answer is said once, all else with where it was found.
pub(super) async fn diagnose(shared: &Shared, prefix: &str) -> Vec<Finding> {
    let asked = shared.members.iter().map(async |member| {
        let backend = member.backend();
        (backend.info().address.clone(), backend.diagnose(prefix).await)
    });
    let asked = join_all(asked).await;
    let told: Vec<&Vec<Finding>> = asked.iter().filter_map(|(_, answer)| answer.as_ref().ok()).collect();
    let mut findings = Vec::new();
    for (address, answer) in &asked {
        match answer {
            Err(error) => findings.push(unseen(address, error, told.len() >= shared.quorum)),
            Ok(found) => findings.extend(found.iter().cloned().map(|mut finding| {
                if !told.iter().all(|found| found.contains(&finding)) {
                    finding.what = format!("{address}: {}", finding.what).into();
                }
                finding
            })),
        }
    }
    let mut seen = Vec::new();
    findings.retain(|finding| {
        !seen.contains(finding) && {
            seen.push(finding.clone());
            true
        }
    });
    findings
}

fn unseen(address: &str, error: &Error, others_suffice: bool) -> Finding {
    let what = format!("{address} cannot be examined: {error}");
    let finding =
        if others_suffice { Finding::warning("member", what) } else { Finding::danger("member", what) };
    let why =
        "locks need more than half of the members; each one that is away brings the rest closer to that";
    finding.because(why).remedy("see to this member, or take it out of the URL of every client at once")
}

/// Everything that a majority knows of a name.
pub(super) async fn inspect(shared: &Shared, key: &Key) -> Result<Option<LockState>> {
    let states = vote::majority(shared, Operation::Inspect, ask(shared, key).await)?;
    Ok(merge(&states, shared.quorum))
}

async fn ask(shared: &Shared, key: &Key) -> Vec<(usize, Result<Option<LockState>>)> {
    let ask = |member: Arc<dyn Backend>| {
        let key = key.clone();
        async move { member.inspect(&key).await }
    };
    shared.ask_all(ask).await
}

fn merge(states: &[Option<LockState>], quorum: usize) -> Option<LockState> {
    let known: Vec<&LockState> = states.iter().flatten().collect();
    let alike = |state: &LockState| known.iter().filter(|other| other.kind == state.kind).count();
    let first = known.iter().max_by_key(|state| alike(state))?;
    let told: Vec<&[Holder]> = known.iter().map(|state| state.holders.as_slice()).collect();
    // The largest that a majority has reached: one that joined late may count ahead of it.
    let mut fences: Vec<u64> = known.iter().map(|state| state.fence).collect();
    fences.sort_unstable_by_key(|fence| Reverse(*fence));
    let fence = *fences.get(quorum - 1).or(fences.last())?;
    let mut merged = LockState::new(first.name.clone(), first.kind, fence);
    merged.holders = holders(&told, states.len(), quorum);
    let mut waiters: BTreeMap<ClaimId, &Waiter> = BTreeMap::new();
    for waiter in known.iter().flat_map(|state| &state.waiters) {
        let known = waiters.entry(waiter.id).or_insert(waiter);
        *known = if waiter.waited > known.waited { waiter } else { known };
    }
    waiters.retain(|id, _| merged.holders.iter().all(|holder| holder.id != *id));
    merged.waiters = waiters.into_values().cloned().collect();
    merged.waiters.sort_by_key(|waiter| Reverse(waiter.waited));
    // What only contends for a moment, or is left at a minority, is not in use.
    (!merged.holders.is_empty() || !merged.waiters.is_empty()).then_some(merged)
}

/// The names in use. Members list in orders of their own, so they are walked one after the other; a name is shown
/// where it is met first, as the majority sees it.
pub(super) async fn list(
    shared: &Shared,
    prefix: &str,
    cursor: Option<&str>,
    limit: usize,
) -> Result<LockPage> {
    let mut walk = cursor.map_or_else(|| Ok(Walk::default()), Walk::parse)?;
    while walk.at < shared.len() {
        let page = match one_page(shared, &walk, prefix, limit).await {
            Ok(page) => page,
            Err(error) => {
                walk.skip();
                if walk.at - walk.listed.count_ones() as usize > shared.spare() {
                    return Err(error);
                }
                continue;
            }
        };
        let locks = first_met(shared, &walk, page.locks).await?;
        walk.go_on(page.next);
        if !locks.is_empty() {
            let next = (walk.at < shared.len()).then(|| walk.to_string());
            return Ok(LockPage { locks, next });
        }
    }
    Ok(LockPage::default())
}

async fn one_page(shared: &Shared, walk: &Walk, prefix: &str, limit: usize) -> Result<LockPage> {
    let mut round = shared.round(shared.timeout);
    let (member, prefix, cursor) =
        (shared.members[walk.at].backend(), prefix.to_owned(), walk.cursor.clone());
    round.add(walk.at, async move { member.list(&prefix, cursor.as_deref(), limit).await });
    let answer = round.next().await;
    round.go_on();
    let silent =
        || super::refusals::too_few(Operation::Inspect, (0, shared.quorum, shared.len()), Vec::new());
    answer.map_or_else(|| Err(silent()), |(_, answer)| answer)
}

/// Those of a member's names that no member before it listed, as the majority sees them.
async fn first_met(shared: &Shared, walk: &Walk, found: Vec<LockState>) -> Result<Vec<LockState>> {
    let keys: Vec<Key> = found.iter().filter_map(|state| Key::existing("", &state.name).ok()).collect();
    let met = |at: usize| walk.listed & 1 << at != 0;
    let mut locks = Vec::new();
    for answers in join_all(keys.iter().map(|key| ask(shared, key))).await {
        if !answers.iter().any(|(at, answer)| met(*at) && matches!(answer, Ok(Some(_)))) {
            locks.extend(merge(&vote::majority(shared, Operation::Inspect, answers)?, shared.quorum));
        }
    }
    Ok(locks)
}

/// How far a listing has come.
#[derive(Debug, Default)]
struct Walk {
    /// The member whose turn it is.
    at: usize,
    /// Those before it that were listed, a bit for each.
    listed: u64,
    /// Where it goes on at this member.
    cursor: Option<String>,
}

impl Walk {
    fn parse(text: &str) -> Result<Self> {
        let parsed = text.split_once('.').and_then(|(at, rest)| {
            let (listed, cursor) = rest.split_once('.')?;
            let cursor = cursor.strip_prefix('+').map(str::to_owned);
            Some(Self { at: at.parse().ok()?, listed: listed.parse().ok()?, cursor })
        });
        // Only members before the one whose turn it is have been listed.
        let parsed = parsed.filter(|walk| walk.at > 63 || walk.listed >> walk.at == 0);
        parsed.ok_or_else(|| {
            Error::config(Operation::Inspect, "this is no cursor of a listing; begin without one")
        })
    }

    /// The member cannot be listed.
    fn skip(&mut self) {
        (self.at, self.cursor) = (self.at + 1, None);
    }

    /// A page of the member was listed, and this is what it says of the next.
    fn go_on(&mut self, next: Option<String>) {
        if next.is_none() {
            self.listed |= 1 << self.at;
            self.at += 1;
        }
        self.cursor = next;
    }
}

impl std::fmt::Display for Walk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.", self.at, self.listed)?;
        self.cursor.as_ref().map_or(Ok(()), |cursor| write!(f, "+{cursor}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::{proptest, test_runner::Config};

    use super::*;

    proptest! {
        #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_cursor_makes_a_listing_panic(at in "[0-9]{0,3}", listed in "[0-9]{0,20}", tail in "[+]?\\PC{0,8}") {
            if let Ok(mut walk) = Walk::parse(&format!("{at}.{listed}.{tail}")) {
                assert_eq!(Walk::parse(&walk.to_string()).unwrap().to_string(), walk.to_string());
                walk.skip();
                assert!(walk.at > walk.listed.count_ones() as usize || walk.at > 64);
            }
        }
    }

    #[test]
    fn a_cursor_that_nobody_gave_out_is_refused() {
        for cursor in ["", "1", "1.1", "x.0.", "0.1.", "1.2.+a", "0.18446744073709551615."] {
            assert!(Walk::parse(cursor).is_err(), "{cursor:?}");
        }
        for cursor in ["0.0.", "1.1.", "2.1.+a.b", "3.5.+"] {
            assert_eq!(Walk::parse(cursor).unwrap().to_string(), cursor);
        }
    }
}
