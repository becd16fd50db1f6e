//! `ls`: who holds what.

use std::time::Duration;

use jiff::Timestamp;
use leasehold::{
    Client,
    backend::{Holder, LockPage, LockState},
};

use super::close;
use crate::{
    args::{Output, Talk, duration},
    config::Settings,
    exit::{Exit, Failure},
    print,
    table::{Column, Table, Widths},
    view::{self, View},
};

/// Names asked for at a time.
const PAGE: usize = 500;

const COLUMNS: [Column; 8] = [
    Column::needed("NAME"),
    Column::wanted("KIND"),
    Column::needed("HOLDER"),
    Column::wanted("HELD"),
    Column::needed("LEASE"),
    Column::wanted("WAITING"),
    Column::spare("LABEL"),
    Column::spare("ID"),
];

/// List who holds what
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only names that begin with this
    #[arg(value_name = "PREFIX", default_value = "", hide_default_value = true)]
    beginning: String,

    /// Only what has been held for longer than this
    #[arg(long, value_name = "DUR", value_parser = duration)]
    held_over: Option<Duration>,
}

/// Lists the names, a page at a time: there may be very many.
pub(crate) async fn run(args: Args, settings: &Settings, talk: Talk) -> Result<Exit, Failure> {
    let client = settings.connect().await?;
    let listed = list(&args, &client, talk.output).await;
    close(&client).await;
    listed.map(|()| Exit::Success)
}

async fn list(args: &Args, client: &Client, output: Output) -> Result<(), Failure> {
    let (mut cursor, mut sheet) = (None, Sheet { output, lines: 0, widths: None });
    loop {
        let LockPage { mut locks, next } = client.list(&args.beginning, cursor.as_deref(), PAGE).await?;
        if let Some(limit) = args.held_over {
            locks.retain(|lock| lock.holders.iter().any(|holder| holder.held_for > limit));
        }
        sheet.page(client, &locks, next.is_none())?;
        match next {
            Some(next) => cursor = Some(next),
            None => return Ok(()),
        }
    }
}

/// A listing, page after page.
struct Sheet {
    output: Output,
    lines: usize,
    /// How wide the columns are, once there is a heading.
    widths: Option<Widths>,
}

impl Sheet {
    fn page(&mut self, client: &Client, locks: &[LockState], is_last: bool) -> Result<(), Failure> {
        match self.output {
            Output::Json => self.json(client, locks, is_last)?,
            // A page of which nothing is left has nothing to be as wide as.
            Output::Table if locks.is_empty() && !is_last => {}
            Output::Table => self.table(locks)?,
        }
        self.lines += locks.len();
        Ok(())
    }

    fn table(&mut self, locks: &[LockState]) -> Result<(), Failure> {
        let mut table = Table::new(&COLUMNS);
        locks.iter().flat_map(rows).for_each(|row| table.push(&row));
        self.widths = Some(match &self.widths {
            None => table.print()?,
            Some(widths) => table.print_more(widths)?,
        });
        Ok(())
    }

    /// One array over all pages.
    fn json(&self, client: &Client, locks: &[LockState], is_last: bool) -> Result<(), Failure> {
        let now = Timestamp::now();
        let mut out = String::new();
        for (at, lock) in locks.iter().enumerate() {
            out.push_str(if self.lines + at == 0 { "[\n" } else { ",\n" });
            let view = serde_json::to_string(&View::of(lock, client.info(), now));
            out.push_str(&view.map_err(|error| Failure::internal("cannot write JSON", error))?);
        }
        if is_last {
            out.push_str(if self.lines + locks.len() == 0 { "[]\n" } else { "\n]\n" });
        }
        print::json(&out)
    }
}

/// A row for each holder; one without a holder for a name that has none.
fn rows(lock: &LockState) -> Vec<[String; COLUMNS.len()]> {
    if lock.holders.is_empty() {
        return vec![row(lock, None)];
    }
    lock.holders.iter().map(|holder| row(lock, Some(holder))).collect()
}

fn row(lock: &LockState, holder: Option<&Holder>) -> [String; COLUMNS.len()] {
    let told = |tell: &dyn Fn(&Holder) -> String| holder.map_or_else(|| "-".to_owned(), tell);
    [
        lock.name.clone(),
        view::kind(lock.kind).to_owned(),
        told(&|holder| format!("{} {}@{}", holder.who.program, holder.who.pid, holder.who.host)),
        told(&|holder| view::brief(holder.held_for)),
        told(&|holder| view::brief(holder.remaining)),
        lock.waiters.len().to_string(),
        told(&|holder| holder.label.as_deref().unwrap_or("-").to_owned()),
        told(&|holder| holder.id.to_string()),
    ]
}
