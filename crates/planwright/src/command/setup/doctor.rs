//! `doctor`: whether everything a plan needs is in order.

use crate::config::file::{self, Config};
use crate::config::passphrase::Unlock;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::{GREEN, Printer, RED, YELLOW, line};
use crate::workspace::app::{Access, App, Setting, Workspace};
use crate::workspace::servers::Servers;
use planwright_adapters::sqlite::SqliteStore;
use planwright_core::id::PlanId;
use planwright_core::review::ReviewState;
use planwright_core::status::RunStatus;
use planwright_engine::Redaction;
use planwright_engine::port::Model as _;
use planwright_engine::with_causes;
use serde::Serialize;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Below this much free space a run may not be able to record what it did.
const LITTLE_SPACE: u64 = 200 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    verdict: Verdict,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Debug, Serialize)]
struct Diagnosis {
    ok: bool,
    checks: Vec<Check>,
}

impl Diagnosis {
    fn note(
        &mut self,
        name: &'static str,
        verdict: Verdict,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        self.ok &= verdict != Verdict::Fail;
        self.checks.push(Check {
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
        checks: Vec::new(),
    };
    let mut exit = Exit::Usage;
    match Workspace::find(dir) {
        Ok(workspace) => {
            diagnosis.note(
                "workspace",
                Verdict::Ok,
                workspace.root.display().to_string(),
                None,
            );
            permissions(&mut diagnosis, &workspace);
            free_space(&mut diagnosis, &workspace);
            if let Some(config) = configuration(&mut diagnosis, &workspace) {
                let setting = Setting {
                    workspace,
                    config,
                    printer,
                    servers: Servers::default(),
                    unlock,
                    shared: None,
                };
                secrets(&mut diagnosis, &setting).await;
                servers(&mut diagnosis, &setting);
                models(&mut diagnosis, &setting);
                executors(&mut diagnosis, &setting);
                exit = store(&mut diagnosis, &setting).await;
            }
        }
        Err(failure) => diagnosis.note("workspace", Verdict::Fail, failure.message, failure.hint),
    }
    if printer.json {
        printer.document(&diagnosis)?;
    } else {
        for Check {
            name,
            verdict,
            message,
            hint,
        } in &diagnosis.checks
        {
            let sign = match verdict {
                Verdict::Ok => printer.out(GREEN, "ok  "),
                Verdict::Warn => printer.out(YELLOW, "warn"),
                Verdict::Fail => printer.out(RED, "fail"),
            };
            printer.data(&format!("{sign}  {name:12}  {}", line(message)))?;
            if let Some(hint) = hint {
                printer.data(&format!("      {:12}  hint: {}", "", line(hint)))?;
            }
        }
    }
    Ok(if diagnosis.ok { Exit::Done } else { exit })
}

fn permissions(diagnosis: &mut Diagnosis, workspace: &Workspace) {
    for path in [&workspace.plans, &workspace.database] {
        let Ok(found) = std::fs::metadata(path) else {
            continue;
        };
        let mode = found.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let hint = format!("chmod go-rwx {}", path.display());
            let message = format!("{} can be read by others (mode {mode:o})", path.display());
            diagnosis.note("permissions", Verdict::Warn, message, Some(hint));
        } else {
            let message = format!("{} is for its owner only", path.display());
            diagnosis.note("permissions", Verdict::Ok, message, None);
        }
    }
}

fn free_space(diagnosis: &mut Diagnosis, workspace: &Workspace) {
    let place = workspace
        .database
        .ancestors()
        .find(|path| path.exists())
        .unwrap_or(&workspace.root);
    match rustix::fs::statvfs(place) {
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let verdict = if free < LITTLE_SPACE {
                Verdict::Warn
            } else {
                Verdict::Ok
            };
            diagnosis.note("free space", verdict, format!("{} MiB", free >> 20), None);
        }
        Err(error) => diagnosis.note("free space", Verdict::Warn, error.to_string(), None),
    }
}

fn configuration(diagnosis: &mut Diagnosis, workspace: &Workspace) -> Option<Config> {
    match Config::read(&workspace.root) {
        Ok(config) => {
            let there = workspace.root.join(file::FILE).exists();
            let message = if there {
                file::FILE.to_owned()
            } else {
                format!("no {}: the defaults", file::FILE)
            };
            diagnosis.note("config", Verdict::Ok, message, None);
            Some(config)
        }
        Err(failure) => {
            diagnosis.note("config", Verdict::Fail, failure.message, failure.hint);
            None
        }
    }
}

/// Whether the configured secrets are there. A plan that needs none runs all the same.
async fn secrets(diagnosis: &mut Diagnosis, setting: &Setting) {
    let Ok(secrets) = setting.config.secrets(&setting.workspace.root) else {
        return;
    };
    let listed = super::secrets::look(&secrets, secrets.names()).await;
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
        diagnosis.note("secrets", Verdict::Ok, message, None);
    } else {
        let hint = Some("planwright secrets list says where each is looked for".to_owned());
        diagnosis.note(
            "secrets",
            Verdict::Warn,
            format!("{message}: {}", problems.join("; ")),
            hint,
        );
    }
}

/// Which servers may be started. None is: that is what `servers check` is for.
fn servers(diagnosis: &mut Diagnosis, setting: &Setting) {
    let roster = setting.roster();
    for problem in &roster.problems {
        diagnosis.note("servers", Verdict::Warn, problem.clone(), None);
    }
    let mut ready = 0;
    for server in roster.effective() {
        match server.obstacle() {
            None => ready += 1,
            Some((reason, hint)) => diagnosis.note("servers", Verdict::Warn, reason, hint),
        }
    }
    let message = match ready {
        0 => "none is ready: docs/servers.md says how to add one".to_owned(),
        1 => "1 is ready; planwright servers check starts it".to_owned(),
        ready => format!("{ready} are ready; planwright servers check starts them"),
    };
    diagnosis.note("servers", Verdict::Ok, message, None);
}

/// Which models would be asked. None is: that is what `models check` is for.
fn models(diagnosis: &mut Diagnosis, setting: &Setting) {
    let models = match setting.models(&Redaction::default()) {
        Ok(models) => models,
        Err(failure) => {
            return diagnosis.note("models", Verdict::Warn, failure.message, failure.hint);
        }
    };
    let listed = models.models();
    for model in &listed {
        let missing = model.key.as_ref().filter(|key| !key.present);
        let missing = missing.map(|key| format!("its key is missing ({})", key.source));
        if let Some(problem) = models.obstacle(&model.name).or(missing) {
            diagnosis.note(
                "models",
                Verdict::Warn,
                format!("{}: {problem}", model.name),
                None,
            );
        }
    }
    let names: Vec<&str> = listed.iter().map(|model| model.name.as_str()).collect();
    let message = match names.as_slice() {
        [] => "none is configured: docs/models.md says how to add one".to_owned(),
        names => format!("{}; planwright models check asks them", names.join(", ")),
    };
    diagnosis.note("models", Verdict::Ok, message, None);
}

/// Which programs may work on agent steps. Most workspaces have none.
fn executors(diagnosis: &mut Diagnosis, setting: &Setting) {
    for executor in setting.executors() {
        match executor.obstacle() {
            None => diagnosis.note("executors", Verdict::Ok, executor.name, None),
            Some(obstacle) => {
                let hint = format!("planwright executors trust {}", executor.name);
                diagnosis.note("executors", Verdict::Warn, obstacle, Some(hint));
            }
        }
    }
}

/// Looks at the store and says with which exit code its failure ends.
async fn store(diagnosis: &mut Diagnosis, setting: &Setting) -> Exit {
    diagnosis.note("SQLite", Verdict::Ok, SqliteStore::sqlite_version(), None);
    let app = match setting.open(Access::Read) {
        Ok(app) => app,
        Err(failure) => {
            let exit = failure.exit;
            let name = if matches!(exit, Exit::Store | Exit::Locked) {
                "store"
            } else {
                "tools"
            };
            diagnosis.note(name, Verdict::Fail, failure.message, None);
            return exit;
        }
    };
    let Some(sqlite) = &app.sqlite else {
        diagnosis.note(
            "store",
            Verdict::Ok,
            "none yet: it is made with the first plan",
            None,
        );
        return Exit::Store;
    };
    match sqlite.damage().await {
        Ok(losses) if losses.is_empty() => {
            let kept = if sqlite.cipher().is_sealed() {
                "encrypted"
            } else {
                "not encrypted"
            };
            let message = format!(
                "{} ({kept}) opens, and no entry is missing",
                sqlite.path().display()
            );
            diagnosis.note("store", Verdict::Ok, message, None);
        }
        Ok(losses) => {
            let message = format!("{} stream(s) lost entries", losses.len());
            diagnosis.note(
                "store",
                Verdict::Fail,
                message,
                Some("planwright verify lists them".to_owned()),
            );
        }
        Err(error) => diagnosis.note("store", Verdict::Fail, with_causes(&error), None),
    }
    if let Err(failure) = abandoned(diagnosis, &app).await {
        diagnosis.note("runs", Verdict::Fail, failure.message, failure.hint);
    }
    Exit::Store
}

/// Runs that go on in the journal, but in no process.
async fn abandoned(diagnosis: &mut Diagnosis, app: &App) -> Result<(), Failure> {
    let runs = app
        .engine
        .store()
        .runs_in(&[RunStatus::Executing.into(), RunStatus::Stalled.into()])
        .await?;
    let plans: BTreeSet<PlanId> = runs.into_iter().map(|info| info.status.plan).collect();
    let mut left = Vec::new();
    for plan in plans {
        let (review, _) = app.engine.load_review(&plan).await?;
        if review.state() == ReviewState::Deleted {
            continue;
        }
        if crate::terminal::plan_status::standing(app, &review)
            .await?
            .note
            .is_some()
        {
            left.push(review.id().to_string());
        }
    }
    if left.is_empty() {
        diagnosis.note(
            "runs",
            Verdict::Ok,
            "none is left behind by a dead process",
            None,
        );
    } else {
        let hint = format!("planwright resume {}", left[0]);
        diagnosis.note(
            "runs",
            Verdict::Warn,
            format!("left behind: {}", left.join(", ")),
            Some(hint),
        );
    }
    Ok(())
}
