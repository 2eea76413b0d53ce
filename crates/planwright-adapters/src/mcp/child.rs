//! The process of a server: what it is given, and how it ends.

use super::stderr_log::StderrLog;
use super::wire::{End, Wire};
use crate::process::{Children, ProcessGroup};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

/// The variables every child gets of our environment, besides `LC_*` and `XDG_*`. Everything else
/// may hold secrets that are not the server's business; its specification names what it needs.
const INHERITED: [&str; 26] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    // Without these a server behind a proxy reaches nothing, and git asks for no key.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSH_AUTH_SOCK",
];

/// The time a server may take to end after its stdin closed, and then after SIGTERM.
const AFTER_EOF: Duration = Duration::from_millis(700);
const AFTER_TERM: Duration = Duration::from_millis(700);
/// The time a server may take to end after it closed its output, and the time its last words may
/// take after its end.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// The command of a server, with its surroundings.
pub(super) struct Launch<'a> {
    /// The operator's name for the server.
    pub(super) name: &'a str,
    pub(super) command: &'a str,
    pub(super) args: &'a [String],
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) cwd: Option<&'a Path>,
    /// True if what it writes to its standard error is told of the call that is under way.
    pub(super) logs_stderr: bool,
}

/// The pipes of a started child.
pub(super) struct Started {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    /// Cancelled when the process and its group are gone.
    pub(super) reaped: CancellationToken,
}

/// Starts the child in a process group of its own. From here on a task watches it: it ends with the
/// connection, and the connection with it.
pub(super) fn start(
    launch: &Launch<'_>,
    log: &StderrLog,
    children: &Children,
    wire: &Arc<Wire>,
) -> std::io::Result<Started> {
    let mut command = Command::new(launch.command);
    command
        .args(launch.args)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_inherited)))
        .envs(launch.env)
        // A process that a server starts is not the person at the keyboard, and must not approve as
        // them.
        .env("PLANWRIGHT_AGENT", launch.name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log.pipe(launch.logs_stderr.then(|| Arc::clone(wire)))?)
        .kill_on_drop(true);
    if let Some(cwd) = launch.cwd {
        command.current_dir(cwd);
    }
    let mut group = children.start(&mut command, None)?;
    let pipes = group.take_pipes();
    let (Some(stdin), Some(stdout)) = (pipes.stdin, pipes.stdout) else {
        return Err(std::io::Error::other("the child has no pipes"));
    };
    let reaped = CancellationToken::new();
    tokio::spawn(watch(group, Arc::clone(wire), reaped.clone()));
    Ok(Started {
        stdin,
        stdout,
        reaped,
    })
}

pub(super) fn is_inherited(name: &str) -> bool {
    INHERITED.contains(&name) || name.starts_with("LC_") || name.starts_with("XDG_")
}

/// Dropping the group kills it, so the process ends with this task, however the task ends.
async fn watch(mut group: ProcessGroup, wire: Arc<Wire>, reaped: CancellationToken) {
    let _reaped = reaped.drop_guard();
    let children = group.children().clone();
    tokio::select! {
        () = children.stopping() => wire.end(End::Closed),
        () = group.wait_until_ended() => {}
        () = wire.silent.cancelled() => {
            if tokio::time::timeout(LAST_WORDS, group.wait_until_ended()).await.is_err() {
                wire.end(End::Gone("it closed its output".into()));
            }
        }
        () = wire.wait_until_ended() => {}
    }
    if wire.how_it_ended().is_some() {
        ask_to_end(&mut group).await;
    }
    match group.kill().await {
        Ok(status) => {
            if wire.how_it_ended().is_none() {
                tokio::time::timeout(LAST_WORDS, wire.silent.cancelled())
                    .await
                    .unwrap_or_default();
            }
            wire.end(End::Gone(format!("its process ended ({status})")));
        }
        Err(error) => wire.end(End::Gone(format!("its process cannot be watched: {error}"))),
    }
}

/// The writer closes stdin when the connection ends, which is the polite way to say goodbye.
async fn ask_to_end(group: &mut ProcessGroup) {
    if tokio::time::timeout(AFTER_EOF, group.wait_until_ended())
        .await
        .is_err()
    {
        group.terminate();
        tokio::time::timeout(AFTER_TERM, group.wait_until_ended())
            .await
            .unwrap_or_default();
    }
}
