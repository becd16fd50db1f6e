//! Where requests are made: every one runs to its end in a task of its own.
//!
//! The driver does not bear futures that are dropped half-way: the server may go on with what they asked for, and the
//! connection is of no more use. So a request is never dropped; who waits for it may go, and waits no longer than the
//! configuration says.

use std::{future::Future, time::Duration};

use leasehold_core::Result;
use mongodb::{
    Client, Collection,
    bson::{Document, doc},
    error::Result as Driven,
    options::ReturnDocument,
};
use tokio::{runtime::Handle, time::timeout};

use crate::error::{self, Effect, is_duplicate};

/// How often an insert that another was faster with is tried again. The next try finds what the other made.
const RACES: usize = 16;

/// The collections, and how long to wait for an answer.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    pub(crate) client: Client,
    pub(crate) locks: Collection<Document>,
    pub(crate) cells: Collection<Document>,
    pub(crate) patience: Duration,
    /// The hosts to which nothing is encrypted.
    pub(crate) exposed: Vec<String>,
}

/// Whether a document that is not there is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Make,
    Leave,
}

impl Desk {
    /// Waits for a request that runs to its end in any case.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        effect: Effect,
        request: impl Future<Output = Driven<T>> + Send + 'static,
    ) -> Result<T> {
        match timeout(self.patience, Handle::current().spawn(request)).await {
            Ok(Ok(answer)) => answer.map_err(|error| error::meaning(error, effect)),
            // The task ended with the runtime, or with a panic of the driver's.
            Ok(Err(_)) | Err(_) => Err(error::late(effect)),
        }
    }

    /// Changes the document of this name by a pipeline and returns it as it is then, with the server's time.
    pub(crate) async fn change(
        &self,
        collection: &Collection<Document>,
        name: &str,
        pipeline: Document,
        missing: Missing,
    ) -> Result<Option<Document>> {
        let (collection, filter) = (collection.clone(), doc! { "_id": name });
        let request = async move {
            let mut race = 0;
            loop {
                let changing = collection
                    .find_one_and_update(filter.clone(), vec![pipeline.clone()])
                    .upsert(missing == Missing::Make)
                    .return_document(ReturnDocument::After)
                    .projection(with_time());
                match changing.await {
                    Err(error) if is_duplicate(&error) && race < RACES => race += 1,
                    changed => return changed,
                }
            }
        };
        self.run(Effect::Write, request).await
    }

    /// What a server answers to a command that changes nothing.
    pub(crate) async fn ask(&self, command: Document) -> Result<Document> {
        let database = self.client.database("admin");
        self.run(Effect::None, async move { database.run_command(command).await }).await
    }
}

/// Everything in a document, and the time of the server that reads it.
pub(crate) fn with_time() -> Document {
    doc! {
        "version": 1, "record": 1, "ends": 1, "token": 1, "value": 1, "until": 1,
        "now": "$$NOW",
    }
}
