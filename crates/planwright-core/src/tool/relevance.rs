//! Scores tools and templates by the keywords they have in common with a goal.

use super::ToolDefinition;
use serde_json::Value;
use std::collections::BTreeSet;

/// Keywords that say nothing about what is to be done.
const EMPTY: &[&str] = &[
    "the", "and", "then", "with", "from", "into", "for", "all", "any", "this", "that", "these",
    "those", "its", "are", "was", "has", "have", "will", "should", "must", "can", "not", "but",
    "use", "used", "using", "one", "each", "every", "some", "which", "when", "where", "what",
    "only", "also", "than", "tool", "return", "given",
];

/// The words of a text that say something, in a form in which `reading files` meets `read_file`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keywords(BTreeSet<String>);

impl Keywords {
    /// Longer texts are read up to here: more words do not make a tool more relevant.
    const MAX: usize = 4_096;

    /// Returns the keywords of a text.
    pub fn of(text: &str) -> Self {
        let mut words = Self::default();
        words.add(text);
        words
    }

    fn add(&mut self, text: &str) {
        for_each_keyword(text, |word| {
            if !self.0.contains(word) {
                self.0.insert(word.to_owned());
            }
        });
    }

    /// Returns whether there are no keywords.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of keywords.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of keywords both have.
    pub fn common(&self, other: &Self) -> usize {
        self.0.intersection(&other.0).count()
    }
}

/// Calls with every word that says something, in its form. Most are spelt in that form already, and
/// are not copied.
fn for_each_keyword(text: &str, mut found: impl FnMut(&str)) {
    let end = text
        .char_indices()
        .nth(Keywords::MAX)
        .map_or(text.len(), |(at, _)| at);
    for part in text[..end].split(|c: char| !c.is_alphanumeric()) {
        if part.chars().all(|c| c.is_lowercase() || c.is_numeric()) {
            stem_word(part).into_iter().for_each(&mut found);
        } else {
            split_camel_case(part)
                .iter()
                .filter_map(|word| stem_word(word))
                .for_each(&mut found);
        }
    }
}

/// The words of a goal that were met in other texts.
struct MatchedKeywords<'a> {
    goal: &'a Keywords,
    words: BTreeSet<&'a str>,
}

impl<'a> MatchedKeywords<'a> {
    fn in_text(goal: &'a Keywords, text: &str) -> Self {
        let mut met = Self {
            goal,
            words: BTreeSet::new(),
        };
        met.add(text);
        met
    }

    fn add(&mut self, text: &str) {
        let Self { goal, words } = self;
        for_each_keyword(text, |word| {
            words.extend(goal.0.get(word).map(String::as_str));
        });
    }
}

/// `readTextFile` is three words.
fn split_camel_case(word: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for c in word.chars() {
        if c.is_uppercase() && after_small {
            words.push(String::new());
        }
        after_small = c.is_lowercase();
        words
            .last_mut()
            .expect("there is a first word")
            .extend(c.to_lowercase());
    }
    words
}

/// Endings are dropped, crudely: two spellings of a word need to meet, and nothing else.
fn stem_word(word: &str) -> Option<&str> {
    if word.chars().count() < 3 || EMPTY.contains(&word) {
        return None;
    }
    let base = ["ing", "ies", "ed", "es", "s", "e", "y"]
        .iter()
        .find_map(|ending| {
            word.strip_suffix(ending)
                .filter(|base| base.chars().count() >= 3)
        });
    Some(base.unwrap_or(word))
}

/// Scores how well a tool fits the goal: its name counts most.
pub fn score_relevance(goal: &Keywords, tool: &ToolDefinition) -> usize {
    let name = MatchedKeywords::in_text(goal, &tool.name.name);
    let mut about = MatchedKeywords::in_text(goal, tool.description.as_deref().unwrap_or_default());
    about.add(tool.title.as_deref().unwrap_or_default());
    about.add(&tool.name.server);
    let properties = tool
        .input_schema
        .get("properties")
        .and_then(Value::as_object);
    for argument in properties.into_iter().flatten().map(|(name, _)| name) {
        about.add(argument);
    }
    4 * name.words.len() + about.words.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_goal_meets_the_names_of_tools_in_other_spellings() {
        let goal = Keywords::of("Reading the files, then searching for usages");
        let read = ToolDefinition::new("fs", "readFile", "", json!({}));
        let search = ToolDefinition::new("fs", "search_code", "Finds usages.", json!({}));
        let other = ToolDefinition::new("mail", "send", "Delivers a letter.", json!({}));
        assert!(score_relevance(&goal, &read) >= 8);
        assert!(score_relevance(&goal, &search) >= 5);
        assert_eq!(score_relevance(&goal, &other), 0);
    }
}
