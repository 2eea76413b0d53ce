//! Arguments that are only known once other steps have answered, and what the approver says about
//! them.

use crate::plan::{Condition, Plan, Root, StepIx, Template};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The approver's choice for a step whose arguments were not all known.
#[derive(Debug, Clone, PartialEq)]
pub enum LateChoice {
    /// Any value is accepted.
    Any,
    /// The concrete call is shown and asked about once it is known.
    Ask,
    /// Only if this holds for the arguments that are sent.
    Constraint(Condition),
}

/// The error for a text that is no choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not `any`, not `ask`, and not a CEL predicate over the arguments: {0}")]
pub struct ParseLateChoiceError(String);

impl FromStr for LateChoice {
    type Err = ParseLateChoiceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "any" => Ok(Self::Any),
            "ask" => Ok(Self::Ask),
            _ => Condition::parse(text)
                .map(Self::Constraint)
                .map_err(ParseLateChoiceError),
        }
    }
}

impl fmt::Display for LateChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Ask => f.write_str("ask"),
            Self::Constraint(condition) => f.write_str(condition.source()),
        }
    }
}

impl LateChoice {
    /// Describes the choice for the approver.
    pub fn describe(&self) -> String {
        match self {
            Self::Any => "any value".to_owned(),
            Self::Ask => "asked again once known".to_owned(),
            Self::Constraint(condition) => format!("only if {}", condition.source()),
        }
    }

    /// Says what follows from the choice, for the approver who is about to agree.
    pub fn consequence(&self) -> String {
        match self {
            Self::Any => "uses results of earlier steps, sent unchanged".to_owned(),
            Self::Ask => "you are asked again once its values are known".to_owned(),
            Self::Constraint(condition) => format!("only if {}", condition.source()),
        }
    }
}

impl Serialize for LateChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LateChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// The arguments of a step that depend on what a tool returns, by name. Variables and secrets are
/// known, and the elements of a list that is written out can be read.
pub fn late_arguments(plan: &Plan, ix: StepIx) -> Vec<String> {
    let loops = plan
        .step(ix)
        .for_each
        .as_ref()
        .is_some_and(|list| list.to_string().contains("${"));
    arguments_known_late(plan, ix, loops)
}

/// The arguments of a step that no rule can be decided on before it runs, by name: also those that
/// differ from one element of a loop to the next.
pub(super) fn unknown_arguments(plan: &Plan, ix: StepIx) -> Vec<String> {
    arguments_known_late(plan, ix, plan.step(ix).for_each.is_some())
}

fn arguments_known_late(plan: &Plan, ix: StepIx, loops: bool) -> Vec<String> {
    match plan.args_template(ix).or_else(|| plan.inputs_template(ix)) {
        Some(Template::Object(fields)) => {
            let late = fields
                .iter()
                .filter(|(_, template)| is_late(plan, template, loops));
            late.map(|(name, _)| name.clone()).collect()
        }
        Some(
            Template::Literal(_) | Template::Reference(_) | Template::Text(_) | Template::List(_),
        )
        | None => Vec::new(),
    }
}

fn is_late(plan: &Plan, template: &Template, loops: bool) -> bool {
    let mut late = false;
    template.each_reference(&mut |reference| {
        late |= match &reference.root {
            Root::Variable(name) => loops && !plan.document().variables.contains_key(&**name),
            Root::Secret(_) => false,
            Root::Step(_) => true,
        };
    });
    late
}
