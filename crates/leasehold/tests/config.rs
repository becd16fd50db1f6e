//! Clients from a file and the environment. The environment belongs to the process, so it is another one that reads it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::{
    fs,
    process::{Command, Stdio},
    time::Duration,
};

use leasehold::{Client, Config, FromEnv as _};

const WHOLE: &str = r#"
    store = "memory:"
    prefix = "shop:"
    ttl = "20s"

    [clients.reports]
    prefix = "reports:"

    [profiles.short]
    ttl = "${LEASEHOLD_TEST_UNSET:-5s}"

    [profiles.short.clients.reports]
    prefix = "short:"

    [profiles.broken]
    store = "redis://${LEASEHOLD_TEST_UNSET}"
"#;

#[test]
fn a_client_has_what_it_says_then_what_its_profile_says_then_what_all_have() {
    let config = Config::parse(WHOLE).unwrap();
    let said = |config: &Config| {
        let (client, reports) = (config.client().unwrap(), config.client_named("reports").unwrap());
        (
            client.prefix.unwrap(),
            client.ttl.unwrap().as_secs(),
            reports.prefix.unwrap(),
            reports.ttl.unwrap().as_secs(),
        )
    };
    assert_eq!(said(&config), ("shop:".into(), 20, "reports:".into(), 20));
    assert_eq!(config.names().collect::<Vec<_>>(), ["reports"]);
    let short = config.with_profile("short").unwrap();
    assert_eq!(said(&short), ("shop:".into(), 5, "short:".into(), 5));
}

#[test]
fn what_makes_no_sense_is_said_with_its_file_and_line() {
    let config = Config::parse(WHOLE).unwrap();
    for (said, error) in [
        (
            "connect: leasehold.toml:16: the variable LEASEHOLD_TEST_UNSET is not set; set it, or write ${LEASEHOLD_TEST_UNSET:-text}",
            config.clone().with_profile("broken").unwrap().client().unwrap_err(),
        ),
        (
            "connect: leasehold.toml: no profile is called \"shrt\"; did you mean \"short\"?",
            config.clone().with_profile("shrt").unwrap_err(),
        ),
        (
            "connect: leasehold.toml: no client is called \"report\"; did you mean \"reports\"?",
            config.client_named("report").unwrap_err(),
        ),
        (
            "connect: leasehold.toml: no profile is called \"x\"; write [profiles.x]",
            Config::parse("profile = \"x\"").unwrap_err(),
        ),
        (
            "connect: leasehold.toml:2: unknown key \"stroe\"; did you mean \"store\"?",
            Config::parse("\nstroe = \"memory:\"").unwrap_err(),
        ),
        (
            "connect: leasehold.toml:1: ttl is not a length of time; write it like \"30s\" or \"5m\"",
            Config::parse("ttl = \"soon\"").unwrap().client().unwrap_err(),
        ),
    ] {
        assert_eq!(error.to_string(), said);
    }
}

#[test]
fn a_password_is_never_shown() {
    let config = Config::parse("store = \"redis://:SECRET@h\"").unwrap();
    assert!(!format!("{config:?} {:?}", config.client().unwrap()).contains("SECRET"));
}

#[tokio::test]
async fn clients_are_made_as_they_are_described() {
    let config = Config::parse(WHOLE).unwrap();
    let (locks, reports) = (config.connect().await.unwrap(), config.connect_to("reports").await.unwrap());
    assert_eq!((locks.prefix(), locks.ttl()), ("shop:", Duration::from_secs(20)));
    assert_eq!(reports.prefix(), "reports:");
    let nothing = Config::parse("").unwrap().connect().await.unwrap_err();
    assert!(nothing.to_string().contains("LEASEHOLD_STORE"), "{nothing}");
}

#[tokio::test]
async fn all_clients_are_installed_or_none() {
    let broken = Config::parse("store = \"memory:\"\n[clients.other]\nstore = \"nonsense\"").unwrap();
    broken.install().await.unwrap_err();
    assert!(leasehold::installed().is_err());
    Config::parse(WHOLE).unwrap().install().await.unwrap();
    assert_eq!(leasehold::installed().unwrap().prefix(), "shop:");
    assert_eq!(leasehold::installed_as("reports").unwrap().prefix(), "reports:");
}

/// Run by the test below in a process of its own, whose environment it describes.
#[tokio::test]
async fn child() {
    if std::env::var_os("LEASEHOLD_TEST_CHILD").is_none() {
        return;
    }
    let client = match std::env::var("LEASEHOLD_TEST_CLIENT") {
        Ok(name) => Config::from_env().unwrap().connect_to(&name).await,
        Err(_) => Client::from_env().await,
    };
    let said = match client {
        Ok(client) => format!("{} {} {:?}", client.info().scheme, client.prefix(), client.ttl()),
        Err(error) => error.to_string(),
    };
    println!("said: {said}");
}

fn in_environment(folder: &std::path::Path, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("LEASEHOLD")) {
        command.env_remove(name);
    }
    command.args(["--exact", "child", "--nocapture"]).current_dir(folder).stderr(Stdio::null());
    command.env("LEASEHOLD_TEST_CHILD", "1").env("XDG_CONFIG_HOME", folder.join("home"));
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.split_once("said: ")).map(|(_, said)| said.to_owned()).expect(&text)
}

#[test]
fn the_environment_wins_over_the_file_and_chooses_the_profile() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    assert!(in_environment(here, &[]).contains("no store is chosen"));
    assert_eq!(in_environment(here, &[("LEASEHOLD_STORE", "memory:")]), "memory  30s");
    fs::create_dir_all(here.join("home/leasehold")).unwrap();
    fs::write(here.join("home/leasehold/leasehold.toml"), "store = \"memory:\"\nprefix = \"user:\"").unwrap();
    assert_eq!(in_environment(here, &[]), "memory user: 30s");
    fs::write(here.join("leasehold.toml"), WHOLE).unwrap();
    assert_eq!(in_environment(here, &[]), "memory shop: 20s");
    assert_eq!(in_environment(here, &[("LEASEHOLD_PROFILE", "short")]), "memory shop: 5s");
    let variables =
        [("LEASEHOLD_PROFILE", "short"), ("LEASEHOLD_TEST_UNSET", "7s"), ("LEASEHOLD_PREFIX", "mine:")];
    assert_eq!(in_environment(here, &variables), "memory mine: 7s");
    assert_eq!(in_environment(here, &[("LEASEHOLD_TTL", "9s")]), "memory shop: 9s");
    fs::write(here.join("other.toml"), "store = \"memory:\"\n\nttll = \"1s\"").unwrap();
    assert_eq!(
        in_environment(here, &[("LEASEHOLD_CONFIG", "other.toml")]),
        "connect: other.toml:3: unknown key \"ttll\"; did you mean \"ttl\"?"
    );
    assert!(in_environment(here, &[("LEASEHOLD_CONFIG", "none.toml")]).starts_with("connect: none.toml: "));
}

#[test]
fn a_named_client_has_what_the_environment_says_unless_it_says_so_itself() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let reports = |variables: &[(&str, &str)]| {
        in_environment(here, &[&[("LEASEHOLD_TEST_CLIENT", "reports")], variables].concat())
    };
    fs::write(here.join("leasehold.toml"), "[clients.reports]\nprefix = \"reports:\"").unwrap();
    assert!(reports(&[]).contains("no store is chosen"));
    let all = [("LEASEHOLD_STORE", "memory:"), ("LEASEHOLD_PREFIX", "mine:"), ("LEASEHOLD_TTL", "9s")];
    assert_eq!(reports(&all), "memory reports: 9s");
    let file = "store = \"nonsense\"\n[clients.reports]\n[profiles.test]\nttl = \"5s\"";
    fs::write(here.join("leasehold.toml"), file).unwrap();
    assert_eq!(reports(&all), "memory mine: 9s");
    assert_eq!(reports(&[("LEASEHOLD_PROFILE", "test"), all[0]]), "memory  5s");
    fs::write(here.join("leasehold.toml"), "[clients.reports]\nstore = \"memory:\"").unwrap();
    assert_eq!(reports(&[("LEASEHOLD_STORE", "nonsense")]), "memory  30s");
}
