//! Clients that are installed for the whole process: this is a process of its own.

#![cfg(feature = "macros")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use leasehold::{Error, ErrorKind, blocking, locked};

#[locked(key = "order:{id}")]
async fn by_default(id: u32) -> Result<u64, Error> {
    assert!(leasehold::installed()?.inspect(&format!("order:{id}")).await?.is_some());
    Ok(leasehold::held().unwrap().fence())
}

#[locked(client = "reports", key = "order:{id}")]
async fn by_name(id: u32) -> Result<bool, Error> {
    Ok(leasehold::installed()?.inspect(&format!("order:{id}")).await?.is_none())
}

#[locked(key = "order:{id}")]
fn on_this_thread(id: u32) -> Result<u64, Error> {
    leasehold::held().unwrap().check()?;
    Ok(leasehold::held().unwrap().fence())
}

#[tokio::test]
async fn installed_clients_serve_every_function_that_names_none() {
    let refused = by_default(1).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Config);
    assert!(refused.to_string().contains("leasehold::install"), "{refused}");
    assert!(on_this_thread(1).unwrap_err().to_string().contains("leasehold::install"));

    leasehold::install(blocking::connect("memory:").unwrap()).unwrap();
    leasehold::install_as("reports", leasehold::connect("memory:").await.unwrap()).unwrap();
    assert_eq!(by_default(1).await.unwrap(), 1);
    assert_eq!(on_this_thread(1).unwrap(), 2);
    assert!(by_name(1).await.unwrap(), "another client, another store");

    let second = leasehold::install(leasehold::connect("memory:").await.unwrap()).unwrap_err();
    assert!(second.to_string().contains("installed already"), "{second}");
    assert!(
        leasehold::installed_as("none").unwrap_err().to_string().contains("install_as(\"none\", client)")
    );
}
