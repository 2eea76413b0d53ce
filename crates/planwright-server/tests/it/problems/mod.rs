//! Problem documents: every error of the engine has the status, the words and the hint that clients
//! rely on.

mod instances;

use axum::response::IntoResponse as _;
use http::header::RETRY_AFTER;
use instances::Instance;
use planwright_core::error::ErrorKind;
use planwright_server::http::ProblemCode;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One line per error: its status, the header `Retry-After` where it has one, and the document.
const EXPECTED: &str = include_str!("documents.txt");

fn describe(instance: Instance) -> String {
    let Instance { name, problem, .. } = instance;
    let document = serde_json::to_string(&problem).unwrap();
    let response = problem.into_response();
    let retry = response.headers().get(RETRY_AFTER);
    let retry = retry.map_or_else(String::new, |seconds| {
        format!(" retry-after {}", seconds.to_str().unwrap())
    });
    let status = response.status().as_u16();
    format!("{name}\n  {status}{retry} {document}")
}

#[test]
fn errors_keep_their_problem_documents() {
    let mut found = String::new();
    for instance in instances::all() {
        writeln!(found, "{}", describe(instance)).unwrap();
    }
    if std::env::var_os("PLANWRIGHT_REWRITE").is_some() {
        let place = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/it/problems/documents.txt"
        );
        std::fs::write(place, &found).unwrap();
    }
    for (found, expected) in found.lines().zip(EXPECTED.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), EXPECTED.lines().count(), "{found}");
}

/// The rows of the table of codes, by code.
fn rows_of_codes() -> BTreeMap<&'static str, Vec<&'static str>> {
    let table = include_str!("../../../../../docs/errors/codes.md");
    table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
        .map(|cells| (cells[1].trim_matches('`'), cells))
        .collect()
}

#[test]
fn the_table_has_every_code_of_the_service_with_its_status_and_each_once() {
    let rows = rows_of_codes();
    for code in ProblemCode::ALL {
        let row = rows.get(code.as_str());
        let row = row.unwrap_or_else(|| panic!("{} is not in the table", code.as_str()));
        assert_eq!(row[4], code.status().as_str(), "{}", code.as_str());
        assert!(
            ErrorKind::ALL.iter().any(|kind| kind.as_str() == row[2]),
            "{row:?}"
        );
    }
    let table = include_str!("../../../../../docs/errors/codes.md");
    let lines = table.lines().filter(|line| line.starts_with("| `"));
    assert_eq!(lines.count(), rows.len(), "a code stands there twice");
}

#[test]
fn the_table_of_codes_names_the_kind_and_the_status_of_each() {
    let rows = rows_of_codes();
    for Instance {
        name,
        class,
        problem,
    } in instances::all()
    {
        let row = rows.get(class.code);
        let row = row.unwrap_or_else(|| panic!("{} of {name} is not in the table", class.code));
        let status = problem.status.to_string();
        assert_eq!((row[2], row[4]), (class.kind.as_str(), &*status), "{name}");
        assert_eq!(problem.code, class.code, "{name}");
    }
}

#[test]
fn the_problems_show_every_kind_that_a_route_can_meet() {
    let met = |kind: ErrorKind| {
        instances::all()
            .iter()
            .any(|instance| instance.class.kind == kind)
    };
    for kind in ErrorKind::ALL {
        // A service does not start on a locked store.
        assert_eq!(met(kind), kind != ErrorKind::Locked, "{kind:?}");
    }
}
