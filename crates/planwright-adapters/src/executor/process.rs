//! One attempt of an executor: started, watched, ended with everything it started.

use super::coding_agent::{AttemptPlace, write_prompt};
use super::gateway::GatewayListener;
use super::{ExecutorOptions, GATEWAY, STEP_TOKEN, lines};
use crate::local::capture::Capture;
use crate::process::{Children, Pipes, WorkOf};
use planwright_engine::port::{DelegateError, Delegated, Delegation};
use serde_json::{Value, json};
use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

/// The variables of this process that every executor sees. Everything else may be a secret.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];
/// The time between asking a process group to end and killing it.
const GRACE: Duration = Duration::from_secs(2);
/// The time for the output of processes that a finished executor left behind.
const LINGER: Duration = Duration::from_secs(1);

/// The things that an attempt begins with.
struct Start {
    command: Command,
    /// What the program reads on standard input.
    text: String,
    /// The folder of a coding agent, which is removed with the attempt.
    place: Option<AttemptPlace>,
}

pub(super) async fn execute(
    options: ExecutorOptions,
    children: Children,
    delegation: Delegation,
) -> Delegated {
    let name = delegation.executor.clone();
    let ended = match work(&options, &children, &delegation).await {
        Ok(ended) => ended,
        Err(error) => return Err(error).into(),
    };
    let Ended {
        status,
        printed,
        errors,
    } = ended;
    let Some(agent) = &options.agent else {
        return match status.success() {
            true => Ok(lines::result(printed)),
            false => Err(DelegateError::Failed(ending(&name, status, &errors))),
        }
        .into();
    };
    let report = agent.read(&name, &printed.unwrap_or_default());
    let outcome = match report.outcome {
        Ok(message) if status.success() => Ok(Value::String(message)),
        Ok(_) => Err(ending(&name, status, &errors)),
        Err(problem) if status.success() && errors.is_empty() => {
            Err(format!("`{name}`: {problem}"))
        }
        Err(problem) if status.success() => {
            Err(format!("`{name}`: {problem}; it complained: {errors}"))
        }
        Err(problem) => {
            let why = if errors.is_empty() {
                problem
            } else {
                format!("{problem}; {errors}")
            };
            Err(ending(&name, status, &why))
        }
    };
    Delegated {
        outcome: outcome.map_err(DelegateError::Failed),
        used: report.used,
        only_calls: !agent.own_tools,
    }
}

/// How a program ended, and what it said.
struct Ended {
    status: ExitStatus,
    printed: Option<String>,
    errors: String,
}

async fn work(
    options: &ExecutorOptions,
    children: &Children,
    delegation: &Delegation,
) -> Result<Ended, DelegateError> {
    let name = &delegation.executor;
    let not_started =
        |why: String| DelegateError::NotStarted(format!("`{name}` could not be started: {why}"));
    let listener = GatewayListener::open(Arc::clone(&delegation.gateway)).await;
    let listener = listener.map_err(|error| not_started(error.to_string()))?;
    let Start {
        mut command,
        text,
        place,
    } = prepare(options, delegation, &listener).map_err(&not_started)?;
    let work = WorkOf {
        run: delegation.run.clone(),
        step: delegation.step.clone(),
        attempt: delegation.attempt,
    };
    let started = children.start_call(&mut command, &work, &delegation.cancelled);
    let mut group = started
        .await
        .map_err(|error| not_started(explain_start(options, &error)))?;
    let Pipes {
        stdin,
        stdout,
        stderr,
    } = group.take_pipes();
    let mut errors = Capture::default();
    let feed = async {
        if let Some(mut pipe) = stdin {
            // One that does not read its input to the end has not failed by that.
            pipe.write_all(text.as_bytes()).await.unwrap_or_default();
        }
    };
    let read_out = async {
        match stdout {
            Some(pipe) if options.agent.is_some() => lines::read_all(pipe).await,
            Some(pipe) => lines::read(pipe, &delegation.progress).await,
            None => Ok(None),
        }
    };
    let read_err = async {
        if let Some(pipe) = stderr {
            errors.drain(pipe).await;
        }
    };
    let mut streams = Box::pin(async { tokio::join!(feed, read_out, read_err).1 });
    let mut deadline = pin!(tokio::time::sleep(options.timeout));
    let mut said = None;
    let stopped = loop {
        tokio::select! {
            biased;
            () = delegation.cancelled.cancelled() => break Some("was cancelled".to_owned()),
            () = children.stopping() => break Some("was running when Planwright ended".to_owned()),
            () = group.wait_until_ended() => break None,
            () = &mut deadline => break Some(format!("ran longer than {} s", options.timeout.as_secs())),
            read = &mut streams, if said.is_none() => match read {
                Ok(last) => said = Some(last),
                Err(problem) => break Some(problem),
            },
        }
    };
    if stopped.is_some() {
        group.terminate();
        drop(timeout(GRACE, group.wait_until_ended()).await);
    } else if said.is_none() {
        said = timeout(LINGER, &mut streams)
            .await
            .ok()
            .and_then(Result::ok);
    }
    let status = if stopped.is_some() {
        // Nothing of it may go on: what became of it is about to be asked.
        group.kill_with_escaped().await
    } else {
        group.kill().await
    };
    drop(streams);
    // A call that the executor asked for last is not made any more: the gateway closes with the
    // attempt.
    drop(listener);
    drop(place);
    if let Some(why) = stopped {
        let message = format!("`{name}` {why} and was stopped; what it did until then is unknown");
        return Err(DelegateError::Lost(message));
    }
    let unknown = |error| DelegateError::Lost(format!("how `{name}` ended is unknown: {error}"));
    Ok(Ended {
        status: status.map_err(unknown)?,
        printed: said.flatten(),
        errors: errors.tail(),
    })
}

/// What is in the way of starting a program.
fn explain_start(options: &ExecutorOptions, error: &io::Error) -> String {
    let program = options.command.first();
    match (&options.agent, program) {
        (Some(_), Some(program)) if error.kind() == io::ErrorKind::NotFound => {
            format!("there is no program `{program}`: install it, or name it with `command`")
        }
        _ => error.to_string(),
    }
}

fn prepare(
    options: &ExecutorOptions,
    delegation: &Delegation,
    listener: &GatewayListener,
) -> Result<Start, String> {
    let none = || "it has no command".to_owned();
    let (program, args) = options.command.split_first().ok_or_else(none)?;
    let mut command = Command::new(program);
    command.args(args).current_dir(&options.cwd);
    give_environment(&mut command, options, delegation, listener);
    let Some(agent) = &options.agent else {
        let text = format!("{}\n\n{}\n", delegation.instruction, delegation.context);
        return Ok(Start {
            command,
            text,
            place: None,
        });
    };
    let homeless = || "there is no HOME to keep its configuration in".to_owned();
    let places = agent.places.as_deref().ok_or_else(homeless)?;
    let unwritten = |error: io::Error| format!("its configuration cannot be written: {error}");
    let place = AttemptPlace::make(places).map_err(unwritten)?;
    let launch = agent.launch(&place, &options.cwd, options.timeout)?;
    for (file, text) in &launch.files {
        place.write(file, text).map_err(unwritten)?;
    }
    command.args(&launch.args).envs(launch.env);
    if agent.starts_in_place() {
        command.current_dir(place.path());
    }
    let text = write_prompt(
        &delegation.instruction,
        &delegation.context,
        agent.own_tools,
    );
    Ok(Start {
        command,
        text,
        place: Some(place),
    })
}

fn give_environment(
    command: &mut Command,
    options: &ExecutorOptions,
    delegation: &Delegation,
    listener: &GatewayListener,
) {
    let seen = INHERITED
        .into_iter()
        .map(str::to_owned)
        .chain(options.env.iter().cloned());
    command
        .env_clear()
        .envs(seen.filter_map(|name| std::env::var_os(&name).map(|value| (name, value))))
        .env("PLANWRIGHT_SCOPE", json!(delegation.scope).to_string())
        .env("PLANWRIGHT_PLAN", delegation.plan.as_str())
        .env("PLANWRIGHT_RUN", delegation.run.as_str())
        .env("PLANWRIGHT_STEP", delegation.step.as_str())
        .env("PLANWRIGHT_ATTEMPT", delegation.attempt.to_string())
        .env(GATEWAY, listener.address())
        .env(STEP_TOKEN, listener.token())
        // What a plan starts acts for the plan: it must not approve one as the person whose account
        // it uses.
        .env("PLANWRIGHT_AGENT", format!("run {}", delegation.run))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
}

fn ending(name: &str, status: ExitStatus, tail: &str) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "failed".to_owned(),
    };
    if tail.is_empty() {
        format!("`{name}` {how}")
    } else {
        format!("`{name}` {how}: {tail}")
    }
}
