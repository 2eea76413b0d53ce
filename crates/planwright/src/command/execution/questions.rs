//! Questions about the steps of a run that wait for a person.

use crate::command::execution::execute::load_run;
use crate::command::execution::interrupts::{Interrupts, ask_unless_interrupted};
use crate::exit::Failure;
use crate::terminal::approval_prompt::{YesNo, ask_yes_no};
use crate::terminal::briefing_screen::{screen_options, talk_lines};
use crate::terminal::pending_calls::call_lines;
use crate::terminal::printer::line;
use crate::terminal::prompts::{ask_questions, pending_question, question_origin};
use crate::workspace::app::{App, user};
use planwright_core::briefing::render_call;
use planwright_core::plan::StepIx;
use planwright_core::principal::{Assurance, PrincipalKind};
use planwright_core::run::{AskedCall, Refusal, Run, Shown, StepState};
use planwright_core::text::escape_invisible;
use planwright_engine::{CommandError, RunCommand, read_value};
use serde_json::Value;
use std::collections::BTreeSet;

/// Asks about every step that waits for a person, at a terminal only. Returns whether a decision
/// was made.
pub(crate) async fn ask_about_waiting_steps(
    app: &App,
    run: &Run,
    interrupts: &Interrupts,
) -> Result<bool, Failure> {
    if !is_person_here(app) || run.state().is_terminal() {
        return Ok(false);
    }
    let mut decided = false;
    for ix in run.schedule().waiting().collect::<Vec<_>>() {
        if let StepState::AwaitingPlan { run: child, .. } = run.step(ix) {
            let child = load_run(app, child).await?;
            decided |= Box::pin(ask_about_waiting_steps(app, &child, interrupts)).await?;
            continue;
        }
        let command = match run.step(ix) {
            StepState::AwaitingApproval { call, .. } => {
                ask_step_approval(app, run, (ix, call.as_deref()), interrupts).await?
            }
            state if state.question().is_some() => {
                decided |= ask_step_input(app, run, ix, interrupts).await?;
                None
            }
            _ => None,
        };
        if let Some(command) = command {
            app.engine.runs().command(run.id(), command).await?;
            decided = true;
        }
        if interrupts.is_interrupted() {
            return Ok(decided);
        }
    }
    Ok(decided)
}

/// Returns whether a person can be asked at this terminal.
pub(super) fn is_person_here(app: &App) -> bool {
    let printer = app.printer();
    user().kind == PrincipalKind::Person && printer.can_ask() && !printer.json
}

async fn ask_step_approval(
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
            show_gated_step(app, run, ix).await?;
            run.start().digest
        }
    };
    let shown = Shown::Digest(shown).into();
    let printer = app.printer();
    let question = format!("Approve step {id}?");
    let answer = ask_unless_interrupted(interrupts, move || ask_yes_no(printer, &question)).await?;
    Ok(match answer {
        Some(YesNo::Yes) => Some(RunCommand::Approve {
            step: id.to_string(),
            by: user(),
            assurance: Assurance::Terminal,
            shown,
        }),
        Some(YesNo::No) => {
            let reason = "denied at the terminal".to_owned();
            Some(RunCommand::Deny {
                step: id.to_string(),
                by: user(),
                shown,
                reason,
            })
        }
        Some(YesNo::Unclear) | None => None,
    })
}

/// Shows a step whose own `approvalRequired` asks for a person, with the values that would be sent
/// now.
async fn show_gated_step(app: &App, run: &Run, ix: StepIx) -> Result<(), Failure> {
    let printer = app.printer();
    let step = run.definition(ix);
    let id = run.step_id(ix);
    let title = line(step.title.as_deref().unwrap_or_default());
    printer.talk(&format!(
        "step {id} {title} [{}]",
        line(step.action_label())
    ));
    if let Some(args) = app.engine.journals().known_arguments(run, ix).await {
        let briefings = app.engine.briefings();
        let (call, effect) = briefings
            .brief_call(step.action_label(), args, &user())
            .await;
        let options = screen_options(true, BTreeSet::new());
        talk_lines(printer, &render_call(&call, &effect, &options));
    } else {
        let args = serde_json::to_string(&step.args).unwrap_or_default();
        printer.talk(&format!("  {}", escape_invisible(&args)));
    }
    if let Some(item) = load_element(app, run, ix).await? {
        printer.talk(&format!("  item {}", escape_invisible(&item.to_string())));
    }
    Ok(())
}

/// Loads the list element of a loop instance.
async fn load_element(app: &App, run: &Run, ix: StepIx) -> Result<Option<Value>, Failure> {
    let Some(instance) = run.instance(ix) else {
        return Ok(None);
    };
    let Some(opened) = run.open_loop(instance.step) else {
        return Ok(None);
    };
    let items = read_value(&**app.artifacts(), &opened.items).await?;
    Ok(items.get(instance.index as usize).cloned())
}

/// The number of times an answer that does not match the schema is asked for.
const MAX_ANSWERS: usize = 3;

/// Asks the open questions of a step. Returns whether they were answered.
pub(crate) async fn ask_step_input(
    app: &App,
    run: &Run,
    ix: StepIx,
    interrupts: &Interrupts,
) -> Result<bool, Failure> {
    let Some(asked) = pending_question(run, ix) else {
        return Ok(false);
    };
    for _ in 0..MAX_ANSWERS {
        let printer = app.printer();
        let origin = question_origin(app, run, ix);
        let asked = asked.clone();
        let question = asked.digest();
        let answer =
            ask_unless_interrupted(interrupts, move || ask_questions(printer, &origin, &asked))
                .await?;
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
        match app.engine.runs().command(run.id(), command).await {
            Ok(()) => return Ok(true),
            Err(CommandError::Refused(refusal @ Refusal::BadInput { .. })) => {
                app.printer().talk(&line(&refusal.to_string()));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}
