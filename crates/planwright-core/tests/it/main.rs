//! What the core promises, seen from outside.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod digests;
mod error_pages;
mod graphs;
mod markdown;
mod plans;
mod properties;
mod reading;
mod references;
mod rendering;
mod schema;
mod validation;
