//! What single operations cost: time, and allocations, which no noise can change.
//!
//! On one thread, without a server. `cargo bench --package leasehold-bench` runs it by itself; `cargo xtask bench` puts
//! what it prints on the page.

use std::{hint::black_box, sync::Arc, time::Duration};

use divan::{AllocProfiler, Bencher};
use leasehold::{
    Client, ClientId, Key, Who,
    backend::{
        ClaimSpec, Life, Memory, Mode, Shape,
        record::{Moment, Record, Step, Surroundings},
    },
};
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
}

/// What the next one pays for being asked from outside.
#[divan::bench(name = "runtime: entered, for nothing")]
fn entered(bencher: Bencher<'_, '_>) {
    let runtime = runtime();
    bencher.bench_local(|| runtime.block_on(async {}));
}

#[divan::bench(name = "lock: acquire and release, memory store")]
fn pair(bencher: Bencher<'_, '_>) {
    let runtime = runtime();
    let client = runtime.block_on(async { Client::new(Memory::new()) });
    let lock = client.lock("micro");
    bencher.bench_local(|| {
        let done = runtime.block_on(async { lock.acquire().await?.release().await });
        done.expect("nobody else wants it");
    });
}

/// What a holder asks its guard.
mod guard {
    use super::{Bencher, Client, Memory, black_box, runtime};

    fn asked<T>(bencher: Bencher<'_, '_>, ask: impl Fn(&leasehold::Guard) -> T) {
        let runtime = runtime();
        let client = runtime.block_on(async { Client::new(Memory::new()) });
        let guard = runtime.block_on(client.lock("held").acquire()).expect("nobody else wants it");
        bencher.bench_local(|| ask(black_box(&guard)));
    }

    #[divan::bench]
    fn state(bencher: Bencher<'_, '_>) {
        asked(bencher, leasehold::Guard::state);
    }

    #[divan::bench]
    fn check(bencher: Bencher<'_, '_>) {
        asked(bencher, leasehold::Guard::check);
    }

    #[divan::bench]
    fn fence(bencher: Bencher<'_, '_>) {
        asked(bencher, leasehold::Guard::fence);
    }
}

#[divan::bench(name = "key: checked and joined with its prefix")]
fn key(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| Key::new("shop:", black_box("order:42")));
}

/// What a store with compare-and-set does for a pair.
mod record {
    use super::{
        Arc, Bencher, ClaimSpec, ClientId, Duration, Key, Life, Mode, Moment, Record, Shape, Step,
        Surroundings, Who, black_box,
    };

    /// Somebody who takes a lock and gives it back.
    struct Taker {
        client: ClientId,
        attempt: Step,
        release: Step,
    }

    impl Taker {
        fn new() -> Self {
            let client = ClientId::random();
            let id = format!("{client}:1").parse().expect("that is how an id is written");
            let key = Key::new("", "micro").expect("that is a name");
            let (mode, shape, life, ttl) =
                (Mode::Exclusive, Shape::default(), Life::Session, Duration::from_secs(30));
            let who = Arc::new(Who::here());
            let spec = ClaimSpec {
                id,
                key,
                mode,
                shape,
                ttl,
                fair: false,
                life,
                who,
                label: None,
                location: None,
                fences: 1,
            };
            let attempt = Step::Attempt { spec: Arc::new(spec), waiting: false };
            Self { client, attempt, release: Step::Release { id, barrier: false } }
        }

        fn apply(&self, record: &mut Record, step: &Step) {
            let alive = |_: ClientId| true;
            let around =
                Surroundings { now: Moment(1_000_000), session: Some(self.client), crowd: 64, alive: &alive };
            drop(black_box(record.apply(step, &around)));
        }

        fn held(&self) -> Record {
            let mut record = Record::new(0);
            self.apply(&mut record, &self.attempt);
            record
        }
    }

    #[divan::bench(name = "attempt and release")]
    fn pair(bencher: Bencher<'_, '_>) {
        let (taker, mut record) = (Taker::new(), Record::new(0));
        bencher.bench_local(|| {
            taker.apply(&mut record, &taker.attempt);
            taker.apply(&mut record, &taker.release);
        });
    }

    #[divan::bench(name = "to text")]
    fn encode(bencher: Bencher<'_, '_>) {
        let held = Taker::new().held();
        bencher.bench_local(|| held.encode());
    }

    #[divan::bench(name = "from text")]
    fn decode(bencher: Bencher<'_, '_>) {
        let text = Taker::new().held().encode();
        bencher.bench_local(|| Record::decode(black_box(&text)));
    }
}
