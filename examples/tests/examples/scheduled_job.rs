//! The scheduled job, on three processes.

use std::{collections::BTreeMap, process::Command};

use crate::running::{Running, Stage};

#[test]
fn three_processes_run_each_slot_once_and_two_go_on_when_one_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("jobs.db").display());
    let mut stage = Stage::new();
    let mut fleet: Vec<Running> = (0..3)
        .map(|_| {
            stage.start(Command::new(env!("CARGO_BIN_EXE_scheduled_job")).env("LEASEHOLD_STORE", &store))
        })
        .collect();
    for _ in &fleet {
        stage.wait_for(" is ready");
    }
    let said = (0..3).map(|_| stage.wait_for("slot ")).last().unwrap();

    let (_, name) = said.split_once(" in ").unwrap();
    let member = fleet.iter().position(|member| member.name() == name).unwrap();
    fleet.remove(member).kill();
    let mut by_others = 0;
    while by_others < 3 {
        by_others += usize::from(!stage.wait_for("slot ").ends_with(name));
    }
    fleet.into_iter().for_each(Running::interrupt);
    assert_each_slot_once_with_a_greater_fence(stage.heard());
}

fn assert_each_slot_once_with_a_greater_fence(heard: &[String]) {
    let mut runs = BTreeMap::new();
    for line in heard.iter().filter(|line| line.starts_with("slot ")) {
        let words: Vec<&str> = line.split(' ').collect();
        let fence: u64 = words[4].parse().unwrap();
        assert_eq!(runs.insert(words[1], fence), None, "a slot ran twice: {heard:#?}");
    }
    assert!(runs.values().is_sorted_by(|earlier, later| earlier < later), "{heard:#?}");
}
