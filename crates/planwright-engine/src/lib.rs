//! Runs plans: command → decide → append → effects. Async, but knows no vendor.

pub mod port;
