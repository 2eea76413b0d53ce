//! `undo`: takes back what a run did, last step first, by calls that are shown before.

use crate::command::execution::execute::execute_run;
use crate::command::execution::order::{ExecutionKind, ExecutionOrder, RunFlags};
use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{YesNo, ask_yes_no};
use crate::terminal::printer::{BOLD, YELLOW, line};
use crate::workspace::app::{App, CommandContext, user};
use crate::workspace::principal::confirmation_hint;
use crate::workspace::run_selector::{RunTarget, select_run};
use crate::workspace::servers::Need;
use planwright_api::{KeptStep, UndoPreview, UndoStep};
use planwright_core::plan::StepIx;
use planwright_core::principal::Assurance;
use planwright_core::run::{Kept, Run, Shown, StepState};
use planwright_engine::{Candidate, GivenApproval, LoadError, PreparedUndo, UndoCandidate};
use std::collections::BTreeMap;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run, or a plan whose latest run is meant.
    #[arg(value_name = "RUN|ID")]
    run: String,
    /// Show what would be called; call nothing.
    #[arg(long)]
    dry_run: bool,
    /// Agree to the calls as the person at the keyboard.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Stay while only a person can move the undo on, instead of ending with exit code 4.
    #[arg(long)]
    wait: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open_existing()?;
    let RunTarget { run, review } = select_run(&app, &args.run).await?;
    let (taken_back, _) = app.engine.runs().load_run(&run, &review).await?;
    app.start_servers(taken_back.plan().document(), Need::Use)
        .await?;
    let UndoCandidate { original, undo, .. } = app.engine.runs().plan_undo(&run).await?;
    let (approval, steps) = match &undo {
        PreparedUndo::Open(open) => {
            if args.dry_run {
                return Err(
                    Failure::usage(format!("{} is already undoing it", open.id())).hint(format!(
                        "To see what it did so far: planwright log {}",
                        open.id()
                    )),
                );
            }
            app.printer().talk(&format!("going on with {}", open.id()));
            (None, open.plan().len())
        }
        PreparedUndo::Fresh {
            candidate,
            steps,
            kept,
        } => {
            if args.dry_run {
                return print_preview(&app, &original, candidate, steps, kept);
            }
            (
                Some(confirm_undo(&app, args, &original, candidate, steps, kept)?),
                candidate.plan.len(),
            )
        }
    };
    let flags = RunFlags {
        wait: args.wait,
        ..RunFlags::default()
    };
    let kind = ExecutionKind::Undo {
        plan: original.plan().id().clone(),
        run: run.clone(),
    };
    let order = ExecutionOrder {
        kind,
        approval,
        late: BTreeMap::new(),
        variables: serde_json::Map::new(),
        steps,
    };
    let exit = execute_run(&app, order, &flags).await?;
    report_remaining_steps(
        &app,
        &RunTarget {
            run,
            ..select_run(&app, &args.run).await?
        },
        exit,
    )
    .await
}

fn confirm_undo(
    app: &App,
    args: &Args,
    original: &Run,
    candidate: &Candidate,
    steps: &[StepIx],
    kept: &[(StepIx, Kept)],
) -> Result<GivenApproval, Failure> {
    let given = |assurance| GivenApproval {
        shown: Shown::Digest(candidate.digest),
        by: user(),
        assurance,
        late: BTreeMap::new(),
    };
    if args.yes {
        return Ok(given(Assurance::CommandLine));
    }
    if !app.printer().can_ask() {
        return Err(
            Failure::refused("the undo is not approved").hint(confirmation_hint(&format!(
                "To see the calls: planwright undo {} --dry-run. To make them, pass --yes",
                args.run
            ))),
        );
    }
    for text in describe_undo(original, candidate, steps, kept) {
        app.printer().talk(&text);
    }
    app.printer().talk(&format!("digest {}", candidate.digest));
    match ask_yes_no(app.printer(), "Undo the run?")? {
        YesNo::Yes => Ok(given(Assurance::Terminal)),
        YesNo::No | YesNo::Unclear => Err(Failure::refused("not undone")),
    }
}

/// The calls in their order, and what stays.
fn describe_undo(
    original: &Run,
    candidate: &Candidate,
    steps: &[StepIx],
    kept: &[(StepIx, Kept)],
) -> Vec<String> {
    let plan = original.plan();
    let mut lines = vec![format!(
        "{} of {} would be undone:",
        original.id(),
        plan.id()
    )];
    for (&ix, undo) in steps.iter().zip(&candidate.plan.document().steps) {
        let title = plan.step(ix).title.as_deref().map(line).unwrap_or_default();
        let args = serde_json::to_string(&undo.args).unwrap_or_default();
        lines.push(format!(
            "↶ {} {title}  [{}] {}",
            plan.step_id(ix),
            line(undo.action_label()),
            line(&args)
        ));
    }
    for (ix, why) in kept {
        lines.push(format!(
            "! {} cannot be undone: {}",
            plan.step_id(*ix),
            describe_kept_step(why)
        ));
    }
    lines
}

fn describe_kept_step(kept: &Kept) -> String {
    match kept {
        Kept::NoUndo => "the step has no undo call".to_owned(),
        Kept::Reused { from } => format!("{from} did it: planwright undo {from}"),
        Kept::Child { run } => format!("{run} did it: planwright undo {run}"),
    }
}

fn print_preview(
    app: &App,
    original: &Run,
    candidate: &Candidate,
    steps: &[StepIx],
    kept: &[(StepIx, Kept)],
) -> Result<Exit, Failure> {
    let printer = app.printer();
    if printer.json {
        let plan = original.plan();
        let undos = steps.iter().zip(&candidate.plan.document().steps);
        printer.document(&UndoPreview {
            plan_id: plan.id().to_string(),
            run_id: original.id().to_string(),
            digest: candidate.digest.to_string(),
            steps: undos
                .map(|(&ix, undo)| UndoStep::new(plan.step_id(ix), undo))
                .collect(),
            kept: kept
                .iter()
                .map(|(ix, why)| KeptStep {
                    step: plan.step_id(*ix).to_string(),
                    reason: describe_kept_step(why),
                })
                .collect(),
        })?;
        return Ok(Exit::Done);
    }
    for text in describe_undo(original, candidate, steps, kept) {
        printer.data(&text)?;
    }
    printer.data(&format!("digest: {}", candidate.digest))?;
    printer.talk("dry run: nothing was called");
    Ok(Exit::Done)
}

/// Says loudly what was not taken back, and how to go on.
async fn report_remaining_steps(
    app: &App,
    target: &RunTarget,
    exit: Exit,
) -> Result<Exit, Failure> {
    let (original, _) = app
        .engine
        .runs()
        .load_run(&target.run, &target.review)
        .await?;
    let left: Vec<String> = original
        .undoable()
        .map(|ix| original.plan().step_id(ix).to_string())
        .collect();
    let Some(latest) = original.undos().last().filter(|_| !left.is_empty()) else {
        return Ok(exit);
    };
    let (undo, _) = app
        .engine
        .runs()
        .load_run(latest, &target.review)
        .await
        .map_err(|error: LoadError| error)?;
    let printer = app.printer();
    let stopped = undo.plan().indices().find(|&ix| {
        matches!(
            undo.step(ix),
            StepState::Failed { .. } | StepState::Denied { .. } | StepState::OutcomeUnknown { .. }
        )
    });
    if let Some(ix) = stopped {
        let step = undo.plan().step_id(ix);
        printer.talk(&format!(
            "{} {step} did not succeed",
            printer.err(YELLOW, "!")
        ));
    }
    let names = left.join(", ");
    printer.talk(&format!("{} {names}", printer.err(BOLD, "not undone:")));
    if undo.state().is_terminal() {
        printer.hint(&format!("planwright undo {} tries again", target.run));
    }
    Ok(exit)
}
