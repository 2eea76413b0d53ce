//! How a server is reached. Comes from the operator's files only, never from a plan.

use super::Era;
use planwright_core::digest::Digest;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// One server the operator configured. Variables are expanded already.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSpec {
    /// The operator's name for it, `[A-Za-z0-9_-]{1,64}`. What the server calls itself is never
    /// used.
    pub name: String,
    pub transport: Transport,
    /// `true` if its tool annotations are taken at their word.
    pub believed: bool,
    /// The time that starting and listing tools may take.
    pub start_timeout: Duration,
    /// `true` if plans do not share its connection: each run has one of its own.
    pub per_plan: bool,
    /// The number of runs that may have one at once.
    pub max_connections: usize,
    /// `true` if people sign in to it by themselves: a run uses the sign-in of the person whose name
    /// it is in, on a connection of its own.
    pub personal_sign_in: bool,
    /// The era in which it is spoken to, if the operator says so instead of having it found out.
    pub era: Option<Era>,
    /// `true` if it speaks HTTP as servers did first, with one stream of events.
    pub streams_events: bool,
    /// A command that prints more headers as a JSON object, for a server over HTTP.
    pub headers_helper: Option<String>,
    /// What the user trusted, by digest: its launch line as it is written.
    pub trusted_as: Option<Digest>,
    /// `true` if what it writes to its standard error is told of the call that is under way.
    pub logs_stderr: bool,
}

/// The command that is started, or the address at which the server listens.
#[derive(Clone, PartialEq)]
pub enum Transport {
    Stdio {
        command: String,
        args: Vec<String>,
        /// On top of the few variables every child gets.
        env: BTreeMap<String, String>,
        cwd: Option<PathBuf>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
    },
}

impl ServerSpec {
    pub const START_TIMEOUT: Duration = Duration::from_secs(30);
    pub const MAX_CONNECTIONS: usize = 16;

    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            transport,
            believed: false,
            start_timeout: Self::START_TIMEOUT,
            per_plan: false,
            max_connections: Self::MAX_CONNECTIONS,
            personal_sign_in: false,
            era: None,
            streams_events: false,
            headers_helper: None,
            trusted_as: None,
            logs_stderr: false,
        }
    }

    /// The digest of exactly what is started or connected to: what trust and approvals are bound
    /// to. Values of variables and headers are part of it by digest only.
    pub fn origin(&self) -> Digest {
        Digest::of_json(&match &self.transport {
            Transport::Stdio {
                command,
                args,
                env,
                cwd,
            } => {
                json!({"command": command, "args": args, "env": env, "cwd": cwd})
            }
            Transport::Http { url, headers } => {
                let mut reached = json!({"url": url, "headers": headers});
                if let Some(helper) = &self.headers_helper {
                    reached["headersHelper"] = json!(helper);
                }
                // Whose account is used is part of what was agreed to.
                if self.personal_sign_in {
                    reached["personalSignIn"] = json!(true);
                }
                reached
            }
        })
    }

    /// The launch line or the address, for people.
    pub fn launch_line(&self) -> String {
        match &self.transport {
            Transport::Stdio { command, args, .. } => std::iter::once(command)
                .chain(args)
                .cloned()
                .collect::<Vec<_>>()
                .join(" "),
            Transport::Http { url, .. } => url.clone(),
        }
    }
}

/// Values of variables and headers may be secrets: only their names are shown.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio {
                command,
                args,
                env,
                cwd,
            } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", args)
                .field("env", &env.keys().collect::<Vec<_>>())
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers } => f
                .debug_struct("Http")
                .field("url", url)
                .field("headers", &headers.keys().collect::<Vec<_>>())
                .finish(),
        }
    }
}
