//! A thread that waits for a future, and the runtime thread that everything else goes on upon.
//!
//! The future is polled by the caller, within the context of our own runtime: its timers and connections belong to that
//! one, whatever runtime the caller is in. It need not be `Send` nor `'static`, so a guard is used where it lies.

use std::{
    cell::Cell,
    future::Future,
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake},
    thread::{self, Thread},
};

use tokio::{
    runtime::{Builder, Handle, Runtime, RuntimeFlavor},
    task::{block_in_place, unconstrained},
};

use crate::{Error, ErrorKind, Operation, Result};

static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();

/// The runtime of this library's own: one thread, for as long as the process lives.
pub(super) fn runtime() -> Result<&'static Handle> {
    let started = RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).thread_name("leasehold").enable_all();
        builder.build().map_err(|error| error.to_string())
    });
    match started {
        Ok(runtime) => Ok(runtime.handle()),
        Err(why) => {
            let message = format!("cannot start the thread that renews leases: {why}");
            Err(Error::new(ErrorKind::Unavailable, Operation::Connect, message))
        }
    }
}

thread_local! {
    /// Whether this thread waits already: what it waits for may be work that waits in turn, as that of a job does.
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

/// Waits for the future on this thread. The other tasks of this thread, if it has any, go on elsewhere where their
/// runtime can do that.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    // Within a wait the context is our own runtime's and says nothing of the thread; and its tasks went elsewhere then.
    if WAITS.get() {
        return drive(future);
    }
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(|| drive(future)),
        _ => drive(future),
    }
}

/// A wait of this thread, until it is dropped.
struct Waiting {
    outer: bool,
}

impl Waiting {
    fn begin() -> Self {
        Self { outer: WAITS.replace(true) }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITS.set(self.outer);
    }
}

fn drive<T>(future: impl Future<Output = T>) -> T {
    let _waiting = Waiting::begin();
    // Whoever has something to wait for has a client, and no client was made without the runtime.
    let _context = runtime().ok().map(Handle::enter);
    // The caller may be a task whose turn is used up; nothing would ever be ready for it again while it stays here.
    let mut future = pin!(unconstrained(future));
    let bell = Arc::new(Bell { sleeper: thread::current(), rung: AtomicBool::new(false) });
    let waker = Arc::clone(&bell).into();
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        // Others may wake this thread for reasons of their own.
        while !bell.rung.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }
}

/// Wakes the thread that waits.
struct Bell {
    sleeper: Thread,
    rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.sleeper.unpark();
    }
}
