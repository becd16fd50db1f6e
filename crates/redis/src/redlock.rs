//! Redlock: one name on several independent servers, held by whoever holds it on most of them.
//!
//! The rules are core's ([`Quorum`]); here is only how its members come from a URL.

use std::sync::Arc;

use futures_util::future::try_join_all;
use leasehold_core::{
    Result,
    backend::{Backend, Quorum, QuorumOptions},
};

use crate::{Redis, RedisConfig};

/// Opens `redlock+redis://user:password@host,host,host,host,host/db`: three servers or more that know nothing of each
/// other. With `rediss` in place of `redis` all of them talk TLS. A server that is down counts as one that does not
/// answer, now and whenever it is.
///
/// # Errors
/// `Config` if the URL makes no sense, names fewer than three servers or one of them twice; `Denied` if one of them does
/// not accept the credentials.
///
/// # Panics
/// Outside of a tokio runtime: connections need one to live on.
///
/// # Cancel safety
/// Nothing stays behind if it is dropped.
pub async fn redlock(url: &str) -> Result<Quorum> {
    let configs = RedisConfig::members_from_url(url)?;
    let members = try_join_all(configs.into_iter().map(Redis::member)).await?;
    let members = members.into_iter().map(|member| Arc::new(member) as Arc<dyn Backend>).collect();
    Quorum::new(members, QuorumOptions::default().with_scheme("redlock+redis"))
}
