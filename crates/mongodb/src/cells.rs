//! Cells: one document each, `{ _id: NAME, version, value, until, token }`, written to the journals of a majority before
//! the write is answered.
//!
//! A version begins at the server's time where there is no earlier one, so that one which was given is not given again
//! after the cell is gone.

use std::time::Duration;

use leasehold_core::{
    Result,
    backend::{Cell, CellPage, CellWrite, Expect},
};
use mongodb::bson::{Binary, Bson, Document, doc, spec::BinarySubtype};

use crate::{
    admin,
    desk::{Desk, Missing, with_time},
    documents::millis,
    error::{Effect, foreign},
};

/// The longest life, so that added to any date it is still a date.
const EVER: Duration = Duration::from_secs(200 * 366 * 24 * 3600);

/// How long a cell whose time is over is kept: nobody sees it, but its version is remembered.
const IDLE: Duration = Duration::from_secs(24 * 3600);

pub(crate) async fn read(desk: &Desk, name: &str) -> Result<Option<Cell>> {
    let (cells, filter) = (desk.cells.clone(), doc! { "_id": name, "$expr": live() });
    let request = async move { cells.find_one(filter).projection(with_time()).await };
    desk.run(Effect::None, request).await?.as_ref().map(cell).transpose()
}

pub(crate) async fn write(
    desk: &Desk,
    token: &str,
    (name, expect): (&str, Expect),
    value: &[u8],
    ttl: Option<Duration>,
) -> Result<CellWrite> {
    let (is_as_expected, missing) = match expect {
        Expect::Absent => (doc! { "$not": [live()] }, Missing::Make),
        Expect::Version(version) => {
            // One that is no number of MongoDB's was never given.
            let Ok(version) = i64::try_from(version) else { return Ok(CellWrite::Conflict) };
            (doc! { "$and": [live(), { "$eq": ["$version", version] }] }, Missing::Leave)
        }
    };
    let begun = doc! { "$multiply": [{ "$toLong": "$$NOW" }, 1024_i64] };
    let value = Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: value.to_vec() });
    let mut written = doc! {
        "_id": "$_id",
        "version": { "$max": [{ "$add": ["$version", 1_i64] }, begun] },
        "value": { "$literal": value },
        "token": { "$literal": token },
    };
    if let Some(ttl) = ttl {
        let ttl = millis(ttl.min(EVER));
        written.insert("until", doc! { "$add": ["$$NOW", ttl] });
        written.insert("sweep", doc! { "$add": ["$$NOW", ttl + millis(IDLE)] });
    }
    let pipeline = doc! { "$replaceWith": { "$cond": [is_as_expected, written, "$$ROOT"] } };
    let found = desk.change(&desk.cells, name, pipeline, missing).await?;
    match found {
        Some(found) if found.get_str("token").is_ok_and(|found| found == token) => {
            Ok(CellWrite::Written(version(&found)?))
        }
        _ => Ok(CellWrite::Conflict),
    }
}

/// One page, ordered by name.
pub(crate) async fn list(desk: &Desk, prefix: &str, cursor: Option<&str>, limit: usize) -> Result<CellPage> {
    let filter = doc! { "_id": admin::after(prefix, cursor), "$expr": live() };
    let mut page = CellPage::default();
    for document in admin::find(desk, desk.cells.clone(), filter, limit).await? {
        let cell = cell(&document)?;
        if !cell.name.starts_with(prefix) {
            break;
        }
        if page.cells.len() == limit.max(1) {
            page.next = page.cells.last().map(|cell| cell.name.clone());
            break;
        }
        page.cells.push(cell);
    }
    Ok(page)
}

/// Whether there is a cell, and its time is not over.
fn live() -> Document {
    doc! { "$and": [
        { "$gt": ["$version", Bson::Null] },
        { "$or": [{ "$gt": ["$until", "$$NOW"] }, { "$eq": [{ "$type": "$until" }, "missing"] }] },
    ] }
}

fn cell(document: &Document) -> Result<Cell> {
    let name = document.get_str("_id").map_err(|_| foreign("name"))?.to_owned();
    let value = document.get_binary_generic("value").map_err(|_| foreign("value"))?.clone();
    Ok(Cell { name, version: version(document)?, value })
}

fn version(document: &Document) -> Result<u64> {
    let version = document.get_i64("version").ok().and_then(|version| u64::try_from(version).ok());
    version.ok_or_else(|| foreign("version"))
}
