//! `doctor`: examines a store and says what is wrong with it for locks, why that matters, and what to do.
//!
//! Findings come from the store's own crate and from using the store as a holder would ([`probe`]). What it writes are
//! probes under names of its own, released when it ends; small notes beside it expire by themselves; it changes no setting.

use std::{fmt::Write as _, time::Instant};

use leasehold::{
    Client,
    backend::{Finding, Level, Severity, StoreInfo},
};
use serde::Serialize;

use super::close;
use crate::{
    args::{Output, Talk},
    config::Settings,
    exit::{Exit, Failure},
    print::{self, Volume},
    probe,
    table::room,
    text,
};

/// Examine the store: can it be trusted with locks?
///
/// Connects, takes and releases a lock, passes one from one connection to another, and asks the store about everything
/// that can break locks: eviction, persistence, replicas, permissions, clocks, file systems. Each finding says why it
/// matters and what to do; with -v also what is good does, such as the least rights a user needs. Nothing is changed; the
/// locks taken are called `leasehold-doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// Say whether this name would be safe in a cluster, too; give it once for each name
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
}

const AFTER: &str = "\
Exit codes:
    0  nothing worse than a note
    1  a warning: a restart, a failover or a full disk can break locks
    2  a danger: locks can break, or do not work, with nothing else going wrong
   69  the store cannot be reached
   77  the store does not let us in

Examples:
  leasehold --store redis://cache:6379 doctor
  leasehold doctor --name 'order:{42}'
  leasehold doctor -o json | jq '.findings[] | select(.severity != \"good\")'";

/// What makes up for what a store cannot promise.
const RAISE: &str =
    "pass the fence along with every write, and have the resource refuse a smaller one than it has seen";

/// Examines the store and reports.
pub(crate) async fn run(args: Args, settings: &Settings, talk: Talk) -> Result<Exit, Failure> {
    let begun = Instant::now();
    let client = match settings.connect().await {
        Ok(client) => client,
        Err(failure) => return unreachable(failure, talk),
    };
    let mut findings =
        vec![Finding::good("reachable", format!("connected in {}", probe::brief(begun.elapsed())))];
    let examined = examine(&args, &client, settings, &mut findings).await;
    let report = Report::new(Some(client.info()), &findings);
    close(&client).await;
    examined?;
    report.print(talk)?;
    Ok(match report.worst {
        Severity::Good | Severity::Note => Exit::Success,
        Severity::Warning => Exit::Warned,
        _ => Exit::Endangered,
    })
}

async fn examine(
    args: &Args,
    client: &Client,
    settings: &Settings,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    for name in &args.name {
        findings.extend(client.diagnose_name(name)?);
    }
    // A second client of a store in memory would be another store.
    let other = match client.info().scheme {
        "memory" => None,
        _ => settings.connect().await.ok(),
    };
    findings.extend(probe::examine(client, other.as_ref()).await);
    if let Some(other) = other {
        close(&other).await;
    }
    match client.diagnose().await {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(
            Finding::danger("examination", format!("the store cannot be examined: {error}"))
                .because("nobody knows what its locks are worth")
                .remedy("see to what the message says, and examine it again"),
        ),
    }
    Ok(())
}

/// What to say of a store that does not let us in; what makes no sense is an ordinary failure.
fn unreachable(failure: Failure, talk: Talk) -> Result<Exit, Failure> {
    let remedy = match failure.exit {
        Exit::Unavailable => "see that the store runs, and that host, port and firewall let us through",
        Exit::Denied => "check user and password, or who owns the file",
        _ => return Err(failure),
    };
    let finding = Finding::danger("reachable", failure.message)
        .because("no lock can be taken, and those held cannot be renewed")
        .remedy(remedy);
    Report::new(None, &[finding]).print(talk)?;
    Ok(failure.exit)
}

/// The JSON form is a promise to programs.
#[derive(Debug, Serialize)]
struct Report<'a> {
    store: Option<&'a str>,
    guarantee: Option<GuaranteeView>,
    #[serde(serialize_with = "word")]
    worst: Severity,
    findings: Vec<FindingView<'a>>,
}

#[derive(Debug, Serialize)]
struct GuaranteeView {
    level: String,
    means: &'static str,
    unless: &'static str,
    raise: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct FindingView<'a> {
    #[serde(serialize_with = "word")]
    severity: Severity,
    topic: &'static str,
    what: &'a str,
    why: Option<&'a str>,
    remedy: Option<&'a str>,
    command: Option<&'a str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that the serialiser asks for")]
fn word<S: serde::Serializer>(severity: &Severity, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(severity)
}

impl<'a> Report<'a> {
    fn new(store: Option<&'a StoreInfo>, findings: &'a [Finding]) -> Self {
        let worst = findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Good);
        let guarantee = store.map(|store| GuaranteeView {
            level: store.guarantee.level.to_string(),
            means: store.guarantee.level.meaning(),
            unless: store.guarantee.unless,
            raise: (store.guarantee.level < Level::S3).then_some(RAISE),
        });
        let mut findings: Vec<_> = findings.iter().map(FindingView::of).collect();
        // The worst is nearest to the prompt.
        findings.sort_by_key(|finding| finding.severity);
        Self { store: store.map(|store| store.address.as_str()), guarantee, worst, findings }
    }

    fn print(&self, talk: Talk) -> Result<(), Failure> {
        match talk.output {
            Output::Json => {
                let json = serde_json::to_string_pretty(self);
                print::json(&(json.map_err(|error| Failure::internal("cannot write JSON", error))? + "\n"))
            }
            Output::Table => print::coloured(&self.text(room().unwrap_or(usize::MAX), talk.volume())),
        }
    }

    fn text(&self, width: usize, volume: Volume) -> String {
        let mut out = String::new();
        if let (Some(store), Some(guarantee)) = (self.store, &self.guarantee) {
            let GuaranteeView { level, means, unless, raise } = guarantee;
            let _ = writeln!(out, "{}", text::clean(store));
            paragraph(&mut out, "guarantee ", &format!("{level}: {means}"), width);
            paragraph(&mut out, "  unless  ", unless, width);
            if let Some(raise) = raise {
                paragraph(&mut out, "  better  ", raise, width);
            }
            out.push('\n');
        }
        let topics = self.findings.iter().map(|finding| finding.topic.len()).max().unwrap_or(0);
        for finding in &self.findings {
            finding.write(&mut out, topics, width, volume);
        }
        let _ = write!(out, "\n{}\n", self.count());
        out
    }

    fn count(&self) -> String {
        let kinds = [
            (Severity::Danger, "danger", "dangers"),
            (Severity::Warning, "warning", "warnings"),
            (Severity::Note, "note", "notes"),
            (Severity::Good, "good", "good"),
        ];
        let counted = kinds.into_iter().filter_map(|(severity, one, many)| {
            match self.findings.iter().filter(|finding| finding.severity == severity).count() {
                0 => None,
                1 => Some(format!("1 {one}")),
                count => Some(format!("{count} {many}")),
            }
        });
        counted.collect::<Vec<_>>().join(", ")
    }
}

impl<'a> FindingView<'a> {
    fn of(finding: &'a Finding) -> Self {
        Self {
            severity: finding.severity,
            topic: finding.topic,
            what: &finding.what,
            why: finding.why.as_deref(),
            remedy: finding.remedy.as_deref(),
            command: finding.command.as_deref(),
        }
    }

    /// What is good is a line, unless more is wanted; what is not says why and what to do.
    fn write(&self, out: &mut String, topics: usize, width: usize, volume: Volume) {
        let style = print::severity(self.severity);
        let heading = format!("{style}{:7}{style:#}  {:topics$}  ", self.severity, self.topic);
        let is_brief = self.severity == Severity::Good && volume < Volume::Verbose;
        if !is_brief {
            out.push('\n');
        }
        let indent = 7 + 2 + topics + 2;
        wrapped(out, &heading, indent, self.what, width);
        if is_brief {
            return;
        }
        for (word, said) in [("why", self.why), ("do", self.remedy)] {
            if let Some(said) = said {
                paragraph(out, &format!("{:9}{word:topics$}  ", ""), said, width);
            }
        }
        if let Some(command) = self.command {
            // Whole, so that it can be copied.
            let _ = writeln!(out, "{:9}{:topics$}  {}", "", "type", text::clean(command));
        }
    }
}

/// A heading, and text beside it.
fn paragraph(out: &mut String, heading: &str, said: &str, width: usize) {
    wrapped(out, heading, text::width(heading), said, width);
}

/// Text beside a heading that takes `indent` columns on the screen, broken between words.
fn wrapped(out: &mut String, heading: &str, indent: usize, said: &str, width: usize) {
    out.push_str(heading);
    let said = text::clean(said);
    let room = width.saturating_sub(indent).max(24);
    let mut used = 0;
    for word in said.split(' ') {
        let needed = text::width(word);
        if used > 0 && used + 1 + needed > room {
            let _ = write!(out, "\n{:indent$}", "");
            used = 0;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += needed;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(findings: &[Finding], width: usize) -> String {
        anstream::adapter::strip_str(&Report::new(None, findings).text(width, Volume::Normal)).to_string()
    }

    #[test]
    fn the_worst_is_last_and_what_is_good_is_short() {
        let findings = [
            Finding::danger("eviction", "keys are evicted")
                .because("bad")
                .remedy("stop it")
                .command("CONFIG SET x y"),
            Finding::good("reachable", "connected").because("never shown"),
        ];
        let expected = "\
good     reachable  connected

danger   eviction   keys are evicted
         why        bad
         do         stop it
         type       CONFIG SET x y

1 danger, 1 good
";
        assert_eq!(text(&findings, usize::MAX), expected);
    }

    #[test]
    fn sentences_are_broken_between_words_and_commands_are_not() {
        let long = "one two three four five six seven eight nine ten eleven twelve";
        let shown = text(&[Finding::note("topic", long).command(long)], 40);
        let lines: Vec<&str> = shown.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines[0], "note     topic  one two three four five");
        assert_eq!(lines[1], "                six seven eight nine ten");
        assert!(lines.iter().any(|line| line.ends_with(&format!("type   {long}"))), "{shown}");
    }

    #[test]
    fn what_a_server_says_cannot_steer_the_terminal() {
        let shown =
            Report::new(None, &[Finding::note("x", "\u{1b}[2J").command("\u{7}")]).text(80, Volume::Normal);
        assert!(shown.contains("\\u{1b}[2J") && shown.contains("\\u{7}"), "{shown}");
    }
}
