//! Which tools and templates a goal seems to be about: words they have in common.

use crate::tool::ToolDefinition;
use serde_json::Value;
use std::collections::BTreeSet;

/// Words that say nothing about what is to be done.
const EMPTY: &[&str] = &[
    "the", "and", "then", "with", "from", "into", "for", "all", "any", "this", "that", "these", "those",
    "its", "are", "was", "has", "have", "will", "should", "must", "can", "not", "but", "use", "used",
    "using", "one", "each", "every", "some", "which", "when", "where", "what", "only", "also", "than",
    "tool", "return", "given",
];

/// The words of a text that say something, in a form in which `reading files` meets `read_file`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words(BTreeSet<String>);

impl Words {
    /// Longer texts are read up to here: more words do not make a tool more relevant.
    const MAX: usize = 4_096;

    pub fn of(text: &str) -> Self {
        let mut words = Self::default();
        words.add(text);
        words
    }

    fn add(&mut self, text: &str) {
        let end = text.char_indices().nth(Self::MAX).map_or(text.len(), |(at, _)| at);
        let parts = text[..end].split(|c: char| !c.is_alphanumeric());
        self.0.extend(parts.flat_map(humps).filter_map(|word| stem(&word)));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// How many words both have.
    pub fn common(&self, other: &Self) -> usize {
        self.0.intersection(&other.0).count()
    }
}

/// `readTextFile` is three words.
fn humps(word: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for c in word.chars() {
        if c.is_uppercase() && after_small {
            words.push(String::new());
        }
        after_small = c.is_lowercase();
        words.last_mut().expect("there is a first word").extend(c.to_lowercase());
    }
    words
}

/// Endings are dropped, crudely: two spellings of a word need to meet, and nothing else.
fn stem(word: &str) -> Option<String> {
    if word.chars().count() < 3 || EMPTY.contains(&word) {
        return None;
    }
    let base = ["ing", "ies", "ed", "es", "s", "e", "y"]
        .iter()
        .find_map(|ending| word.strip_suffix(ending).filter(|base| base.chars().count() >= 3));
    Some(base.unwrap_or(word).to_owned())
}

/// How much a tool seems to be about the goal: its name counts most.
pub fn relevance(goal: &Words, tool: &ToolDefinition) -> usize {
    let name = Words::of(&tool.name.name);
    let mut about = Words::of(tool.description.as_deref().unwrap_or_default());
    about.add(tool.title.as_deref().unwrap_or_default());
    about.add(&tool.name.server);
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    for argument in properties.into_iter().flatten().map(|(name, _)| name) {
        about.add(argument);
    }
    4 * goal.common(&name) + goal.common(&about)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_goal_meets_the_names_of_tools_in_other_spellings() {
        let goal = Words::of("Reading the files, then searching for usages");
        let read = ToolDefinition::new("fs", "readFile", "", json!({}));
        let search = ToolDefinition::new("fs", "search_code", "Finds usages.", json!({}));
        let other = ToolDefinition::new("mail", "send", "Delivers a letter.", json!({}));
        assert!(relevance(&goal, &read) >= 8);
        assert!(relevance(&goal, &search) >= 5);
        assert_eq!(relevance(&goal, &other), 0);
    }
}
