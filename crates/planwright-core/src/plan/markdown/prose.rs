//! Plans that agents write for people: Markdown with or without steps.

use super::form::{from_markdown, plain_text};
use crate::plan::escape;
use crate::plan::{Bounds, Document, ReadPlanError};
use crate::text::sanitize_line;
use serde_json::json;

/// The longest title that is taken from a text, in characters.
const MAX_TITLE: usize = 120;

/// Reads Markdown that names steps or tasks, if it does; nothing if it is prose.
pub fn steps_of_markdown(text: &[u8], bounds: &Bounds) -> Option<Document> {
    let read = from_markdown(text, bounds).ok()?;
    (!read.document.steps.is_empty()).then_some(read.document)
}

/// Makes a plan of prose: one instruction for an agent, which is the whole text as it is written.
/// Nothing in it is a reference.
pub fn plan_of_prose(text: &[u8], bounds: &Bounds) -> Result<Document, ReadPlanError> {
    let text = plain_text(text, bounds)?;
    let title = find_title(&text);
    Document::from_json(
        json!({
            "title": escape(&title),
            "steps": [{ "id": "do", "title": escape(&title), "agent": { "instruction": escape(&text) } }],
            "toolsRequired": [],
        }),
        bounds,
    )
}

/// The first heading, else the first line that says something.
fn find_title(text: &str) -> String {
    let says = |line: &&str| line.chars().any(char::is_alphanumeric);
    let mut lines = text.lines().filter(says);
    let heading = text
        .lines()
        .find(|line| line.starts_with('#') && says(line));
    let line = heading.or_else(|| lines.next()).unwrap_or("A plan");
    let line = line.trim_start_matches('#').trim();
    let title: String = sanitize_line(line).chars().take(MAX_TITLE).collect();
    if title.is_empty() {
        "A plan".to_owned()
    } else {
        title
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Code, Finding, validate};
    use crate::tool::Catalog;

    #[test]
    fn prose_becomes_one_instruction_and_nothing_in_it_is_a_reference() {
        let text =
            "Let us begin.\n\n# Rename ${files}\n\nMove `a` to `b`, then run ${secret.TOKEN}.\n";
        let bounds = Bounds::default();
        assert_eq!(steps_of_markdown(text.as_bytes(), &bounds), None);
        let document = plan_of_prose(text.as_bytes(), &bounds).unwrap();
        assert_eq!(document.title.as_deref(), Some("Rename $${files}"));
        let checked = validate(document, &Catalog::default(), &bounds);
        let wrong: Vec<&Finding> = checked
            .findings
            .iter()
            .filter(|finding| finding.is_error() && finding.code != Code::MissingExecutor)
            .collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        let plan = checked.plan.unwrap();
        let agent = plan.document().steps[0].agent.as_deref().unwrap();
        assert!(agent.instruction.contains("$${secret.TOKEN}"));
    }

    #[test]
    fn tasks_and_steps_are_steps() {
        let bounds = Bounds::default();
        for text in [
            "# Fix it\n\n- [ ] read the code\n- [ ] change it\n",
            "# Fix it\n\n## Steps\n1. read the code\n2. change it\n",
        ] {
            let document = steps_of_markdown(text.as_bytes(), &bounds).unwrap();
            assert_eq!(document.steps.len(), 2, "{text}");
        }
    }

    #[test]
    fn a_text_of_nothing_still_has_a_title() {
        let document = plan_of_prose(b"## \n\n", &Bounds::default()).unwrap();
        assert_eq!(document.title.as_deref(), Some("A plan"));
    }
}
