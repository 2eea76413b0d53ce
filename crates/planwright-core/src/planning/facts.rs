//! Facts that every plan may need, and no tool can find out.

use super::fallback::SavedTemplate;
use super::quote::quote_text;
use super::signature::{SignatureDetail, write_arguments};
use std::collections::BTreeSet;

const MAX_PATH: usize = 600;
const MAX_NAME: usize = 200;
/// Secrets that are named.
const MAX_SECRETS: usize = 40;
/// Saved plans that are named, and the letters about each.
const MAX_TEMPLATES: usize = 5;
const MAX_TITLE: usize = 160;

/// Facts about the day, the operator's policy and the secrets there are.
#[derive(Debug, Clone, Default)]
pub struct PlannerFacts {
    /// The day, as in `2026-03-01`.
    pub today: Option<String>,
    /// Full names of the tools that the policy asks a person about, whatever their arguments.
    pub asks: BTreeSet<String>,
    /// Names of secrets, never their values.
    pub secrets: Vec<String>,
    /// Saved plans that take inputs and seem to fit the goal, the best first.
    pub templates: Vec<SavedTemplate>,
}

impl PlannerFacts {
    /// Writes the section of the prompt; nothing if nothing is known.
    pub(super) fn write_section(&self, root: Option<&str>) -> String {
        let today = self.today.as_ref().map(|day| format!("- Today is {day}."));
        let root = root.map(|root| {
            format!(
                "- The workspace is the folder {}.",
                quote_text(root, MAX_PATH)
            )
        });
        let facts: Vec<String> = [today, root, self.write_secrets(), self.write_templates()]
            .into_iter()
            .flatten()
            .collect();
        if facts.is_empty() {
            return String::new();
        }
        format!("## Facts\n\n{}\n\n", facts.join("\n"))
    }

    fn write_templates(&self) -> Option<String> {
        let lines = self.templates.iter().take(MAX_TEMPLATES).map(|template| {
            let document = &template.document;
            let about = document.title.as_deref().or(document.goal.as_deref());
            let inputs = document.inputs.as_ref().map_or_else(
                || "()".to_owned(),
                |inputs| write_arguments(inputs, SignatureDetail::Kinds),
            );
            let about = quote_text(about.unwrap_or_default(), MAX_TITLE);
            format!("\n  - {} {inputs}: {about}", template.id)
        });
        let lines: String = lines.collect();
        let text = format!(
            "- Saved plans that may fit, each for a step {{\"plan\": {{\"id\": …, \"inputs\": {{}}}}}}:{lines}"
        );
        Some(text).filter(|_| !lines.is_empty())
    }

    fn write_secrets(&self) -> Option<String> {
        let names = self.secrets.iter().take(MAX_SECRETS);
        let names: Vec<String> = names.map(|name| quote_text(name, MAX_NAME)).collect();
        let text = format!(
            "- These secrets can be used as ${{secret.NAME}} in arguments: {}.",
            names.join(", ")
        );
        Some(text).filter(|_| !names.is_empty())
    }
}
