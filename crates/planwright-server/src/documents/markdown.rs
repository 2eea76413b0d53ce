//! A version of a plan as Markdown.

use planwright_core::journal::StreamName;
use planwright_core::plan::{MarkdownMeta, MarkdownRejection, to_markdown};
use planwright_core::review::{Review, Version};
use planwright_core::status::RunStatus;
use planwright_engine::{Engine, LoadError};

/// Writes a version of a plan as Markdown, with what the journal knows about it. `session_file` is the name of the file
/// beside it that holds the latest run, if there is one.
pub async fn write_markdown(
    engine: &Engine,
    review: &Review,
    version: &Version,
    session_file: Option<&str>,
) -> Result<String, LoadError> {
    let opened = review
        .runs()
        .iter()
        .rev()
        .find(|opened| opened.version == version.number);
    let info = match opened {
        Some(opened) => engine
            .journals()
            .info(&StreamName::Run(opened.run.clone()))
            .await
            .ok()
            .flatten(),
        None => None,
    };
    let ended = info.filter(|info| {
        matches!(
            info.status.status.run_status(),
            Some(
                RunStatus::Completed
                    | RunStatus::CompletedWithFailures
                    | RunStatus::Failed
                    | RunStatus::Cancelled
            )
        )
    });
    let status = engine.plans().status(review).await?;
    let rejections = review
        .rejections()
        .iter()
        .map(|rejection| MarkdownRejection {
            version: rejection.version.into(),
            at: rejection.at,
            by: rejection.by.to_string(),
            reason: rejection.reason.clone(),
        });
    // The session file holds the latest run.
    let session = opened.filter(|opened| {
        review
            .runs()
            .last()
            .is_some_and(|last| last.run == opened.run)
    });
    let archive = if review.is_archived() { "archive/" } else { "" };
    let meta = MarkdownMeta {
        status: status.as_str().to_owned(),
        version: version.number.into(),
        created_at: review.created_at(),
        updated_at: review.updated_at(),
        execution_session: session
            .zip(session_file)
            .map(|(_, file)| format!(".plans/{archive}{}/{file}", review.id())),
        execution_started_at: opened.map(|opened| opened.at),
        execution_ended_at: ended.as_ref().map(|info| info.updated_at),
        result_summary: ended.map(|info| info.status.status.to_string()),
        rejections: rejections.collect(),
    };
    Ok(to_markdown(&version.document, &meta))
}
