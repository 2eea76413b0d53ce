//! `repair`: ends a run whose journal is damaged. Nothing is removed or made up: the plan's journal
//! says that the run is over, who accepted the loss, and what was lost.

use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{YesNo, ask_yes_no};
use crate::terminal::printer::line;
use crate::workspace::app::{App, CommandContext, user};
use crate::workspace::principal::confirmation_hint;
use crate::workspace::projections::update_plan_files;
use planwright_adapters::files::atomic_write;
use planwright_core::id::RunId;
use planwright_core::journal::{Record, StreamName};
use planwright_engine::DamagedRun;
use serde_json::{Value, json};
use std::path::PathBuf;

/// So many entries are read at a time.
const PAGE: usize = 1000;

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("how"))]
pub(crate) struct Args {
    /// The run, as `verify` names it.
    #[arg(value_name = "RUN")]
    run: RunId,
    /// End the run. What is left of its journal stays where it is.
    #[arg(long, group = "how")]
    accept_loss: bool,
    /// End the run, and write what is left of its journal to a file.
    #[arg(long, group = "how")]
    quarantine: bool,
    /// Do not ask for confirmation.
    #[arg(long, short = 'y')]
    yes: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open_existing()?;
    let damaged = app.engine.runs().find_damage(&args.run).await?;
    if !args.accept_loss && !args.quarantine {
        return describe_damage(&app, &damaged);
    }
    if !args.yes {
        confirm_loss(&app, &damaged)?;
    }
    let file = if args.quarantine {
        Some(export_remains(&app, &damaged).await?)
    } else {
        None
    };
    app.engine.runs().write_off(&damaged, &user()).await?;
    let (review, _) = app.engine.plans().load_review(&damaged.plan).await?;
    update_plan_files(&app, &review).await;
    report_repair(&app, &damaged, file.as_deref())
}

/// Says what is damaged and what can be done about it. Nothing is changed.
fn describe_damage(app: &App, damaged: &DamagedRun) -> Result<Exit, Failure> {
    let DamagedRun {
        run, plan, loss, ..
    } = damaged;
    if app.printer().json {
        app.printer()
            .document(&json!({ "runId": run, "planId": plan, "loss": loss, "ended": false }))?;
    } else {
        app.printer()
            .data(&format!("{run} of {plan}: {}", line(loss)))?;
    }
    app.printer().hint(&format!(
        "To end the run: planwright repair {run} --accept-loss (with --quarantine, what is left of it is also written to a file)"
    ));
    Ok(Exit::Store)
}

fn confirm_loss(app: &App, damaged: &DamagedRun) -> Result<(), Failure> {
    let DamagedRun {
        run, plan, loss, ..
    } = damaged;
    if !app.printer().can_ask() {
        return Err(
            Failure::refused("there is no terminal to ask at").hint(confirmation_hint(
                "look at what the run did, then repeat the command with --yes",
            )),
        );
    }
    app.printer()
        .talk(&format!("{run} of {plan}: {}", line(loss)));
    app.printer().talk(
        "Calls that it made after the damage are not known. Look at what they changed first.",
    );
    match ask_yes_no(app.printer(), &format!("End {run} and accept the loss?"))? {
        YesNo::Yes => Ok(()),
        YesNo::No | YesNo::Unclear => Err(Failure::refused("nothing was changed")),
    }
}

/// Writes every entry that can be read to a file of its own.
async fn export_remains(app: &App, damaged: &DamagedRun) -> Result<PathBuf, Failure> {
    let Some(sqlite) = &app.sqlite else {
        return Err(Failure::refused("this store has no files"));
    };
    if sqlite.cipher().is_sealed() {
        return Err(Failure::refused(
            "the store is encrypted, and no plain files are written beside it",
        )
        .hint(format!(
            "To end the run without one: planwright repair {} --accept-loss",
            damaged.run
        )));
    }
    let stream = StreamName::Run(damaged.run.clone());
    let mut text = String::new();
    let mut after = 0;
    // The entries before the damage are whole pages; the page with the damage is given up.
    while let Ok(records) = sqlite.read_remains(&stream, after, PAGE).await {
        let Some(last) = records.last() else { break };
        after = last.seq;
        for record in &records {
            text.push_str(&describe_record(record).to_string());
            text.push('\n');
        }
    }
    let directory = app.context.workspace.plans.join("quarantine");
    let path = directory.join(format!("{}.jsonl", damaged.run));
    let failed = |error: String| Failure::new(Exit::Store, format!("{}: {error}", path.display()));
    std::fs::create_dir_all(&directory).map_err(|error| failed(error.to_string()))?;
    atomic_write(&path, text.as_bytes()).map_err(|error| failed(error.to_string()))?;
    Ok(path)
}

fn describe_record(record: &Record) -> Value {
    let body = serde_json::from_slice(&record.body)
        .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&record.body)));
    json!({
        "seq": record.seq,
        "at": record.at,
        "epoch": record.epoch,
        "hash": record.hash,
        "entry": body,
    })
}

fn report_repair(
    app: &App,
    damaged: &DamagedRun,
    file: Option<&std::path::Path>,
) -> Result<Exit, Failure> {
    let DamagedRun {
        run, plan, loss, ..
    } = damaged;
    if app.printer().json {
        let file = file.map(|file| file.display().to_string());
        app.printer().document(
            &json!({ "runId": run, "planId": plan, "loss": loss, "ended": true, "file": file }),
        )?;
        return Ok(Exit::Done);
    }
    app.printer()
        .data(&format!("{run} of {plan}  ended: {}", line(loss)))?;
    if let Some(file) = file {
        app.printer()
            .data(&format!("what is left of it is in {}", file.display()))?;
    }
    app.printer().hint(&format!(
        "To start over: planwright approve {plan}, then planwright run {plan}"
    ));
    Ok(Exit::Done)
}
