//! `job`: what is known of jobs, and pausing them.

use std::fmt::Write as _;

use leasehold::{
    Client, JobPage, JobState,
    job::{Ended, PastRun, Running},
};
use leasehold_console::job_view::{self, condition, moment, word};
use serde_json::Value;

use super::close;
use crate::{
    args::{Output, Talk},
    config::Settings,
    exit::{Exit, Failure},
    print::{self, Volume},
    table::{Column, Table},
    text,
    view::brief,
};

/// Jobs asked for at a time.
const PAGE: usize = 500;

const COLUMNS: [Column; 8] = [
    Column::needed("NAME"),
    Column::wanted("SCHEDULE"),
    Column::needed("STATE"),
    Column::wanted("LAST"),
    Column::needed("NEXT"),
    Column::spare("DONE"),
    Column::spare("FAILED"),
    Column::spare("MISSED"),
];

/// See how jobs went, pause and resume them
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, clap::Subcommand)]
enum Act {
    /// List the jobs
    Ls {
        /// Only names that begin with this
        #[arg(value_name = "PREFIX", default_value = "", hide_default_value = true)]
        beginning: String,
    },
    /// Show one job and its last runs
    Show {
        /// The job's name
        name: String,
    },
    /// Keep every machine from beginning a run; one that goes on is not touched
    Pause {
        /// The job's name
        name: String,
        /// Why: it is kept, and shown to whoever would run it
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Let a paused job go on; what fell into the pause is missed
    Resume {
        /// The job's name
        name: String,
        /// Also if the last slot is still to come, because a clock was ahead: go on from this moment
        #[arg(long)]
        from_now: bool,
    },
    /// Forget a job, with its history and its pause; whoever still runs it makes it known again
    Forget {
        /// The job's name
        name: String,
    },
}

/// Does what is asked.
pub(crate) async fn run(args: Args, settings: &Settings, talk: Talk) -> Result<Exit, Failure> {
    let client = settings.connect().await?;
    let done = act(&args.act, &client, talk).await;
    close(&client).await;
    done.map(|()| Exit::Success)
}

async fn act(act: &Act, client: &Client, talk: Talk) -> Result<(), Failure> {
    let say = |said: &str| print::note(talk.volume(), Volume::Normal, said);
    match act {
        Act::Ls { beginning } => list(beginning, client, talk.output).await,
        Act::Show { name } => show(name, client, talk.output).await,
        Act::Pause { name, reason } => {
            let is_new = client.job(name).state().await?.is_none();
            client.job(name).pause(reason).await?;
            say(&format!("{name:?} is paused{}", if is_new { "; nobody has run it yet" } else { "" }));
            Ok(())
        }
        Act::Resume { name, from_now: true } => {
            let was_ahead = client.job(name).resume_from_now().await?;
            let what = if was_ahead { "goes on from now; a clock was ahead" } else { "goes on from now" };
            say(&format!("{name:?} {what}"));
            Ok(())
        }
        Act::Forget { name } => {
            let was_known = client.job(name).forget().await?;
            say(&format!("{name:?} {}", if was_known { "is forgotten" } else { "was not known" }));
            Ok(())
        }
        Act::Resume { name, from_now: false } => {
            let before = client.job(name).resume().await?;
            say(&format!("{name:?} {}", if before.is_some() { "goes on" } else { "was not paused" }));
            Ok(())
        }
    }
}

async fn list(beginning: &str, client: &Client, output: Output) -> Result<(), Failure> {
    let (mut cursor, mut all) = (None, Vec::new());
    loop {
        let JobPage { jobs, next } = client.jobs(beginning, cursor.as_deref(), PAGE).await?;
        all.extend(jobs);
        match next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    match output {
        Output::Json => {
            let views: Vec<Value> = all.iter().map(|job| view(job, client)).collect();
            print::json(&format!("{}\n", Value::from(views)))
        }
        Output::Table => {
            let mut table = Table::new(&COLUMNS);
            for job in &all {
                table.push(&row(job));
            }
            table.print().map(drop)
        }
    }
}

async fn show(name: &str, client: &Client, output: Output) -> Result<(), Failure> {
    let state = client.job(name).state().await?;
    let state = state
        .ok_or_else(|| Failure::usage(format!("{name:?} is not a job that anybody has run or paused")))?;
    match output {
        Output::Json => print::json(&format!("{}\n", view(&state, client))),
        Output::Table => print::data(&describe(&state)),
    }
}

/// The server's own shape, with the store beside it.
fn view(job: &JobState, client: &Client) -> Value {
    let mut view = job_view::of(job);
    view["store"] = client.info().address.clone().into();
    view
}

fn row(job: &JobState) -> [String; COLUMNS.len()] {
    let told = |slot: Option<leasehold::Slot>| slot.map_or_else(|| "-".to_owned(), |slot| slot.to_string());
    let totals = job.totals;
    [
        job.name.clone(),
        schedule(job),
        condition(job).to_owned(),
        job.runs.last().map_or_else(|| "-".to_owned(), |run| format!("{} {}", word(&run.ended), run.slot)),
        told(job.next),
        totals.done.to_string(),
        (totals.failed + totals.lost + totals.died).to_string(),
        totals.missed.to_string(),
    ]
}

fn schedule(job: &JobState) -> String {
    match (&job.schedule, job.zone.as_deref()) {
        (None, _) => "-".to_owned(),
        (Some(cron), None | Some("UTC")) => cron.clone(),
        (Some(cron), Some(zone)) => format!("{cron} {zone}"),
    }
}

fn describe(job: &JobState) -> String {
    let mut lines = vec![format!("{} is {}", job.name, condition(job))];
    if job.schedule.is_some() {
        lines.push(format!("schedule {} ({})", schedule(job), job.zone.as_deref().unwrap_or("UTC")));
    }
    lines.extend(job.next.map(|next| format!("next     {next}")));
    lines.extend(job.ahead.map(|ahead| {
        format!(
            "ahead    by {}: the last slot is still to come, was a clock wrong? `job resume --from-now`",
            brief(ahead)
        )
    }));
    lines.extend(job.rests_until.map(|until| format!("rests    until {}", moment(until))));
    lines.extend(
        job.paused.as_ref().map(|paused| {
            format!("paused   by {} since {}: {}", paused.by, moment(paused.since), paused.why)
        }),
    );
    if let Some(Running { slot, start, .. }) = &job.running {
        lines.push(format!("running  {slot} by {}, fence {}, id {}", start.who, start.fence, start.id));
    }
    let totals = job.totals;
    lines.push(format!(
        "so far   {} done, {} failed, {} lost, {} died, {} missed",
        totals.done, totals.failed, totals.lost, totals.died, totals.missed
    ));
    lines.extend(job.runs.iter().rev().map(past));
    let mut out = String::new();
    for line in lines {
        let _ = writeln!(out, "{}", text::clean(&line));
    }
    out
}

fn past(run: &PastRun) -> String {
    let mut line = format!("{}  {:<7}", run.slot, word(&run.ended));
    if let Some(start) = &run.start {
        let _ = write!(line, " {}@{}", start.who.pid, start.who.host);
    }
    if let Some(took) = run.took {
        let _ = write!(line, " {}", brief(took));
    }
    match &run.ended {
        Ended::Failed(why) | Ended::Lost(why) => line + ": " + why,
        Ended::Missed { from, count } if *count > 1 => format!("{line} {count} from {from} on"),
        _ => line,
    }
}
