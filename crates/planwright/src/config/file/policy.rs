//! The policy that both files make, and the version that approvals are bound to.

use super::tables::Tool;
use super::{Config, FILE};
use crate::exit::Failure;
use planwright_core::digest::Digest;
use planwright_core::policy::{Policy, PolicyDocument};
use planwright_core::tool::EffectClass;
use planwright_engine::Engine;
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl Config {
    /// What the operator decided about calls and people.
    pub(crate) fn policy(&self) -> Result<Policy, Failure> {
        let mut document = self.policy_document();
        // After those of the file: what it asks about or denies comes first.
        document.rules.extend(self.always.iter().cloned());
        read_policy(&document)
    }

    fn policy_document(&self) -> PolicyDocument {
        let guarded = self.policy.guarded_tools.iter();
        PolicyDocument {
            roles: self.roles.clone(),
            // The folder's file cannot take away what the user guards.
            guarded_tools: guarded
                .chain(&self.user.policy.guarded_tools)
                .cloned()
                .collect(),
            ..self.policy.clone()
        }
    }

    pub(crate) fn rule_count(&self) -> usize {
        self.policy.rules.len()
    }

    /// What the operator decided is part of what is approved: changing it voids earlier approvals.
    /// What the user allows for good is not: it makes no approval wider.
    pub(crate) fn policy_version(&self) -> Result<String, Failure> {
        let policy = read_policy(&self.policy_document())?;
        let version = policy
            .version()
            .unwrap_or(Engine::DEFAULT_POLICY)
            .to_owned();
        // A program that works on steps is part of what is agreed to, as the policy is.
        let executors = [&self.executors, &self.user.executors];
        let version = match executors.iter().all(|tables| tables.is_empty()) {
            true => version,
            false => format!("{version}+{}", Digest::of_json(&json!(executors)).short()),
        };
        if self.tools.is_empty() {
            return Ok(version);
        }
        let decided = |tool: &Tool| json!([tool.class.map(EffectClass::as_str), tool.key_argument]);
        let tools: BTreeMap<&String, Value> = self
            .tools
            .iter()
            .map(|(name, tool)| (name, decided(tool)))
            .collect();
        Ok(format!(
            "{version}+{}",
            Digest::of_json(&json!(tools)).short()
        ))
    }
}

fn read_policy(document: &PolicyDocument) -> Result<Policy, Failure> {
    Policy::read(document).map_err(|error| {
        Failure::usage(format!("{FILE}: [policy] {error}"))
            .hint("To see what can be written: planwright explain policy")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_part_of_the_version_and_every_mistake_in_it_is_named() {
        assert_eq!(
            Config::default().policy_version().unwrap(),
            Engine::DEFAULT_POLICY
        );
        let version = |text: &str| Config::parse(text).unwrap().policy_version().unwrap();
        let one = version("[[policy.rules]]\ntool = 'a.*'\nthen = 'deny'");
        assert!(one.starts_with("policy-"));
        assert_ne!(one, version("[[policy.rules]]\ntool = 'a.*'\nthen = 'ask'"));
        assert_ne!(one, version("[roles]\nadmin = ['person:ada']"));
        let failure = Config::parse(
            "[policy]\nlate_bound = 'args.x == 1'\n[[policy.rules]]\nif = 'unknown == 1'\nthen = 'deny'\n\
             [[policy.rules]]\nthen = 'allow'\n[policy.approval]\nuses = 2",
        )
        .unwrap_err();
        for words in ["late_bound", "rule 1: `unknown`", "rule 2", "expires_after"] {
            assert!(
                failure.message.contains(words),
                "{words}: {}",
                failure.message
            );
        }
        let failure = Config::parse("[[policy.rules]]\ntol = 'x'\nthen = 'deny'").unwrap_err();
        assert_eq!(failure.hint.as_deref(), Some("did you mean `tool`?"));
    }
}
