//! A conversation at the terminal: reading what the person types, showing what the model says and
//! wants, and the commands that begin with a slash. What may be called is decided where it always
//! is.

mod completion;
mod conversation;
mod editor;
mod history;
mod maker;
mod person;
mod screen;
mod session;
mod slash;
mod watcher;
mod words;

pub(crate) use maker::Planner;
pub(crate) use session::{ChatOptions, Session};
