//! The real program, in workspaces of its own, with an environment of its own.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, in its helpers too"
)]

mod agents;
mod approval;
mod audit;
mod chat;
mod children;
mod coding_agents;
mod commands;
mod consent;
mod contract;
mod control_flow;
mod damage;
mod databases;
mod deceptive_chat;
mod deployment;
mod documents;
mod edit;
mod examples;
mod execution;
mod foreign_stores;
mod hooks;
mod injection;
mod input;
mod large_values;
mod lifecycle;
mod many_services;
mod markdown;
mod mcp_server;
mod models;
mod planning;
mod policy;
mod processes;
mod questions;
mod queues;
mod receipts;
mod reflection;
mod repair;
mod resume;
mod retention;
mod review_life;
mod revocations;
mod screens;
mod secrets;
mod seeds;
mod seen_tools;
mod servers;
mod service;
mod setup;
mod shared_sign_ins;
mod sinks;
mod skill;
mod stores;
mod telemetry;
mod templates;
mod terminal;
mod tokens;
mod trust;
mod tui;
mod two_widths;
mod undo;
mod upstream_tasks;
mod watch;
mod webhooks;
mod worker_talk;
mod workers;
