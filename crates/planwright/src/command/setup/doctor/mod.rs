//! `doctor`: whether everything a plan needs is in order.

use crate::config::executors::DescribedExecutor;
use crate::config::file::{self, Config};
use crate::config::passphrase::Unlock;
use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::next_step::format_next_step;
use crate::terminal::plan_status::{StatusNote, load_status_line};
use crate::terminal::printer::{GREEN, Printer, RED, YELLOW, line};
use crate::trust::TrustState;
use crate::workspace::app::{Access, App, CommandContext, Workspace};
use crate::workspace::broker_address::{find_broker, open_broker};
use crate::workspace::servers::Servers;
use planwright_adapters::objects::ObjectArtifacts;
use planwright_adapters::postgres::PostgresStore;
use planwright_adapters::process::Children;
use planwright_adapters::sqlite::{Loss, SqliteStore, find_lock_holder};
use planwright_core::error::ClassifiedError as _;
use planwright_core::id::PlanId;
use planwright_core::journal::StreamName;
use planwright_core::review::ReviewState;
use planwright_core::status::RunStatus;
use planwright_engine::port::{ListedWorker, Model as _, Offers as _, StoreError};
use planwright_engine::{CheckStoreError, Redaction, with_causes};
use serde::Serialize;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Instant;

/// Below this much free space a run may not be able to record what it did.
const LITTLE_SPACE: u64 = 200 << 20;
/// Clocks of machines that share a store may differ by a little.
const CLOCK_JUMP_MILLIS: i64 = 60_000;

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
    for judged in folder.untrusted() {
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
    if folder.untrusted().next().is_none() {
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

/// Asks the broker, if there is one. Steps are offered in the store as well, so that its absence is only slower.
async fn check_broker(diagnosis: &mut Diagnosis, context: &CommandContext) {
    let address = match find_broker(context, None) {
        Ok(Some(address)) => address,
        Ok(None) => return,
        Err(failure) => {
            return diagnosis.note("broker", CheckVerdict::Fail, failure.message, failure.hint);
        }
    };
    let place = address.to_string();
    let started = Instant::now();
    let states = async {
        let capabilities: Vec<String> =
            context.config.dispatch().capabilities.into_iter().collect();
        open_broker(address)?.states(&capabilities).await
    };
    match states.await {
        Ok(states) => {
            let latency = started.elapsed().as_secs_f64() * 1000.0;
            let dead: u64 = states.iter().map(|state| state.dead).sum();
            let message = format!("{place} answered after {latency:.1} ms");
            diagnosis.note("broker", CheckVerdict::Ok, message, None);
            if dead > 0 {
                let message = format!("{} given up", count_of(dead, "notice was", "notices were"));
                let hint = "To list them: planwright queue list".to_owned();
                diagnosis.note("queues", CheckVerdict::Warn, message, Some(hint));
            }
        }
        Err(error) => diagnosis.note("broker", CheckVerdict::Fail, error.to_string(), None),
    }
}

/// Looks at the store and says with which exit code its failure ends.
async fn check_store(diagnosis: &mut Diagnosis, context: &CommandContext) -> Exit {
    diagnosis.note(
        "SQLite",
        CheckVerdict::Ok,
        SqliteStore::sqlite_version(),
        None,
    );
    let app = match context.open(Access::Read) {
        Ok(app) => app,
        Err(failure) => {
            let exit = failure.exit;
            let name = if matches!(exit, Exit::Store | Exit::Locked | Exit::Refused) {
                "store"
            } else {
                "tools"
            };
            diagnosis.note(name, CheckVerdict::Fail, failure.message, failure.hint);
            return exit;
        }
    };
    if let Some(objects) = &app.objects {
        check_objects(diagnosis, objects).await;
    }
    if let Some(postgres) = &app.postgres {
        check_database(diagnosis, &app, postgres).await;
        return Exit::Store;
    }
    let Some(sqlite) = &app.sqlite else {
        diagnosis.note(
            "store",
            CheckVerdict::Ok,
            "none yet: it is made with the first plan",
            None,
        );
        return Exit::Store;
    };
    let losses = match sqlite.damage().await {
        Ok(losses) => Ok(without_accepted(&app, losses).await),
        Err(error) => Err(error),
    };
    match losses {
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
            diagnosis.note("store", CheckVerdict::Ok, message, None);
        }
        Ok(losses) => {
            let message = format!("{} stream(s) lost entries", losses.len());
            diagnosis.note(
                "store",
                CheckVerdict::Fail,
                message,
                Some("To list them: planwright verify".to_owned()),
            );
        }
        Err(error) => diagnosis.note("store", CheckVerdict::Fail, with_causes(&error), None),
    }
    check_writing(diagnosis, &app, sqlite).await;
    check_clock(diagnosis, &app, sqlite).await;
    if let Err(failure) = check_abandoned_runs(diagnosis, &app).await {
        diagnosis.note("runs", CheckVerdict::Fail, failure.message, failure.hint);
    }
    Exit::Store
}

/// The bucket of large values: whether one can be written and read back, and how long that takes.
async fn check_objects(diagnosis: &mut Diagnosis, objects: &ObjectArtifacts) {
    match objects.probe().await {
        Ok(took) => {
            let took = took.as_secs_f64() * 1000.0;
            let message = format!(
                "{}: a value was written and read back in {took:.0} ms",
                objects.place()
            );
            diagnosis.note("large values", CheckVerdict::Ok, message, None);
        }
        Err(error) => {
            let hint = "the bucket has to be there and to accept the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; runs wait for it";
            diagnosis.note(
                "large values",
                CheckVerdict::Fail,
                error.to_string(),
                Some(hint.to_owned()),
            );
        }
    }
}

/// A store in a database: its server, how far it is away, and whether a write works.
async fn check_database(diagnosis: &mut Diagnosis, app: &App, postgres: &PostgresStore) {
    let place = postgres.location().to_string();
    match postgres.report().await {
        Ok(report) => {
            let latency = report.latency.as_secs_f64() * 1000.0;
            let kept = if postgres.cipher().is_sealed() {
                "encrypted"
            } else {
                "not encrypted"
            };
            let message = format!(
                "{place} ({kept}): Postgres {}, tables of version {}, {latency:.1} ms away, {} not yet in the feed",
                report.version,
                report.schema,
                count_of(report.unplaced, "entry", "entries")
            );
            diagnosis.note("store", CheckVerdict::Ok, message, None);
            if !report.is_durable {
                let message = "the server has fsync or full_page_writes off: what was acknowledged can be lost";
                let hint = "set both to on in postgresql.conf".to_owned();
                diagnosis.note("durability", CheckVerdict::Fail, message, Some(hint));
            }
        }
        Err(error) => diagnosis.note("store", CheckVerdict::Fail, with_causes(&error), None),
    }
    match app.engine.maintenance().check_store().await {
        Ok(_) => diagnosis.note(
            "writing",
            CheckVerdict::Ok,
            "a small write was committed",
            None,
        ),
        Err(error) => {
            let hint = error.hint().as_ref().and_then(format_next_step);
            diagnosis.note("writing", CheckVerdict::Fail, with_causes(&error), hint);
        }
    }
    check_workers(diagnosis, app, postgres).await;
    if let Err(failure) = check_abandoned_runs(diagnosis, app).await {
        diagnosis.note("runs", CheckVerdict::Fail, failure.message, failure.hint);
    }
}

/// The workers that are there, and the steps that none of them can take.
async fn check_workers(diagnosis: &mut Diagnosis, app: &App, postgres: &PostgresStore) {
    let found = async {
        Ok::<_, StoreError>((postgres.workers().await?, postgres.waiting_offers().await?))
    };
    let (workers, waiting) = match found.await {
        Ok(found) => found,
        Err(error) => {
            return diagnosis.note("workers", CheckVerdict::Fail, with_causes(&error), None);
        }
    };
    let takes = |worker: &&ListedWorker| worker.is_alive && !worker.is_draining;
    let able: BTreeSet<&String> = workers
        .iter()
        .filter(takes)
        .flat_map(|worker| &worker.record.capabilities)
        .collect();
    let listed = &app.context.config.dispatch().capabilities;
    let waits = waiting.iter().map(|offers| &offers.capability);
    let missing: BTreeSet<&String> = listed
        .iter()
        .chain(waits)
        .filter(|name| !able.contains(name))
        .collect();
    let count = workers.iter().filter(takes).count();
    for capability in &missing {
        let steps = waiting
            .iter()
            .find(|offers| offers.capability == ***capability);
        let steps = steps.map_or_else(String::new, |offers| {
            let oldest = offers.oldest.as_secs();
            let steps = count_of(offers.count, "step", "steps");
            format!(": {steps} waiting, the first for {oldest} s")
        });
        diagnosis.note(
            "workers",
            CheckVerdict::Warn,
            format!("no worker has the capability `{capability}`{steps}"),
            Some(format!("planwright worker --capability {capability}")),
        );
    }
    if missing.is_empty() && (count > 0 || !listed.is_empty()) {
        let count = count_of(count as u64, "worker", "workers");
        diagnosis.note(
            "workers",
            CheckVerdict::Ok,
            format!("{count} taking steps"),
            None,
        );
    }
}

/// Whether a write works, and what is in its way.
async fn check_writing(diagnosis: &mut Diagnosis, app: &App, sqlite: &SqliteStore) {
    let Err(error) = app.engine.maintenance().check_store().await else {
        return diagnosis.note(
            "writing",
            CheckVerdict::Ok,
            "a small write was synced",
            None,
        );
    };
    let busy = matches!(error, CheckStoreError::Unwritable(StoreError::Busy(_)));
    let holder = find_lock_holder(sqlite.path()).filter(|_| busy);
    let hint = match &holder {
        Some(holder) => Some(format!("{holder} holds the lock: let it finish, or end it")),
        None => error.hint().as_ref().and_then(format_next_step),
    };
    diagnosis.note("writing", CheckVerdict::Fail, with_causes(&error), hint);
}

/// Whether the clock stands before what was written by it.
async fn check_clock(diagnosis: &mut Diagnosis, app: &App, sqlite: &SqliteStore) {
    let Ok(Some(last)) = sqlite.last_change().await else {
        return;
    };
    let ahead = last.as_millis().saturating_sub(app.now().as_millis());
    if ahead > CLOCK_JUMP_MILLIS {
        let message = format!(
            "it is {} s behind the last entry ({last}): it jumped, now or when that was written",
            ahead / 1000
        );
        let hint = "set the clock right: retries, expiries and leases go by it".to_owned();
        diagnosis.note("clock", CheckVerdict::Warn, message, Some(hint));
    }
}

/// Runs that go on in the journal, but in no process.
async fn check_abandoned_runs(diagnosis: &mut Diagnosis, app: &App) -> Result<(), Failure> {
    let runs = app
        .engine
        .journals()
        .runs_in(&[RunStatus::Executing.into(), RunStatus::Stalled.into()])
        .await?;
    let plans: BTreeSet<PlanId> = runs.into_iter().map(|info| info.status.plan).collect();
    let mut left = Vec::new();
    for plan in plans {
        let (review, _) = app.engine.plans().load_review(&plan).await?;
        if review.state() == ReviewState::Deleted {
            continue;
        }
        let note = load_status_line(app, &review).await?.note;
        if matches!(note, Some(StatusNote::LeftBehind(_))) {
            left.push(review.id().to_string());
        }
    }
    if left.is_empty() {
        diagnosis.note(
            "runs",
            CheckVerdict::Ok,
            "none was left by a process that died",
            None,
        );
    } else {
        let hint = format!("planwright resume {}", left[0]);
        diagnosis.note(
            "runs",
            CheckVerdict::Warn,
            format!("without a process: {}", left.join(", ")),
            Some(hint),
        );
    }
    Ok(())
}

/// Leaves out the losses that a person has accepted (`planwright repair`).
async fn without_accepted(app: &App, losses: Vec<Loss>) -> Vec<Loss> {
    let mut open = Vec::new();
    for loss in losses {
        if !is_accepted(app, &loss.stream).await {
            open.push(loss);
        }
    }
    open
}

async fn is_accepted(app: &App, stream: &str) -> bool {
    let Ok(stream @ StreamName::Run(_)) = stream.parse::<StreamName>() else {
        return false;
    };
    let Ok(Some(info)) = app.engine.journals().info(&stream).await else {
        return false;
    };
    let review = app.engine.plans().load_review(&info.status.plan).await;
    let StreamName::Run(run) = &stream else {
        return false;
    };
    review.is_ok_and(|(review, _)| review.is_written_off(run))
}
