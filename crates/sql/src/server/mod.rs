//! What PostgreSQL and MySQL share: a lock store in a database that many machines reach.
//!
//! One row per name: a version, the newest fence, and the record's text while anybody is in it. A step is computed
//! here, from the row and the server's own clock, and written on the condition that the row still has the version it was
//! computed from. So nothing depends on a session, and any pooler may stand in between; a step is at most three
//! statements when nobody interferes: one that tries, one that looks, one that writes.
//!
//! The two that matter most are one each. To acquire a name that nobody uses, the step is computed for a record that
//! begins at fence zero and moment zero, and the server keeps it together with where zero was: its own fence and its own
//! clock, see [`Record::reckoned_from`](leasehold_core::backend::record::Record::reckoned_from). To release, we write on the
//! strength of what we wrote last.
//!
//! `ledger` takes steps on a [`Database`], with `turns` for those who got in each other's way; `store` is the store around
//! it, with `bell` and `recent`; `sweep` removes what nobody uses; `session` ends what the dead hold, where that is asked
//! for; `pool` keeps connections; `url` reads what both kinds of URL share.

pub(crate) mod bell;
pub(crate) mod database;
mod ledger;
pub(crate) mod pool;
mod proof;
mod recent;
pub(crate) mod session;
pub(crate) mod store;
mod sweep;
mod turns;
pub(crate) mod url;
pub(crate) mod versioned;

pub(crate) use self::proof::elsewhere;
pub use self::{
    bell::ServerBell,
    database::{After, Begin, Database, Failure, First, Found, Row, Swapped, Tried},
    session::Session,
    store::Served,
    url::Tls,
    versioned::{Updated, Versioned},
};
