//! What people say about plans: they look, approve, reject, revoke and allow for good.

use super::life::{Life, Look};
use crate::consent_oracle::{Choice, Oracle, Part, To};
use crate::consent_world::{DOINGS, RUNS_PLAN, parts, people, with_always};
use planwright_core::digest::Digest;
use planwright_core::plan::Plan;
use planwright_core::policy::{LateChoice, late_arguments};
use planwright_core::principal::{Assurance, PrincipalKind};
use planwright_core::review::{Offer, Pin, ReviewCommand, Revocation};
use planwright_core::run::Shown;
use std::collections::BTreeMap;

impl Life<'_> {
    /// A person looks at the plan as it is now, and decides about it later.
    pub(super) fn look(&mut self) {
        self.look = Some(Look {
            version: self.review.current().number,
            digest: self.digest(),
            about: self.about(),
        });
    }

    /// A person at the question about the plan allows what it asks about for good.
    pub(super) fn allow_for_good(&mut self) {
        let by = self.dice.pick(&people()[..3]);
        let catalog = self.setting.catalog(&self.tools);
        let judged = self.judge();
        let rules = judged.narrowest_rules(&self.plans[self.child], &catalog);
        for rule in rules {
            assert_eq!(
                rule.condition, None,
                "the tools of this world have no known arguments"
            );
            let shown = judged_parts(self.doing());
            Oracle::always(&by, self.policy, &rule.tool, &shown);
            self.policy = with_always(self.policy, &rule.tool);
            self.tally.always += 1;
        }
    }

    pub(super) fn shown(&mut self, digest: Digest) -> Shown {
        match self.dice.below(12) {
            0 => Shown::Digest(Digest::of_bytes(b"something else")),
            1 => Shown::Version(self.review.current().number.wrapping_sub(1)),
            2 => Shown::Version(self.review.current().number),
            _ => Shown::Digest(digest),
        }
    }

    /// What an approver says about arguments that are not known yet.
    pub(super) fn choose(
        &mut self,
        plan: &Plan,
    ) -> (BTreeMap<String, LateChoice>, Vec<(&'static str, Choice)>) {
        let mut chosen = BTreeMap::new();
        let mut told = Vec::new();
        for (id, argument) in [("b", "to"), ("d", "of")] {
            let has_late = plan
                .find(id)
                .is_some_and(|ix| !late_arguments(plan, ix).is_empty());
            let (choice, word) = match self.dice.below(5) {
                0 => (LateChoice::Any, Choice::Any),
                1 => (LateChoice::Ask, Choice::Ask),
                2 => (
                    format!("!args.{argument}.contains('evil')")
                        .parse()
                        .unwrap(),
                    Choice::NotEvil,
                ),
                _ => continue,
            };
            if has_late {
                chosen.insert(id.to_owned(), choice);
                told.push((id, word));
            }
        }
        (chosen, told)
    }

    pub(super) fn approve(&mut self) {
        let digest = self.digest();
        let policy = self.policy();
        let by = match self.dice.below(6) {
            0 => policy.principal(),
            1 => self.dice.pick(&people()),
            _ => self.dice.pick(&people()[..3]),
        };
        let plan = self.plan();
        let catalog = self.setting.catalog(&self.tools);
        let judged = policy.judge_plan(&plan, &catalog);
        if judged.denial().is_some() {
            return;
        }
        let (chosen, told) = self.choose(&plan);
        judged.check_choices(&plan, &chosen).unwrap();
        let pins = plan.tool_names().into_iter().map(|name| {
            let tool = catalog.resolve(name).unwrap();
            (
                tool.name.to_string(),
                Pin {
                    digest: tool.digest(),
                    definition: None,
                },
            )
        });
        let offer = Offer {
            asks_about: judged
                .asked_steps()
                .next()
                .map(|step| step.step.to_string()),
            pins: pins.collect(),
            late: judged.late_choices(&chosen, &policy.late_bound),
            only_to_go_on: false,
            without_inputs: None,
            policy,
        };
        let token = self.dice.below(2) == 0;
        let assurance = if token {
            Assurance::Token
        } else {
            Assurance::Terminal
        };
        let look = self.look.clone().filter(|_| self.dice.below(3) == 0);
        let shown = match &look {
            Some(look) if self.dice.below(2) == 0 => Shown::Version(look.version),
            Some(look) => Shown::Digest(look.digest),
            None => self.shown(digest),
        };
        let asks_nothing = offer.asks_about.is_none();
        let command = ReviewCommand::Approve {
            shown,
            digest,
            by: by.clone(),
            assurance,
            offer: Box::new(offer),
        };
        let given = self.give(&command);
        if let Some(look) = &look {
            self.tally.looked[usize::from(given)] += u64::from(look.about != self.about());
            let runs_plan = self.document % DOINGS == RUNS_PLAN;
            let is_whole = matches!(shown, Shown::Digest(_)) || runs_plan;
            assert!(
                !given || !is_whole || look.about == self.about(),
                "{by} approved what was not what they had looked at"
            );
        }
        if !given && asks_nothing && by.kind == PrincipalKind::Policy {
            self.tally.lost += u64::from(self.review.lost_safeguards().is_some());
        }
        if given {
            assert!(
                shown == Shown::Digest(digest)
                    || shown == Shown::Version(self.review.current().number)
            );
            let about = self.about();
            let proposer = self.review.current().by.clone();
            let parts = judged_parts(about.0);
            self.oracle
                .approved((&by, &proposer, token), (&about, self.now), &parts, &told);
        }
    }

    pub(super) fn reject(&mut self) {
        let digest = self.digest();
        let shown = self.shown(digest);
        let by = self.dice.pick(&people());
        let command = ReviewCommand::Reject {
            shown,
            digest,
            by,
            reason: "no".into(),
        };
        if self.give(&command) {
            self.oracle.rejected();
        }
    }

    /// A person takes an approval back, or takes another person's access away.
    pub(super) fn revoke(&mut self) {
        let of = self.dice.pick(&people());
        let by = self.dice.pick(&people());
        let tokens = self.dice.below(2) == 0;
        let given = tokens.then_some(Assurance::Token);
        let policy = self.policy();
        let revocation = Revocation {
            of: of.clone(),
            by: by.clone(),
            given,
            reason: None,
            policy,
        };
        let before = self.review.seq();
        if self.give(&ReviewCommand::RevokeApprovals(Box::new(revocation))) {
            self.oracle.revoked(&of, &by, tokens);
            self.tally.revoked += self.review.seq() - before;
        }
    }
}

/// What the oracle is told of a plan before it runs.
fn judged_parts(doing: usize) -> Vec<Part> {
    parts(doing)
        .into_iter()
        .map(|part| {
            if part.id == "d" {
                Part {
                    to: To::Later,
                    ..part
                }
            } else {
                part
            }
        })
        .collect()
}
