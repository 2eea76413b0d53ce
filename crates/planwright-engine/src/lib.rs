//! Runs plans: command → decide → append → effects. Async, but knows no vendor.

pub mod crash;
pub mod memory;
pub mod port;
