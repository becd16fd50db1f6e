//! MongoDB: a document that nobody has is taken by one `findOneAndUpdate`, on the server's clock and with the next fence,
//! and given back by another on condition of its version; both as sure as ours, in the journals of a majority.

use leasehold_workload::{Ask, Lock, Peer};
use mongodb::{
    Client, Collection,
    bson::{Document, doc},
    options::{Acknowledgment, ClientOptions, CollectionOptions, ReadConcern, ReturnDocument, WriteConcern},
};

use super::{record, text};

pub(super) struct Mongodb(Collection<Document>);

#[derive(Clone)]
pub(super) struct Named {
    documents: Collection<Document>,
    name: String,
}

impl Peer for Mongodb {
    type Lock = Named;

    fn version() -> String {
        "mongodb".to_owned()
    }

    async fn connect(ask: &Ask) -> Result<Self, String> {
        let mut options = ClientOptions::parse(&ask.url).await.map_err(text)?;
        // As ours: a write that the driver may repeat is one more that the server has to remember.
        options.retry_writes = Some(false);
        let client = Client::with_options(options).map_err(text)?;
        let write = WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build();
        let sure =
            CollectionOptions::builder().write_concern(write).read_concern(ReadConcern::majority()).build();
        Ok(Self(client.database("bare").collection_with_options("locks", sure)))
    }

    fn lock(&self, name: &str) -> Named {
        Named { documents: self.0.clone(), name: name.to_owned() }
    }
}

impl Lock for Named {
    type Held = i64;

    async fn acquire(&self) -> Result<i64, String> {
        let is_free = doc! { "$lte": [{ "$ifNull": ["$ends", "$$NOW"] }, "$$NOW"] };
        let ours = doc! {
            "_id": "$_id",
            "version": { "$add": [{ "$ifNull": ["$version", 0_i64] }, 1_i64] },
            "since": "$$NOW",
            "ends": { "$add": ["$$NOW", 30_000_i64] },
            "record": { "$literal": record() },
        };
        let taken = doc! { "$replaceWith": { "$cond": [is_free, ours, "$$ROOT"] } };
        let found = self.change(taken).await?;
        found.get_i64("version").map_err(text)
    }

    async fn release(&self, version: i64) -> Result<(), String> {
        let free =
            doc! { "_id": "$_id", "version": { "$add": ["$version", 1_i64] }, "record": { "$literal": "" } };
        let is_ours = doc! { "$eq": ["$version", version] };
        let given = doc! { "$replaceWith": { "$cond": [is_ours, free, "$$ROOT"] } };
        match self.change(given).await?.get_i64("version") {
            Ok(after) if after == version + 1 => Ok(()),
            _ => Err("the document was not ours".to_owned()),
        }
    }
}

impl Named {
    /// The document as it is then.
    async fn change(&self, pipeline: Document) -> Result<Document, String> {
        let changing = self
            .documents
            .find_one_and_update(doc! { "_id": &self.name }, vec![pipeline])
            .upsert(true)
            .return_document(ReturnDocument::After);
        changing.await.map_err(text)?.ok_or_else(|| "there is no document".to_owned())
    }
}
