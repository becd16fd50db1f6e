//! What a function is given is dropped under its lock; what its options borrow is given back before it waits.

use std::sync::{Arc, Mutex};

use leasehold::{Client, Error, ErrorKind, blocking, locked};

use super::{LONG, on_each_store, spawn};

on_each_store! {
    what_an_async_function_owns_is_dropped_under_the_lock
    what_the_options_borrow_does_not_cross_the_wait
}

/// Tells of its end: its name, and whether a lock was held then.
struct Last {
    name: &'static str,
    number: u32,
    told: Told,
}

type Told = Arc<Mutex<Vec<(&'static str, bool)>>>;

impl Drop for Last {
    fn drop(&mut self) {
        let held = leasehold::held().is_some_and(|held| held.check().is_ok());
        self.told.lock().unwrap().push((self.name, held));
    }
}

/// The name of the lock is all that is ever used of it.
struct Parcel<C> {
    locks: C,
    number: u32,
    _rest: Last,
}

impl Parcel<Client> {
    #[locked(client = self.locks, key = "parcel:{partly.number}")]
    async fn open(
        self,
        _unused: Last,
        partly: Last,
        (left, _right): (Last, Last),
        _: Last,
    ) -> Result<u32, Error> {
        Ok(self.number + partly.number + left.number)
    }
}

impl Parcel<blocking::Client> {
    #[locked(client = self.locks, key = "parcel:{partly.number}")]
    fn open_here(
        self,
        _unused: Last,
        partly: Last,
        (left, _right): (Last, Last),
        _: Last,
    ) -> Result<u32, Error> {
        Ok(self.number + partly.number + left.number)
    }
}

/// The last argument first, as everywhere.
const ALL: [(&str, bool); 6] = [
    ("unnamed", true),
    ("right", true),
    ("left", true),
    ("partly", true),
    ("unused", true),
    ("rest of self", true),
];

async fn what_an_async_function_owns_is_dropped_under_the_lock(locks: Client) {
    let told = Told::default();
    let last = |name| Last { name, number: 1, told: told.clone() };
    let parcel = Parcel { locks, number: 1, _rest: last("rest of self") };
    let sides = (last("left"), last("right"));
    assert_eq!(parcel.open(last("unused"), last("partly"), sides, last("unnamed")).await.unwrap(), 3);
    assert_eq!(*told.lock().unwrap(), ALL);
}

#[test]
fn what_a_function_owns_is_dropped_under_the_lock() {
    let told = Told::default();
    let last = |name| Last { name, number: 1, told: told.clone() };
    let locks = blocking::connect("memory:").unwrap();
    let parcel = Parcel { locks, number: 1, _rest: last("rest of self") };
    let sides = (last("left"), last("right"));
    assert_eq!(parcel.open_here(last("unused"), last("partly"), sides, last("unnamed")).unwrap(), 3);
    assert_eq!(*told.lock().unwrap(), ALL);
}

struct Registry<C> {
    locks: C,
}

#[locked(client = registry.lock().unwrap().locks, key = "a", wait = LONG)]
async fn by_registry(registry: &Mutex<Registry<Client>>) -> Result<bool, Error> {
    Ok(registry.try_lock().is_ok())
}

/// That it compiles is half of it: a task may go to another thread while it waits, and a mutex may not.
async fn what_the_options_borrow_does_not_cross_the_wait(locks: Client) {
    let registry = Arc::new(Mutex::new(Registry { locks }));
    assert!(spawn(async move { by_registry(&registry).await }).await.unwrap().unwrap());
}

static REGISTRY: Mutex<Option<Registry<blocking::Client>>> = Mutex::new(None);

#[locked(client = REGISTRY.lock().unwrap().as_ref().unwrap().locks, key = "a", on_busy = call(while_busy))]
fn by_static_registry() -> Result<bool, Error> {
    Ok(false)
}

fn while_busy(error: Error) -> Result<bool, Error> {
    if error.kind() == ErrorKind::Busy { Ok(REGISTRY.try_lock().is_ok()) } else { Err(error) }
}

#[test]
fn what_the_options_borrow_is_given_back_before_a_thread_waits() {
    let locks = blocking::connect("memory:").unwrap();
    let guard = locks.lock("a").acquire().unwrap();
    *REGISTRY.lock().unwrap() = Some(Registry { locks });
    assert!(by_static_registry().unwrap());
    guard.release().unwrap();
}
