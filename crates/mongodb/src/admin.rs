//! What operators see: one name, or a page of names.

use futures_util::TryStreamExt;
use leasehold_core::{
    Result,
    backend::{LockPage, LockState, record::Surroundings},
};
use mongodb::bson::{Document, doc};

use crate::{
    desk::{Desk, with_time},
    documents::Seen,
    error::Effect,
};

/// Everything known of one name.
pub(crate) async fn inspect(desk: &Desk, name: &str) -> Result<Option<LockState>> {
    let (locks, filter) = (desk.locks.clone(), doc! { "_id": name });
    let request = async move { locks.find_one(filter).projection(with_time()).await };
    match desk.run(Effect::None, request).await? {
        Some(document) => view(name, &document),
        None => Ok(None),
    }
}

/// One page of names in use, ordered by name.
pub(crate) async fn list(desk: &Desk, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<LockPage> {
    let in_use = doc! { "$gt": ["$ends", { "$multiply": [{ "$toLong": "$$NOW" }, 1000_i64] }] };
    let filter = doc! { "_id": after(prefix, cursor), "$expr": in_use };
    let found = find(desk, desk.locks.clone(), filter, limit).await?;
    let mut page = LockPage::default();
    for document in found {
        let Ok(name) = document.get_str("_id") else { continue };
        if !name.starts_with(prefix) {
            break;
        }
        if page.locks.len() == limit.max(1) {
            page.next = page.locks.last().map(|state| state.name.clone());
            break;
        }
        page.locks.extend(view(name, &document).map_err(|error| error.about(name))?);
    }
    Ok(page)
}

/// One more document than fits the page, in the order of their names.
pub(crate) async fn find(
    desk: &Desk,
    collection: mongodb::Collection<Document>,
    filter: Document,
    limit: usize,
) -> Result<Vec<Document>> {
    let limit = i64::try_from(limit.max(1).saturating_add(1)).unwrap_or(i64::MAX);
    let request = async move {
        let found = collection.find(filter).sort(doc! { "_id": 1 }).projection(with_time()).limit(limit);
        found.await?.try_collect().await
    };
    desk.run(Effect::None, request).await
}

/// The names of a page begin here; the cursor itself was on the page before.
pub(crate) fn after(prefix: &str, cursor: Option<&str>) -> Document {
    match cursor {
        Some(cursor) if cursor >= prefix => doc! { "$gt": cursor },
        _ => doc! { "$gte": prefix },
    }
}

fn view(name: &str, document: &Document) -> Result<Option<LockState>> {
    let seen = Seen::read(document)?;
    let around = Surroundings { now: seen.now, session: None, crowd: usize::MAX, alive: &|_| true };
    Ok(seen.record.view(name, &around))
}
