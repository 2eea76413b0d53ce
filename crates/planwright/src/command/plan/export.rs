//! `export`: a stored plan as a file.

use crate::exit::{Exit, Failure};
use crate::workspace::app::{Access, App, CommandContext};
use crate::workspace::plan_source::load_plan_for_reading;
use crate::workspace::projections::render_markdown;
use clap::ValueEnum;
use planwright_adapters::files::atomic_write;
use planwright_core::id::StepId;
use planwright_core::plan::{stored_part_file, to_cursor};
use planwright_core::review::{Review, Version};
use planwright_core::run::StepState;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The whole plan.
    Json,
    /// plan.md, to read and to edit.
    Md,
    /// A *.plan.md with todos in its frontmatter: what is to be done, not how.
    Cursor,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_name = "ID")]
    plan: String,
    #[arg(long, value_enum, default_value = "json")]
    format: ExportFormat,
    /// An earlier version; default: the current one.
    #[arg(long, value_name = "N")]
    version: Option<u32>,
    /// Where to; default: stdout.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let (review, _) = load_plan_for_reading(&app, &args.plan).await?;
    let number = args.version.unwrap_or(review.current().number);
    let version = app.engine.plans().load_version(&review, number).await?;
    let version = &version.ok_or_else(|| {
        let last = review.current().number;
        Failure::usage(format!("plan `{}` has no version {number}", review.id()))
            .hint(format!("its versions are 1 to {last}"))
    })?;
    let text = match args.format {
        ExportFormat::Json => {
            // The file leaves this workspace, so its artifacts are put back into it.
            let json = serde_json::to_string_pretty(
                &app.engine.plans().whole_document(&version.document).await?,
            );
            json.map_err(|error| Failure::new(Exit::Store, error.to_string()))? + "\n"
        }
        ExportFormat::Md => {
            let page = render_markdown(&app.engine, &review, version).await;
            page.map_err(|problem| Failure::new(Exit::Store, problem))?
        }
        ExportFormat::Cursor => {
            context
                .printer
                .talk("tools, arguments and options are not part of this form");
            to_cursor(
                &version.document,
                &completed_steps(&app, &review, version).await?,
            )
        }
    };
    match &args.output {
        None => context.printer.raw(text.as_bytes())?,
        Some(path) => {
            atomic_write(path, text.as_bytes())
                .map_err(|error| Failure::usage(planwright_engine::with_causes(&error)))?;
            if args.format == ExportFormat::Md {
                write_stored_parts(&app, version, path).await?;
            }
        }
    }
    Ok(Exit::Done)
}

/// The steps that the latest run of this version has done.
async fn completed_steps(
    app: &App,
    review: &Review,
    version: &Version,
) -> Result<BTreeSet<StepId>, Failure> {
    let opened = review
        .runs()
        .iter()
        .rev()
        .find(|opened| opened.version == version.number);
    let Some(opened) = opened else {
        return Ok(BTreeSet::new());
    };
    let (run, _) = app.engine.runs().load_run(&opened.run, review).await?;
    let done = run
        .plan()
        .indices()
        .filter(|ix| matches!(run.step(*ix), StepState::Completed { .. }));
    Ok(done.map(|ix| run.plan().step_id(ix).clone()).collect())
}

/// Puts what the plan names beside the file, where an import looks for it.
async fn write_stored_parts(app: &App, version: &Version, path: &Path) -> Result<(), Failure> {
    let directory = path
        .parent()
        .unwrap_or_else(|| Path::new(""))
        .join("artifacts");
    for (name, artifact) in &version.document.context.stored {
        let bytes = app.artifacts().get(artifact).await?;
        let file = directory.join(stored_part_file(name));
        std::fs::create_dir_all(&directory).map_err(|error| {
            Failure::usage(format!("cannot create {}: {error}", directory.display()))
        })?;
        atomic_write(&file, &bytes)
            .map_err(|error| Failure::usage(planwright_engine::with_causes(&error)))?;
    }
    Ok(())
}
