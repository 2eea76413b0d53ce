//! `store restore-run`: a sealed or exported journal comes back into the store.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::line;
use crate::workspace::app::{App, CommandContext, user};
use crate::workspace::projections::update_plan_files;
use planwright_adapters::sqlite::SqliteStore;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{Record, StreamName, decode};
use planwright_core::principal::PrincipalKind;
use planwright_core::review::{ApprovalState, Review, ReviewEvent};
use planwright_core::run::RunEvent;
use planwright_engine::port::RetentionStore as _;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run or plan whose journal is sealed, or a sealed or exported file.
    #[arg(value_name = "ID|FILE", required_unless_present = "all")]
    what: Option<String>,
    /// Every journal that is sealed.
    #[arg(long, conflicts_with = "what")]
    all: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open_existing()?;
    let Some(store) = &app.sqlite else {
        return Err(Failure::usage("there is no store in this workspace"));
    };
    let restored = match &args.what {
        Some(text) => vec![restore_named(&app, store, text).await?],
        None => restore_all(store).await?,
    };
    for stream in &restored {
        if let StreamName::Plan(plan) = stream
            && let Ok((review, _)) = app.engine.plans().load_review(plan).await
        {
            update_plan_files(&app, &review).await;
        }
    }
    let names: Vec<String> = restored.iter().map(ToString::to_string).collect();
    if context.printer.json {
        context.printer.document(&json!({ "restored": names }))?;
    } else if names.is_empty() {
        context.printer.data("no journal is sealed")?;
    } else {
        context
            .printer
            .data(&format!("restored: {}", names.join(", ")))?;
    }
    Ok(Exit::Done)
}

/// A store that another process is sealing in, or that is being copied, is left alone.
async fn restore_sealed(store: &SqliteStore, streams: &[StreamName]) -> Result<(), Failure> {
    let Some(_turn) = store.take_turn()? else {
        return Err(Failure::refused(
            "another process applies retention, or a backup is being made",
        )
        .hint("repeat the command in a moment"));
    };
    for stream in streams {
        store.restore(stream).await?;
    }
    Ok(())
}

async fn restore_all(store: &SqliteStore) -> Result<Vec<StreamName>, Failure> {
    let sealed = store.sealed_streams().await?;
    let streams: Vec<StreamName> = sealed.into_iter().map(|(stream, _)| stream).collect();
    restore_sealed(store, &streams).await?;
    Ok(streams)
}

async fn restore_named(app: &App, store: &SqliteStore, text: &str) -> Result<StreamName, Failure> {
    let sealed = store.sealed_streams().await?;
    let run = text.parse::<RunId>().ok().map(StreamName::Run);
    let plan = text.parse::<PlanId>().ok().map(StreamName::Plan);
    let path = Path::new(text);
    let name = path.file_name().and_then(|name| name.to_str());
    let is_inside = path
        .parent()
        .and_then(|parent| parent.canonicalize().ok())
        .zip(store.sealed_directory().canonicalize().ok())
        .is_some_and(|(parent, directory)| parent == directory);
    let is_meant = |stream: &StreamName, file: &str| {
        Some(stream) == run.as_ref()
            || Some(stream) == plan.as_ref()
            || is_inside && name == Some(file)
    };
    if let Some((stream, _)) = sealed.iter().find(|(stream, file)| is_meant(stream, file)) {
        restore_sealed(store, std::slice::from_ref(stream)).await?;
        return Ok(stream.clone());
    }
    if path.is_file() {
        return import(app, store, path).await;
    }
    for stream in run.iter().chain(&plan) {
        if app.engine.journals().info(stream).await?.is_some() {
            return Err(Failure::refused(format!(
                "the journal of {stream} is not sealed"
            )));
        }
    }
    Err(
        Failure::usage(format!("`{}` is no run, no plan and no file", line(text)))
            .hint("To list the journals that are sealed: planwright verify"),
    )
}

/// A file from elsewhere adds history and nothing that can act: no run that goes on, and no
/// approval that could start one.
async fn import(app: &App, store: &SqliteStore, path: &Path) -> Result<StreamName, Failure> {
    if user().kind == PrincipalKind::Agent {
        return Err(Failure::refused(
            "an agent cannot bring a journal from elsewhere into the store",
        ));
    }
    let mut records = Vec::new();
    let unusable = |reason: String| {
        Failure::new(
            Exit::Store,
            format!(
                "{} cannot be used: {reason}",
                line(&path.display().to_string())
            ),
        )
    };
    let file = store
        .read_sealed_file(path, |record| records.push(record.clone()))
        .map_err(|error| unusable(error.to_string()))?;
    match file.stream() {
        StreamName::Run(run) => check_run(app, run, &records).await?,
        StreamName::Plan(plan) => {
            check_plan(app, plan, &records).map_err(|refused| match refused {
                Refused::Approval => Failure::refused(format!(
                    "plan `{plan}` has an approval that was not used: a file cannot bring consent"
                )),
                Refused::Unreadable(reason) => unusable(reason),
            })?;
        }
    }
    Ok(store.import_journal(&PathBuf::from(path)).await?)
}

async fn check_run(app: &App, run: &RunId, records: &[Record]) -> Result<(), Failure> {
    let mut plan = None;
    let mut has_ended = false;
    for record in records {
        let entry = decode::<RunEvent>(record)
            .map_err(|error| Failure::new(Exit::Store, error.to_string()))?;
        match entry.event {
            RunEvent::RunStarted { plan: of, .. } => plan = Some(of),
            RunEvent::RunCompleted { .. }
            | RunEvent::RunFailed { .. }
            | RunEvent::RunGivenUp { .. }
            | RunEvent::RunAdjusted { .. }
            | RunEvent::RunCancelled { .. } => has_ended = true,
            _ => {}
        }
    }
    if !has_ended {
        return Err(Failure::refused(format!(
            "{run} had not ended when it was exported: it could go on in two places"
        )));
    }
    let Some(plan) = plan else {
        return Err(Failure::new(Exit::Store, format!("{run} has no beginning")));
    };
    let stream = StreamName::Plan(plan.clone());
    if app.engine.journals().info(&stream).await?.is_none() {
        return Err(Failure::refused(format!(
            "{run} belongs to plan `{plan}`, which is not in this store"
        ))
        .hint(
            "Restore the journal of the plan first. To export it: planwright store export ID --plan",
        ));
    }
    Ok(())
}

enum Refused {
    Approval,
    Unreadable(String),
}

fn check_plan(app: &App, plan: &PlanId, records: &[Record]) -> Result<(), Refused> {
    let mut review: Option<Review> = None;
    for record in records {
        let entry = decode::<ReviewEvent>(record)
            .map_err(|error| Refused::Unreadable(error.to_string()))?;
        let applied = match &mut review {
            Some(review) => review.apply(&entry),
            None => Review::open(plan.clone(), &entry).map(|opened| review = Some(opened)),
        };
        applied.map_err(|error| Refused::Unreadable(error.to_string()))?;
    }
    let Some(review) = review else {
        return Err(Refused::Unreadable("it is empty".to_owned()));
    };
    let mut approvals = review.approvals().iter();
    if approvals.any(|approval| approval.state(app.now()) == ApprovalState::Open) {
        return Err(Refused::Approval);
    }
    Ok(())
}
