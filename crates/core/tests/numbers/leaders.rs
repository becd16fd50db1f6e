//! Whether this process leads: that the number goes to zero whichever way the lead ends.

use std::{cell::RefCell, collections::BTreeMap};

use leasehold_core::{Client, Election, Leadership, backend::BreakOutcome};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

use super::{client, deaf_client, run, seconds};

/// What a recorder was told of leaders, by template.
struct Told {
    recorder: DebuggingRecorder,
    /// The recorder forgets what a gauge shows when it is asked.
    known: RefCell<BTreeMap<String, f64>>,
}

impl Told {
    fn new() -> Self {
        Self { recorder: DebuggingRecorder::new(), known: RefCell::default() }
    }

    /// What is told of the elections of a template at this moment.
    fn led(&self, template: &str) -> Option<f64> {
        let mut known = self.known.borrow_mut();
        for (key, _, _, value) in self.recorder.snapshotter().snapshot().into_vec() {
            if let (DebugValue::Gauge(change), "lock_is_leader") = (value, key.key().name()) {
                let labels: Vec<_> = key.key().labels().map(|label| (label.key(), label.value())).collect();
                let [("template", template), ("kind", "exclusive")] = labels[..] else {
                    panic!("{labels:?}")
                };
                *known.entry(template.to_owned()).or_default() += change.into_inner();
            }
        }
        known.get(template).copied()
    }
}

/// Runs it with a recorder on a test's clock, all on this thread; says what was told, also after its runtime is gone.
fn recorded(work: impl AsyncFnOnce(&Told)) -> Told {
    let told = Told::new();
    metrics::with_local_recorder(&told.recorder, || run(work(&told)));
    told
}

/// Leads, and sees that this is told.
async fn lead(client: &Client, told: &Told) -> (Election, Leadership) {
    let election = client.election("scheduler").ttl("30s");
    let leadership = election.campaign("here").await.unwrap();
    assert_eq!(told.led("scheduler"), Some(1.0));
    (election, leadership)
}

#[test]
fn a_candidate_does_not_lead_until_it_does_nor_after_it_resigned() {
    recorded(async |told| {
        let client = client();
        let (election, leadership) = lead(&client, told).await;
        seconds(60).await;
        assert_eq!(told.led("scheduler"), Some(1.0), "renewing changes nothing");
        assert!(election.try_campaign("there").await.unwrap().is_none());
        assert_eq!(told.led("scheduler"), Some(1.0), "a second candidate in the process has not won");
        leadership.resign().await.unwrap();
        assert_eq!(told.led("scheduler"), Some(0.0));
    });
}

#[test]
fn one_who_only_stands_is_told_as_not_leading() {
    recorded(async |told| {
        let client = client();
        let _held = client.lock("scheduler").acquire().await.unwrap();
        assert_eq!(told.led("scheduler"), None);
        assert!(client.election("scheduler").try_campaign("here").await.unwrap().is_none());
        assert_eq!(told.led("scheduler"), Some(0.0));
    });
}

#[test]
fn a_lead_that_is_dropped_is_over_at_once() {
    recorded(async |told| {
        let client = client();
        let (_, leadership) = lead(&client, told).await;
        drop(leadership);
        assert_eq!(told.led("scheduler"), Some(0.0));
    });
}

#[test]
fn a_lead_that_cannot_be_renewed_is_over_with_its_lease_though_nobody_asks() {
    recorded(async |told| {
        let (client, store) = deaf_client();
        let (_, leadership) = lead(&client, told).await;
        store.is_deaf(true);
        seconds(20).await;
        assert_eq!(told.led("scheduler"), Some(1.0), "in doubt it still leads");
        seconds(20).await;
        assert_eq!(told.led("scheduler"), Some(0.0));
        leadership.resign().await.unwrap_err();
        assert_eq!(told.led("scheduler"), Some(0.0), "it ends once");
    });
}

#[test]
fn a_lead_that_an_operator_broke_is_over() {
    recorded(async |told| {
        let client = client();
        let (_, leadership) = lead(&client, told).await;
        let outcome = client.break_hold("scheduler", leadership.guard().id(), "stuck").await.unwrap();
        assert_eq!(outcome, BreakOutcome::Broken);
        leadership.lost().await;
        assert_eq!(told.led("scheduler"), Some(0.0));
        drop(leadership);
        client.idle().await;
        assert_eq!(told.led("scheduler"), Some(0.0), "it ends once");
    });
}

#[test]
fn a_client_that_is_shut_down_leads_nothing() {
    recorded(async |told| {
        let client = client();
        let (_, _leadership) = lead(&client, told).await;
        client.shutdown("5s").await.unwrap();
        assert_eq!(told.led("scheduler"), Some(0.0));
    });
}

#[test]
fn a_lead_does_not_outlive_the_runtime_that_renews_it() {
    let kept = std::cell::Cell::new(None);
    let told = recorded(async |told| {
        let client = client();
        kept.set(Some(lead(&client, told).await));
    });
    assert_eq!(told.led("scheduler"), Some(0.0));
    drop(kept);
}

#[test]
fn elections_of_one_template_are_counted_together_unless_they_say_otherwise() {
    recorded(async |told| {
        let (one, other) = (client(), client());
        let first = one.election("shard-1").campaign("here").await.unwrap();
        let second = other.election("shard-2").campaign("here").await.unwrap();
        assert_eq!(told.led("shard-{}"), Some(2.0), "also those of two clients");
        let third = one.election("shard-3").template("the third").campaign("here").await.unwrap();
        drop(first);
        assert_eq!((told.led("shard-{}"), told.led("the third")), (Some(1.0), Some(1.0)));
        drop((second, third));
        assert_eq!((told.led("shard-{}"), told.led("the third")), (Some(0.0), Some(0.0)));
    });
}

#[test]
fn a_recorder_that_comes_after_the_lead_began_never_hears_of_less_than_none() {
    let told = Told::new();
    run(async {
        let client = client();
        let leadership = client.election("scheduler").campaign("here").await.unwrap();
        let _installed = metrics::set_default_local_recorder(&told.recorder);
        leadership.resign().await.unwrap();
        assert_eq!(told.led("scheduler"), None);
        let again = client.election("scheduler").campaign("here").await.unwrap();
        assert_eq!(told.led("scheduler"), Some(1.0));
        seconds(1).await;
        again.resign().await.unwrap();
        assert_eq!(told.led("scheduler"), Some(0.0));
    });
}
