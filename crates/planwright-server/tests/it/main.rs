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
mod findings;
mod health;
mod inbox;
mod large_results;
mod lifecycle;
mod lists;
mod overload;
mod overview;
mod page;
mod passkeys;
mod planning;
mod problems;
mod promises;
mod reflection;
mod repeat;
mod revocations;
mod route_access;
mod service;
mod sessions;
mod stored_bytes;
mod strangers;
mod stream_end;
mod tools;
mod trails;
mod transport;
