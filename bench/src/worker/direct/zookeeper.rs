//! ZooKeeper: an ephemeral sequential node and a look at who is before it, sent together; then its deletion.

use std::sync::Arc;

use leasehold_workload::{Ask, Lock, Peer};
use zookeeper_client::{Acls, Client, CreateMode};

use super::{record, text};

pub(super) struct ZooKeeper(Arc<Client>);

#[derive(Clone)]
pub(super) struct Named {
    client: Arc<Client>,
    parent: String,
}

impl Peer for ZooKeeper {
    type Lock = Named;

    fn version() -> String {
        "zookeeper-client".to_owned()
    }

    async fn connect(ask: &Ask) -> Result<Self, String> {
        let servers = ask.url.trim_start_matches("zookeeper://");
        Ok(Self(Arc::new(Client::connect(servers).await.map_err(text)?)))
    }

    fn lock(&self, name: &str) -> Named {
        Named { client: self.0.clone(), parent: format!("/bare-{name}") }
    }
}

impl Lock for Named {
    type Held = String;

    async fn acquire(&self) -> Result<String, String> {
        match self.join().await {
            Err(zookeeper_client::Error::NoNode) => {
                let options = CreateMode::Container.with_acls(Acls::anyone_all());
                self.client.mkdir(&self.parent, &options).await.map_err(text)?;
                self.join().await.map_err(text)?
            }
            joined => joined.map_err(text)?,
        }
        .ok_or_else(|| "somebody else is first".to_owned())
    }

    async fn release(&self, node: String) -> Result<(), String> {
        self.client.delete(&node, None).await.map_err(text)
    }
}

impl Named {
    /// The node, if it is the first.
    async fn join(&self) -> Result<Option<String>, zookeeper_client::Error> {
        let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let (path, data) = (format!("{}/lock-", self.parent), record());
        let created = self.client.create(&path, data.as_bytes(), &options);
        let (created, children) = tokio::join!(created, self.client.list_children(&self.parent));
        let (_, sequence) = created?;
        let node = format!("{path}{sequence}");
        let first = children?.into_iter().min();
        Ok(first.is_some_and(|first| node.ends_with(&first)).then_some(node))
    }
}
