//! Whether the store opens, holds what it acknowledged, and can be written.

use super::{CheckVerdict, Diagnosis, to_millis};
use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::next_step::format_next_step;
use crate::terminal::plan_status::{StatusNote, load_status_line};
use crate::workspace::app::{Access, App, CommandContext};
use planwright_adapters::objects::ObjectArtifacts;
use planwright_adapters::postgres::PostgresStore;
use planwright_adapters::sqlite::{Loss, SqliteStore, find_lock_holder};
use planwright_core::error::ClassifiedError as _;
use planwright_core::id::PlanId;
use planwright_core::journal::StreamName;
use planwright_core::review::ReviewState;
use planwright_core::status::RunStatus;
use planwright_engine::port::{ListedWorker, Offers as _, StoreError};
use planwright_engine::{CheckStoreError, with_causes};
use serde::Serialize;
use std::collections::BTreeSet;

/// Clocks of machines that share a store may differ by a little.
const CLOCK_JUMP_MILLIS: i64 = 60_000;

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum StoreKind {
    Sqlite,
    Postgres,
}

/// A store that answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoreFacts {
    kind: StoreKind,
    /// The file, or the database without its password.
    address: String,
    /// That of SQLite, or of the server.
    version: String,
    encrypted: bool,
    /// The version of the tables in a database.
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<i32>,
    /// The time of one question to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ms: Option<f64>,
    /// Entries that are committed and not yet in the feed.
    #[serde(skip_serializing_if = "Option::is_none")]
    lag: Option<u64>,
}

impl StoreFacts {
    fn of_file(sqlite: &SqliteStore) -> Self {
        Self {
            kind: StoreKind::Sqlite,
            address: sqlite.path().display().to_string(),
            version: SqliteStore::sqlite_version().to_owned(),
            encrypted: sqlite.cipher().is_sealed(),
            schema: None,
            latency_ms: None,
            lag: None,
        }
    }
}

/// Looks at the store and says with which exit code its failure ends.
pub(super) async fn check_store(diagnosis: &mut Diagnosis, context: &CommandContext) -> Exit {
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
    diagnosis.store = Some(StoreFacts::of_file(sqlite));
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
            let latency = to_millis(report.latency);
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
            diagnosis.store = Some(StoreFacts {
                kind: StoreKind::Postgres,
                address: place,
                version: report.version,
                encrypted: postgres.cipher().is_sealed(),
                schema: Some(report.schema),
                latency_ms: Some(latency),
                lag: Some(report.unplaced),
            });
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
