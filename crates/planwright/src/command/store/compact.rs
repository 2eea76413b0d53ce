//! `store compact`: retention, now and as far as it goes, and the space given back.

use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::line;
use crate::workspace::app::{App, CommandContext};
use crate::workspace::logs::prune_logs;
use crate::workspace::maintenance::run_due_maintenance;
use planwright_adapters::sqlite::Vacuumed;
use planwright_core::journal::StreamName;
use planwright_engine::port::{PlanFiles as _, Removed};
use planwright_engine::{RetentionPass, RetentionReport};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Say what would be sealed and removed, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Everything that came of it.
struct Compacted {
    report: RetentionReport,
    artifacts: Removed,
    /// Files that a process which was killed left behind.
    leftovers: Removed,
    logs: Removed,
    vacuumed: Option<Vacuumed>,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open_existing()?;
    let Some(store) = &app.sqlite else {
        return Err(Failure::usage("there is no store in this workspace"));
    };
    if !args.dry_run {
        // Plans that are over have to be archived before they can be sealed.
        run_due_maintenance(&app).await;
    }
    let maintenance = app.engine.maintenance();
    let pass = RetentionPass {
        max_journals: usize::MAX,
        dry_run: args.dry_run,
    };
    let report = maintenance.apply_retention(pass).await?;
    if report.is_busy {
        return Err(Failure::refused(
            "another process applies retention, or a backup is being made",
        )
        .hint("repeat the command in a moment"));
    }
    let artifacts = maintenance.remove_unused_artifacts(args.dry_run).await?;
    let mut compacted = Compacted {
        report,
        artifacts,
        leftovers: Removed::default(),
        logs: Removed::default(),
        vacuumed: None,
    };
    if let Some(limit) = context.config.max_logs_bytes() {
        let logs = context.workspace.plans.join("logs");
        compacted.logs = prune_logs(&logs, limit, args.dry_run)
            .map_err(|error| Failure::new(Exit::Store, format!("{}: {error}", logs.display())))?;
    }
    if !args.dry_run {
        compacted.leftovers = store.remove_unnamed_sealed_files().await?;
        remove_plan_files(&app, &compacted.report).await;
        compacted.vacuumed = Some(store.vacuum().await?);
    }
    print_result(&app, args, &compacted)?;
    match compacted.report.failures.len() {
        0 => Ok(Exit::Done),
        count => Err(Failure::new(
            Exit::Store,
            format!("{count} journal(s) could not be sealed or removed"),
        )
        .hint("To see everything that is damaged: planwright verify")),
    }
}

/// The files of plans whose journals are sealed are not needed any more.
async fn remove_plan_files(app: &App, report: &RetentionReport) {
    for stream in report.sealed.iter().chain(&report.removed) {
        if let StreamName::Plan(plan) = stream
            && let Err(problem) = app.files.write(plan).await
        {
            app.printer()
                .warn(&format!("the files of plan `{plan}` stay: {problem}"));
        }
    }
}

fn print_result(app: &App, args: &Args, compacted: &Compacted) -> Result<(), Failure> {
    let printer = app.printer();
    let Compacted {
        report,
        artifacts,
        leftovers,
        logs,
        vacuumed,
    } = compacted;
    let (before, after) = vacuumed.map_or((0, 0), |vacuumed| vacuumed.bytes);
    let freed = before.saturating_sub(after)
        + report.removed_files.bytes
        + artifacts.bytes
        + leftovers.bytes
        + logs.bytes;
    for (stream, reason) in &report.failures {
        printer.warn(&format!("{stream}: {}", line(reason)));
    }
    if printer.json {
        let names = |streams: &[StreamName]| -> Vec<String> {
            streams.iter().map(ToString::to_string).collect()
        };
        let counts = |removed: &Removed| json!({ "files": removed.files, "bytes": removed.bytes });
        let failures: Vec<_> = report
            .failures
            .iter()
            .map(|(stream, reason)| json!({ "stream": stream.to_string(), "reason": reason }))
            .collect();
        return printer.document(&json!({
            "dryRun": args.dry_run,
            "sealed": names(&report.sealed), "removed": names(&report.removed),
            "sealedFilesRemoved": counts(&report.removed_files),
            "artifactsRemoved": counts(artifacts), "leftoversRemoved": counts(leftovers),
            "logsRemoved": counts(logs), "failures": failures,
            "databaseBytes": vacuumed.map(|_| json!({ "before": before, "after": after })),
            "vacuumed": vacuumed.is_some_and(|vacuumed| vacuumed.is_done),
            "freedBytes": freed,
        }));
    }
    let would = if args.dry_run { "would be " } else { "" };
    printer.data(&format!(
        "{} {would}sealed, {} removed for good; {} and {} {would}removed",
        count_of(report.sealed.len(), "journal", "journals"),
        report.removed.len(),
        count_of(artifacts.files, "large value", "large values"),
        count_of(logs.files, "log file", "log files")
    ))?;
    if args.dry_run {
        for stream in &report.sealed {
            printer.data(&format!("  seal {stream}"))?;
        }
        for stream in &report.removed {
            printer.data(&format!("  remove {stream}"))?;
        }
        return Ok(());
    }
    printer.data(&format!(
        "database {} KiB, before {} KiB; {} KiB freed in all",
        after.div_ceil(1024),
        before.div_ceil(1024),
        freed / 1024
    ))?;
    if vacuumed.is_some_and(|vacuumed| !vacuumed.is_done) {
        printer.talk("the database file keeps its length while runs are executed: its free pages are used again");
    }
    Ok(())
}
