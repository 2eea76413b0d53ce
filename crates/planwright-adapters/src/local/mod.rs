//! The server `local`: files of the workspace, and, where the operator turned them on, commands and
//! HTTP.
//!
//! Everything it reads or writes itself lies in the workspace directory, which no path, link or
//! race leads out of. A command that it runs is bound by nothing but the rights of the user.

mod append_file;
pub(crate) mod capture;
mod current_file;
pub mod fuzzing;
mod http_get;
mod list_dir;
mod off_thread;
mod options;
mod read_file;
mod run_command;
mod search_code;
mod server;
mod workspace;
mod write_file;

pub(crate) use current_file::read_current_files;
pub use options::{HttpOptions, LocalOptions};
pub use server::Local;
