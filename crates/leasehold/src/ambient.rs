//! The clients of this process that need not be passed around: one by default, others by name.
//!
//! A client is installed once and stays. Replacing it while locks are held would let two tasks hold one name in two stores,
//! so a second one is refused.

use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock},
};

use crate::{Client, Error, Operation, Result};

/// By name; the default one has none.
static INSTALLED: RwLock<BTreeMap<Option<String>, Client>> = RwLock::new(BTreeMap::new());

/// Makes this the client that [`#[locked]`](macro@crate::locked) uses unless it is told another.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), leasehold::Error> {
/// leasehold::install(leasehold::connect("memory:").await?)?;
/// let locks = leasehold::installed()?;        // anywhere in the process
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Config` if one is installed already: locks in two stores would not exclude each other.
pub fn install(client: impl Into<Client>) -> Result<()> {
    install_all(vec![(None, client.into())])
}

/// Makes this the client of this name.
///
/// # Errors
/// As for [`install`].
pub fn install_as(name: &str, client: impl Into<Client>) -> Result<()> {
    install_all(vec![(Some(name), client.into())])
}

/// The client that was [installed](install).
///
/// # Errors
/// `Config` if there is none.
pub fn installed() -> Result<Client> {
    find(None)
}

/// The client that was installed under this name.
///
/// # Errors
/// `Config` if there is none.
pub fn installed_as(name: &str) -> Result<Client> {
    find(Some(name.to_owned()))
}

/// All or none.
pub(crate) fn install_all(clients: Vec<(Option<&str>, Client)>) -> Result<()> {
    let mut installed = INSTALLED.write().unwrap_or_else(PoisonError::into_inner);
    let clients: Vec<_> =
        clients.into_iter().map(|(name, client)| (name.map(str::to_owned), client)).collect();
    if let Some((name, _)) = clients.iter().find(|(name, _)| installed.contains_key(name)) {
        let which = name.as_ref().map_or("a default client".to_owned(), |name| format!("a client {name:?}"));
        let message = format!("{which} is installed already; install each once, at the start of the program");
        return Err(Error::config(Operation::Connect, message));
    }
    installed.extend(clients);
    Ok(())
}

fn find(name: Option<String>) -> Result<Client> {
    let installed = INSTALLED.read().unwrap_or_else(PoisonError::into_inner);
    installed.get(&name).cloned().ok_or_else(|| {
        let message = match name {
            None => "no client is installed; call leasehold::install(client) at the start of the program"
                .to_owned(),
            Some(name) => {
                format!("no client {name:?} is installed; call leasehold::install_as({name:?}, client) first")
            }
        };
        Error::config(Operation::Connect, message)
    })
}
