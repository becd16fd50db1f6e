//! The suite and the table in `docs/redisson.md` say the same.
//!
//! Rows are `| case, case | verdict | tests | remark |` under headings `### class (number of cases)`. A test is
//! `file::test` for one of this suite, or `path: function` for another in this repository.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

/// What a row may say of its cases.
const VERDICTS: [&str; 3] = ["same", "better", "not applicable"];

/// A row of the table.
#[derive(Debug)]
struct Row {
    class: String,
    cases: Vec<String>,
    verdict: String,
    tests: Vec<String>,
    remark: String,
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The headings with their numbers, and the rows under them.
fn read() -> (Vec<(String, usize)>, Vec<Row>) {
    let text = fs::read_to_string(root().join("docs/redisson.md")).unwrap();
    let (mut classes, mut rows) = (Vec::new(), Vec::new());
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("### `")
            && let Some((class, rest)) = heading.split_once("` (")
        {
            classes.push((class.to_owned(), rest.trim_end_matches(')').parse().unwrap()));
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [cases, verdict, tests, remark] = cells[..] else { continue };
        if !line.starts_with('|') || ["verdict", "---"].contains(&verdict) {
            continue;
        }
        let names = |cell: &str| {
            let names = cell.split(',').map(|name| name.trim().trim_matches('`').to_owned());
            names.filter(|name| !name.is_empty()).collect::<Vec<String>>()
        };
        let Some((class, _)) = classes.last().cloned() else { continue };
        let (verdict, remark) = (verdict.to_owned(), remark.to_owned());
        rows.push(Row { class, cases: names(cases), verdict, tests: names(tests), remark });
    }
    (classes, rows)
}

/// The tests of this program, as it lists them itself.
fn suite() -> BTreeSet<String> {
    let listed =
        Command::new(std::env::current_exe().unwrap()).args(["--list", "--format", "terse"]).output();
    let text = String::from_utf8(listed.unwrap().stdout).unwrap();
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    names.filter(|name| !name.starts_with("table::")).map(str::to_owned).collect()
}

#[test]
fn every_case_of_redisson_is_in_the_table() {
    let (classes, rows) = read();
    assert!(classes.len() > 15, "the table is not found");
    for (class, number) in classes {
        let rows = rows.iter().filter(|row| row.class == class);
        let cases: Vec<&String> = rows.flat_map(|row| &row.cases).collect();
        let once: BTreeSet<&&String> = cases.iter().collect();
        assert_eq!((cases.len(), once.len()), (number, number), "{class}: {cases:?}");
    }
}

#[test]
fn every_row_says_what_it_must() {
    for row in read().1 {
        assert!(VERDICTS.contains(&row.verdict.as_str()), "{row:?}");
        let is_tested = ["same", "better"].contains(&row.verdict.as_str());
        assert_eq!(is_tested, !row.tests.is_empty(), "{row:?}");
        assert!(row.verdict == "same" || !row.remark.is_empty(), "how, or why not? {row:?}");
    }
}

#[test]
fn every_test_in_the_table_exists() {
    let suite = suite();
    for row in read().1 {
        for test in &row.tests {
            let Some((path, function)) = test.split_once(": ") else {
                assert!(suite.contains(test), "{test} is no test of this suite: {row:?}");
                continue;
            };
            let text = fs::read_to_string(root().join(path)).unwrap_or_default();
            assert!(text.contains(&format!("fn {function}(")), "{path} has no {function}: {row:?}");
        }
    }
}

#[test]
fn every_test_of_the_suite_is_in_the_table_under_its_own_name() {
    let rows = read().1;
    for test in suite() {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.tests.contains(&test)).collect();
        assert!(!rows.is_empty(), "{test} is missing");
        let name = test.rsplit("::").next().unwrap();
        let named = rows.iter().flat_map(|row| &row.cases).any(|case| snake(case) == name);
        assert!(named, "{test} is not named after a case of {rows:?}");
    }
}

/// A Java name in snake case.
fn snake(case: &str) -> String {
    let mut snake = String::new();
    let letters: Vec<char> = case.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let begins = letter.is_uppercase()
            && at > 0
            && letters[at - 1] != '_'
            && (!letters[at - 1].is_uppercase()
                || letters.get(at + 1).is_some_and(|next| next.is_lowercase()));
        if begins {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}
