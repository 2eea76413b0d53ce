//! `artifact`: the pictures, recordings and files that steps came to, taken out of the store.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::line;
use crate::workspace::app::{Access, App, CommandContext};
use crate::workspace::plan_source::load_plan_for_reading;
use clap::Subcommand;
use planwright_adapters::files::atomic_write;
use planwright_core::digest::Digest;
use planwright_core::run::Run;
use planwright_engine::{kind_of, read_value};
use serde_json::{Value, json};
use std::io::IsTerminal as _;
use std::path::PathBuf;

/// The most bytes that are taken out.
const MAX_BYTES: u64 = 1 << 30;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: ArtifactCommand,
}

#[derive(Debug, Subcommand)]
enum ArtifactCommand {
    /// List the artifacts of a plan's latest run.
    List {
        #[arg(value_name = "ID")]
        plan: String,
    },
    /// Write an artifact to a file, or to stdout.
    Get {
        /// Its digest, or PLAN/STEP if the step's result has one artifact.
        #[arg(value_name = "DIGEST|PLAN/STEP")]
        which: String,
        /// Where to; default: stdout.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    match &args.command {
        ArtifactCommand::List { plan } => list(&app, plan).await?,
        ArtifactCommand::Get { which, output } => get(&app, which, output.as_ref()).await?,
    }
    Ok(Exit::Done)
}

/// An artifact within the result of a step.
struct Found {
    step: String,
    digest: Digest,
    bytes: Option<u64>,
    kind: Option<String>,
}

async fn list(app: &App, plan: &str) -> Result<(), Failure> {
    let run = latest_run(app, plan).await?;
    let found = find_artifacts(app, &run, None).await?;
    let printer = app.printer();
    if printer.json {
        let artifacts = found.iter().map(|found| {
            json!({ "step": found.step, "digest": found.digest, "bytes": found.bytes,
                "mimeType": found.kind })
        });
        return printer.document(&json!({
            "planId": run.plan().id(), "runId": run.id(),
            "artifacts": artifacts.collect::<Vec<_>>(),
        }));
    }
    for found in &found {
        let size = found.bytes.map(|bytes| format!("  {bytes} bytes"));
        let kind = found.kind.as_deref().map(line).unwrap_or_default();
        let size = size.unwrap_or_default();
        printer.data(&format!("{}  {}{size}  {kind}", found.step, found.digest))?;
    }
    if found.is_empty() {
        printer.talk("no artifacts");
    } else {
        printer.hint("planwright artifact get DIGEST -o FILE");
    }
    Ok(())
}

async fn get(app: &App, which: &str, output: Option<&PathBuf>) -> Result<(), Failure> {
    let digest = match which.parse::<Digest>() {
        Ok(digest) => digest,
        Err(_) => artifact_of_step(app, which).await?,
    };
    let bytes = app
        .artifacts()
        .get_named(digest, MAX_BYTES)
        .await
        .map_err(|error| Failure::new(Exit::Store, error.to_string()))?;
    let Some(path) = output else {
        if std::io::stdout().is_terminal() && std::str::from_utf8(&bytes).is_err() {
            let (extension, kind) = kind_of(&bytes);
            return Err(
                Failure::usage(format!("this is {kind}, and no text")).hint(format!(
                    "planwright artifact get {which} -o FILE.{extension}"
                )),
            );
        }
        return app.printer().raw(&bytes);
    };
    atomic_write(path, &bytes)
        .map_err(|error| Failure::usage(planwright_engine::with_causes(&error)))
}

async fn artifact_of_step(app: &App, which: &str) -> Result<Digest, Failure> {
    let Some((plan, step)) = which.split_once('/') else {
        return Err(Failure::usage(format!(
            "`{}` is neither a digest nor PLAN/STEP",
            line(which)
        )));
    };
    let run = latest_run(app, plan).await?;
    let found = find_artifacts(app, &run, Some(step)).await?;
    match found.as_slice() {
        [only] => Ok(only.digest),
        [] => Err(Failure::usage(format!(
            "the result of step `{}` has no artifact",
            line(step)
        ))
        .hint(format!("planwright artifact list {plan}"))),
        several => {
            let digests = several.iter().map(|found| found.digest.to_string());
            let digests = digests.collect::<Vec<_>>().join(", ");
            let message = format!("step `{}` has several artifacts: {digests}", line(step));
            Err(Failure::usage(message).hint("planwright artifact get DIGEST -o FILE"))
        }
    }
}

async fn latest_run(app: &App, plan: &str) -> Result<Run, Failure> {
    let (review, _) = load_plan_for_reading(app, plan).await?;
    let opened = review
        .runs()
        .last()
        .ok_or_else(|| Failure::usage(format!("plan `{}` was not run yet", review.id())))?;
    Ok(app.engine.runs().load_run(&opened.run, &review).await?.0)
}

/// The artifacts in the results of all steps, or of one.
async fn find_artifacts(app: &App, run: &Run, only: Option<&str>) -> Result<Vec<Found>, Failure> {
    let steps = match only {
        Some(step) => {
            let ix = run.find(step);
            let unknown = || Failure::usage(format!("there is no step `{}`", line(step)));
            vec![ix.ok_or_else(unknown)?]
        }
        None => run.indices().collect(),
    };
    let mut found = Vec::new();
    for ix in steps {
        if let Some(stored) = run.step(ix).value() {
            let value = read_value(&**app.artifacts(), stored).await?;
            gather(run.step_id(ix).as_str(), &value, &mut found);
        }
    }
    Ok(found)
}

/// Blocks name their artifact with its size. The same digest is listed once for each step.
fn gather(step: &str, value: &Value, found: &mut Vec<Found>) {
    match value {
        Value::Object(fields) => {
            let digest = fields.get("artifact").and_then(Value::as_str);
            let bytes = fields.get("bytes").and_then(Value::as_u64);
            let is_new = |digest: &Digest, found: &[Found]| {
                let same = |other: &Found| other.step == step && other.digest == *digest;
                !found.iter().any(same)
            };
            if let (Some(Ok(digest)), Some(_)) = (digest.map(str::parse::<Digest>), bytes)
                && is_new(&digest, found)
            {
                let kind = fields.get("mimeType").and_then(Value::as_str);
                found.push(Found {
                    step: step.to_owned(),
                    digest,
                    bytes,
                    kind: kind.map(str::to_owned),
                });
            }
            fields.values().for_each(|inner| gather(step, inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| gather(step, inner, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
