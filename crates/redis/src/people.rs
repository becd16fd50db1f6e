//! From what Redis has to what people see: holders and waiters with an id, a name and a time.
//!
//! Holders that are not ours show with what is known: Redisson's holder fields have the shape of our ids and are taken
//! as such; anything else gets an id made from its bytes, so that it can be named and broken like any other.

use std::{collections::HashMap, num::NonZeroU32, sync::Arc, time::Duration};

use leasehold_core::{
    ClaimId, ClientId, Who,
    backend::{Holder, Mode, Waiter},
};

use crate::{
    answer::{Row, Scene, View, millis},
    connect::Topology,
    permit,
    presence::{Presence, stranger, wanted},
};

/// A holder as found, before it has a name.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) id: ClaimId,
    pub(crate) mode: Mode,
    pub(crate) count: u32,
    pub(crate) left: Duration,
    pub(crate) fence: Option<u64>,
    pub(crate) label: Option<String>,
    /// What it is called in Redis.
    pub(crate) holder: Vec<u8>,
    /// Its permits, if it has any.
    pub(crate) permits: Vec<u8>,
}

/// Who holds what is in this scene.
pub(crate) fn found(scene: &Scene) -> Vec<Found> {
    match scene.kind.as_str() {
        "semaphore" => permit_holders(scene),
        _ => lock_holders(scene),
    }
}

fn lock_holders(scene: &Scene) -> Vec<Found> {
    let mut holders: Vec<Found> = Vec::new();
    for row in &scene.rows {
        let (holder, writes) = match row.holder.strip_suffix(b":write") {
            Some(holder) => (holder, true),
            None => (&row.holder[..], false),
        };
        let reads = !writes && matches!(scene.kind.as_str(), "read" | "write");
        let id = identity(holder);
        // A writer that reads as well is one holder.
        if let Some(known) = holders.iter_mut().find(|known| known.id == id) {
            known.count = known.count.saturating_add(row.count);
            known.mode = Mode::Exclusive;
            known.left = known.left.max(millis(row.left));
            continue;
        }
        holders.push(Found {
            id,
            mode: if reads { Mode::Shared } else { Mode::Exclusive },
            count: row.count,
            left: millis(row.left),
            fence: row.note.fence.or(Some(scene.fence).filter(|_| !reads)),
            label: row.note.label.clone(),
            holder: holder.to_vec(),
            permits: Vec::new(),
        });
    }
    holders
}

fn permit_holders(scene: &Scene) -> Vec<Found> {
    let of = u32::try_from(scene.number).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
    let (mut notes, mut out): (Vec<&Row>, HashMap<&[u8], &Row>) = (Vec::new(), HashMap::new());
    for row in &scene.rows {
        if row.count == 0 {
            notes.push(row);
        } else {
            out.insert(&row.holder, row);
        }
    }
    let mut holders = Vec::new();
    for note in notes {
        let id = identity(&note.holder);
        let permits = permit::permits(id, note.note.count);
        let entries = permit::entries(id, note.note.count);
        let own: Vec<&Row> = entries.iter().filter_map(|entry| out.remove(&entry[..])).collect();
        let Some(first) = own.first() else { continue };
        let take = NonZeroU32::new(note.note.count).unwrap_or(NonZeroU32::MIN);
        holders.push(Found {
            id,
            mode: Mode::Permits { take, of },
            count: 1,
            left: millis(first.left),
            fence: note.note.fence,
            label: note.note.label.clone(),
            holder: note.holder.clone(),
            permits,
        });
    }
    holders.extend(out.into_values().map(|row| Found {
        id: identity(&row.holder),
        mode: Mode::Permits { take: NonZeroU32::MIN, of },
        count: 1,
        left: millis(row.left),
        fence: None,
        label: None,
        holder: Vec::new(),
        permits: row.holder.clone(),
    }));
    holders
}

/// The holders of a scene, with names.
pub(crate) async fn holders(presence: &Presence, topology: &dyn Topology, scene: &Scene) -> Vec<Holder> {
    let found = found(scene);
    let known = presence.known(topology, found.iter().map(|holder| holder.id.client())).await;
    found.into_iter().map(|holder| named(holder, &known, scene.now)).collect()
}

fn named(found: Found, known: &HashMap<ClientId, Option<Arc<Who>>>, now: u64) -> Holder {
    let who = known.get(&found.id.client()).cloned().flatten();
    // The fence of a name is that of its last holder of ours; a stranger's is not known.
    let fence = found.fence.filter(|_| who.is_some() || found.label.is_some()).unwrap_or(0);
    let who = who.unwrap_or_else(|| stranger(found.id.client()));
    let mut holder = Holder::new(found.id, found.mode, fence, who);
    (holder.count, holder.remaining) = (found.count, found.left);
    holder.label = found.label.map(Into::into);
    // A fence is the server's time of the grant, unless the clock was set back since.
    holder.held_for = if fence > 0 {
        Duration::from_micros(now.saturating_mul(1000).saturating_sub(fence))
    } else {
        Duration::ZERO
    };
    holder
}

/// Those who wait for a name: the line in its order, then those who said so. Holders do not wait.
pub(crate) async fn waiters(
    presence: &Presence,
    topology: &dyn Topology,
    view: &View,
    holders: &[Holder],
) -> Vec<Waiter> {
    let now = view.scene.now;
    let told: HashMap<&str, _> = view.told.iter().map(|told| (told.id.as_str(), told)).collect();
    let said = view.told.iter().filter(|told| told.until > now && !view.line.contains(&told.id));
    let everybody =
        view.line.iter().map(|id| (id.as_str(), true)).chain(said.map(|told| (told.id.as_str(), false)));
    let waiting: Vec<(ClaimId, &str, bool)> = everybody
        .map(|(text, fair)| (identity(text.as_bytes()), text, fair))
        .filter(|(id, _, _)| !holders.iter().any(|holder| holder.id == *id))
        .collect();
    let known = presence.known(topology, waiting.iter().map(|(id, _, _)| id.client())).await;
    let named = waiting.into_iter().map(|(id, text, fair)| {
        let who = known.get(&id.client()).cloned().flatten().unwrap_or_else(|| stranger(id.client()));
        let told = told.get(text);
        let mut waiter = Waiter::new(id, told.map_or(Mode::Exclusive, |told| wanted(&told.wants)), who);
        waiter.fair = fair;
        waiter.waited = told.map_or(Duration::ZERO, |told| millis_between(told.since, now));
        waiter.label = told.and_then(|told| told.label.as_deref().map(Into::into));
        waiter
    });
    named.collect()
}

fn millis_between(earlier: u64, later: u64) -> Duration {
    Duration::from_millis(later.saturating_sub(earlier))
}

/// Whether a holder field has the shape that we and Redisson give it.
pub(crate) fn is_holder(text: &[u8]) -> bool {
    let text = text.strip_suffix(b":write").unwrap_or(text);
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let mut parts = text.splitn(3, ':');
    let client = parts.next().is_some_and(|client| client.parse::<ClientId>().is_ok());
    client
        && parts.next().is_some_and(|thread| thread.parse::<i64>().is_ok() || thread.parse::<u64>().is_ok())
}

/// The id of a holder: its own, or one made from its bytes.
pub(crate) fn identity(holder: &[u8]) -> ClaimId {
    let own = std::str::from_utf8(holder).ok().and_then(|text| text.parse().ok());
    own.unwrap_or_else(|| {
        let number = match <[u8; 16]>::try_from(holder) {
            Ok(bytes) => u128::from_be_bytes(bytes),
            Err(_) => digest(holder),
        };
        let digits = format!("{number:032x}");
        let text = format!(
            "{}-{}-{}-{}-{}:0",
            &digits[..8],
            &digits[8..12],
            &digits[12..16],
            &digits[16..20],
            &digits[20..]
        );
        text.parse().expect("32 hexadecimal digits in five groups and a number are an id")
    })
}

/// FNV-1a over 128 bits: to tell holders apart, not to keep a secret.
fn digest(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::any, proptest, test_runner::Config};
    use redis::Value;

    use super::*;
    use crate::{answer::Tried, fuzz};

    #[test]
    fn everything_that_holds_has_an_id() {
        let ours = "01234567-89ab-cdef-0011-223344556677:258";
        assert_eq!(identity(ours.as_bytes()).to_string(), ours);
        assert_ne!(identity(b"worker-1"), identity(b"worker-2"));
        assert_eq!(identity(&[7; 16]).to_string(), "07070707-0707-0707-0707-070707070707:0");
        assert!(is_holder(format!("{ours}:write").as_bytes()) && is_holder(ours.as_bytes()));
        assert!(!is_holder(b"name") && !is_holder(b"mode"));
    }

    #[test]
    fn a_scene_of_the_right_shape_is_read() {
        let number = |number| Value::Int(number);
        let holder = Value::BulkString("01234567-89ab-cdef-0011-223344556677:1".into());
        let row = Value::Array(vec![holder, number(1), number(5), Value::BulkString("7 1 x".into())]);
        let word = |word: &str| Value::BulkString(word.into());
        let rows = Value::Array(vec![row.clone(), row]);
        let parts = vec![
            word("busy"),
            number(1),
            number(0),
            number(0),
            word("lock"),
            number(0),
            number(9),
            number(9),
            rows,
        ];
        assert_eq!(seen(&Value::Array(parts)), Some(1));
    }

    proptest! {
        #![proptest_config(Config { cases: 500, failure_persistence: None, ..Config::default() })]

        #[test]
        fn whatever_is_said_of_holders_can_be_shown(parts in fuzz::scene()) {
            let head = ["busy", "1", "0", "0"].map(|word| Value::BulkString(word.into())).to_vec();
            seen(&Value::Array([head, parts].concat()));
        }

        #[test]
        fn every_holder_has_an_id_that_is_read_back(holder in vec(any::<u8>(), 0..60)) {
            let id = identity(&holder);
            assert_eq!(identity(id.to_string().as_bytes()), id);
        }
    }

    /// How many holders people see in a busy answer.
    fn seen(answer: &Value) -> Option<usize> {
        let Ok(Tried::Busy { scene, .. }) = Tried::read(answer) else { return None };
        let holders = found(&scene).into_iter().map(|found| named(found, &HashMap::new(), scene.now));
        Some(holders.count())
    }
}
