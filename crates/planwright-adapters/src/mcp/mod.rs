//! Tools of MCP servers: other processes and other machines, of any vendor and of both eras of the protocol.

mod spec;

pub use spec::{ServerSpec, Transport};
