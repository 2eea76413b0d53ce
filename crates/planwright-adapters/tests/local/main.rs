//! The in-process tools as the engine sees them: through a toolbox.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, in its helpers too"
)]

mod children;
mod command;
mod confinement;
mod demo;
mod files;
mod http;
mod search;
mod toolbox;
mod workbench;
