//! `doctor`: whether everything a plan needs is in order.

mod broker;
mod store;

use self::broker::{BrokerFacts, check_broker};
use self::store::{StoreFacts, check_store};
use crate::config::executors::DescribedExecutor;
use crate::config::file::{self, Config};
use crate::config::passphrase::Unlock;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::{GREEN, Printer, RED, YELLOW, line};
use crate::trust::TrustState;
use crate::workspace::app::{CommandContext, Workspace};
use crate::workspace::servers::Servers;
use planwright_adapters::process::Children;
use planwright_engine::Redaction;
use planwright_engine::port::Model as _;
use serde::Serialize;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

/// Below this much free space a run may not be able to record what it did.
const LITTLE_SPACE: u64 = 200 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckVerdict {
    Ok,
    Warn,
    Fail,
}

#[derive(Debug, Serialize)]
struct DoctorCheck {
    name: &'static str,
    verdict: CheckVerdict,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Debug, Serialize)]
struct Diagnosis {
    ok: bool,
    /// `None` if there is no store yet, or it could not be opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<StoreFacts>,
    /// `None` if none is configured, or it did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    broker: Option<BrokerFacts>,
    checks: Vec<DoctorCheck>,
}

impl Diagnosis {
    fn note(
        &mut self,
        name: &'static str,
        verdict: CheckVerdict,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        self.ok &= verdict != CheckVerdict::Fail;
        self.checks.push(DoctorCheck {
            name,
            verdict,
            message: message.into(),
            hint,
        });
    }
}

pub(crate) async fn run(
    printer: Printer,
    dir: Option<&Path>,
    unlock: Unlock,
) -> Result<Exit, Failure> {
    let mut diagnosis = Diagnosis {
        ok: true,
        store: None,
        broker: None,
        checks: Vec::new(),
    };
    let mut exit = Exit::Usage;
    match Workspace::find(dir) {
        Ok(workspace) => {
            diagnosis.note(
                "workspace",
                CheckVerdict::Ok,
                workspace.root.display().to_string(),
                None,
            );
            check_permissions(&mut diagnosis, &workspace);
            check_free_space(&mut diagnosis, &workspace);
            if let Some(config) = check_config(&mut diagnosis, &workspace) {
                let opened = CommandContext::inside(workspace, config, printer, Servers::default());
                let context = match opened {
                    Ok(context) => CommandContext {
                        unlock,
                        children: Children::default(),
                        ..context
                    },
                    Err(failure) => {
                        diagnosis.note("config", CheckVerdict::Fail, failure.message, failure.hint);
                        return report(printer, &diagnosis, exit);
                    }
                };
                check_trust(&mut diagnosis, &context);
                check_secrets(&mut diagnosis, &context).await;
                check_servers(&mut diagnosis, &context);
                check_models(&mut diagnosis, &context);
                check_executors(&mut diagnosis, &context);
                Box::pin(check_broker(&mut diagnosis, &context)).await;
                exit = check_store(&mut diagnosis, &context).await;
            }
        }
        Err(failure) => diagnosis.note(
            "workspace",
            CheckVerdict::Fail,
            failure.message,
            failure.hint,
        ),
    }
    report(printer, &diagnosis, exit)
}

/// Milliseconds with two decimals, for people and programs alike.
fn to_millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e5).round() / 100.0
}

fn report(printer: Printer, diagnosis: &Diagnosis, failed: Exit) -> Result<Exit, Failure> {
    if printer.json {
        printer.document(diagnosis)?;
    } else {
        for DoctorCheck {
            name,
            verdict,
            message,
            hint,
        } in &diagnosis.checks
        {
            let sign = match verdict {
                CheckVerdict::Ok => printer.out(GREEN, "ok  "),
                CheckVerdict::Warn => printer.out(YELLOW, "warn"),
                CheckVerdict::Fail => printer.out(RED, "fail"),
            };
            printer.data(&format!("{sign}  {name:12}  {}", line(message)))?;
            if let Some(hint) = hint {
                printer.data(&format!("      {:12}  hint: {}", "", line(hint)))?;
            }
        }
    }
    Ok(if diagnosis.ok { Exit::Done } else { failed })
}

fn check_permissions(diagnosis: &mut Diagnosis, workspace: &Workspace) {
    for path in [&workspace.plans, &workspace.database] {
        let Ok(found) = std::fs::metadata(path) else {
            continue;
        };
        let mode = found.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let hint = format!("chmod go-rwx {}", path.display());
            let message = format!("{} can be read by others (mode {mode:o})", path.display());
            diagnosis.note("permissions", CheckVerdict::Warn, message, Some(hint));
        } else {
            let message = format!("{} is for its owner only", path.display());
            diagnosis.note("permissions", CheckVerdict::Ok, message, None);
        }
    }
}

fn check_free_space(diagnosis: &mut Diagnosis, workspace: &Workspace) {
    let place = workspace
        .database
        .ancestors()
        .find(|path| path.exists())
        .unwrap_or(&workspace.root);
    match rustix::fs::statvfs(place) {
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let verdict = if free < LITTLE_SPACE {
                CheckVerdict::Warn
            } else {
                CheckVerdict::Ok
            };
            diagnosis.note("free space", verdict, format!("{} MiB", free >> 20), None);
        }
        Err(error) => diagnosis.note("free space", CheckVerdict::Warn, error.to_string(), None),
    }
}

fn check_config(diagnosis: &mut Diagnosis, workspace: &Workspace) -> Option<Config> {
    match Config::read(&workspace.root) {
        Ok(config) => {
            let there = workspace.root.join(file::FILE).exists();
            let message = if there {
                file::FILE.to_owned()
            } else {
                format!("no {}: the defaults", file::FILE)
            };
            diagnosis.note("config", CheckVerdict::Ok, message, None);
            Some(config)
        }
        Err(failure) => {
            diagnosis.note("config", CheckVerdict::Fail, failure.message, failure.hint);
            None
        }
    }
}

/// What of the workspace's files is ignored because the user does not trust it.
fn check_trust(diagnosis: &mut Diagnosis, context: &CommandContext) {
    let folder = &context.folder;
    let mut warn = |message: String, hint: Option<String>| {
        diagnosis.note("trust", CheckVerdict::Warn, message, hint);
    };
    if let Some(file) = &context.workspace.passed_over {
        warn(
            format!("the plans in a parent folder are not used: {file}"),
            None,
        );
    }
    for problem in &folder.problems {
        warn(problem.clone(), None);
    }
    for file in folder.trust().foreign() {
        warn(file.to_string(), Some(file.remedy()));
    }
    for judged in folder.untrusted_loosenings() {
        let loosening = &judged.loosening;
        let what = match judged.state {
            TrustState::Changed => "ignored because changed since you trusted it",
            TrustState::Trusted | TrustState::Unknown => "ignored because not trusted",
        };
        let message = format!(
            "{what}: {} of {} ({})",
            loosening.key, loosening.place, loosening.value
        );
        warn(
            message,
            Some("to review and trust it: planwright trust".to_owned()),
        );
    }
    if folder.untrusted_loosenings().next().is_none() {
        let message = match folder.judged.len() {
            0 => "nothing in this folder's files needs trust".to_owned(),
            count => format!("{count} settings of this folder's files are trusted"),
        };
        diagnosis.note("trust", CheckVerdict::Ok, message, None);
    }
}

/// Whether the configured secrets are there. A plan that needs none runs all the same.
async fn check_secrets(diagnosis: &mut Diagnosis, context: &CommandContext) {
    let Ok(secrets) = context.config.secrets(&context.workspace.root) else {
        return;
    };
    let listed = super::secrets::probe_secrets(&secrets, secrets.names()).await;
    if listed.is_empty() {
        return;
    }
    let problems: Vec<&str> = listed
        .iter()
        .filter_map(|secret| secret.problem.as_deref())
        .collect();
    let message = format!(
        "{} of {} available",
        listed.len() - problems.len(),
        listed.len()
    );
    if problems.is_empty() {
        diagnosis.note("secrets", CheckVerdict::Ok, message, None);
    } else {
        let hint = Some("To see where each is looked for: planwright secrets list".to_owned());
        diagnosis.note(
            "secrets",
            CheckVerdict::Warn,
            format!("{message}: {}", problems.join("; ")),
            hint,
        );
    }
}

/// Which servers may be started. None is: that is what `servers check` is for.
fn check_servers(diagnosis: &mut Diagnosis, context: &CommandContext) {
    let roster = context.roster();
    for problem in &roster.problems {
        diagnosis.note("servers", CheckVerdict::Warn, problem.clone(), None);
    }
    let mut ready = 0;
    for server in roster.effective() {
        match server.obstacle() {
            None => ready += 1,
            Some((reason, hint)) => diagnosis.note("servers", CheckVerdict::Warn, reason, hint),
        }
    }
    let message = match ready {
        0 => "none is ready. To see how to add one: planwright explain servers".to_owned(),
        1 => "1 is ready. To start it: planwright servers check".to_owned(),
        ready => format!("{ready} are ready. To start them: planwright servers check"),
    };
    diagnosis.note("servers", CheckVerdict::Ok, message, None);
}

/// Which models would be asked. None is: that is what `models check` is for.
fn check_models(diagnosis: &mut Diagnosis, context: &CommandContext) {
    let models = match context.models(&Redaction::default()) {
        Ok(models) => models,
        Err(failure) => {
            return diagnosis.note("models", CheckVerdict::Warn, failure.message, failure.hint);
        }
    };
    let listed = models.models();
    for model in &listed {
        let missing = model.key.as_ref().filter(|key| !key.present);
        let missing = missing.map(|key| format!("its key is missing ({})", key.source));
        if let Some(problem) = models.obstacle(&model.name).or(missing) {
            diagnosis.note(
                "models",
                CheckVerdict::Warn,
                format!("{}: {problem}", model.name),
                None,
            );
        }
    }
    let names: Vec<&str> = listed.iter().map(|model| model.name.as_str()).collect();
    let message = match names.as_slice() {
        [] => "none is configured. To see how to add one: planwright explain models".to_owned(),
        names => format!("{}; planwright models check asks them", names.join(", ")),
    };
    diagnosis.note("models", CheckVerdict::Ok, message, None);
}

/// Which programs may work on agent steps. Most workspaces have none.
fn check_executors(diagnosis: &mut Diagnosis, context: &CommandContext) {
    for executor in context.executors() {
        match executor.obstacle() {
            None if let Some(program) = missing_program(&executor) => {
                let message = format!(
                    "the executor `{}` of {} cannot start: there is no program `{program}`",
                    executor.name,
                    executor.source()
                );
                let hint = format!(
                    "install it, or name it with command under [executors.{}]",
                    executor.name
                );
                diagnosis.note("executors", CheckVerdict::Warn, message, Some(hint));
            }
            None => diagnosis.note("executors", CheckVerdict::Ok, executor.name, None),
            Some(obstacle) => {
                let hint = "To review what it runs and trust it: planwright trust".to_owned();
                diagnosis.note("executors", CheckVerdict::Warn, obstacle, Some(hint));
            }
        }
    }
}

/// The program of a coding agent, if it is nowhere on the path. Other commands may be anywhere.
fn missing_program(executor: &DescribedExecutor) -> Option<String> {
    executor.table.agent(&executor.name)?;
    let program = executor
        .table
        .launch_line(&executor.name)
        .into_iter()
        .next()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    let is_there = if program.contains('/') {
        Path::new(&program).is_file()
    } else {
        folders
            .into_iter()
            .any(|folder| folder.join(&program).is_file())
    };
    (!is_there).then_some(program)
}
