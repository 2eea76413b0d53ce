//! The core's integration tests, in one binary. `run_*`: lives of runs; `review_*`: lives of plans.

mod review_laws;
mod run_files;
mod run_golden;
mod run_laws;
mod run_properties;
mod run_scenarios;
mod run_simulation;
mod run_table;
mod run_world;
