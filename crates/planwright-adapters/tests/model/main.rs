//! Models, asked over real HTTP of a provider that answers from a script.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

#[path = "../provider/mod.rs"]
mod provider;
