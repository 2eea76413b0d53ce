//! What an argument names: a file with a plan, or a plan in the store.

use crate::exit::Failure;
use crate::terminal::printer::line;
use crate::workspace::app::{App, CommandContext};
use crate::workspace::plan_file::PlanFile;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{Head, StreamName};
use planwright_core::plan::{Bounds, Document, ReadPlanError, validate};
use planwright_core::review::{Review, ReviewState};
use planwright_core::status::CachedStatus;
use planwright_core::text::nearest_names;
use planwright_engine::LoadError;
use planwright_engine::port::Tools as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// How the names of plan files end.
pub(crate) const PLAN_ENDINGS: [&str; 4] = [".json", ".md", ".yaml", ".yml"];

/// A plan, as it was named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PlanSource {
    Stdin,
    File(PathBuf),
    Id(PlanId),
}

impl PlanSource {
    /// An existing file, a path or a name that ends as plan files do is a file, `-` is stdin,
    /// everything else an id.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        if text == "-" {
            return Ok(Self::Stdin);
        }
        let looks_like_a_file = text.contains(std::path::MAIN_SEPARATOR)
            || PLAN_ENDINGS
                .iter()
                .any(|ending| text.to_ascii_lowercase().ends_with(ending));
        if looks_like_a_file || Path::new(text).is_file() {
            return Ok(Self::File(text.into()));
        }
        parse_id(text).map(Self::Id)
    }
}

pub(crate) fn parse_id(text: &str) -> Result<PlanId, Failure> {
    text.parse()
        .map_err(|error| Failure::usage(format!("`{}` is not a plan id: {error}", line(text))))
}

/// The text of a plan, and the name of where it was.
pub(crate) fn read_text(
    source: &PlanSource,
    bounds: &Bounds,
) -> Result<(String, Vec<u8>), Failure> {
    let (name, text) = match source {
        PlanSource::Stdin => (
            "stdin".to_owned(),
            read_bounded(std::io::stdin().lock(), bounds),
        ),
        PlanSource::File(path) => {
            let name = line(&path.display().to_string());
            (
                name,
                std::fs::File::open(path).and_then(|file| read_bounded(file, bounds)),
            )
        }
        PlanSource::Id(id) => return Err(Failure::usage(format!("`{id}` is not a file"))),
    };
    let text = text.map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    Ok((name, text))
}

/// Reads a plan from a file or stdin.
pub(crate) fn read_document(source: &PlanSource, bounds: &Bounds) -> Result<Document, Failure> {
    Ok(PlanFile::read(source, None, bounds)?.document)
}

/// Returns where the text is not a plan, and what may help.
pub(crate) fn unreadable_plan(name: &str, error: &ReadPlanError) -> Failure {
    let failure = Failure::usage(format!("{name}: {error}"));
    match &error.suggestion {
        Some(suggestion) => failure.hint(suggestion.clone()),
        None => failure,
    }
}

/// Refuses what could not be stored, before a store is made for it.
pub(crate) fn check_storable(
    context: &CommandContext,
    name: &str,
    document: &Document,
) -> Result<(), Failure> {
    let checked = validate(
        document.clone(),
        &context.toolbox()?.catalog(),
        &context.config.bounds(),
    );
    if checked.plan.is_some() {
        return Ok(());
    }
    Err(Failure::usage(format!("{name}: the plan is not valid")).findings(checked.findings))
}

/// One byte more than allowed is enough to know that it is too much.
fn read_bounded(from: impl std::io::Read, bounds: &Bounds) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    from.take(bounds.max_document_bytes as u64 + 1)
        .read_to_end(&mut text)?;
    Ok(text)
}

/// The plan with exactly this id.
pub(crate) async fn load_plan(app: &App, id: &PlanId) -> Result<(Review, Head), Failure> {
    match app.engine.plans().load_review(id).await {
        Ok((review, _)) if review.state() == ReviewState::Deleted => Err(Failure::usage(format!(
            "there is no plan `{id}`: it was deleted"
        ))),
        Ok(found) => Ok(found),
        Err(error @ LoadError::NoSuchPlan(_)) => {
            let near = nearest_names(
                id.as_str(),
                list_plan_ids(app).await?.iter().map(ToString::to_string),
            );
            let failure = Failure::from(error);
            Err(match near.as_slice() {
                [] => failure,
                near => failure.hint(format!("did you mean {}?", near.join(" or "))),
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// The plan with this id, or the only one whose id begins so. For reading only: what is approved or
/// run is named in full.
pub(crate) async fn load_plan_for_reading(
    app: &App,
    text: &str,
) -> Result<(Review, Head), Failure> {
    let id = parse_id(text)?;
    let exact = app
        .engine
        .journals()
        .info(&StreamName::Plan(id.clone()))
        .await?;
    if exact.is_some() {
        return load_plan(app, &id).await;
    }
    let ids = list_plan_ids(app).await?;
    let matching: Vec<&PlanId> = ids
        .iter()
        .filter(|known| known.as_str().starts_with(text))
        .collect();
    match matching.as_slice() {
        [] => load_plan(app, &id).await,
        [only] => load_plan(app, only).await,
        several => {
            const SHOWN: usize = 10;
            let names: Vec<String> = several
                .iter()
                .take(SHOWN)
                .map(ToString::to_string)
                .collect();
            let more = if several.len() > SHOWN { ", …" } else { "" };
            Err(
                Failure::usage(format!("`{text}` could be {}{more}", names.join(", ")))
                    .hint("write more of the id"),
            )
        }
    }
}

/// The ids of all plans that were not deleted.
async fn list_plan_ids(app: &App) -> Result<Vec<PlanId>, Failure> {
    let plans = app.engine.journals().plans().await?;
    let kept = plans
        .into_iter()
        .filter(|info| info.status.status != CachedStatus::Deleted);
    Ok(kept.map(|info| info.status.plan).collect())
}

/// The run that was named, or the latest one.
pub(crate) fn pick_run(review: &Review, named: Option<&str>) -> Result<RunId, Failure> {
    let id = review.id();
    let Some(named) = named else {
        return review
            .runs()
            .last()
            .map(|opened| opened.run.clone())
            .ok_or_else(|| {
                Failure::usage(format!("plan `{id}` was never run"))
                    .hint(format!("To run it: planwright run {id}"))
            });
    };
    let found = review
        .runs()
        .iter()
        .find(|opened| opened.run.as_str() == named);
    found.map(|opened| opened.run.clone()).ok_or_else(|| {
        Failure::usage(format!("plan `{id}` has no run `{}`", line(named)))
            .hint(format!("To list its runs: planwright show {id}"))
    })
}
