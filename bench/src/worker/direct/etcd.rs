//! etcd: a transaction that creates a key under a lease that is there already, and one that deletes it.
//!
//! The messages have the fields that these requests use, by the protocol's numbers.

use leasehold_workload::{Ask, Lock, Peer};
use prost::Message;
use tonic::{
    client::Grpc,
    codegen::http::uri::PathAndQuery,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

use super::{record, text};

#[derive(Clone, PartialEq, Eq, Message)]
struct Compare {
    /// Zero is "equal".
    #[prost(int32, tag = "1")]
    result: i32,
    /// One is the revision at which the key was created.
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "vec", tag = "3")]
    key: Vec<u8>,
    #[prost(int64, optional, tag = "5")]
    create_revision: Option<i64>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct Put {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
    #[prost(int64, tag = "3")]
    lease: i64,
}

/// A deletion or a look: both begin with the key.
#[derive(Clone, PartialEq, Eq, Message)]
struct OfKey {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct Act {
    #[prost(message, optional, tag = "1")]
    look: Option<OfKey>,
    #[prost(message, optional, tag = "2")]
    put: Option<Put>,
    #[prost(message, optional, tag = "3")]
    delete: Option<OfKey>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct Transaction {
    #[prost(message, repeated, tag = "1")]
    compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    success: Vec<Act>,
    #[prost(message, repeated, tag = "3")]
    failure: Vec<Act>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct Done {
    #[prost(bool, tag = "2")]
    succeeded: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct Grant {
    #[prost(int64, tag = "1")]
    seconds: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct Granted {
    #[prost(int64, tag = "2")]
    id: i64,
}

pub(super) struct Etcd {
    channel: Channel,
    lease: i64,
}

#[derive(Clone)]
pub(super) struct Named {
    channel: Channel,
    lease: i64,
    key: Vec<u8>,
}

impl Peer for Etcd {
    type Lock = Named;

    fn version() -> String {
        "tonic".to_owned()
    }

    async fn connect(ask: &Ask) -> Result<Self, String> {
        let url = ask.url.replacen("etcd:", "http:", 1);
        let channel = Endpoint::from_shared(url).map_err(text)?.connect().await.map_err(text)?;
        // Longer than any run: nothing here renews it.
        let granted: Granted =
            call(&channel, "/etcdserverpb.Lease/LeaseGrant", Grant { seconds: 3600 }).await?;
        Ok(Self { channel, lease: granted.id })
    }

    fn lock(&self, name: &str) -> Named {
        Named { channel: self.channel.clone(), lease: self.lease, key: name.as_bytes().to_vec() }
    }
}

impl Lock for Named {
    type Held = ();

    async fn acquire(&self) -> Result<(), String> {
        let key = || self.key.clone();
        let look = Act { look: Some(OfKey { key: key() }), ..Act::default() };
        let put = Put { key: key(), value: record().into_bytes(), lease: self.lease };
        let is_new = Compare { result: 0, target: 1, key: key(), create_revision: Some(0) };
        let request = Transaction {
            compare: vec![is_new],
            success: vec![Act { put: Some(put), ..Act::default() }],
            failure: vec![look],
        };
        self.transact(request).await
    }

    async fn release(&self, (): ()) -> Result<(), String> {
        let delete = Some(OfKey { key: self.key.clone() });
        let success = vec![Act { delete, ..Act::default() }];
        self.transact(Transaction { success, ..Transaction::default() }).await
    }
}

impl Named {
    async fn transact(&self, request: Transaction) -> Result<(), String> {
        let done: Done = call(&self.channel, "/etcdserverpb.KV/Txn", request).await?;
        if done.succeeded { Ok(()) } else { Err("somebody else has the key".to_owned()) }
    }
}

async fn call<Q, A>(channel: &Channel, path: &'static str, request: Q) -> Result<A, String>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.map_err(text)?;
    let path = PathAndQuery::from_static(path);
    let answer = grpc.unary(tonic::Request::new(request), path, ProstCodec::default()).await;
    answer.map(tonic::Response::into_inner).map_err(text)
}
