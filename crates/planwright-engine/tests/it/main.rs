//! The engine's integration tests, in one binary, in virtual time.

mod commands;
mod consent;
mod crash;
mod execution;
mod faults;
mod limits;
mod ownership;
mod values;
mod world;
