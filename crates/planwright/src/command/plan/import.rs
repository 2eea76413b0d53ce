//! `import`: stores plans from files.

use crate::exit::{Exit, Failure};
use crate::terminal::plan_status::load_status_line;
use crate::workspace::app::{Access, App, CommandContext, user};
use crate::workspace::plan_file::{FileForm, PlanFile};
use crate::workspace::plan_source::{PlanSource, check_storable};
use crate::workspace::projections::update_plan_files;
use crate::workspace::servers::Need;
use planwright_api::Imported;
use planwright_core::plan::{Document, Finding};
use planwright_core::review::Review;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files with plans, or `-` for stdin. An edited plan.md is stored as the next version, if the
    /// plan is still at the version the file names.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// The form the files are in; default: what they look like.
    #[arg(long, value_enum, value_name = "FORM")]
    format: Option<FileForm>,
    /// Import as drafts, which are not reviewed before `planwright propose`.
    #[arg(long)]
    draft: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let bounds = context.config.bounds();
    if context.printer.json && args.files.len() > 1 {
        return Err(Failure::usage(
            "--json prints one document, so import one file at a time with it",
        ));
    }
    // All are read before the first is stored: a broken one leaves nothing half done.
    let mut plans = Vec::new();
    for file in &args.files {
        let source = match file.as_str() {
            "-" => PlanSource::Stdin,
            path => PlanSource::File(path.into()),
        };
        plans.push(PlanFile::read(&source, args.format, &bounds)?);
    }
    for plan in &plans {
        check_storable(context, &plan.name, &plan.document)?;
    }
    let app = context.open(Access::Write)?;
    for plan in plans {
        import(&app, plan, args.draft).await?;
    }
    Ok(Exit::Done)
}

async fn import(app: &App, plan: PlanFile, draft: bool) -> Result<(), Failure> {
    app.start_servers(&plan.document, Need::Look).await?;
    plan.print_notices(app.printer());
    let (review, findings) = if draft {
        plan.store_draft(app).await?
    } else {
        plan.store(app).await?
    };
    report_stored(app, &review, &findings).await
}

/// Stores a document as a proposal of this user.
pub(super) async fn propose_document(app: &App, document: Document) -> Result<Exit, Failure> {
    app.start_servers(&document, Need::Look).await?;
    let (review, findings) = app.engine.plans().propose(document, &user()).await?;
    report_stored(app, &review, &findings).await?;
    Ok(Exit::Done)
}

/// Writes the files of a plan that was stored, and says what it is called.
async fn report_stored(app: &App, review: &Review, findings: &[Finding]) -> Result<(), Failure> {
    update_plan_files(app, review).await;
    let current = review.current();
    let imported = Imported {
        id: review.id().clone(),
        version: current.number,
        status: load_status_line(app, review).await?.status.to_string(),
        digest: app
            .engine
            .plans()
            .candidate(review, &serde_json::Map::new())
            .await?
            .digest,
    };
    app.printer().findings(findings);
    if app.printer().json {
        return app.printer().document(&imported);
    }
    let Imported {
        id,
        version,
        status,
        digest,
    } = imported;
    app.printer()
        .data(&format!("{id}  version {version}  {status}  {digest}"))
}
