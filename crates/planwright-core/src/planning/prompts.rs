//! The texts of prompts: files with named places, which users can replace by their own.
//!
//! A place is `{{name}}`. Each is filled once; what is put in is never scanned again.

use std::collections::BTreeMap;

/// A prompt that this program knows.
#[derive(Debug, Clone, Copy)]
pub struct PromptTemplate {
    /// Also the name of the file that replaces it, with `.md`.
    pub name: &'static str,
    /// The text if the user did not replace it.
    pub text: &'static str,
    /// The places that can be filled.
    pub places: &'static [&'static str],
    /// The places without which the prompt would make no sense.
    pub required: &'static [&'static str],
}

/// Rules for every plan, and the tools.
pub(super) const PLANNER: PromptTemplate = PromptTemplate {
    name: "planner",
    text: include_str!("prompts/planner.md"),
    places: &["tools", "maxSteps"],
    required: &["tools"],
};

/// The same for models that read little and can do little.
pub(super) const PLANNER_SMALL: PromptTemplate = PromptTemplate {
    name: "planner-small",
    text: include_str!("prompts/planner-small.md"),
    places: &["tools", "maxSteps"],
    required: &["tools"],
};

pub(super) const CREATE: PromptTemplate = PromptTemplate {
    name: "create",
    text: include_str!("prompts/create.md"),
    places: &["workspace", "context", "goal"],
    required: &["goal"],
};

pub(super) const REGENERATE: PromptTemplate = PromptTemplate {
    name: "regenerate",
    text: include_str!("prompts/regenerate.md"),
    places: &["workspace", "context", "plan", "remarks", "task", "goal"],
    required: &["plan", "task"],
};

pub(super) const REPLAN: PromptTemplate = PromptTemplate {
    name: "replan",
    text: include_str!("prompts/replan.md"),
    places: &["workspace", "context", "plan", "progress", "task", "goal"],
    required: &["plan", "progress", "task"],
};

pub(super) const REPAIR: PromptTemplate = PromptTemplate {
    name: "repair",
    text: include_str!("prompts/repair.md"),
    places: &["findings"],
    required: &["findings"],
};

/// Instructions for the reflector before it looks at a run. The run itself is not part of the text.
pub const REFLECT: PromptTemplate = PromptTemplate {
    name: "reflect",
    text: include_str!("../adjust/prompts/reflect.md"),
    places: &[],
    required: &[],
};

/// Instructions for the reflector before it looks at success criteria.
pub const CHECK: PromptTemplate = PromptTemplate {
    name: "check",
    text: include_str!("../adjust/prompts/check.md"),
    places: &[],
    required: &[],
};

/// Instructions for every executor of an `agent` step.
pub const EXECUTOR: PromptTemplate = PromptTemplate {
    name: "executor",
    text: include_str!("prompts/executor.md"),
    places: &["tools", "goal"],
    required: &["tools"],
};

/// Instructions for a model that talks with a person.
pub const CHAT: PromptTemplate = PromptTemplate {
    name: "chat",
    text: include_str!("prompts/chat.md"),
    places: &["tools", "goal"],
    required: &[],
};

/// The prompts that can be replaced.
pub const PROMPTS: [PromptTemplate; 10] = [
    PLANNER,
    PLANNER_SMALL,
    CREATE,
    REGENERATE,
    REPLAN,
    REPAIR,
    REFLECT,
    CHECK,
    EXECUTOR,
    CHAT,
];

/// The prompts that the user replaced, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompts(BTreeMap<String, String>);

/// The reason a replaced prompt cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FillPromptError {
    /// The prompt has a placeholder that nothing fills.
    #[error("the prompt `{prompt}` has a place `{{{{{place}}}}}` that nothing belongs to; it can have {}", known.join(", "))]
    UnknownPlace {
        /// Name of the prompt.
        prompt: String,
        /// Name of the placeholder.
        place: String,
        /// Placeholders it can have.
        known: Vec<String>,
    },
    /// The prompt lacks a placeholder it needs.
    #[error("the prompt `{prompt}` has no place `{{{{{place}}}}}`, and says nothing without it")]
    MissingPlace {
        /// Name of the prompt.
        prompt: String,
        /// Name of the placeholder.
        place: String,
    },
    /// The prompt is too long.
    #[error(
        "the prompt `{prompt}` has {bytes} bytes, at most {} are read",
        Prompts::MAX_BYTES
    )]
    TooLong {
        /// Name of the prompt.
        prompt: String,
        /// Its length.
        bytes: usize,
    },
}

impl Prompts {
    /// A longer prompt is a mistake.
    pub const MAX_BYTES: usize = 64 << 10;

    /// Replaces a prompt.
    #[must_use]
    pub fn with_prompt(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.0.insert(name.into(), text.into());
        self
    }

    /// The names of those that were replaced.
    pub fn replaced_names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The prompt with its places filled. A place that is given nothing is empty.
    pub fn fill_prompt(
        &self,
        form: &PromptTemplate,
        values: &[(&str, &str)],
    ) -> Result<String, FillPromptError> {
        let text = self.0.get(form.name).map_or(form.text, String::as_str);
        if text.len() > Self::MAX_BYTES {
            return Err(FillPromptError::TooLong {
                prompt: form.name.to_owned(),
                bytes: text.len(),
            });
        }
        let mut filled = String::with_capacity(text.len());
        let mut found = Vec::new();
        let mut rest = text;
        while let Some((before, place, after)) = next_place(rest) {
            if !form.places.contains(&place) {
                return Err(FillPromptError::UnknownPlace {
                    prompt: form.name.to_owned(),
                    place: place.to_owned(),
                    known: form
                        .places
                        .iter()
                        .map(|place| format!("{{{{{place}}}}}"))
                        .collect(),
                });
            }
            filled.push_str(before);
            filled.push_str(
                values
                    .iter()
                    .find(|(name, _)| *name == place)
                    .map_or("", |(_, value)| value),
            );
            found.push(place);
            rest = after;
        }
        filled.push_str(rest);
        match form.required.iter().find(|place| !found.contains(*place)) {
            Some(place) => Err(FillPromptError::MissingPlace {
                prompt: form.name.to_owned(),
                place: (*place).to_owned(),
            }),
            None => Ok(filled),
        }
    }
}

/// The text before the next place, its name, and the text after it. Other braces are text.
fn next_place(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find("{{").map(|at| from + at) {
        let inside = &text[open + 2..];
        let length = inside
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(inside.len());
        if length > 0 && inside[length..].starts_with("}}") {
            return Some((&text[..open], &inside[..length], &inside[length + 2..]));
        }
        from = open + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_into_a_prompt_is_not_looked_at_again() {
        let filled = Prompts::default().fill_prompt(
            &PromptTemplate {
                name: "x",
                text: "{{a}}|{{b}}|{{{a}}|{ {a}}",
                places: &["a", "b"],
                required: &[],
            },
            &[("a", "{{b}}"), ("b", "${secret.X}{{a}}")],
        );
        assert_eq!(filled.unwrap(), "{{b}}|${secret.X}{{a}}|{{{b}}|{ {a}}");
    }

    #[test]
    fn a_mistyped_place_and_a_missing_one_are_reported() {
        let prompts = Prompts::default().with_prompt("create", "do {{gaol}}");
        let error = prompts.fill_prompt(&CREATE, &[]).unwrap_err().to_string();
        assert!(
            error.contains("`{{gaol}}`") && error.contains("{{goal}}"),
            "{error}"
        );
        let prompts = Prompts::default().with_prompt("create", "do it");
        assert!(matches!(
            prompts.fill_prompt(&CREATE, &[]),
            Err(FillPromptError::MissingPlace { .. })
        ));
        let prompts = Prompts::default().with_prompt("create", "x".repeat(Prompts::MAX_BYTES + 1));
        assert!(matches!(
            prompts.fill_prompt(&CREATE, &[]),
            Err(FillPromptError::TooLong { .. })
        ));
    }

    #[test]
    fn every_prompt_can_be_filled_as_it_is() {
        for form in PROMPTS {
            let values: Vec<(&str, &str)> = form.places.iter().map(|place| (*place, "X")).collect();
            let text = Prompts::default().fill_prompt(&form, &values).unwrap();
            assert!(!text.contains("{{"), "{text}");
        }
    }
}
