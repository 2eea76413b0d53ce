//! The concrete calls that wait for a person, shown in full: what is agreed to must not hide
//! anything.

use crate::exit::Failure;
use crate::terminal::briefing_screen::screen_options;
use crate::terminal::printer::line;
use crate::workspace::app::{App, user};
use planwright_core::briefing::render_call;
use planwright_core::run::{AskedCall, Run, StepState};
use planwright_core::text::escape_invisible;
use planwright_server::documents::read_asked_call;
use std::collections::BTreeSet;

/// The most lines of one call that are put on a screen.
const MAX_LINES: usize = 5_000;

/// The lines that show one call.
pub(crate) async fn call_lines(
    app: &App,
    step: &str,
    asked: &AskedCall,
) -> Result<Vec<String>, Failure> {
    let call = read_asked_call(asked, &**app.artifacts()).await?;
    let mut lines = vec![format!(
        "step {step} wants to call {}",
        escape_invisible(&call.tool)
    )];
    lines.push(format!("  because {}", line(&call.reason)));
    let briefings = app.engine.briefings();
    let (briefed, effect) = briefings.brief_call(&call.tool, call.args, &user()).await;
    let options = screen_options(true, BTreeSet::new());
    let rendered = render_call(&briefed, &effect, &options);
    let shown = rendered.len().min(MAX_LINES);
    let left_out = rendered.len() - shown;
    lines.extend(rendered.into_iter().take(shown).map(|line| line.text));
    if left_out > 0 {
        lines.push(format!(
            "  … {left_out} more lines. To see all: planwright log --json"
        ));
    }
    lines.push(format!("  call digest {}", call.digest));
    Ok(lines)
}

/// Every call of a run that waits for a person.
pub(crate) async fn waiting_calls(app: &App, run: &Run) -> Result<Vec<String>, Failure> {
    const SHOWN: usize = 5;
    let mut lines = Vec::new();
    for ix in run.schedule().waiting().take(SHOWN) {
        if let StepState::AwaitingApproval {
            call: Some(asked), ..
        } = run.step(ix)
        {
            lines.extend(call_lines(app, run.step_id(ix).as_str(), asked).await?);
        }
    }
    Ok(lines)
}
