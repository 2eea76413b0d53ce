//! The service as its clients see it: the whole application in this process, asked over real
//! sockets. What only the real program can show (signals, TLS, two processes on one store) is tested
//! with the binary.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, in its helpers too"
)]

mod chat;
mod contract;
mod counting_store;
mod decisions;
mod health;
mod inbox;
mod large_results;
mod lifecycle;
mod lists;
mod overload;
mod page;
mod planning;
mod problems;
mod reflection;
mod repeat;
mod revocations;
mod route_access;
mod service;
mod stored_bytes;
mod strangers;
mod tools;
