//! From a configuration to collections that are ready: what sort of MongoDB this is, and what sweeps it.

use std::time::Duration;

use leasehold_core::{Error, Operation, Result};
use mongodb::{
    Client, IndexModel,
    bson::{Document, doc},
    options::{
        Acknowledgment, ClientOptions, CollectionOptions, IndexOptions, ReadConcern, SelectionCriteria,
        ServerAddress, Tls, WriteConcern,
    },
};

use crate::{
    config::MongodbConfig,
    desk::Desk,
    error::{self, Effect},
};

/// The database, where the URL names none.
const DATABASE: &str = "leasehold";

/// How long the driver looks for a primary, unless the URL says.
const SELECTION: Duration = Duration::from_secs(5);

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) desk: Desk,
    /// Where it is, without secrets.
    pub(crate) place: String,
    pub(crate) kind: Kind,
}

/// How the servers belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Single,
    /// A replica set, or several behind a router.
    Replicated,
}

pub(crate) async fn open(config: MongodbConfig) -> Result<Found> {
    let mut options = parsed(&config).await?;
    options.server_selection_timeout.get_or_insert(SELECTION);
    options.connect_timeout.get_or_insert(SELECTION);
    // A write that the driver repeats may be refused the second time and done the first; we repeat by our own ids.
    options.retry_writes = Some(false);
    options.app_name.get_or_insert_with(|| "leasehold".to_owned());
    let database = options.default_database.clone().unwrap_or_else(|| DATABASE.to_owned());
    let hosts: Vec<String> = options.hosts.iter().map(ToString::to_string).collect();
    let place = format!("mongodb://{}/{database}.{}", hosts.join(","), config.collection);
    let exposed = exposed(&options);
    let client = Client::with_options(options).map_err(|error| error::meaning(error, Effect::None))?;
    let within = client.database(&database);
    let locks = within.collection_with_options(&config.collection, sure(config.command_timeout));
    let cells =
        within.collection_with_options(&format!("{}.cells", config.collection), sure(config.command_timeout));
    let desk = Desk { client, locks, cells, patience: config.command_timeout, exposed };
    let told = |error: Error| error.during(Operation::Connect).about(&place);
    let hello = desk.ask(doc! { "hello": 1 }).await.map_err(told)?;
    prepare(&desk).await.map_err(told)?;
    Ok(Found { desk, kind: kind(&hello), place })
}

fn exposed(options: &ClientOptions) -> Vec<String> {
    match options.tls {
        Some(Tls::Enabled(_)) => Vec::new(),
        _ => options.hosts.iter().filter_map(host).collect(),
    }
}

/// The host of an address; a socket's never leaves the machine.
fn host(address: &ServerAddress) -> Option<String> {
    match address {
        ServerAddress::Tcp { host, .. } => Some(host.clone()),
        _ => None,
    }
}

/// The driver's own errors may repeat the URL, so only what it says of a name that cannot be resolved is passed on.
async fn parsed(config: &MongodbConfig) -> Result<ClientOptions> {
    let parsing = ClientOptions::parse(config.url.clone()).await;
    parsing.map_err(|error| match &*error.kind {
        mongodb::error::ErrorKind::DnsResolve { .. } => error::meaning(error, Effect::None).during(Operation::Connect),
        _ => crate::config::config(
            "the driver cannot read this store URL; check its options, and write /, ?, # and @ within a user name or a \
             password as %2F, %3F, %23 and %40",
        ),
    })
}

/// Written to the journals of a majority before it is answered, and read from what is there.
fn sure(patience: Duration) -> CollectionOptions {
    let write = WriteConcern::builder().w(Acknowledgment::Majority).journal(true).w_timeout(patience).build();
    CollectionOptions::builder()
        .write_concern(write)
        .read_concern(ReadConcern::majority())
        .selection_criteria(SelectionCriteria::ReadPreference(mongodb::options::ReadPreference::Primary))
        .build()
}

pub(crate) fn kind(hello: &Document) -> Kind {
    let is_router = hello.get_str("msg").is_ok_and(|message| message == "isdbgrid");
    if is_router || hello.get_str("setName").is_ok() { Kind::Replicated } else { Kind::Single }
}

/// Lets MongoDB itself remove what nobody uses any more. Nothing is decided by that.
async fn prepare(desk: &Desk) -> Result<()> {
    for (collection, field) in [(&desk.locks, "sweep"), (&desk.cells, "sweep")] {
        let options = IndexOptions::builder().expire_after(Duration::ZERO).build();
        let index = IndexModel::builder().keys(doc! { field: 1 }).options(options).build();
        let collection = collection.clone();
        desk.run(Effect::None, async move { collection.create_index(index).await }).await?;
    }
    Ok(())
}
