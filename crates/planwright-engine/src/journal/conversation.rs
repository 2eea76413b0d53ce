//! The marks of a plan that is a conversation, or the session of a client.

use planwright_core::plan::{Agent, Document, Step, StepIx};
use planwright_core::run::{Run, StepState};

/// What marks the step of a plan as a conversation at a terminal: lists leave it out unless they
/// are asked for it, and no supervisor goes on with it.
pub const CHAT_LABEL: &str = "chat";

/// What marks the step of a plan as the session of a client of the gateway. Lists leave it out too.
pub const SESSION_LABEL: &str = "session";

/// Returns whether a plan is a conversation at a terminal.
pub fn is_conversation(document: &Document) -> bool {
    document.steps.iter().any(converses)
}

/// Which plans a list shows for what they are: those with a label on one of their steps, or
/// everything but conversations and sessions. `all` leaves nothing out.
pub fn is_listed(document: &Document, label: Option<&str>, all: bool) -> bool {
    match label {
        Some(wanted) => document
            .steps
            .iter()
            .any(|step| step.labels.iter().any(|label| label == wanted)),
        None => all || !(is_conversation(document) || is_session(document)),
    }
}

/// Returns whether a plan is the session of a client of the gateway.
pub fn is_session(document: &Document) -> bool {
    document.steps.iter().any(|step| {
        let labelled = step.labels.iter().any(|label| label == SESSION_LABEL);
        labelled && step.agent.as_deref().is_some_and(Agent::is_client)
    })
}

/// Returns whether a step waits for nothing but what the person at the terminal says next.
pub fn listens(run: &Run, ix: StepIx) -> bool {
    converses(run.definition(ix)) && matches!(run.step(ix), StepState::AwaitingInput { .. })
}

fn converses(step: &Step) -> bool {
    let labelled = step.labels.iter().any(|label| label == CHAT_LABEL);
    labelled && step.agent.as_deref().is_some_and(|agent| agent.converse)
}
