//! Which store is used: the flag, the environment, the file, the user's own folder.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::common::{Outcome, Place, outcome};

fn store_shown(place: &Place, args: &[&str], environment: &[(&str, &str)]) -> String {
    let mut command = place.bare(&[args, &["show", "x", "-o", "json"]].concat());
    let Outcome { code, stdout, stderr } = outcome(command.envs(environment.iter().copied()));
    assert_eq!(code, 0, "{stderr}");
    let shown: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    shown["store"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
}

#[test]
fn the_flag_wins_over_the_environment_over_the_file_over_the_default() {
    let place = Place::new();
    assert_eq!(store_shown(&place, &[], &[]), "locks.db");
    let folder = place.path("home/.config/leasehold");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("leasehold.toml"), "store = \"sqlite:user.db\"").unwrap();
    assert_eq!(store_shown(&place, &[], &[]), "user.db");
    fs::write(place.path("leasehold.toml"), "store = \"sqlite:here.db\"\nprefix = \"p:\"").unwrap();
    assert_eq!(store_shown(&place, &[], &[]), "here.db");
    fs::write(place.path("named.toml"), "store = \"sqlite:named.db\"").unwrap();
    assert_eq!(store_shown(&place, &["--config", "named.toml"], &[]), "named.db");
    let environment = [("LEASEHOLD_STORE", "sqlite:variable.db")];
    assert_eq!(store_shown(&place, &[], &environment), "variable.db");
    assert_eq!(store_shown(&place, &["--store", "sqlite:flag.db"], &environment), "flag.db");
}

#[test]
fn the_default_store_is_in_a_folder_that_nobody_else_may_enter() {
    let place = Place::new();
    let state = place.path("state");
    let ran = outcome(place.bare(&["run", "x", "--", "true"]).env("XDG_STATE_HOME", &state));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mode = fs::metadata(state.join("leasehold")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(state.join("leasehold/locks.db").exists());
}

#[test]
fn a_wrong_key_in_the_file_names_the_right_one() {
    let place = Place::new();
    fs::write(place.path("leasehold.toml"), "stroe = \"redis://:SECRET@h\"").unwrap();
    let refused = outcome(&mut place.bare(&["ls"]));
    assert_eq!(refused.code, 78);
    assert_eq!(
        refused.stderr,
        "leasehold: error: connect: leasehold.toml:1: unknown key \"stroe\"; did you mean \"store\"?\n"
    );
}

#[test]
fn a_profile_of_the_file_is_chosen_by_a_variable() {
    let place = Place::new();
    let text =
        "store = \"sqlite:${LEASEHOLD_TEST_NAME:-here}.db\"\n[profiles.test]\nstore = \"sqlite:test.db\"";
    fs::write(place.path("leasehold.toml"), text).unwrap();
    assert_eq!(store_shown(&place, &[], &[]), "here.db");
    assert_eq!(store_shown(&place, &[], &[("LEASEHOLD_TEST_NAME", "there")]), "there.db");
    assert_eq!(store_shown(&place, &[], &[("LEASEHOLD_PROFILE", "test")]), "test.db");
}

#[test]
fn a_password_is_never_printed() {
    let place = Place::new();
    let url = "redis://:SECRET@127.0.0.1:1/?nonsense=SECRET";
    fs::write(place.path("secret.toml"), format!("store = \"{url}\"")).unwrap();
    let with_flag = |args: &[&str]| outcome(&mut place.bare(&[&["--store", url], args].concat()));
    let with_variable = |args: &[&str]| outcome(place.bare(args).env("LEASEHOLD_STORE", url));
    let with_file = |args: &[&str]| outcome(&mut place.bare(&[&["--config", "secret.toml"], args].concat()));
    for args in
        [&["ls"][..], &["-v", "run", "x", "--", "true"], &["run"], &["--help"], &["show", "x", "-o", "json"]]
    {
        for said in [with_flag(args), with_variable(args), with_file(args)] {
            assert!(!(said.stdout + &said.stderr).contains("SECRET"), "{args:?}");
        }
    }
}
