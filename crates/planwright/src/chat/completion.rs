//! What the person may have begun to type: slash commands, and the names their arguments can have.

use reedline::{Completer, CompletionResult, Span, Suggestion};
use std::sync::{Arc, Mutex, PoisonError};

/// The slash commands, in the order in which they are listed.
pub(super) const COMMANDS: [&str; 29] = [
    "/plan create",
    "/plan list",
    "/plan show",
    "/plan run",
    "/plan resume",
    "/plan fork",
    "/plan input",
    "/plan resolve",
    "/plan pause",
    "/plan cancel",
    "/plan undo",
    "/plan edit",
    "/plan regenerate",
    "/plan diff",
    "/plan comment",
    "/plan approve",
    "/plan reject",
    "/plan delete",
    "/plan",
    "/plans",
    "/plan-stats",
    "/tools",
    "/servers",
    "/model",
    "/cost",
    "/clear",
    "/help",
    "/quit",
    "/exit",
];

/// The most that is suggested.
const MAX_SHOWN: usize = 50;

/// The names that can be completed, brought up to date before every line.
#[derive(Debug, Clone, Default)]
pub(super) struct NameCompleter(Arc<Mutex<CompletionNames>>);

#[derive(Debug, Clone, Default)]
pub(super) struct CompletionNames {
    pub(super) plans: Vec<String>,
    pub(super) tools: Vec<String>,
    pub(super) models: Vec<String>,
}

impl NameCompleter {
    pub(super) fn set(&self, known: CompletionNames) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// Returns where the completed piece begins, and what it could become.
    pub(super) fn complete(&self, line: &str) -> (usize, Vec<String>) {
        if !line.starts_with('/') {
            return (0, Vec::new());
        }
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let command = line[..start].trim_end();
        let names: Option<&[String]> = match command {
            "/tools" => Some(&known.tools),
            "/model" => Some(&known.models),
            "/plan create" | "/plan list" => None,
            of_plan if of_plan.strip_prefix("/plan ").is_some_and(is_one_word) => {
                Some(&known.plans)
            }
            _ => None,
        };
        if let Some(names) = names {
            let begun = &line[start..];
            let fitting = names
                .iter()
                .filter(|name| name.starts_with(begun))
                .take(MAX_SHOWN);
            return (start, fitting.cloned().collect());
        }
        let fitting = COMMANDS.iter().filter(|command| command.starts_with(line));
        (0, fitting.map(|&command| command.to_owned()).collect())
    }
}

fn is_one_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

impl Completer for NameCompleter {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let (start, found) = Self::complete(self, line.get(..pos).unwrap_or_default());
        let suggestion = |value: String| Suggestion {
            value,
            span: Span::new(start, pos),
            append_whitespace: true,
            ..Suggestion::default()
        };
        CompletionResult::fresh(found.into_iter().map(suggestion).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_the_names_they_take_are_completed() {
        let names = NameCompleter::default();
        names.set(CompletionNames {
            plans: vec!["deploy".into(), "demo".into()],
            tools: vec!["local.read_file".into()],
            models: vec!["openai/x".into()],
        });
        let of = |line: &str| names.complete(line);
        assert_eq!(of("/plan s"), (0, vec!["/plan show".into()]));
        assert_eq!(
            of("/plan show de"),
            (11, vec!["deploy".into(), "demo".into()])
        );
        assert_eq!(of("/tools local."), (7, vec!["local.read_file".into()]));
        assert_eq!(of("/model "), (7, vec!["openai/x".into()]));
        assert_eq!(of("hello /pl"), (0, Vec::new()));
        assert_eq!(of("/cl").1, ["/clear"]);
    }
}
