//! Keeps `.plans/<id>/` in step with the journal. A file that cannot be written is a warning, never an outcome.

use crate::wire_up::App;
use planwright_adapters::files::{Draft, Projection};
use planwright_core::journal::StreamName;
use planwright_core::plan::{MarkdownMeta, MarkdownRejection, Plan, to_markdown};
use planwright_core::review::{Review, ReviewState, Version};
use planwright_server::wire::LogLine;
use std::io::Write as _;
use std::sync::{Arc, Once};

/// Records read at a time: bounds memory whatever the length of a run.
const PAGE: usize = 1000;

/// Writes the plan's files as the journal has them.
pub(crate) async fn project(app: &App, review: &Review) {
    if let Err(problem) = write(app, review).await {
        app.printer().warn(&format!("the files of plan `{}` are not up to date: {problem}", review.id()));
    }
}

/// Writes the plan's files as the journal has them, or removes them if the plan was deleted.
pub(crate) async fn bring_up_to_date(app: &App, review: &Review) -> Result<(), String> {
    if review.state() != ReviewState::Deleted {
        return write(app, review).await;
    }
    let projection = Projection::of(&app.setting.workspace.plans, review.id());
    projection.map_or(Ok(()), |projection| projection.remove()).map_err(|error| crate::exit::chain(&error))
}

/// Removes the plan's files.
pub(crate) fn remove(app: &App, review: &Review) {
    let projection = Projection::of(&app.setting.workspace.plans, review.id());
    if let Some(Err(error)) = projection.map(|projection| projection.remove()) {
        app.printer().warn(&format!("the files of plan `{}` could not be removed: {error}", review.id()));
    }
}

async fn write(app: &App, review: &Review) -> Result<(), String> {
    if app.is_encrypted() {
        tell_once(app);
        return Ok(());
    }
    let Some(projection) = Projection::of(&app.setting.workspace.plans, review.id()) else {
        return Err("its id is the name of something else there".to_owned());
    };
    let turn = Arc::clone(&app.projecting).lock_owned().await;
    let mut drafts = Vec::new();
    let mut plan = draft(&projection, Projection::PLAN_JSON)?;
    serde_json::to_writer_pretty(&mut plan, &*review.current().document)
        .map_err(|error| error.to_string())?;
    plan.write_all(b"\n").map_err(|error| error.to_string())?;
    drafts.push(plan);
    let page = markdown(app, review, review.current()).await?;
    let mut plan = draft(&projection, Projection::PLAN_MD)?;
    plan.write_all(page.as_bytes()).map_err(|error| error.to_string())?;
    drafts.push(plan);
    if let Some(opened) = review.runs().last() {
        let stream = StreamName::Run(opened.run.clone());
        let mut session = draft(&projection, Projection::SESSION)?;
        write_session(app, &stream, &mut session).await?;
        drafts.push(session);
    }
    let publishing = tokio::task::spawn_blocking(move || {
        let published = projection.publish(drafts);
        drop(turn);
        published
    });
    let published = publishing.await;
    match published {
        Ok(published) => published.map_err(|error| crate::exit::chain(&error)),
        Err(error) => Err(error.to_string()),
    }
}

/// An encrypted store has no plain files beside it. Said once, to whoever may look for them.
fn tell_once(app: &App) {
    static TOLD: Once = Once::new();
    let told = "the store is encrypted: no files are written to .plans (planwright export writes one)";
    TOLD.call_once(|| app.printer().talk(told));
}

/// A version of the plan as Markdown, with what the journal knows about it.
pub(crate) async fn markdown(app: &App, review: &Review, version: &Version) -> Result<String, String> {
    let bounds = &app.engine.environment().bounds;
    let plan = Plan::compile((*version.document).clone(), bounds)
        .map_err(|findings| findings.first().map(ToString::to_string).unwrap_or_default())?;
    let opened = review.runs().iter().rev().find(|opened| opened.version == version.number);
    let info = match opened {
        Some(opened) => app.engine.store().info(&StreamName::Run(opened.run.clone())).await.ok().flatten(),
        None => None,
    };
    let ended =
        info.filter(|info| matches!(info.status.status.as_str(), "completed" | "failed" | "cancelled"));
    let status = app.engine.status(review).await.map_err(|error| error.to_string())?;
    let rejections = review.rejections().iter().map(|rejection| MarkdownRejection {
        version: rejection.version.into(),
        at: rejection.at,
        by: rejection.by.to_string(),
        reason: rejection.reason.clone(),
    });
    let meta = MarkdownMeta {
        status: status.as_str().to_owned(),
        version: version.number.into(),
        created_at: review.created_at(),
        updated_at: review.updated_at(),
        execution_session: opened.map(|opened| opened.run.to_string()),
        execution_started_at: opened.map(|opened| opened.at),
        execution_ended_at: ended.as_ref().map(|info| info.updated_at),
        result_summary: ended.map(|info| info.status.status),
        rejections: rejections.collect(),
    };
    Ok(to_markdown(&plan, &meta))
}

fn draft(projection: &Projection, name: &'static str) -> Result<Draft, String> {
    projection.draft(name).map_err(|error| crate::exit::chain(&error))
}

async fn write_session(app: &App, stream: &StreamName, session: &mut Draft) -> Result<(), String> {
    let mut after = 0;
    loop {
        let page = app.engine.store().read(stream, after, PAGE).await.map_err(|error| error.to_string())?;
        for record in &page {
            let line = LogLine::new(stream, record).map_err(|error| error.to_string())?;
            serde_json::to_writer(&mut *session, &line).map_err(|error| error.to_string())?;
            session.write_all(b"\n").map_err(|error| error.to_string())?;
            after = record.seq;
        }
        if page.len() < PAGE {
            return Ok(());
        }
    }
}
