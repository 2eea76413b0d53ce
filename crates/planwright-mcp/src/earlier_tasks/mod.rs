//! Tasks as clients of 2025-11-25 know them: the client asks for one with its call, and for the result
//! once it wants to wait.
//!
//! The library below us has the tasks of the modern era alone: it drops what a call says of a task, and
//! takes `tasks/get` for the modern method. A thin layer beneath it gives such requests names of our own,
//! and adds to its answers what it has no fields for.

mod calls;
mod names;
mod server;
mod status;
mod transport;

pub(crate) use calls::CallTasks;
pub(crate) use names::{rename, restore_task_ids, task_of};
pub(crate) use server::{knows_tasks, no_task, plain, wanted_call};
pub(crate) use transport::{TaskSessions, TaskTransport};
