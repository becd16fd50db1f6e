//! Opening a store: where it is, what it promises, and a file that is ready for this boot.

use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Result,
    backend::{Capabilities, Guarantee, Level, StoreInfo},
};

use super::{
    Sqlite, SqliteConfig,
    clock::{self, Boot},
    connection::{Durability, Lane, blocking},
    filesystem::Place,
    ledger::Ledger,
    session::Folder,
    setup,
};

/// Pause between two looks of a waiter nobody rings: how soon the death of a holder is noticed.
const POLL: Duration = Duration::from_millis(50);

impl Sqlite {
    /// Makes the file ready, if nobody did in this boot, and looks after it.
    pub(super) async fn make_ready(&self, boot: Arc<Boot>) -> Result<()> {
        let asked = boot.clone();
        let ready = self
            .locks
            .patiently(self.patience(), move |connection| setup::is_ready(connection, &asked))
            .await?;
        if !ready {
            self.begin(boot).await?;
        }
        let upkeep = self.upkeep.clone();
        self.locks.patiently(self.patience(), move |connection| upkeep.opened(connection)).await
    }

    /// Makes the file ready for this boot, on a connection that may make it larger.
    async fn begin(&self, boot: Arc<Boot>) -> Result<()> {
        let lane = Arc::new(Lane::new(self.ledger.place.clone(), Durability::Disk));
        let ledger = self.ledger.clone();
        let work = move |connection: &_| setup::make_ready(connection, &boot, &ledger.folder);
        lane.patiently(self.patience(), work).await?;
        let upkeep = self.upkeep.clone();
        let furnish = move || {
            upkeep.furnish();
            Ok(())
        };
        blocking(furnish).await?;
        self.learn_of_pages().await
    }
}

pub(super) fn prepare(config: &SqliteConfig) -> Result<(Boot, Arc<Ledger>)> {
    let boot = clock::boot()?;
    let place = Place::prepare(config.path())?;
    let folder = Folder::open(&place.beside("-sessions"), place.file())?;
    Ok((boot, Ledger::new(place, folder)))
}

pub(super) fn describe(boot: &Boot, place: &Place) -> StoreInfo {
    let guarantee = if boot.is_known() {
        Guarantee::new(Level::S3, "on a network file system, or if the file is replaced while in use")
    } else {
        Guarantee::new(
            Level::S1,
            "if the wall clock jumps, on a network file system, or if the file is replaced",
        )
    };
    let mut capabilities = Capabilities::default();
    capabilities.clock = true;
    capabilities.poll = POLL;
    let address = format!("sqlite:{}", place.file().display());
    StoreInfo::new("sqlite", address, guarantee).with_capabilities(capabilities)
}
