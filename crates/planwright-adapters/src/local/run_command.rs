//! Runs a program.
//!
//! There is no shell, and the program sees only a few variables of this process. It is not
//! confined: it can do what the user can do, which is why this tool is off unless the operator
//! turns it on.

use super::capture::Capture;
use super::off_thread::parse;
use super::server::SERVER;
use super::workspace::Workspace;
use crate::process::{Children, Pipes, ProcessGroup, WorkOf};
use crate::scarcity::is_scarce;
use planwright_core::run::{CallEffect, StepErrorCode};
use planwright_core::tool::{Annotations, ToolDefinition};
use planwright_engine::port::{Call, CallError, Outcome};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(super) const NAME: &str = "run_command";

/// The variables of this process that a command sees. Everything else may be a secret.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];
const DEFAULT_TIMEOUT_SECONDS: u64 = 600;
const MAX_TIMEOUT_SECONDS: u64 = 24 * 60 * 60;
/// Between asking a group to end and ending it.
const GRACE: Duration = Duration::from_secs(2);
/// The time for the output of processes that a finished command left behind, before they are
/// killed.
const LINGER: Duration = Duration::from_secs(1);
/// The time for output after that, from processes that left the group.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Args {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    stdin: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    timeout_seconds: Option<u64>,
}

pub(super) fn definition() -> ToolDefinition {
    ToolDefinition::new(
        SERVER,
        NAME,
        "Runs a program without a shell and waits for it. It starts in the workspace, with PATH, HOME, LANG and TMPDIR \
         and the variables given. An exit code other than 0 is a failure. Output after the first MiB of each stream is \
         dropped. Processes it leaves behind are ended.",
        json!({
            "type": "object",
            "properties": {
                "command": {
                    "type": "string", "minLength": 1, "maxLength": 4096, "pattern": "^[^\\u0000]*$",
                    "description": "A program on PATH, an absolute path, or a path with a slash relative to the workspace.",
                },
                "args": {
                    "type": "array", "maxItems": 10_000,
                    "items": { "type": "string", "pattern": "^[^\\u0000]*$" },
                },
                "stdin": { "type": "string" },
                "env": {
                    "type": "object", "maxProperties": 1000,
                    "propertyNames": { "pattern": "^[^=\\u0000]+$" },
                    "additionalProperties": { "type": "string", "pattern": "^[^\\u0000]*$" },
                },
                "cwd": { "type": "string", "default": ".", "description": "A directory, relative to the workspace." },
                "timeoutSeconds": {
                    "type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_SECONDS, "default": DEFAULT_TIMEOUT_SECONDS,
                },
            },
            "required": ["command"],
            "additionalProperties": false,
        }),
    )
    .with_output(json!({
        "type": "object",
        "properties": {
            "exitCode": { "type": "integer" },
            "stdout": { "type": "string" },
            "stderr": { "type": "string" },
            "truncated": { "type": "boolean", "description": "Whether some output is missing." },
        },
        "required": ["exitCode", "stdout", "stderr", "truncated"],
        "additionalProperties": false,
    }))
    .with_annotations(Annotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(false),
        open_world_hint: Some(true),
    })
}

pub(super) async fn run(workspace: Arc<Workspace>, children: Children, mut call: Call) -> Outcome {
    let args: Args = parse(std::mem::take(&mut call.args))?;
    let mut command = prepare(&workspace, &args, &call)?;
    if call.cancelled.is_cancelled() {
        return Err(CallError::Cancelled);
    }
    let work = WorkOf {
        run: call.run.clone(),
        step: call.step.clone(),
        attempt: call.attempt,
    };
    let started = children.start_call(&mut command, &work, &call.cancelled);
    let group = started.await.map_err(|error| CallError::Failed {
        code: "command_not_started".into(),
        message: format!("{:?} could not be started: {error}", args.command),
        retryable: is_scarce(&error),
        effect: CallEffect::None,
    })?;
    let limit = Duration::from_secs(
        args.timeout_seconds
            .unwrap_or(DEFAULT_TIMEOUT_SECONDS)
            .min(MAX_TIMEOUT_SECONDS),
    );
    Box::pin(see_through(group, args, limit, &call.cancelled)).await
}

fn prepare(workspace: &Workspace, args: &Args, call: &Call) -> Result<Command, CallError> {
    let mut command = Command::new(program(workspace, &args.command)?);
    command
        .args(&args.args)
        .current_dir(directory(workspace, args.cwd.as_deref().unwrap_or("."))?)
        .env_clear()
        .envs(
            INHERITED
                .into_iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        )
        .envs(&args.env)
        // Last, so that a plan cannot pretend to be another run.
        .env("PLANWRIGHT_IDEMPOTENCY_KEY", &call.idempotency_key)
        .env("PLANWRIGHT_RUN_ID", call.run.as_str())
        .env("PLANWRIGHT_STEP_ID", call.step.as_str())
        .env("PLANWRIGHT_ATTEMPT", call.attempt.to_string())
        // What a plan starts acts for the plan: it must not approve one as the person whose account
        // it uses.
        .env("PLANWRIGHT_AGENT", format!("run {}", call.run))
        .stdin(if args.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(command)
}

/// A relative path is made absolute, because from which directory the system would look it up is
/// not defined.
fn program(workspace: &Workspace, command: &str) -> Result<OsString, CallError> {
    if command.starts_with('/') || !command.contains('/') {
        return Ok(command.into());
    }
    let place = workspace
        .locate(command)
        .map_err(|fault| fault.refused_at(command))?;
    Ok(workspace.root().join(place.path()).into())
}

/// The directory to start in. This keeps a plan honest about where it works; it does not confine
/// the command.
fn directory(workspace: &Workspace, cwd: &str) -> Result<PathBuf, CallError> {
    let found = workspace.locate(cwd).and_then(|place| {
        place.directory()?;
        Ok(workspace.root().join(place.path()))
    });
    found.map_err(|fault| fault.refused_at(cwd))
}

/// The end of the wait for a command.
enum Wait {
    Ended,
    TimedOut,
    Cancelled,
    /// Planwright is about to end.
    Stopping,
}

async fn see_through(
    mut group: ProcessGroup,
    args: Args,
    limit: Duration,
    cancelled: &CancellationToken,
) -> Outcome {
    let Pipes {
        stdin,
        stdout,
        stderr,
    } = group.take_pipes();
    let children = group.children().clone();
    let mut out = Capture::default();
    let mut err = Capture::default();
    let mut all_read = false;
    let wait;
    let status;
    {
        let feed = async {
            if let (Some(mut pipe), Some(text)) = (stdin, args.stdin) {
                // A command that does not read its input to the end has not failed by that.
                pipe.write_all(text.as_bytes()).await.unwrap_or_default();
            }
        };
        let read_out = async {
            if let Some(pipe) = stdout {
                out.drain(pipe).await;
            }
        };
        let read_err = async {
            if let Some(pipe) = stderr {
                err.drain(pipe).await;
            }
        };
        let mut streams = pin!(async { tokio::join!(feed, read_out, read_err) });
        let mut deadline = pin!(tokio::time::sleep(limit));
        wait = loop {
            tokio::select! {
                biased;
                () = cancelled.cancelled() => break Wait::Cancelled,
                () = children.stopping() => break Wait::Stopping,
                () = group.wait_until_ended() => break Wait::Ended,
                () = &mut deadline => break Wait::TimedOut,
                _ = &mut streams, if !all_read => all_read = true,
            }
        };
        let patience = match wait {
            Wait::Ended => LINGER,
            Wait::TimedOut | Wait::Cancelled | Wait::Stopping => {
                group.terminate();
                GRACE
            }
        };
        // A process that still writes is given time; one that has closed its output and goes on is
        // not waited for.
        let calm = async {
            if !all_read {
                streams.as_mut().await;
                all_read = true;
            }
            group.wait_until_ended().await;
        };
        let in_time = timeout(patience, calm).await.is_ok();
        status = match wait {
            Wait::Ended => group.kill().await,
            // Nothing of it may go on: what became of it is about to be asked.
            Wait::TimedOut | Wait::Cancelled | Wait::Stopping => group.kill_with_escaped().await,
        };
        if !in_time && !all_read {
            all_read = timeout(LAST_OUTPUT, streams).await.is_ok();
        }
    }
    match wait {
        Wait::Ended => finished(status, &args.command, &out, &err, !all_read),
        Wait::TimedOut => Err(stopped(
            &args.command,
            &format!("ran longer than {} s", limit.as_secs()),
        )),
        Wait::Cancelled => Err(stopped(&args.command, "was cancelled")),
        Wait::Stopping => Err(stopped(&args.command, "was running when Planwright ended")),
    }
}

/// A command that had started may have had any effect before it was stopped.
fn stopped(command: &str, why: &str) -> CallError {
    CallError::Lost(format!(
        "{command:?} {why} and was stopped; what it did until then is unknown"
    ))
}

fn finished(
    status: std::io::Result<ExitStatus>,
    command: &str,
    out: &Capture,
    err: &Capture,
    cut_off: bool,
) -> Outcome {
    let status = status
        .map_err(|error| CallError::Lost(format!("how {command:?} ended is unknown: {error}")))?;
    if status.success() {
        return Ok(json!({
            "exitCode": 0,
            "stdout": out.text(),
            "stderr": err.text(),
            "truncated": out.truncated || err.truncated || cut_off,
        }));
    }
    let ending = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "failed".to_owned(),
    };
    let message = match err.tail() {
        tail if tail.is_empty() => format!("{command:?} {ending}"),
        tail => format!("{command:?} {ending}: {tail}"),
    };
    Err(CallError::Failed {
        code: StepErrorCode::CommandFailed,
        message,
        retryable: false,
        effect: CallEffect::Unknown,
    })
}
