//! Commands that start runs, steer them and answer what they ask.

pub(crate) mod cancel;
pub(crate) mod chat;
pub(crate) mod check;
pub(crate) mod execute;
pub(crate) mod fail;
pub(crate) mod fork;
pub(crate) mod hangup;
pub(crate) mod held_questions;
pub(crate) mod input;
pub(crate) mod interrupts;
pub(crate) mod order;
pub(crate) mod pause;
pub(crate) mod questions;
pub(crate) mod reflection;
pub(crate) mod repair;
pub(crate) mod report;
pub(crate) mod resolve;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod undo;
