//! `import`: stores plans from files.

use crate::exit::{Exit, Failure};
use crate::plan_source::{PlanSource, check, read_document};
use crate::projections::project;
use crate::servers::Need;
use crate::standing::standing;
use crate::wire_up::{Access, App, Setting, user};
use planwright_core::plan::Document;
use planwright_server::wire::Imported;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// JSON files, or `-` for stdin.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// As drafts: nobody is asked about them until `planwright propose`.
    #[arg(long)]
    draft: bool,
}

pub(crate) async fn run(setting: &Setting, args: &Args) -> Result<Exit, Failure> {
    let bounds = setting.config.bounds();
    if setting.printer.json && args.files.len() > 1 {
        return Err(Failure::usage("--json prints one document, so import one file at a time with it"));
    }
    // All are read before the first is stored: a broken one leaves nothing half done.
    let mut documents: Vec<(&str, Document)> = Vec::new();
    for file in &args.files {
        let source = match file.as_str() {
            "-" => PlanSource::Stdin,
            path => PlanSource::File(path.into()),
        };
        documents.push((file, read_document(&source, &bounds)?));
    }
    for (file, document) in &documents {
        check(setting, file, document)?;
    }
    let app = setting.open(Access::Write)?;
    for (_, document) in documents {
        import(&app, document, args.draft).await?;
    }
    Ok(Exit::Done)
}

async fn import(app: &App, document: Document, draft: bool) -> Result<(), Failure> {
    app.start_servers(&document, Need::Look).await?;
    let (review, findings) = if draft {
        app.engine.draft(document, &user()).await?
    } else {
        app.engine.propose(document, &user()).await?
    };
    project(app, &review).await;
    let current = review.current();
    let imported = Imported {
        id: review.id().clone(),
        version: current.number,
        status: standing(app, &review).await?.word,
        digest: app.engine.candidate(&review, &serde_json::Map::new()).await?.digest,
    };
    app.printer().findings(&findings);
    if app.printer().json {
        return app.printer().document(&imported);
    }
    let Imported { id, version, status, digest } = imported;
    app.printer().data(&format!("{id}  version {version}  {status}  {digest}"))
}
