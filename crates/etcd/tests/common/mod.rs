//! What these tests share: clients of a server of one's own, and bare requests that see what is really there.

#![allow(dead_code, reason = "each test file uses what it needs")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Client, Key, Who,
    backend::{ClaimSpec, Life, Mode, Shape},
};
use leasehold_etcd::{Etcd, EtcdConfig};
use leasehold_testkit::servers::etcd as servers;
use tokio::{runtime::Handle, task::JoinHandle};

/// A client that does not wait long for an answer.
pub(crate) async fn connect(url: &str) -> Client {
    let config = EtcdConfig::from_url(url).unwrap().with_command_timeout(Duration::from_secs(2));
    Client::new(Etcd::open(config).await.unwrap())
}

/// Completes when something is so; it fails if that does not come within minutes.
pub(crate) async fn eventually(is_so: impl AsyncFn() -> bool) {
    for _ in 0..6000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to be");
}

/// A task beside the test.
pub(crate) fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    Handle::current().spawn(task)
}

/// One exclusive acquisition, as a store is asked for it.
pub(crate) fn spec(name: &str) -> Arc<ClaimSpec> {
    let who = Who::here();
    let id = format!("{}:7", who.client).parse().unwrap();
    let (key, mode, shape) = (Key::new("", name).unwrap(), Mode::Exclusive, Shape::Lock);
    let (ttl, fair, life, label) = (Duration::from_secs(30), false, Life::Session, None);
    Arc::new(ClaimSpec {
        id,
        key,
        mode,
        shape,
        ttl,
        fair,
        life,
        who: Arc::new(who),
        label,
        location: None,
        fences: 1,
    })
}

/// Bare requests by the server's gateway.
pub(crate) trait Bare {
    /// All keys that begin so, as text.
    fn keys(&self, prefix: &str) -> String;
    /// The lease of the only key that begins so.
    fn lease_of(&self, prefix: &str) -> String;
    /// Ends a lease.
    fn revoke(&self, lease: &str);
    /// Forgets all history up to now.
    fn compact(&self);
}

impl Bare for servers::Etcd {
    fn keys(&self, prefix: &str) -> String {
        self.ask("/v3/kv/range", &range(prefix)).unwrap()
    }

    fn lease_of(&self, prefix: &str) -> String {
        number(&self.keys(prefix), "lease").unwrap()
    }

    fn revoke(&self, lease: &str) {
        self.ask("/v3/kv/lease/revoke", &format!("{{\"ID\":\"{lease}\"}}")).unwrap();
    }

    fn compact(&self) {
        let revision = number(&self.keys("none"), "revision").unwrap();
        // Somebody may have been quicker.
        drop(self.ask("/v3/kv/compaction", &format!("{{\"revision\":\"{revision}\"}}")));
    }
}

fn range(prefix: &str) -> String {
    let mut end = prefix.as_bytes().to_vec();
    *end.last_mut().unwrap() += 1;
    format!("{{\"key\":\"{}\",\"range_end\":\"{}\"}}", base64(prefix.as_bytes()), base64(&end))
}

/// The first number of this name in a JSON answer.
pub(crate) fn number(answer: &str, name: &str) -> Option<String> {
    let rest = answer.split_once(&format!("\"{name}\":\""))?.1;
    rest.split_once('"').map(|(number, _)| number.to_owned())
}

/// Bytes as the gateway wants them.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let chunk = |chunk: &[u8]| {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(*chunk.get(at).unwrap_or(&0)));
        let letter = |at: usize| {
            if at > chunk.len() { '=' } else { char::from(LETTERS[(bits >> (18 - 6 * at)) as usize & 63]) }
        };
        (0..4).map(letter).collect::<String>()
    };
    bytes.chunks(3).map(chunk).collect()
}
