//! The engine's integration tests, in one binary, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod agent_crash;
mod agent_sweep;
mod agents;
mod commands;
mod consent;
mod consent_lives;
mod crash;
mod creation;
mod edits;
mod execution;
mod faults;
mod flow;
mod injection;
mod isolation;
mod keeping;
mod limits;
mod looks;
mod notices;
mod one_writer;
mod outbox;
mod ownership;
mod plan_tools;
mod planner;
mod policy;
mod recall;
mod reflection;
mod revocations;
mod secrets;
mod subplans;
mod supervision;
mod time_jumps;
mod typed_secrets;
mod undo;
mod values;
mod world;
