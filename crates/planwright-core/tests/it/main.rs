//! What the core promises, seen from outside.

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
