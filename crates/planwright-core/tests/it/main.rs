//! What the core promises, seen from outside. `run_*`: lives of runs; `review_*`: lives of plans; the rest: plans.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod consent_histories;
mod consent_oracle;
mod consent_rules;
mod digests;
mod edits;
mod error_pages;
mod events;
mod graphs;
mod markdown;
mod markdown_properties;
mod markdown_reading;
mod plans;
mod properties;
mod reading;
mod references;
mod rendering;
mod review_laws;
mod review_life;
mod run_files;
mod run_golden;
mod run_laws;
mod run_preview;
mod run_properties;
mod run_scenarios;
mod run_simulation;
mod run_table;
mod run_world;
mod schema;
mod secret_plans;
mod secrets;
mod spellings;
mod subplans;
mod tool_names;
mod undo;
mod validation;
