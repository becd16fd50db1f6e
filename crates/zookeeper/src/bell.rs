//! What wakes one who waits: a watch on one node, set before the last look.

use std::{fmt, pin::Pin};

use zookeeper_client::OneshotWatcher;

use crate::{
    error::{Fault, or_none},
    line::{Blocker, Line},
    names::Contender,
    session::Session,
    tag::Tag,
};

/// A watch that is set. It rings once, and also when the session is over.
pub(crate) struct Bell(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Bell {
    /// Watches what stands in our way in this line; `None` if the line has moved meanwhile.
    pub(crate) async fn set(
        session: &Session,
        parent: &str,
        line: &Line,
        blocker: &Blocker,
    ) -> Result<Option<Self>, Fault> {
        let client = &session.client;
        let watched = match blocker {
            // A watch on the children of a node that has none rings only when the node is gone, not with every
            // change of its text.
            Blocker::Gone(node) => {
                let set = session.answered(client.list_and_watch_children(&format!("{parent}/{node}"))).await;
                set.map(|(_, watcher)| Some(watcher))
            }
            Blocker::Changed(node) => {
                let set = session.answered(client.get_and_watch_data(&format!("{parent}/{node}"))).await;
                set.map(|(data, _, watcher)| is_in_the_way(node, &data).then_some(watcher))
            }
            Blocker::Line => {
                let set = session.answered(client.get_and_watch_children(parent)).await;
                set.map(|(children, _, watcher)| (Line::of(children) == *line).then_some(watcher))
            }
        };
        Ok(or_none(watched)?.map(Self::new))
    }

    fn new(watcher: OneshotWatcher) -> Self {
        Self(Box::pin(async move { drop(watcher.changed().await) }))
    }

    /// Completes when it rings. May be dropped and loses nothing by it.
    pub(crate) async fn rung(&mut self) {
        self.0.as_mut().await;
    }
}

/// Whether a node still is what others behind it wait for: neither a writer that reads, nor a waiter that was served.
fn is_in_the_way(node: &str, data: &[u8]) -> bool {
    Contender::parse(node).is_some_and(|contender| {
        let tag = Tag::decode(&contender, data);
        !tag.shared && !tag.served
    })
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bell")
    }
}
