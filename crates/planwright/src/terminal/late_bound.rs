//! What the approver says about arguments that are only known later: `--late`.

use crate::exit::Failure;
use planwright_core::policy::{JudgedPlan, LateChoice};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct LateFlags {
    /// What holds for arguments that are only known later: `any`, `ask` (see the call first), or
    /// for one step also a CEL predicate over its arguments, as in `--late
    /// 'send=args.to.endsWith("@example.org")'`.
    #[arg(long = "late", value_name = "[STEP=]any|ask|CEL")]
    late: Vec<String>,
}

/// The flags, read: a choice for all steps and choices for single ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct LateChoices {
    all: Option<LateChoice>,
    steps: BTreeMap<String, LateChoice>,
}

impl LateFlags {
    pub(crate) fn read(&self) -> Result<LateChoices, Failure> {
        let mut choices = LateChoices::default();
        for flag in &self.late {
            match flag.as_str() {
                "any" => choices.all = Some(LateChoice::Any),
                "ask" => choices.all = Some(LateChoice::Ask),
                _ => {
                    let Some((step, choice)) =
                        flag.split_once('=').filter(|(step, _)| is_step(step))
                    else {
                        return Err(Failure::usage(format!(
                            "`--late {flag}` is not STEP=any, STEP=ask or STEP=CEL"
                        ))
                        .hint("for all steps at once: --late any or --late ask"));
                    };
                    let choice = choice
                        .parse()
                        .map_err(|error| Failure::usage(format!("--late {step}: {error}")))?;
                    choices.steps.insert(step.to_owned(), choice);
                }
            }
        }
        Ok(choices)
    }
}

/// Returns whether this can be the id of a step, and not the beginning of an expression.
fn is_step(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

impl LateChoices {
    /// Returns whether nothing was chosen.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_none() && self.steps.is_empty()
    }

    /// The choices that were made, for every step they are about.
    pub(crate) fn choices_for(&self, judged: &JudgedPlan) -> BTreeMap<String, LateChoice> {
        let mut chosen = BTreeMap::new();
        if let Some(all) = &self.all {
            for step in judged.steps.iter().filter(|step| !step.late.is_empty()) {
                chosen.insert(step.step.to_string(), all.clone());
            }
        }
        chosen.extend(self.steps.clone());
        chosen
    }
}
