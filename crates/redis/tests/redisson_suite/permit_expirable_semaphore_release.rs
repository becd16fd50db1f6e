//! `RedissonPermitExpirableSemaphoreTest`, its cases about giving back: exactly what one holds, and once.

use leasehold_core::{ErrorKind, Ticket};

use crate::{
    common::eventually,
    permit_expirable_semaphore::{counts, fleeting},
    stage::{SHORT, play},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_release_without_permits() {
    play(async |stage| {
        assert_eq!("1234".parse::<Ticket>().unwrap_err().kind(), ErrorKind::Config);
        let text = stage.ours.semaphore("other", 1).permits(1).ticket().await.unwrap().to_string();
        let forged: Ticket = text.replace("other", "s").parse().unwrap();
        assert_eq!(stage.ours.release_ticket(&forged).await.unwrap_err().kind(), ErrorKind::Lost);
        assert_eq!(counts(stage).await, (0, 0), "no permit comes from nothing");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_release_expired() {
    play(async |stage| {
        let guard = fleeting(&stage.ours.semaphore("s", 1), 1).await;
        guard.lost().await;
        assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
        eventually(async || counts(stage).await == (1, 0)).await;
    })
    .await;
}
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_release() {
    play(async |stage| {
        let semaphore = stage.ours.semaphore("s", 10);
        let four = semaphore.permits(4).ticket().await.unwrap();
        let two = semaphore.permits(2).ticket().await.unwrap();
        for (ticket, free) in [(&four, 8), (&two, 10)] {
            stage.ours.release_ticket(ticket).await.unwrap();
            assert_eq!(counts(stage).await.0, free);
        }
        for ticket in [&four, &two] {
            assert_eq!(stage.ours.release_ticket(ticket).await.unwrap_err().kind(), ErrorKind::Lost);
        }
        assert_eq!(counts(stage).await.0, 10);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_release_async_many() {
    play(async |stage| {
        let semaphore = stage.ours.semaphore("s", 10);
        let four = semaphore.permits(4).acquire().await.unwrap();
        let two = semaphore.permits(2).acquire().await.unwrap();
        let (one, other) = tokio::join!(four.release(), two.release());
        assert!(one.is_ok() && other.is_ok());
        assert_eq!(counts(stage).await, (10, 0));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_release_many_expired_does_not_throw() {
    play(async |stage| {
        let guard = fleeting(&stage.ours.semaphore("s", 10), 6).await;
        guard.lost().await;
        eventually(async || counts(stage).await == (10, 0)).await;
        // Dropping what is lost is as good as anything; it gives nothing back a second time.
        drop(guard);
        stage.ours.idle().await;
        assert_eq!(counts(stage).await, (10, 0));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_try_release_many_expired() {
    play(async |stage| {
        let semaphore = stage.ours.semaphore("s", 10);
        let (expires, lives) = (fleeting(&semaphore, 3).await, semaphore.permits(3).acquire().await.unwrap());
        expires.lost().await;
        assert_eq!(expires.release().await.unwrap_err().kind(), ErrorKind::Lost);
        lives.release().await.unwrap();
        eventually(async || counts(stage).await == (10, 0)).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_release_many_not_exist_or_expired() {
    play(async |stage| {
        let semaphore = stage.ours.semaphore("s", 10);
        let lives = semaphore.permits(3).ticket().await.unwrap();
        let expires = semaphore.permits(3).ttl(SHORT).ticket().await.unwrap();
        eventually(async || counts(stage).await == (7, 3)).await;
        // Permits taken together are one acquisition: it is released as a whole or not at all.
        assert_eq!(stage.ours.release_ticket(&expires).await.unwrap_err().kind(), ErrorKind::Lost);
        assert_eq!(counts(stage).await, (7, 3));
        stage.ours.release_ticket(&lives).await.unwrap();
        assert_eq!(counts(stage).await, (10, 0));
    })
    .await;
}
