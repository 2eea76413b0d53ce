//! Executing a run to its end, or to where only a person can move it on: the common part of `run`,
//! `resume` and `fork`.

use crate::command::check;
use crate::command::reflection::{self, Agreement, ReflectFlags, criteria, looked_at};
use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{Answer, ask};
use crate::terminal::dag;
use crate::terminal::late_bound::LateFlags;
use crate::terminal::pending_calls::{call_lines, waiting_calls};
use crate::terminal::printer::{BOLD, DIM, GREEN, Printer, RED, YELLOW, duration, line};
use crate::terminal::progress::Progress;
use crate::terminal::prompts::{ask_all, origin, waiting_for};
use crate::workspace::app::{App, user};
use crate::workspace::plan_source;
use crate::workspace::projections::project;
use crate::workspace::run_selector::{how_to_go_on, name_of};
use crate::workspace::variables::{VariableFlags, quoted};
use clap::Args;
use planwright_core::id::{PlanId, RunId, StepId};
use planwright_core::plan::{StepIx, visible};
use planwright_core::principal::{Assurance, PrincipalKind};
use planwright_core::review::Review;
use planwright_core::run::{AskedCall, Refusal, Run, RunState, Shown, StepState};
use planwright_core::status::{RunStatus, StepStatus};
use planwright_engine::{
    CommandError, Engine, GivenApproval, Observer, RunCommand, RunHandle, RunOptions,
    StartRunError, read_value,
};
use planwright_server::wire::RunResult;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A run that is over this soon gets its files written once, at the end.
const BRIEF: Duration = Duration::from_millis(150);

/// The files of a plan with more steps are written when nothing else of it is in memory: at the
/// end, and alone.
const LARGE: usize = 10_000;

/// How a plan is to be run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) variables: VariableFlags,
    /// Show what every step would send and what would be asked; call nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// How many steps may be in flight at once.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_concurrency: Option<u32>,
    /// Approve the plan as the person at the keyboard. Steps that ask for their own approval still
    /// wait.
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) late: LateFlags,
    /// Without budgets and runaway detection.
    #[arg(long)]
    pub(crate) no_guards: bool,
    /// Stay while only a person can move the run on, instead of ending with exit code 4.
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) reflection: ReflectFlags,
    /// After the run, find out whether the success criteria of the plan hold. Only then is it a
    /// success.
    #[arg(long)]
    pub(crate) check: bool,
}

/// What is to be executed.
#[derive(Debug)]
pub(crate) enum Begin {
    Start(PlanId),
    Resume(PlanId),
    Fork {
        plan: PlanId,
        source: RunId,
        from: Vec<StepId>,
    },
    /// Exactly this run goes on.
    ResumeRun {
        plan: PlanId,
        run: RunId,
    },
    /// The work of this run, which was adjusted, goes on in another one.
    GoOn {
        plan: PlanId,
        run: RunId,
    },
    /// This run is taken back.
    Undo {
        plan: PlanId,
        run: RunId,
    },
}

impl Begin {
    fn plan(&self) -> &PlanId {
        match self {
            Self::Start(plan)
            | Self::Resume(plan)
            | Self::Fork { plan, .. }
            | Self::ResumeRun { plan, .. }
            | Self::GoOn { plan, .. }
            | Self::Undo { plan, .. } => plan,
        }
    }

    async fn begin(&self, engine: &Engine, options: RunOptions) -> Result<RunHandle, Failure> {
        Ok(match self {
            Self::Start(plan) => engine.start(plan, options).await?,
            Self::Resume(plan) => engine.resume(plan, options).await?,
            Self::Fork { source, from, .. } => engine.fork(source, from, options).await?,
            Self::ResumeRun { run, .. } => engine.resume_run(run, options).await?,
            Self::GoOn { run, .. } => engine.go_on(run, options).await?,
            Self::Undo { run, .. } => Box::pin(engine.undo(run, options)).await?,
        })
    }
}

/// What is to be executed, and who agreed to it.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) begin: Begin,
    pub(crate) approval: Option<GivenApproval>,
    pub(crate) variables: Map<String, Value>,
    /// For the progress bar.
    pub(crate) steps: usize,
}

/// Nobody is asked to approve a plan that cannot start.
pub(crate) async fn refuse_while_executing(app: &App, review: &Review) -> Result<(), Failure> {
    match review.runs().last() {
        Some(opened) if app.engine.status(review).await?.is_executing() => {
            let (plan, run) = (review.id().clone(), opened.run.clone());
            Err(StartRunError::AlreadyExecuting { plan, run }.into())
        }
        Some(_) | None => Ok(()),
    }
}

/// Executes and reports.
pub(crate) async fn execute(app: &App, order: Order, flags: &RunFlags) -> Result<Exit, Failure> {
    let Order {
        begin,
        approval,
        variables,
        mut steps,
    } = order;
    let plan = begin.plan().clone();
    let mut options = RunOptions::new(user());
    options.variables = variables;
    options.max_concurrency = flags.max_concurrency;
    options.guards = !flags.no_guards;
    options.linger = flags.wait;
    options.approval = approval;
    let (review, _) = plan_source::load(app, &plan).await?;
    options.reflection = flags
        .reflection
        .read(app, &review.current().document.limits)?;
    drop(review);
    let interrupts = Interrupts::listen()?;
    let mut begin = begin;
    loop {
        let progress = Arc::new(Progress::new(app.printer(), steps));
        options.observers = vec![Arc::<Progress>::clone(&progress) as Arc<dyn Observer>];
        let mut handle = Box::pin(begin.begin(&app.engine, options.clone())).await?;
        let early = (steps <= LARGE).then_some(&plan);
        let run = drive(app, early, &mut handle, &interrupts).await;
        progress.finish();
        let mut run = run?;
        let decided = !interrupts.any() && ask_people(app, &run, &interrupts).await?;
        if decided {
            let (review, _) = plan_source::load(app, &plan).await?;
            // What was decided may have ended the run.
            (run, _) = app.engine.load_run(run.id(), &review).await?;
            if !run.state().is_terminal() {
                begin = Begin::ResumeRun {
                    plan: plan.clone(),
                    run: run.id().clone(),
                };
                continue;
            }
        }
        if let (RunState::Adjusted { .. }, false) = (run.state(), interrupts.any())
            && let Agreement::GoOn {
                approval,
                steps: count,
            } = reflection::agree(app, &run, &flags.reflection, &flags.late).await?
        {
            (options.approval, steps) = (approval, count);
            begin = Begin::GoOn {
                plan: plan.clone(),
                run: run.id().clone(),
            };
            continue;
        }
        let checked = if flags.check && *run.state() == RunState::Completed {
            run = check::check(app, run.id(), None).await?;
            check::verdict(&run)
        } else {
            Exit::Done
        };
        let interrupted = interrupts.any() && !run.state().is_terminal();
        let exit = if interrupted {
            Exit::Interrupted
        } else {
            worse(Exit::of_run(&run), checked)
        };
        let reported = report(app, &run).await;
        drop(run);
        let (review, _) = plan_source::load(app, &plan).await?;
        project(app, &review).await;
        return reported.map(|()| exit);
    }
}

/// A run that did what it should is a success only if what it was for was reached.
fn worse(of_run: Exit, checked: Exit) -> Exit {
    if of_run == Exit::Done {
        checked
    } else {
        of_run
    }
}

/// Waits for the run while listening to the keyboard.
async fn drive(
    app: &App,
    early: Option<&PlanId>,
    handle: &mut RunHandle,
    interrupts: &Interrupts,
) -> Result<Run, Failure> {
    let id = handle.run_id().clone();
    let early = async {
        tokio::time::sleep(BRIEF).await;
        if let Some(plan) = early
            && let Ok((review, _)) = app.engine.load_review(plan).await
        {
            project(app, &review).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        run = handle.wait() => Ok(run?),
        () = interrupts.obey(app, &id) => unreachable!("it listens for ever"),
        () = early => unreachable!("it waits for ever"),
    }
}

/// Ctrl-C and SIGTERM: the first pauses, the second cancels.
#[derive(Debug)]
pub(crate) struct Interrupts {
    signals: tokio::sync::Mutex<(Signal, Signal)>,
    count: AtomicU8,
}

impl Interrupts {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let failed = |error| {
            Failure::new(
                Exit::RunFailed,
                format!("cannot listen for signals: {error}"),
            )
        };
        let keyboard = signal(SignalKind::interrupt()).map_err(failed)?;
        let terminate = signal(SignalKind::terminate()).map_err(failed)?;
        Ok(Self {
            signals: tokio::sync::Mutex::new((keyboard, terminate)),
            count: AtomicU8::new(0),
        })
    }

    fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Waits for the next one and counts it.
    pub(crate) async fn next(&self) -> u8 {
        let mut signals = self.signals.lock().await;
        let (keyboard, terminate) = &mut *signals;
        tokio::select! {
            _ = keyboard.recv() => {}
            _ = terminate.recv() => {}
        }
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }

    async fn obey(&self, app: &App, run: &RunId) {
        loop {
            let command = match self.next().await {
                1 => {
                    app.printer()
                        .talk("pausing… what is in flight finishes; press Ctrl-C again to cancel");
                    RunCommand::Pause { by: user() }
                }
                _ => {
                    app.printer().talk("cancelling…");
                    RunCommand::Cancel { by: user() }
                }
            };
            // Sent on its own, so that the next signal is heard while this one is obeyed.
            let (engine, run) = (app.engine.clone(), run.clone());
            tokio::spawn(async move { engine.command(&run, command).await });
        }
    }
}

/// On a terminal, asks about everything that waits for a person. Returns whether anything was
/// decided.
pub(crate) async fn ask_people(
    app: &App,
    run: &Run,
    interrupts: &Interrupts,
) -> Result<bool, Failure> {
    let nobody = user().kind != PrincipalKind::Person;
    if nobody || !app.printer().can_ask() || app.printer().json || run.state().is_terminal() {
        return Ok(false);
    }
    let mut decided = false;
    for ix in run.waiting().collect::<Vec<_>>() {
        if let StepState::AwaitingPlan { run: child, .. } = run.step(ix) {
            let child = load_run(app, child).await?;
            decided |= Box::pin(ask_people(app, &child, interrupts)).await?;
            continue;
        }
        let command = match run.step(ix) {
            StepState::AwaitingApproval { call, .. } => {
                ask_gate(app, run, (ix, call.as_deref()), interrupts).await?
            }
            StepState::AwaitingInput { .. } => {
                decided |= ask_input(app, run, ix, interrupts).await?;
                None
            }
            _ => None,
        };
        if let Some(command) = command {
            app.engine.command(run.id(), command).await?;
            decided = true;
        }
        if interrupts.any() {
            return Ok(decided);
        }
    }
    Ok(decided)
}

/// Asks on a thread of its own: the signals are ours by now, and Ctrl-C must still be heard.
pub(crate) async fn listening<T: Send + 'static>(
    interrupts: &Interrupts,
    question: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<Option<T>, Failure> {
    tokio::select! {
        answered = tokio::task::spawn_blocking(question) => {
            answered.map_err(|error| Failure::refused(format!("cannot ask: {error}")))?.map(Some)
        }
        _ = interrupts.next() => Ok(None),
    }
}

async fn ask_gate(
    app: &App,
    run: &Run,
    (ix, call): (StepIx, Option<&AskedCall>),
    interrupts: &Interrupts,
) -> Result<Option<RunCommand>, Failure> {
    let id = run.step_id(ix);
    let shown = match call {
        Some(asked) => {
            for text in call_lines(app, id.as_str(), asked).await? {
                app.printer().talk(&text);
            }
            asked.digest
        }
        None => {
            show_gate(app, run, ix).await?;
            run.start().digest
        }
    };
    let shown = Shown::Digest(shown).into();
    let (printer, question) = (app.printer(), format!("Approve step {id}?"));
    let answer = listening(interrupts, move || ask(printer, &question)).await?;
    Ok(match answer {
        Some(Answer::Yes) => Some(RunCommand::Approve {
            step: id.to_string(),
            by: user(),
            assurance: Assurance::Terminal,
            shown,
        }),
        Some(Answer::No) => {
            let reason = "denied at the terminal".to_owned();
            Some(RunCommand::Deny {
                step: id.to_string(),
                by: user(),
                shown,
                reason,
            })
        }
        Some(Answer::Neither) | None => None,
    })
}

/// Shows the step that a plan's own gate stands before.
async fn show_gate(app: &App, run: &Run, ix: StepIx) -> Result<(), Failure> {
    let (step, id) = (run.definition(ix), run.step_id(ix));
    let args = serde_json::to_string(&step.args).unwrap_or_default();
    let title = line(step.title.as_deref().unwrap_or_default());
    app.printer().talk(&format!(
        "step {id} {title} [{}] {}",
        line(step.action_label()),
        visible(&args)
    ));
    if let Some(item) = element(app, run, ix).await? {
        app.printer()
            .talk(&format!("  item {}", visible(&item.to_string())));
    }
    Ok(())
}

/// The element of the list that an instance is about.
async fn element(app: &App, run: &Run, ix: StepIx) -> Result<Option<Value>, Failure> {
    let Some(instance) = run.instance(ix) else {
        return Ok(None);
    };
    let Some(opened) = run.open_loop(instance.step) else {
        return Ok(None);
    };
    let items = read_value(&**app.artifacts(), &opened.items).await?;
    Ok(items.get(instance.index as usize).cloned())
}

/// How often an answer that does not fit is asked for again.
const MAX_ANSWERS: usize = 3;

/// Asks what a step or its tool wants to know. Returns whether it was answered.
pub(crate) async fn ask_input(
    app: &App,
    run: &Run,
    ix: StepIx,
    interrupts: &Interrupts,
) -> Result<bool, Failure> {
    let Some(asked) = waiting_for(run, ix) else {
        return Ok(false);
    };
    for _ in 0..MAX_ANSWERS {
        let (printer, origin, asked) = (app.printer(), origin(app, run, ix), asked.clone());
        let question = asked.digest();
        let answer = listening(interrupts, move || ask_all(printer, &origin, &asked)).await?;
        let Some(replies) = answer.flatten() else {
            return Ok(false);
        };
        let step = run.step_id(ix).to_string();
        let command = RunCommand::GiveInput {
            step,
            by: user(),
            question,
            replies,
        };
        match app.engine.command(run.id(), command).await {
            Ok(()) => return Ok(true),
            Err(CommandError::Refused(refusal @ Refusal::BadInput { .. })) => {
                app.printer().talk(&line(&refusal.to_string()));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Prints what became of the run, and what a person can do about it.
pub(crate) async fn report(app: &App, run: &Run) -> Result<(), Failure> {
    if app.printer().json {
        let result = RunResult::read(run, &**app.artifacts(), app.now()).await?;
        app.printer().document(&result)?;
    } else {
        summary(app.printer(), run, app)?;
        if !run.state().is_terminal() {
            for text in waiting_calls(app, run).await? {
                app.printer().data(&text)?;
            }
        }
    }
    for hint in hints(app, run).await? {
        app.printer().hint(&hint);
    }
    Ok(())
}

/// Longer plans are summed up without a line per step.
const MAX_ROWS: usize = 200;

fn summary(printer: Printer, run: &Run, app: &App) -> Result<(), Failure> {
    let report = run.report(app.now());
    if report.steps.len() <= MAX_ROWS {
        for (step, ix) in report.steps.iter().zip(run.plan().indices()) {
            let style = match step.status {
                StepStatus::Completed => GREEN,
                StepStatus::Failed | StepStatus::Denied => RED,
                StepStatus::OutcomeUnknown
                | StepStatus::AwaitingApproval
                | StepStatus::AwaitingInput
                | StepStatus::AwaitingPlan => YELLOW,
                _ => DIM,
            };
            let sign = printer.out(style, &dag::glyph(run.step(ix)).as_char().to_string());
            let title = line(step.title.as_deref().unwrap_or_default());
            let mut row = format!(
                "{sign} {}. {title} [{}]  {}",
                step.id,
                line(&step.tool),
                step.status
            );
            if step.attempts > 0 {
                row = format!("{row}  {}", printer.out(DIM, &duration(step.duration)));
            }
            if let Some(items) = &step.items {
                let done = items
                    .iter()
                    .filter(|item| {
                        matches!(item.status, StepStatus::Completed | StepStatus::Skipped)
                    })
                    .count();
                row = format!("{row}  {done} of {} elements", items.len());
            }
            if let Some(error) = &step.error {
                row = format!(
                    "{row}  {}: {}",
                    line(error.code.as_str()),
                    line(&error.message)
                );
            }
            printer.data(&row)?;
        }
    }
    for text in looked_at(run).into_iter().chain(criteria(run.criteria())) {
        printer.data(&text)?;
    }
    let style = match report.status {
        RunStatus::Completed => GREEN,
        RunStatus::Failed | RunStatus::Cancelled => RED,
        _ => YELLOW,
    };
    let word = printer.out(style, report.status.as_str());
    let done = format!(
        "{} of {} steps in {}",
        run.completed_steps(),
        report.steps.len(),
        duration(report.duration)
    );
    printer.data(&format!(
        "{} {word}: {done} ({})",
        printer.out(BOLD, report.plan.as_str()),
        report.run
    ))
}

/// The exact commands that move a run on.
pub(crate) async fn hints(app: &App, run: &Run) -> Result<Vec<String>, Failure> {
    let mut hints = Vec::new();
    if let RunState::Adjusted { .. } = run.state() {
        return adjusted_hints(app, run).await;
    }
    if run.state().is_terminal() {
        return Ok(hints);
    }
    answers(app, run, &mut hints).await?;
    hints.extend(how_to_go_on(app, run.clone()).await?);
    Ok(hints)
}

/// The commands that let the work of an adjusted run go on; nothing once it did.
async fn adjusted_hints(app: &App, run: &Run) -> Result<Vec<String>, Failure> {
    let Some(continuation) = app.engine.continuation(run.id()).await? else {
        return Ok(Vec::new());
    };
    let (plan, digest) = (run.plan().id(), continuation.candidate.digest);
    Ok(vec![
        format!("planwright approve {plan} --digest {digest} agrees to the change"),
        format!("planwright resume {plan} goes on then"),
    ])
}

/// The commands that answer what a run, or the run of a sub-plan, waits for.
async fn answers(app: &App, run: &Run, hints: &mut Vec<String>) -> Result<(), Failure> {
    const SHOWN: usize = 5;
    let plan = name_of(run);
    for ix in run.waiting().take(SHOWN) {
        let id = quoted(run.step_id(ix).as_str());
        match run.step(ix) {
            StepState::AwaitingApproval { call, .. } => {
                let digest = call.as_ref().map_or_else(|| run.start().digest, |asked| asked.digest);
                hints.push(format!("planwright approve {plan} --step {id} --digest {digest}"));
            }
            StepState::OutcomeUnknown { .. } => hints
                .push(format!("planwright resolve {plan} {id} --happened | --did-not-happen | --run-again")),
            StepState::AwaitingPlan { run: child, .. } if hints.len() < SHOWN => {
                let child = load_run(app, child).await?;
                Box::pin(answers(app, &child, hints)).await?;
            }
            StepState::AwaitingInput { .. } => hints.push(format!(
                "planwright input {plan} {id} --set NAME=VALUE | --value JSON | --decline (planwright input {plan} shows the question)"
            )),
            _ => {}
        }
    }
    Ok(())
}

pub(crate) async fn load_run(app: &App, id: &RunId) -> Result<Run, Failure> {
    let plan = planwright_engine::plan_of_run(&**app.engine.store(), id).await?;
    let (review, _) = app.engine.load_review(&plan).await?;
    Ok(app.engine.load_run(id, &review).await?.0)
}
