//! Everything a change must pass, in the order in which it fails soonest.

use crate::{
    bench, install, planted, reliability,
    steps::{Outcome, cargo, cargo_with, say},
    tests, tidy,
};

/// Crates that have features, and each feature by itself.
const FEATURES: &[(&str, &[&str])] = &[
    (
        "leasehold",
        &[
            "macros",
            "sqlite",
            "postgres",
            "mysql",
            "redis",
            "zookeeper",
            "etcd",
            "mongodb",
            "memcached",
            "tower",
            "axum",
            "metrics",
        ],
    ),
    ("leasehold-sql", &["sqlite", "postgres", "mysql"]),
    ("leasehold-redis", &["planted-bugs"]),
    ("leasehold-tower", &["axum"]),
];

/// Runs it all.
pub(crate) fn run(allow_missing: bool) -> Outcome {
    cargo("format", &["fmt", "--all", "--check"])?;
    tidy::run()?;
    let lints = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "--deny", "warnings"];
    cargo("lints", &lints)?;
    features()?;
    core_is_alone()?;
    planted::refused()?;
    let docs = ["doc", "--workspace", "--all-features", "--no-deps"];
    cargo_with("documentation", ("RUSTDOCFLAGS", "--deny warnings"), &docs)?;
    licences()?;
    install::all(allow_missing)?;
    tests::run(allow_missing, &[])?;
    reliability::short(allow_missing)?;
    bench::smoke()
}

/// Features only add: each compiles alone, and none at all does too.
fn features() -> Outcome {
    for (package, features) in FEATURES {
        let none = ["check", "--package", package, "--no-default-features"];
        cargo(&format!("{package} without features"), &none)?;
        for feature in *features {
            let alone = ["check", "--package", package, "--no-default-features", "--features", feature];
            cargo(&format!("{package} with {feature} alone"), &alone)?;
        }
    }
    Ok(())
}

/// Core never names a server: no client library may be below it.
fn core_is_alone() -> Outcome {
    say("==> core has no client library");
    let tree = std::process::Command::new(env!("CARGO"))
        .args(["tree", "--package", "leasehold-core", "--edges", "normal", "--prefix", "none"])
        .output();
    let tree = tree.map_err(|error| format!("cannot start cargo tree: {error}"))?;
    let tree = String::from_utf8_lossy(&tree.stdout).into_owned();
    let clients =
        ["rusqlite", "redis", "tonic", "mongodb", "tokio-postgres", "mysql_async", "zookeeper-client"];
    let found = tree.lines().filter_map(|line| line.split(' ').next()).find(|name| clients.contains(name));
    found.map_or(Ok(()), |name| Err(format!("leasehold-core depends on {name}")))
}

/// Licences and bans, where the tool for it is there; its lists of advisories need a network, so those are left out.
fn licences() -> Outcome {
    let there = std::process::Command::new("cargo-deny").arg("--version").output().is_ok();
    if !there {
        say("skipped: cargo-deny is not installed, so licences were not checked");
        return Ok(());
    }
    cargo("licences and bans", &["deny", "check", "licenses", "bans", "sources"])
}
