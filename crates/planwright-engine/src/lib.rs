//! Runs plans: command → decide → append → effects. Async, but knows no vendor.

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod crash;
pub mod memory;
pub mod port;
