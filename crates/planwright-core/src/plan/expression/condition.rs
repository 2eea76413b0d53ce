//! Evaluates a step's own expressions: `when` before it runs, `constraints` about what is sent,
//! `expect` about what came back. What cannot be decided is an error, never a yes.

use super::evaluate::Scope;
use super::hosts::HostPrefixes;
use super::parse::Expression;
use super::plain_paths::without_detours;
use crate::plan::{Plan, StepIx, Values};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Characters of a value that a message shows.
const EXCERPT: usize = 200;

/// An expression that should hold and does not, or that cannot be decided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// The expression is false.
    #[error("`{expression}` is false{about}")]
    False {
        /// The expression as it is written.
        expression: String,
        /// An excerpt of the values it was decided on.
        about: String,
    },
    /// The expression cannot be decided.
    #[error("`{expression}` cannot be decided: {problem}{about}")]
    Undecided {
        /// The expression as it is written.
        expression: String,
        /// The reason it cannot be decided.
        problem: String,
        /// An excerpt of the values it was decided on.
        about: String,
    },
}

/// A step's `expect`, with everything it looks at but the result: it can be checked where the run
/// is out of reach.
#[derive(Debug, Clone)]
pub struct Expectation {
    source: String,
    scope: Scope<'static>,
}

impl Expectation {
    /// Checks what came back.
    pub fn check(&self, result: &Value) -> Result<(), ConditionError> {
        let about = || format!("; the result is {}", excerpt(result));
        let mut scope = Scope::default();
        let borrowed =
            |(name, value): (&String, &'_ Cow<'static, Value>)| (name.clone(), value.clone());
        scope.names.extend(self.scope.names.iter().map(borrowed));
        scope.steps.extend(self.scope.steps.iter().map(borrowed));
        scope
            .names
            .insert("result".to_owned(), Cow::Borrowed(result));
        match decide(&self.source, &scope) {
            Ok(true) => Ok(()),
            Ok(false) => Err(ConditionError::False {
                expression: self.source.clone(),
                about: about(),
            }),
            Err(problem) => Err(ConditionError::Undecided {
                expression: self.source.clone(),
                problem,
                about: about(),
            }),
        }
    }
}

impl Plan {
    /// Returns whether the step runs, as far as its `when` is concerned.
    pub fn check_when(&self, ix: StepIx, values: &dyn Values) -> Result<bool, ConditionError> {
        let Some(source) = &self.step(ix).when else {
            return Ok(true);
        };
        let undecided = |problem| ConditionError::Undecided {
            expression: source.clone(),
            problem,
            about: String::new(),
        };
        let expression = Expression::parse(source).map_err(|error| undecided(error.to_string()))?;
        let scope = self.scope(ix, &expression, None, values);
        expression
            .holds(&scope)
            .map_err(|error| undecided(error.to_string()))
    }

    /// Returns whether `when` is decided for each element of `forEach` on its own, because it looks
    /// at the element.
    pub fn decides_per_element(&self, ix: StepIx) -> bool {
        let step = self.step(ix);
        let names =
            |source: &String| Expression::parse(source).map(|expression| expression.names());
        let is_bound =
            |name: &str| self.document.variables.contains_key(name) || self.names_step(ix, name);
        step.for_each.is_some()
            && step.when.as_ref().map(names).is_some_and(|names| {
                names.is_ok_and(|names| {
                    names
                        .iter()
                        .any(|name| crate::plan::reference::is_loop_name(name) && !is_bound(name))
                })
            })
    }

    /// Checks the step's own constraints and `extra` ones on the arguments as they are sent.
    pub fn check_constraints(
        &self,
        ix: StepIx,
        args: &Map<String, Value>,
        extra: &[String],
        values: &dyn Values,
    ) -> Result<(), ConditionError> {
        let constraints = &self.step(ix).constraints;
        if constraints.is_empty() && extra.is_empty() {
            return Ok(());
        }
        let plain = without_detours(&Value::Object(args.clone()));
        let plain = plain.as_ref().and_then(Value::as_object);
        for source in constraints.iter().chain(extra) {
            let about = || {
                format!(
                    "; the arguments are {}",
                    excerpt(&Value::Object(args.clone()))
                )
            };
            let undecided = |problem| ConditionError::Undecided {
                expression: source.clone(),
                problem,
                about: about(),
            };
            let expression =
                Expression::parse(source).map_err(|error| undecided(error.to_string()))?;
            if HostPrefixes::of(expression.tree()).mistake(&Value::Object(args.clone())) {
                return Err(ConditionError::False {
                    expression: source.clone(),
                    about: about(),
                });
            }
            // As they are written, and as the paths and addresses in them lead.
            for args in std::iter::once(args).chain(plain) {
                let scope = self.scope(ix, &expression, Some(args), values);
                match expression.holds(&scope) {
                    Ok(true) => {}
                    Ok(false) => {
                        return Err(ConditionError::False {
                            expression: source.clone(),
                            about: about(),
                        });
                    }
                    Err(error) => return Err(undecided(error.to_string())),
                }
            }
        }
        Ok(())
    }

    /// Returns the step's expectation about its result, if it has one.
    pub fn expectation(
        &self,
        ix: StepIx,
        args: &Map<String, Value>,
        values: &dyn Values,
    ) -> Option<Expectation> {
        let source = self.step(ix).expect.as_ref()?;
        // One that cannot be read is decided by `check`, which says so.
        let scope = Expression::parse(source).map_or_else(
            |_| Scope::default(),
            |expression| own(self.scope(ix, &expression, Some(args), values)),
        );
        Some(Expectation {
            source: source.clone(),
            scope,
        })
    }

    /// The steps whose values the expressions of `ix` look at.
    pub(in crate::plan) fn steps_of_expressions(
        &self,
        ix: StepIx,
    ) -> impl Iterator<Item = StepIx> + '_ {
        self.templates
            .get(&ix)
            .into_iter()
            .flat_map(|templates| templates.names.values().copied())
    }

    fn names_step(&self, ix: StepIx, name: &str) -> bool {
        self.templates
            .get(&ix)
            .is_some_and(|templates| templates.names.contains_key(name))
    }

    /// The values behind the names of an expression. What has none is left out: naming it is then
    /// an error.
    fn scope<'v>(
        &self,
        ix: StepIx,
        expression: &Expression,
        args: Option<&'v Map<String, Value>>,
        values: &'v dyn Values,
    ) -> Scope<'v> {
        let bound = self.templates.get(&ix).map(|templates| &templates.names);
        let mut scope = Scope::default();
        for name in expression.names() {
            if let Some(id) = name.strip_prefix("steps.") {
                let step = self.find(id).filter(|&step| step != ix);
                if let Some(value) = step.and_then(|step| values.step(step)) {
                    scope.steps.insert(id.to_owned(), Cow::Borrowed(value));
                }
                continue;
            }
            let value = match (args, name.as_str()) {
                (Some(args), "args") => Some(Cow::Owned(Value::Object(args.clone()))),
                // It is put in once it is there.
                (Some(_), "result") => None,
                (args, name) => args
                    .and_then(|args| args.get(name))
                    .map(Cow::Borrowed)
                    .or_else(|| {
                        let step = bound.and_then(|bound| bound.get(name)).copied();
                        let value =
                            step.map_or_else(|| values.variable(name), |step| values.step(step));
                        value.map(Cow::Borrowed)
                    }),
            };
            if let Some(value) = value {
                scope.names.insert(name, value);
            }
        }
        scope
    }
}

fn decide(source: &str, scope: &Scope<'_>) -> Result<bool, String> {
    let expression = Expression::parse(source).map_err(|error| error.to_string())?;
    expression.holds(scope).map_err(|error| error.to_string())
}

fn own(scope: Scope<'_>) -> Scope<'static> {
    let owned = |(name, value): (String, Cow<'_, Value>)| (name, Cow::Owned(value.into_owned()));
    Scope {
        names: scope.names.into_iter().map(owned).collect(),
        steps: scope.steps.into_iter().map(owned).collect(),
    }
}

/// The beginning of a value's JSON.
pub(crate) fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    let mut short: String = text.chars().take(EXCERPT).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
