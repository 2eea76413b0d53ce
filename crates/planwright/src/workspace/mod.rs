//! The workspace a command works in: its engine, plan files, servers and variables.

pub(crate) mod agent_marks;
pub(crate) mod app;
pub(crate) mod broker_address;
pub(crate) mod logs;
pub(crate) mod maintenance;
pub(crate) mod objects;
pub(crate) mod plan_file;
pub(crate) mod plan_source;
pub(crate) mod principal;
pub(crate) mod projections;
pub(crate) mod run_selector;
pub(crate) mod servers;
pub(crate) mod store_address;
pub(crate) mod variables;
