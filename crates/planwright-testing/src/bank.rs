//! An MCP server with payments: the plans that share it must not decide over each other's calls.

use std::path::{Path, PathBuf};

/// The server's script. It takes the log of its effects and the log of its starts.
pub fn bank_script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bank.py")
}
