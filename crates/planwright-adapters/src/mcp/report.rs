//! How the servers are doing, for people.

use std::fmt;

/// The status of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// The operator's name for it.
    pub name: String,
    pub state: ServerState,
}

/// The state of the connection to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// No caller needed it yet, or it was closed.
    Idle,
    Connected(Connected),
    /// It could not be started or reached, or the connection broke. The next call tries again.
    Failed {
        reason: String,
        /// The end of what it wrote to its standard error, without control characters. Untrusted
        /// text.
        stderr: String,
    },
}

/// The terms agreed with a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connected {
    pub era: Era,
    pub protocol_version: String,
    /// The name the server gives itself, with its version, without control characters. Untrusted
    /// text: never a name to go by.
    pub calls_itself: Option<String>,
    /// What it says about its use, for models. Untrusted text, cut to a bound.
    pub instructions: Option<String>,
    /// The number of its tools that can be called.
    pub tools: usize,
    pub refused: Vec<RefusedTool>,
    /// Messages that fit nowhere: garbage, wrong numbers, late and repeated answers, unknown
    /// notifications.
    pub ignored: u64,
}

/// The lifecycle of the protocol that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `server/discover`, and requests that carry everything themselves: 2026-07-28.
    Modern,
    /// `initialize` first: 2025-11-25 and before.
    Earlier,
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Modern => "modern",
            Self::Earlier => "earlier",
        })
    }
}

/// A tool that a server lists and that cannot be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedTool {
    pub server: String,
    /// The server's name for it, shortened and without control characters. Untrusted text.
    pub tool: String,
    pub reason: String,
}
