#![doc = include_str!("../../../README.md")]
//!
//! # Where to start
//!
//! [`connect`] opens a store by its URL and gives a [`Client`]; the client makes everything else. [`Lock`] has the
//! options and the ways to ask; [`Guard`] is what you get. Those who write a store read [`backend`].
//!
//! # Observability
//!
//! **Spans and events** go to [`tracing`](https://docs.rs/tracing), under the target `leasehold`; show them with a filter such as
//! `leasehold=debug`.
//!
//! | | level | fields |
//! |---|---|---|
//! | span `acquire` | debug | `name`, `kind`, and at its end `outcome`, `waited`, `fence` |
//! | `granted` | debug | `name`, `kind`, `fence`, `waited` |
//! | `released` | debug | `name`, `fence` |
//! | `in doubt`: a renewal failed; then `still in doubt` | warn; debug | `name`, `fence`, `error` |
//! | `lost` | warn; info when the client is shut down | `name`, `fence`, `cause` |
//! | `broken`: lost, for an operator took it away | warn | `name`, `fence`, `cause`, `by`, `why` |
//!
//! What others wrote is in fields, which `tracing-subscriber` prints with escapes. Labels of locks are not told.
//!
//! **Numbers** go to whatever recorder is installed for the [`metrics`](https://docs.rs/metrics) crate, with the feature
//! `metrics`. All have the labels `template` and `kind` (`exclusive`, `shared`, `permits`, `latch`), and most have one of their own:
//!
//! | metric | | its own label |
//! |---|---|---|
//! | `lock_acquire_seconds` | histogram: from being asked to the answer; its count is that of acquisitions | `outcome`: `acquired`, `busy`, `failed`, `abandoned` (the caller went away) |
//! | `lock_hold_seconds` | histogram; each hold ends once, of a cohort all holders together | `end`: `released`, or a cause of loss |
//! | `lock_lost_total` | counter | `cause`: `expired`, `max_hold`, `gone`, `broken`, `shutdown` |
//! | `lock_renewals_total` | counter | `outcome`: `renewed`, `failed`, `lost` |
//! | `lock_renew_lag_seconds` | histogram: from when a renewal was due, a third of the lease after the last that succeeded was sent, to when it was heard to have succeeded | |
//! | `lock_is_leader` | gauge: how many elections of the template this process leads, so 1 or 0 for one; 0 for a candidate, and again once it resigned or lost the lead | |
//!
//! The lag is what is left of a lease's safety: two thirds of the lease are lost with it. In it are the store's answer, all
//! tries that failed, and whatever kept the process from renewing, such as a runtime that was blocked or a machine that slept.
//! What a holder asks for itself ([`Guard::extend`], entering a lock again) was not due, and is not in it.
//! A lead is over for `lock_is_leader` as soon as anybody notices: at the latest when its lease ends, if the runtime of the
//! client can run by then.
//!
//! Names are no labels: they are many, and often somebody's customers. The `template` is the name without what varies in it:
//! of `#[locked(key = "order:{order.id}")]` it is `order:{}`; a lock made by hand says it with [`Lock::template`], or else it is the
//! beginning of the name up to the first separator, of `order:42` again `order:{}`. A client tells 200 apart, the rest are
//! `other`. Who holds which name right now, the console shows.
//!
//! The feature is off unless asked for, because that facade cannot say whether anybody listens: with it every acquisition is
//! timed and looked up, with a recorder or without, though nothing is allocated for it. An exporter, installed before
//! anything else in `main`, such as [`metrics-exporter-prometheus`](https://docs.rs/metrics-exporter-prometheus):
//!
//! ```ignore
//! metrics_exporter_prometheus::PrometheusBuilder::new()
//!     .set_buckets(&[0.001, 0.01, 0.1, 1.0, 10.0, 60.0])?      // histograms; without this they are summaries
//!     .with_http_listener(([127, 0, 0, 1], 9000))
//!     .install()?;                                             // GET http://127.0.0.1:9000/metrics
//! ```

mod ambient;
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod attribute;
pub mod blocking;
mod config;
mod connect;
#[cfg(feature = "macros")]
mod scheduled;
mod url;

pub use leasehold_core::*;
#[cfg(feature = "tower")]
pub use leasehold_tower as tower;

pub use crate::{
    ambient::{install, install_as, installed, installed_as},
    config::{ClientConfig, Config, FromEnv, from_env},
    connect::{Settings, connect, connect_with},
};
#[cfg(feature = "macros")]
pub use crate::{
    attribute::{Held, held},
    scheduled::{Scheduled, run_all},
};

/// Holds a lock while the function runs.
///
/// ```
/// # use leasehold::{Client, Error, locked};
/// # struct Item { sku: String }
/// struct Shop { locks: Client }
///
/// impl Shop {
///     #[locked(client = self.locks, key = "stock:{item.sku}", wait = "2s")]
///     async fn reserve(&self, item: &Item) -> Result<u32, Error> {
///         Ok(7)       // nobody else reserves this item meanwhile, on any machine
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
/// # let shop = Shop { locks: leasehold::connect("memory:").await? };
/// # assert_eq!(shop.reserve(&Item { sku: "a".into() }).await?, 7); Ok(()) }
/// ```
///
/// It goes on `async fn` and on `fn`, free, in an `impl` or in the `impl` of a trait, generic or not. The function returns a
/// `Result` whose error has `From<leasehold::Error>`: a lock may be busy, and a store may not answer. **The body never runs
/// without the lock.** When it ends, by whatever way, the lock is released.
///
/// | option | |
/// |---|---|
/// | `key = "order:{order.id}"` | the name. Braces hold Rust expressions over the arguments and `self`, evaluated once, before the body; `{{` and `}}` are braces. `key = ["a:{x}", "b:{y}"]` takes several, all or none, in an order that cannot deadlock |
/// | `client = self.locks` | a [`Client`], or a [`blocking::Client`] in a `fn`. `client = "reports"` is the one [installed](install_as) under that name. Without it, the [installed](install) one |
/// | `wait = "2s"` | how long to stand in line. Without it the function waits for ever; but not at all if it says `on_busy` |
/// | `ttl = "30s"`, `max_hold = "5m"` | as of a [`Lock`]. Texts are checked by the compiler; a `Duration` can stand there too |
/// | `kind = read`, `write`, `fair`, `permits(take, of)` | how it is held; exclusively unless said |
/// | `reentrant` | what a function further out in the same task holds can be entered once more, if both say so |
/// | `on_busy = error` | when somebody else has it: the error, of kind [`Busy`](ErrorKind::Busy), says who |
/// | `on_busy = skip` | `Ok(None)`; the function returns `Result<Option<T>, E>` |
/// | `on_busy = return(Ok(0))` | that value |
/// | `on_busy = call(path)` | what `path(error)` returns; awaited in an `async fn` |
/// | `on_lost = cancel` | when the lock is lost while the body runs: an `async fn` is dropped where it stands, and the error is of kind [`Lost`](ErrorKind::Lost). That is so unless said |
/// | `on_lost = finish` | the body goes on to its end, and its result counts |
///
/// A `fn` cannot be stopped: it goes on to its end, and then a loss is the error, unless `on_lost = finish`. The fence, and
/// whether the lock is still held, [`held`] says within the body.
///
/// Tasks and threads that a body starts do not hold its lock, and cannot enter it. Branches of a `join!` within a body are
/// that body: with `reentrant` each of them may enter what it holds.
///
/// A body that calls a function for the same name would wait for itself, unless both say `reentrant`: the inner one is refused
/// at once with the kind [`WouldDeadlock`](ErrorKind::WouldDeadlock), whatever its `wait` and `on_busy` say. That goes for readers
/// as well, since a writer may stand in line between the two reads. Permits are counted: they are refused when those that the
/// task has and those it asks for are more than there are.
///
/// The arguments that the function owns are dropped before the release: what they do then, they do under the lock.
#[cfg(feature = "macros")]
pub use leasehold_macros::locked;

/// Makes a job of a function: work that runs once per slot of a schedule, on one machine of all that run it.
///
/// ```no_run
/// # use leasehold::{Error, Run, connect, install, run_all, scheduled};
/// # #[derive(Clone)] struct Pool;
/// # impl Pool { async fn archive(&self, fence: u64) -> Result<(), std::io::Error> { Ok(()) } }
/// #[scheduled(cron = "0 2 * * *", zone = "Europe/Berlin", name = "nightly", at_most = "2h", at_least = "5m")]
/// async fn nightly(run: &Run, db: Pool) -> Result<(), std::io::Error> {
///     db.archive(run.fence()).await
/// }
///
/// #[scheduled(cron = "*/10 * * * * *", name = "sweep", at_most = "10s", catch_up = skip)]
/// async fn sweep() {}
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
/// # let db = Pool;
/// install(connect("redis://127.0.0.1").await?)?;
/// run_all([nightly(db), sweep()]).await          // the same line on every machine
/// # }
/// ```
///
/// It goes on an `async fn` that stands by itself and returns nothing or a `Result` whose error has `Display`. What remains
/// is a function of that name that takes the same arguments, but for the [`Run`], and gives a [`Scheduled`]: run it, or
/// several with [`run_all`]. The arguments are cloned for every run. The schedule, its zone and all lengths of time are
/// checked by the compiler.
///
/// | option | |
/// |---|---|
/// | `cron = "0 2 * * *"` | when: five fields, `minute hour day month weekday`, or six with seconds before them |
/// | `zone = "Europe/Berlin"` | the time zone of that; UTC unless said |
/// | `name = "nightly"` | the job's name, the same on every machine |
/// | `at_most = "2h"` | how long a run may take: it is dropped then |
/// | `at_least = "5m"` | how long a run counts though it is over sooner |
/// | `jitter = "30s"` | begins up to this much later, by chance |
/// | `catch_up = latest`, `all`, `skip` | what happens to slots that nobody could run in time; the latest is run unless said |
/// | `ttl = "30s"` | how soon another machine may run it after this one has died |
/// | `client = locks` | a [`Client`] among the arguments; `client = "reports"` is the one [installed](install_as) under that name. Without it, the [installed](install) one |
///
/// What it promises, and what becomes of slots that were missed, [`Job`] says.
#[cfg(feature = "macros")]
pub use leasehold_macros::scheduled;
