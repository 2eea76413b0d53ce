//! The real `planwright serve` over real HTTP: what only the program can show. What the service does
//! is tested in its own crate, in process.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, in its helpers too"
)]

mod chat;
mod client;
mod clients;
mod clock;
mod crashes;
mod decisions;
mod descriptors;
mod files;
mod large_answers;
mod load;
mod repeat;
mod revocations;
mod shutdown;
mod sign_in;
mod tls;
mod tried;
mod trouble;
mod two;
