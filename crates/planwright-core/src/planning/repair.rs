//! The request to repair an answer that is no plan: the original request stands, the last answer
//! and what is wrong with it follow. Earlier answers are forgotten, so that the prompt does not
//! grow with the rounds.

use super::budget::estimate_tokens;
use super::prompts::{FillPromptError, Prompts, REPAIR};
use super::quote::quote_text;
use crate::model::Message;
use crate::plan::Finding;

/// The reason an answer is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerFault {
    /// It is no plan at all, in words.
    NoPlan(String),
    /// The model will not write it, in its words. It is not asked again.
    Refused(String),
    /// It is a plan that cannot be accepted.
    Findings(Vec<Finding>),
}

impl AnswerFault {
    /// The findings about a plan that cannot be accepted.
    pub fn findings(&self) -> &[Finding] {
        match self {
            Self::NoPlan(_) | Self::Refused(_) => &[],
            Self::Findings(findings) => findings,
        }
    }

    /// In one line each.
    pub fn describe(&self) -> Vec<String> {
        match self {
            Self::NoPlan(reason) | Self::Refused(reason) => vec![reason.clone()],
            Self::Findings(findings) => findings
                .iter()
                .filter(|finding| finding.is_error())
                .map(finding_line)
                .collect(),
        }
    }
}

fn finding_line(finding: &Finding) -> String {
    let suggestion = finding
        .suggestion
        .as_ref()
        .map(|text| format!(" ({text})"))
        .unwrap_or_default();
    format!("{finding} at {}{suggestion}", finding.pointer)
}

const MAX_LINES: usize = 20;
const MAX_LINE: usize = 400;

/// The conversation of the next round. `tools` is what has to be known about tools that were called
/// wrongly.
pub fn repair_messages(
    request: &[Message],
    answer: &str,
    fault: &AnswerFault,
    tools: &str,
    budget: usize,
    prompts: &Prompts,
) -> Result<Vec<Message>, FillPromptError> {
    let mut findings = String::new();
    for text in fault.describe().iter().take(MAX_LINES) {
        let line = format!("- {}\n", quote_text(text, MAX_LINE));
        // The first finding is always told.
        if findings.is_empty() || estimate_tokens(&findings) + estimate_tokens(&line) <= budget / 2
        {
            findings.push_str(&line);
        }
    }
    if estimate_tokens(&findings) + estimate_tokens(tools) <= budget / 2 {
        findings.push_str(tools);
    }
    let told = prompts.fill_prompt(&REPAIR, &[("findings", findings.trim_end())])?;
    let mut messages = request.to_vec();
    let most = budget.saturating_sub(estimate_tokens(&findings)) * 4;
    let mut kept: String = answer
        .chars()
        .filter(|c| *c == '\n' || !c.is_control())
        .take(most / 2)
        .collect();
    if kept.is_empty() {
        "(no answer)".clone_into(&mut kept);
    }
    messages.push(Message::assistant(kept));
    messages.push(Message::user(told));
    Ok(messages)
}
