//! What makes a plan a conversation.

use planwright_core::plan::Document;

/// What marks the step of a plan as a conversation at a terminal: lists leave it out unless they are asked for it, and no
/// supervisor goes on with it.
pub const CHAT_LABEL: &str = "chat";

/// Whether a plan is a conversation at a terminal.
pub fn is_conversation(document: &Document) -> bool {
    let labelled = |labels: &[String]| labels.iter().any(|label| label == CHAT_LABEL);
    document
        .steps
        .iter()
        .any(|step| step.agent.as_deref().is_some_and(|agent| agent.converse) && labelled(&step.labels))
}
