//! `policy`: checks what the operator wrote, and says what it means for a plan.

use crate::config::always;
use crate::config::file::Config;
use crate::exit::{Exit, Failure};
use crate::terminal::late_bound::LateFlags;
use crate::terminal::printer::{GREEN, Printer, RED, YELLOW, line};
use crate::terminal::trust_prompt::warn_of_untrusted;
use crate::workspace::app::{Access, App, CommandContext};
use crate::workspace::plan_source::{self, PlanSource};
use crate::workspace::servers::{Need, Servers};
use crate::workspace::variables::VariableFlags;
use clap::Subcommand;
use planwright_api::{PolicyExplanation, StepVerdict};
use planwright_engine::Candidate;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Check the policy in planwright.toml, or in another file.
    Check {
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// List what you always allow, and where.
    List,
    /// Remove rules of `list` by their names.
    Remove {
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
    /// Explain for every step of a plan which rule decides, and why.
    Explain(ExplainArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// A plan id, a file, or `-` for stdin.
    #[arg(value_name = "ID|FILE")]
    plan: String,
    #[command(flatten)]
    late: LateFlags,
    #[command(flatten)]
    variables: VariableFlags,
}

/// Needs no workspace in order: it is what says that it is not.
pub(crate) fn check_policy(
    printer: Printer,
    dir: Option<&Path>,
    file: Option<&Path>,
) -> Result<Exit, Failure> {
    let config = match file {
        Some(file) => Config::read_file(file)?,
        None => {
            let context = CommandContext::new(dir, printer, Servers::default())?;
            warn_of_untrusted(&context);
            Config::read(&context.workspace.root)?
        }
    };
    let policy = config.policy()?;
    let version = config.policy_version()?;
    let rules = config.rule_count();
    if printer.json {
        printer.document(&json!({ "valid": true, "rules": rules, "policyVersion": version }))?;
    } else {
        printer.data(&format!(
            "{} {rules} rules, policy version {version}",
            printer.out(GREEN, "✓")
        ))?;
        if policy.version().is_none() {
            printer
                .hint("there is no [policy]: read-only tools run, everything else is asked about");
        }
    }
    Ok(Exit::Done)
}

/// Lists what the user allows for good.
pub(crate) fn list_always(printer: Printer) -> Result<Exit, Failure> {
    let entries = always::read_entries()?;
    if printer.json {
        printer.document(&json!({ "always": entries }))?;
        return Ok(Exit::Done);
    }
    for entry in &entries {
        let condition = entry
            .condition
            .as_ref()
            .map(|text| format!("  if {}", line(text)));
        printer.data(&format!(
            "{}  {}  in {}{}",
            line(&entry.name),
            line(&entry.tool),
            line(&entry.folder.to_string_lossy()),
            condition.unwrap_or_default()
        ))?;
    }
    if entries.is_empty() {
        printer.hint("nothing is always allowed; `a` at the question before a run adds a rule");
    }
    Ok(Exit::Done)
}

/// Removes rules of the user.
pub(crate) fn remove_always(printer: Printer, names: &[String]) -> Result<Exit, Failure> {
    always::remove_entries(names)?;
    if printer.json {
        printer.document(&json!({ "removed": names }))?;
    } else {
        printer.data(&format!("removed {}", line(&names.join(", "))))?;
    }
    Ok(Exit::Done)
}

pub(crate) async fn explain_policy(
    context: &CommandContext,
    args: &ExplainArgs,
) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let variables = args.variables.read()?;
    let candidate = match PlanSource::parse(&args.plan)? {
        PlanSource::Id(id) => {
            let (review, _) = plan_source::load_plan(&app, &id).await?;
            app.start_servers(&review.current().document, Need::Look)
                .await?;
            app.engine.plans().candidate(&review, &variables).await?
        }
        source @ (PlanSource::File(_) | PlanSource::Stdin) => {
            let mut document = plan_source::read_document(&source, &context.config.bounds())?;
            document.number_steps();
            document.identify();
            document.variables.extend(variables);
            app.start_servers(&document, Need::Look).await?;
            app.engine.plans().compile(document).await?
        }
    };
    let explanation = build_explanation(&app, &candidate, &args.late)?;
    if context.printer.json {
        context.printer.document(&explanation)?;
    } else {
        print_explanation(context.printer, &explanation)?;
    }
    Ok(Exit::Done)
}

fn build_explanation(
    app: &App,
    candidate: &Candidate,
    late: &LateFlags,
) -> Result<PolicyExplanation, Failure> {
    let judged = app.engine.plans().judge(&candidate.plan);
    let chosen = late.read()?.choices_for(&judged);
    let trials = app.engine.trials();
    let explained = trials.explain(candidate, &chosen, None)?;
    Ok(PolicyExplanation {
        plan_id: candidate.plan.id().to_string(),
        digest: candidate.digest.to_string(),
        policy_version: explained.policy_version,
        verdict: explained.verdict.as_str().to_owned(),
        steps: StepVerdict::of(&explained.judged, &explained.late),
    })
}

fn print_explanation(printer: Printer, explanation: &PolicyExplanation) -> Result<(), Failure> {
    for step in &explanation.steps {
        for text in verdict_lines(printer, step) {
            printer.data(&text)?;
        }
    }
    printer.data(&format!(
        "plan {}: {}",
        explanation.plan_id, explanation.verdict
    ))?;
    printer.data(&format!("policy {}", explanation.policy_version))
}

/// A step's verdict and everything that led to it.
fn verdict_lines(printer: Printer, step: &StepVerdict) -> Vec<String> {
    let word = match step.verdict.as_str() {
        "allow" => printer.out(GREEN, "allow"),
        "ask" => printer.out(YELLOW, "ask"),
        other => printer.out(RED, other),
    };
    let rule = step.rule.as_deref().map_or_else(
        || "default".to_owned(),
        |rule| format!("rule {}", line(rule)),
    );
    let mut lines = vec![format!(
        "{}. [{}]  {word}  {rule}: {}",
        step.step,
        line(&step.tool),
        line(&step.reason)
    )];
    for noticed in &step.noticed {
        let reason = noticed
            .reason
            .as_deref()
            .map(|reason| format!(": {}", line(reason)))
            .unwrap_or_default();
        let rule = line(&noticed.rule);
        let mode = &noticed.mode;
        lines.push(format!(
            "    {mode}: rule {rule} would {}{reason}",
            noticed.verdict
        ));
    }
    for rule in &step.undecided {
        lines.push(format!(
            "    rule {} is decided once the arguments are known",
            line(rule)
        ));
    }
    if !step.late.is_empty() {
        let names: Vec<String> = step.late.iter().map(|name| line(name)).collect();
        let choice = match step.late_choice.as_deref() {
            Some("any") => ": any value".to_owned(),
            Some("ask") => ": asked again once known".to_owned(),
            Some(constraint) => format!(": only if {}", line(constraint)),
            None => String::new(),
        };
        lines.push(format!(
            "    known only later: {}{choice}",
            names.join(", ")
        ));
    }
    if let Some(undo) = &step.undo {
        lines.push(format!("    undo: {}", line(undo)));
    }
    lines
}
