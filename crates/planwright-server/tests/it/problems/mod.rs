//! Problem documents: every error of the engine has the status, the words and the hint that clients
//! rely on.

mod instances;

use axum::response::IntoResponse as _;
use http::header::RETRY_AFTER;
use instances::Instance;
use std::fmt::Write as _;

/// One line per error: its status, the header `Retry-After` where it has one, and the document.
const EXPECTED: &str = include_str!("documents.txt");

fn describe(instance: Instance) -> String {
    let Instance { name, problem } = instance;
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
    for (found, expected) in found.lines().zip(EXPECTED.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), EXPECTED.lines().count(), "{found}");
}
