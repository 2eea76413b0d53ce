//! The concrete calls that wait for a person, shown in full: what is agreed to must not hide
//! anything.

use crate::exit::Failure;
use crate::terminal::printer::line;
use crate::workspace::app::App;
use planwright_core::run::{AskedCall, Run, StepState};
use planwright_core::text::escape_invisible;
use planwright_server::documents::read_asked_call;

/// The most of a call's arguments that is put on a screen. Larger ones are in a file.
const MAX_SHOWN: usize = 256 << 10;

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
    let args = serde_json::to_string_pretty(&call.args).unwrap_or_default();
    if args.len() > MAX_SHOWN {
        let start: String = args.chars().take(2_000).collect();
        lines.extend(
            start
                .lines()
                .map(|text| format!("  {}", escape_invisible(text))),
        );
        lines.push(format!(
            "  … {} bytes in all: planwright log --json names the whole",
            args.len()
        ));
    } else {
        lines.extend(
            args.lines()
                .map(|text| format!("  {}", escape_invisible(text))),
        );
    }
    lines.push(format!("  call digest {}", call.digest));
    Ok(lines)
}

/// Every call of a run that waits for a person.
pub(crate) async fn waiting_calls(app: &App, run: &Run) -> Result<Vec<String>, Failure> {
    const SHOWN: usize = 5;
    let mut lines = Vec::new();
    for ix in run.waiting().take(SHOWN) {
        if let StepState::AwaitingApproval {
            call: Some(asked), ..
        } = run.step(ix)
        {
            lines.extend(call_lines(app, run.step_id(ix).as_str(), asked).await?);
        }
    }
    Ok(lines)
}
