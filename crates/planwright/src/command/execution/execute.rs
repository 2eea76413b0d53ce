//! Executes a run to its end, or to where only a person can move it on: the common part of `run`,
//! `resume`, `fork` and `undo`.

use crate::command::execution::check;
use crate::command::execution::held_questions::HeldQuestions;
use crate::command::execution::interrupts::Interrupts;
use crate::command::execution::order::{ExecutionKind, ExecutionOrder, RunFlags};
use crate::command::execution::questions::ask_about_waiting_steps;
use crate::command::execution::reflection::{self, AdjustmentDecision};
use crate::command::execution::report::print_run_report;
use crate::exit::{Exit, Failure};
use crate::terminal::progress::RunProgress;
use crate::workspace::app::{App, user};
use crate::workspace::plan_source;
use crate::workspace::projections::update_plan_files;
use planwright_core::id::{PlanId, RunId};
use planwright_core::run::{Run, RunState};
use planwright_engine::{Observer, RunHandle, RunOptions};
use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

/// A run that is over this soon gets its files written once, at the end.
const BRIEF: Duration = Duration::from_millis(150);

/// The files of a plan with more steps are written when nothing else of it is in memory: at the
/// end, and alone.
const LARGE: usize = 10_000;

/// Executes a run until it ends or waits for a person, and prints its report.
pub(crate) async fn execute_run(
    app: &App,
    order: ExecutionOrder,
    flags: &RunFlags,
) -> Result<Exit, Failure> {
    let ExecutionOrder {
        kind,
        approval,
        late,
        variables,
        mut steps,
    } = order;
    let plan = kind.plan().clone();
    let mut options = RunOptions::new(user());
    options.variables = variables;
    options.max_concurrency = flags.max_concurrency;
    options.guards = !flags.no_guards;
    options.linger = flags.wait;
    options.approval = approval;
    options.late = late;
    let (review, _) = plan_source::load_plan(app, &plan).await?;
    options.reflection = flags
        .reflection
        .read(app, &review.current().document.limits)?;
    drop(review);
    let interrupts = Interrupts::listen()?;
    let mut held = HeldQuestions::listen(app);
    let mut kind = kind;
    let mut shown = BTreeSet::new();
    loop {
        let progress = Arc::new(RunProgress::new(app.printer(), steps));
        options.observers = vec![Arc::<RunProgress>::clone(&progress) as Arc<dyn Observer>];
        let mut handle = Box::pin(kind.open_run(&app.engine, options.clone())).await?;
        let early = (steps <= LARGE).then_some(&plan);
        let say = |text: &str| progress.say(app.printer(), text);
        let asking = Box::pin(held.ask_while_running(app, &progress, &interrupts));
        let run = wait_for_run(app, early, &mut handle, (&interrupts, &say), asking).await;
        progress.finish();
        if std::io::stdout().is_terminal() {
            shown.append(&mut progress.ended_steps());
        }
        let mut run = run?;
        let decided =
            !interrupts.is_interrupted() && ask_about_waiting_steps(app, &run, &interrupts).await?;
        if decided {
            let (review, _) = plan_source::load_plan(app, &plan).await?;
            // What was decided may have ended the run.
            (run, _) = app.engine.runs().load_run(run.id(), &review).await?;
            if !run.state().is_terminal() {
                kind = ExecutionKind::ResumeRun {
                    plan: plan.clone(),
                    run: run.id().clone(),
                };
                continue;
            }
        }
        if let (RunState::Adjusted { .. }, false) = (run.state(), interrupts.is_interrupted())
            && let AdjustmentDecision::Continue {
                approval,
                late,
                steps: count,
            } = reflection::confirm_adjustment(app, &run, &flags.reflection, &flags.late).await?
        {
            (options.approval, options.late, steps) = (approval, late, count);
            kind = ExecutionKind::ContinueAdjusted {
                plan: plan.clone(),
                run: run.id().clone(),
            };
            continue;
        }
        let checked = if flags.check && *run.state() == RunState::Completed {
            run = check::check_criteria(app, run.id(), None).await?;
            check::criteria_exit(&run)
        } else {
            Exit::Done
        };
        let interrupted = interrupts.is_interrupted() && !run.state().is_terminal();
        let exit = if interrupted {
            Exit::Interrupted
        } else {
            worse_exit(Exit::of_run(&run), checked)
        };
        let reported = print_run_report(app, &run, &shown).await;
        drop(run);
        let (review, _) = plan_source::load_plan(app, &plan).await?;
        update_plan_files(app, &review).await;
        return reported.map(|()| exit);
    }
}

/// Combines the exit of the run with that of its criteria: a completed run whose criteria do not
/// hold is no success.
fn worse_exit(of_run: Exit, checked: Exit) -> Exit {
    if of_run == Exit::Done {
        checked
    } else {
        of_run
    }
}

/// Waits for the run while signals are forwarded to it.
async fn wait_for_run(
    app: &App,
    early: Option<&PlanId>,
    handle: &mut RunHandle,
    (interrupts, say): (&Interrupts, &dyn Fn(&str)),
    asking: impl Future<Output = ()>,
) -> Result<Run, Failure> {
    let id = handle.run_id().clone();
    let early = async {
        tokio::time::sleep(BRIEF).await;
        if let Some(plan) = early
            && let Ok((review, _)) = app.engine.plans().load_review(plan).await
        {
            update_plan_files(app, &review).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        run = handle.wait() => Ok(run?),
        () = interrupts.forward_to_run(app, &id, say) => unreachable!("it listens for ever"),
        () = early => unreachable!("it waits for ever"),
        () = asking => unreachable!("it listens for ever"),
    }
}

pub(crate) async fn load_run(app: &App, id: &RunId) -> Result<Run, Failure> {
    let plan = app.engine.journals().plan_of_run(id).await?;
    let (review, _) = app.engine.plans().load_review(&plan).await?;
    Ok(app.engine.runs().load_run(id, &review).await?.0)
}
