//! Judges one call: the first rule that matches decides, then the defaults.

use super::read::Rule;
use super::{Mode, Policy, Verdict};
use crate::plan::{ArgumentUse, Condition, Step, without_detours};
use crate::tool::KnownTool;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The names a rule's `if` may use.
pub(super) const NAMES: [&str; 7] = [
    "tool",
    "server",
    "args",
    "step",
    "plan",
    "labels",
    "capability",
];

/// The call that is judged.
#[derive(Debug, Clone, Copy)]
pub struct CallToJudge<'a> {
    /// Absent when no server has such a tool.
    pub tool: Option<&'a KnownTool>,
    /// The arguments as far as they are known.
    pub args: &'a Value,
    /// The arguments that are only known later, by name. Empty when the call is about to be made.
    pub unknown: &'a BTreeSet<String>,
    /// The step the call belongs to.
    pub step: &'a Step,
    /// Id of that step.
    pub step_id: &'a str,
    /// Id of its plan.
    pub plan: &'a str,
    /// An executor chose the arguments, which no approver of the plan has seen.
    pub chosen_by_model: bool,
}

/// The policy's verdict on a call, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The rule that decided; nothing if it was a default.
    pub rule: Option<String>,
    /// The reason in words.
    pub reason: String,
    /// Rules that matched without deciding.
    pub noticed: Vec<UnenforcedRule>,
    /// Rules that can only be decided once the arguments are known.
    pub undecided: Vec<String>,
}

/// A rule that matched and was not enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnenforcedRule {
    /// Label of the rule.
    pub rule: String,
    /// The verdict it would have given.
    pub verdict: Verdict,
    /// The mode that kept it from deciding.
    pub mode: Mode,
    /// The rule's own reason.
    pub reason: Option<String>,
}

impl Judgement {
    /// The rule and its reason, as a step that was denied says it.
    pub fn explain(&self) -> String {
        match &self.rule {
            Some(rule) => format!("{rule}: {}", self.reason),
            None => self.reason.clone(),
        }
    }

    /// The rules that were only to warn.
    pub fn warnings(&self) -> impl Iterator<Item = &UnenforcedRule> {
        self.noticed
            .iter()
            .filter(|noticed| noticed.mode == Mode::Warn)
    }
}

/// The result of matching a rule with a call.
enum Match {
    Yes,
    No,
    /// It depends on arguments that are not known yet.
    Later,
    /// Its `if` cannot be decided. It counts as matching, unless it would allow something.
    Broken(String),
}

impl Policy {
    /// Judges a call.
    pub fn judge_call(&self, subject: &CallToJudge<'_>) -> Judgement {
        let mut judgement = Judgement {
            verdict: Verdict::Deny,
            rule: None,
            reason: "the tool is not known".to_owned(),
            noticed: Vec::new(),
            undecided: Vec::new(),
        };
        let Some(tool) = subject.tool else {
            return judgement;
        };
        let decided = self.apply_rules(subject, tool, &mut judgement);
        (judgement.verdict, judgement.rule, judgement.reason) = match decided {
            Some((Verdict::Allow, rule, _)) if subject.step.receives_secrets() => {
                let reason = format!("the step is given a secret, which {rule} does not hand out");
                (Verdict::Ask, None, reason)
            }
            Some((verdict, rule, reason)) => (verdict, Some(rule), reason),
            None if tool.is_read_only() && subject.step.receives_secrets() => {
                (Verdict::Ask, None, "the step is given a secret".to_owned())
            }
            None if tool.is_read_only() && tool.reaches_out() && !subject.unknown.is_empty() => {
                let reason = "it sends values that are only known later beyond this machine";
                (Verdict::Ask, None, reason.to_owned())
            }
            None if tool.is_read_only() && tool.reaches_out() && subject.chosen_by_model => {
                let reason = "it sends what an executor chose beyond this machine";
                (Verdict::Ask, None, reason.to_owned())
            }
            None if tool.is_read_only() => {
                (Verdict::Allow, None, "the tool is read-only".to_owned())
            }
            None => {
                let doubt = tool.doubt.clone();
                let reason = doubt.unwrap_or_else(|| "the tool is not read-only".to_owned());
                (Verdict::Ask, None, reason)
            }
        };
        if judgement.verdict == Verdict::Allow
            && let Some(pattern) = self.guards(tool)
        {
            let reason = format!("the tool is guarded ({pattern}): only a person lets it through");
            (judgement.verdict, judgement.rule, judgement.reason) = (Verdict::Ask, None, reason);
        }
        let by_default = judgement.verdict == Verdict::Ask && judgement.rule.is_none();
        if subject.step.approval_required && (by_default || judgement.verdict == Verdict::Allow) {
            let reason = "the plan asks for approval of this step".to_owned();
            (judgement.verdict, judgement.rule, judgement.reason) = (Verdict::Ask, None, reason);
        }
        judgement
    }

    fn apply_rules(
        &self,
        subject: &CallToJudge<'_>,
        tool: &KnownTool,
        judgement: &mut Judgement,
    ) -> Option<(Verdict, String, String)> {
        for rule in &self.rules {
            let broken = match rule.matches(subject, tool) {
                Match::Yes => None,
                Match::No => continue,
                Match::Later => {
                    judgement.undecided.push(rule.label.clone());
                    // What would be asked about is asked about now; what would be denied is denied
                    // by then.
                    if rule.then != Verdict::Ask {
                        continue;
                    }
                    Some("its arguments are only known later".to_owned())
                }
                Match::Broken(_) if rule.then == Verdict::Allow => continue,
                Match::Broken(error) => Some(format!("its `if` cannot be decided: {error}")),
            };
            if rule.mode == Mode::Enforce {
                let reason = broken.or_else(|| rule.reason.clone());
                let reason =
                    reason.unwrap_or_else(|| format!("the policy says {}", rule.then.as_str()));
                return Some((rule.then, rule.label.clone(), reason));
            }
            judgement.noticed.push(UnenforcedRule {
                rule: rule.label.clone(),
                verdict: rule.then,
                mode: rule.mode,
                reason: rule.reason.clone(),
            });
        }
        None
    }
}

impl Rule {
    fn matches(&self, subject: &CallToJudge<'_>, tool: &KnownTool) -> Match {
        // Only the exact name is allowed; what looks like a name that is not, is not either.
        let exactly = self.then == Verdict::Allow;
        let name = tool.folded_name();
        if let Some(tools) = &self.tools
            && !tools.iter().any(|p| {
                if exactly {
                    p.matches_exactly(name)
                } else {
                    p.matches_alike(name)
                }
            })
        {
            return Match::No;
        }
        if let Some(server) = &self.server
            && !(if exactly {
                server.matches_exactly(name)
            } else {
                server.matches_alike(name)
            })
        {
            return Match::No;
        }
        let capability = subject.step.capability.as_deref();
        if self.capability.is_some() && self.capability.as_deref() != capability
            || self.class.is_some_and(|class| class != tool.class)
            || !self.annotations.is_met(tool)
        {
            return Match::No;
        }
        self.decide_condition(subject, tool)
    }

    fn decide_condition(&self, subject: &CallToJudge<'_>, tool: &KnownTool) -> Match {
        let Some(condition) = &self.condition else {
            return Match::Yes;
        };
        let later = match condition.arguments() {
            ArgumentUse::All => !subject.unknown.is_empty(),
            ArgumentUse::Fields(fields) => {
                fields.iter().any(|field| subject.unknown.contains(field))
            }
        };
        if later {
            return Match::Later;
        }
        // What allows has to hold for the arguments as they are written and for where their paths
        // lead; what asks or forbids, for one of them.
        if self.then == Verdict::Allow && condition.mistakes_host(subject.args) {
            return Match::No;
        }
        let written = self.decide_on(condition, subject, tool, subject.args);
        let Some(plain) = without_detours(subject.args) else {
            return written;
        };
        let led = self.decide_on(condition, subject, tool, &plain);
        let allows = self.then == Verdict::Allow;
        match (written, led) {
            (broken @ Match::Broken(_), _) | (_, broken @ Match::Broken(_)) => broken,
            (Match::Yes, Match::Yes) => Match::Yes,
            (Match::Yes, _) | (_, Match::Yes) if !allows => Match::Yes,
            (_, _) => Match::No,
        }
    }

    /// Decides the condition on these arguments.
    fn decide_on(
        &self,
        condition: &Condition,
        subject: &CallToJudge<'_>,
        tool: &KnownTool,
        args: &Value,
    ) -> Match {
        let full_name = json!(tool.name.to_string());
        let server = json!(tool.name.server);
        let step = json!(subject.step_id);
        let plan = json!(subject.plan);
        let labels = json!(subject.step.labels);
        let capability = json!(subject.step.capability.as_deref().unwrap_or_default());
        let held = condition.holds([
            ("tool", &full_name),
            ("server", &server),
            ("args", args),
            ("step", &step),
            ("plan", &plan),
            ("labels", &labels),
            ("capability", &capability),
        ]);
        match held {
            Ok(true) => Match::Yes,
            Ok(false) => Match::No,
            Err(error) => Match::Broken(error),
        }
    }
}
