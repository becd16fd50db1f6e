//! Everything a user awaits or stores can go to another thread: this compiles or it does not.

use leasehold_core::{
    Client, Error, Guard, Job, Latch, Lock, LockSet, Owner, RwLock, Semaphore, SetGuard, Ticket,
    backend::Memory,
};

fn send<T: Send>(value: T) -> T {
    value
}

fn send_and_sync<T: Send + Sync + 'static>() {}

#[test]
fn what_users_store_is_send_and_sync() {
    send_and_sync::<Client>();
    send_and_sync::<Lock>();
    send_and_sync::<Guard>();
    send_and_sync::<Owner>();
    send_and_sync::<RwLock>();
    send_and_sync::<Semaphore>();
    send_and_sync::<Latch>();
    send_and_sync::<LockSet>();
    send_and_sync::<SetGuard>();
    send_and_sync::<Ticket>();
    send_and_sync::<Job>();
    send_and_sync::<Error>();
}

#[tokio::test]
async fn what_users_await_is_send() {
    let locks = Client::new(Memory::new());
    let lock = locks.lock("a");
    let guard = send(lock.acquire()).await.unwrap();
    send(guard.extend("10s")).await.unwrap();
    send(guard.ensure("10s")).await.unwrap();
    drop(send(guard.lost()));
    drop(send(guard.renewed(guard.deadline())));
    send(guard.release()).await.unwrap();
    drop(send(locks.set().lock("a").read("b").acquire()).await.unwrap());
    send(locks.latch("l").wait()).await.unwrap();
    send(locks.shutdown("1s")).await.unwrap();
}

#[tokio::test]
async fn a_job_runs_in_a_task_of_its_own() {
    let locks = Client::new(Memory::new());
    let (job, order) = (locks.job("job").schedule("* * * * *").at_most("1h"), String::from("42"));
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { job.run(async move |_| Err::<(), _>(order.clone())).await });
    locks.shutdown("1s").await.unwrap();
    tasks.join_next().await.unwrap().unwrap().unwrap_or_default();
}

#[tokio::test]
async fn a_scope_runs_in_a_task_of_its_own() {
    let locks = Client::new(Memory::new());
    let order = String::from("42");
    let task = tokio::task::JoinSet::from_iter([async move {
        let work = async |held: &Guard| Ok::<_, Error>((order.len(), held.fence()));
        locks.lock("order").scope(work).await
    }]);
    assert_eq!(task.join_all().await.pop().unwrap().unwrap(), (2, 1));
}
