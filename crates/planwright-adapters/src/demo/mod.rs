//! The server `demo`: tools that touch nothing, for first steps, tests and measurements.

mod alarm;
mod echo;
mod fail;
mod random_bytes;
mod server;
mod sleep;

pub use server::Demo;
