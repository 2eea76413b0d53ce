//! `[servers.NAME]` of `planwright.toml`: strict, because a misspelt setting has no effect.

use super::launch::{Launch, check_name, is_reserved};
use planwright_adapters::mcp::Era;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What the operator wrote about one server. With a `command` or a `url` it is the server; without,
/// these are settings of a server that another file names, or of one that is part of the program.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerTable {
    pub(crate) serial_writes: Option<bool>,
    pub(crate) max_calls: Option<usize>,
    /// Whether the annotations of its tools are taken at their word.
    pub(crate) trust_annotations: Option<bool>,
    pub(crate) start_timeout_seconds: Option<u64>,
    pub(crate) enabled: Option<bool>,
    /// Whether each run has a connection of its own.
    pub(crate) per_plan: Option<bool>,
    /// Whether people sign in to it by themselves, and runs use the sign-in of their person.
    pub(crate) personal_sign_in: Option<bool>,
    /// Whether what it writes to its standard error is told of the call that is under way.
    pub(crate) log_stderr: Option<bool>,
    /// The number of runs that may have one at once.
    pub(crate) max_connections: Option<usize>,
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    /// A file of more variables.
    env_file: Option<String>,
    /// A command that prints more headers.
    headers_helper: Option<String>,
    /// The era in which it is spoken to, if that is not to be found out.
    protocol: Option<String>,
    /// The name under which this program is known to the one who signs people in, if it has one.
    pub(crate) client_id: Option<String>,
    /// The secret that goes with it, by its name here. Only of a server in the user's own file.
    pub(crate) client_secret: Option<String>,
}

/// No server needs longer than this to start.
const LONGEST_START: u64 = 600;
/// More processes of one server than this are a mistake.
const MOST_CONNECTIONS: usize = 256;

impl ServerTable {
    /// Returns whether this is the server at exactly this address.
    pub(crate) fn is_at(&self, url: &str) -> bool {
        self.url.as_deref() == Some(url)
    }

    /// What is started or connected to, unless these are settings only.
    pub(crate) fn launch(&self) -> Option<Launch> {
        let Self {
            kind,
            command,
            args,
            env,
            cwd,
            url,
            headers,
            env_file,
            headers_helper,
            ..
        } = self.clone();
        let launch = Launch {
            kind,
            command,
            args,
            env,
            cwd,
            url,
            headers,
            env_file,
            headers_helper,
        };
        (launch != Launch::default()).then_some(launch)
    }

    /// The era that `protocol` names.
    pub(crate) fn era(&self) -> Result<Option<Era>, String> {
        match self.protocol.as_deref() {
            None | Some("auto") => Ok(None),
            Some("modern" | "2026-07-28") => Ok(Some(Era::Modern)),
            Some("earlier" | "2025-11-25" | "2025-06-18" | "2025-03-26" | "2024-11-05") => {
                Ok(Some(Era::Earlier))
            }
            Some(other) => Err(format!(
                "its `protocol` is `{other}`: `modern`, `earlier`, `auto` and their versions are known"
            )),
        }
    }

    /// What is wrong with it, in words.
    pub(crate) fn check(&self, name: &str) -> Result<(), String> {
        check_name(name)?;
        self.era()?;
        if let Some(launch) = self.launch() {
            if is_reserved(name) {
                return Err(format!(
                    "the name `{name}` belongs to a server that is part of the program"
                ));
            }
            launch.check()?;
        }
        if is_reserved(name) && (self.per_plan.is_some() || self.max_connections.is_some()) {
            return Err(format!(
                "`{name}` is part of the program and has no connection: `per_plan` and `max_connections` mean nothing"
            ));
        }
        if let Some(connections) = self.max_connections
            && !(1..=MOST_CONNECTIONS).contains(&connections)
        {
            return Err(format!(
                "`max_connections` is 1 to {MOST_CONNECTIONS}, not {connections}"
            ));
        }
        match self.start_timeout_seconds {
            Some(0) => Err("`start_timeout_seconds` is 0, so it could never start".to_owned()),
            Some(seconds) if seconds > LONGEST_START => Err(format!(
                "`start_timeout_seconds` is at most {LONGEST_START}"
            )),
            Some(_) | None => Ok(()),
        }
    }
}
