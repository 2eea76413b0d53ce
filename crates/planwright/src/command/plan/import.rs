//! `import`: stores plans from files.

use crate::exit::{Exit, Failure};
use crate::terminal::plan_status::load_status_line;
use crate::terminal::printer::{Printer, line};
use crate::workspace::app::{Access, App, CommandContext, user};
use crate::workspace::plan_file::{FileForm, PlanFile};
use crate::workspace::plan_source::{PLAN_ENDINGS, PlanSource, check_storable};
use crate::workspace::projections::update_plan_files;
use crate::workspace::servers::Need;
use planwright_api::Imported;
use planwright_core::json::parse_strict;
use planwright_core::plan::{Document, Finding};
use planwright_core::review::Review;
use serde_json::Value;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files with plans (JSON, YAML, Markdown), folders of them, or `-` for stdin. An edited plan.md is
    /// stored as the next version, if the plan is still at the version the file names. A file without
    /// an id is the plan of its title.
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
    let sources = find_sources(&args.files)?;
    let is_folder = args.files.iter().any(|file| Path::new(file).is_dir());
    if context.printer.json && args.files.len() > 1 {
        return Err(Failure::usage(
            "--json prints one document, so import one file or folder at a time with it",
        ));
    }
    // All are read before the first is stored: a broken one leaves nothing half done.
    let mut plans = Vec::new();
    for source in &sources {
        plans.push(PlanFile::read(source, args.format, &bounds)?);
    }
    for plan in &plans {
        check_storable(context, &plan.name, &plan.document)?;
    }
    let app = context.open(Access::Write)?;
    let mut imported = Vec::new();
    for plan in plans {
        imported.push(import(&app, plan, args.draft).await?);
    }
    match (context.printer.json, is_folder) {
        (true, true) => context
            .printer
            .document(&serde_json::json!({ "imported": imported }))?,
        (true, false) => imported
            .iter()
            .try_for_each(|plan| context.printer.document(plan))?,
        (false, _) => imported
            .iter()
            .try_for_each(|plan| print_imported(context.printer, plan))?,
    }
    for folder in args
        .files
        .iter()
        .map(Path::new)
        .filter(|path| path.is_dir())
    {
        print_settings_of_pi(context.printer, folder);
    }
    Ok(Exit::Done)
}

/// The files that are named, and those in the folders that are, in the order of their names. What
/// lies in folders below (`archive/`, `sessions/`, `artifacts/`) is not taken.
fn find_sources(files: &[String]) -> Result<Vec<PlanSource>, Failure> {
    let mut sources = Vec::new();
    for file in files {
        let path = Path::new(file);
        match file.as_str() {
            "-" => sources.push(PlanSource::Stdin),
            _ if path.is_dir() => {
                let found = plan_files_in(path)?;
                if found.is_empty() {
                    let message = format!("{} has no plan files", line(file));
                    return Err(Failure::usage(message)
                        .hint(format!("they end in {}", PLAN_ENDINGS.join(", "))));
                }
                sources.extend(found.into_iter().map(PlanSource::File));
            }
            _ => sources.push(PlanSource::File(path.to_owned())),
        }
    }
    Ok(sources)
}

fn plan_files_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::usage(format!("cannot read {}: {error}", folder.display()))
    };
    let mut found = Vec::new();
    for entry in folder.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.to_string_lossy().to_ascii_lowercase();
        if path.is_file() && PLAN_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Says what the settings beside a folder of pi-plan-mode are called here.
fn print_settings_of_pi(printer: Printer, folder: &Path) {
    let settings = folder.with_extension("json");
    let Ok(text) = std::fs::read(&settings) else {
        return;
    };
    let Ok(Value::Object(settings)) = parse_strict(&text) else {
        return;
    };
    let said = |table: &str, key: &str, name: &str| {
        let value = settings.get(key)?;
        Some(format!("[{table}] {name} = {value}"))
    };
    let lines: Vec<String> = [
        said("policy", "guardedTools", "guarded_tools"),
        said("plans", "stale_after_days", "stale_after_days"),
        said(
            "plans",
            "executor_timeout_minutes",
            "executor_timeout_minutes",
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !lines.is_empty() {
        printer.hint(&format!(
            "to keep its settings, write into planwright.toml: {}",
            line(&lines.join(", "))
        ));
    }
}

async fn import(app: &App, plan: PlanFile, draft: bool) -> Result<Imported, Failure> {
    app.start_servers(&plan.document, Need::Look).await?;
    plan.print_notices(app.printer());
    let (review, findings) = if draft {
        plan.store_draft(app).await?
    } else {
        plan.store(app).await?
    };
    describe_stored(app, &review, &findings).await
}

/// Stores a document as a proposal of this user.
pub(super) async fn propose_document(app: &App, document: Document) -> Result<Exit, Failure> {
    app.start_servers(&document, Need::Look).await?;
    let (review, findings) = app.engine.plans().propose(document, &user()).await?;
    let imported = describe_stored(app, &review, &findings).await?;
    if app.printer().json {
        app.printer().document(&imported)?;
    } else {
        print_imported(app.printer(), &imported)?;
    }
    Ok(Exit::Done)
}

/// Writes the files of a plan that was stored, and returns what it is called.
async fn describe_stored(
    app: &App,
    review: &Review,
    findings: &[Finding],
) -> Result<Imported, Failure> {
    update_plan_files(app, review).await;
    let current = review.current();
    app.printer().findings(findings);
    Ok(Imported {
        id: review.id().clone(),
        version: current.number,
        status: load_status_line(app, review).await?.status.to_string(),
        digest: app
            .engine
            .plans()
            .candidate(review, &serde_json::Map::new())
            .await?
            .digest,
    })
}

fn print_imported(printer: Printer, imported: &Imported) -> Result<(), Failure> {
    let Imported {
        id,
        version,
        status,
        digest,
    } = imported;
    printer.data(&format!("{id}  version {version}  {status}  {digest}"))
}
