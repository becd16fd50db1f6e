//! `#[locked]` as it is meant to be used, on a store in this process and on a real Redis.

#![cfg(feature = "macros")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

mod arguments;
mod bodies;
mod items;
mod kinds;
mod losing;
mod policies;
mod reentry;
mod shapes;
mod threads;

use leasehold::Client;

/// Longer than any test takes: whoever waits that long waits for what never comes.
const LONG: &str = "60s";

/// Runs each test of a module on each store.
macro_rules! on_each_store {
    ($($test:ident)*) => {
        mod memory {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test(leasehold::connect("memory:").await.unwrap()).await;
                }
            )*
        }

        #[cfg(feature = "redis")]
        mod redis {
            use leasehold_testkit::servers::{redis::Redis, start_or_skip};

            $(
                #[tokio::test]
                async fn $test() {
                    let Some(server) = start_or_skip(Redis::start) else { return };
                    super::$test(leasehold::connect(&server.url()).await.unwrap()).await;
                }
            )*
        }
    };
}
pub(crate) use on_each_store;

/// Whether anybody holds the name.
async fn is_held(locks: &Client, name: &str) -> bool {
    locks.inspect(name).await.unwrap().is_some_and(|state| !state.holders.is_empty())
}

/// A task beside the test.
fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> tokio::task::JoinHandle<T> {
    tokio::runtime::Handle::current().spawn(task)
}
