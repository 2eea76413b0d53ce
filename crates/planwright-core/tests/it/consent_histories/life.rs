//! The life of one plan: how things stand in it, and what happens next.

use super::runs::Live;
use super::tally::Tally;
use crate::consent_oracle::{Fingerprint, Oracle};
use crate::consent_world::{
    BASES, DOCUMENTS, DOINGS, RUNS_PLAN, TOOLS, make_catalog, parts, people,
};
use planwright_core::digest::Digest;
use planwright_core::journal::{Cause, Entry};
use planwright_core::plan::{Document, Plan};
use planwright_core::policy::{JudgedPlan, Policy};
use planwright_core::review::{Review, ReviewCommand, ReviewEvent};
use planwright_core::time::Timestamp;
use planwright_core::tool::Catalog;
use planwright_testing::dice::Dice;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is the same in all histories.
pub(super) struct Setting {
    pub(super) policies: Vec<Arc<Policy>>,
    pub(super) documents: Vec<Arc<Document>>,
    /// Each with either of the plans that it may run.
    pub(super) plans: Vec<[Arc<Plan>; 2]>,
    pub(super) digests: BTreeMap<Fingerprint, Digest>,
    pub(super) catalogs: BTreeMap<Vec<u32>, Catalog>,
}

impl Setting {
    pub(super) fn catalog(&mut self, versions: &[u32]) -> Catalog {
        if !self.catalogs.contains_key(versions) {
            self.catalogs
                .insert(versions.to_vec(), make_catalog(versions));
        }
        self.catalogs[versions].clone()
    }
}

/// Something that a person looked at, to decide about it later.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub(super) version: u32,
    pub(super) digest: Digest,
    pub(super) about: Fingerprint,
}

pub(super) struct Life<'a> {
    pub(super) setting: &'a mut Setting,
    pub(super) tally: &'a mut Tally,
    pub(super) dice: Dice,
    pub(super) oracle: Oracle,
    pub(super) now: i64,
    /// What the current version is meant to be.
    pub(super) document: usize,
    /// What it is, compiled with either child.
    pub(super) plans: [Arc<Plan>; 2],
    /// It is what it is meant to be.
    pub(super) as_meant: bool,
    /// The plan that `RUNS_PLAN` runs.
    pub(super) child: usize,
    pub(super) look: Option<Look>,
    pub(super) tools: Vec<u32>,
    pub(super) policy: usize,
    pub(super) review: Review,
    pub(super) review_entries: Vec<Entry<ReviewEvent>>,
    pub(super) run: Option<Live>,
    pub(super) runs: u32,
}

impl<'a> Life<'a> {
    pub(super) fn begin(setting: &'a mut Setting, tally: &'a mut Tally, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let document = dice.below(DOCUMENTS);
        let policy = dice.below(BASES);
        let by = dice.pick(&people());
        let first =
            Review::propose_first(Arc::clone(&setting.documents[document]), Digest::ZERO, by);
        let entry = Entry {
            seq: 1,
            at: at(0),
            epoch: 0,
            cause: Cause::Command,
            event: first,
        };
        let review = Review::open("p".parse().unwrap(), &entry).unwrap();
        let mut oracle = Oracle::default();
        oracle.proposed(document % DOINGS);
        let tools = vec![0; TOOLS.len()];
        let plans = setting.plans[document].clone();
        Self {
            setting,
            tally,
            dice,
            oracle,
            document,
            plans,
            as_meant: true,
            child: 0,
            look: None,
            policy,
            review,
            tools,
            now: 0,
            review_entries: vec![entry],
            run: None,
            runs: 0,
        }
    }

    pub(super) fn about(&self) -> Fingerprint {
        // Only tools that the plan uses are part of what is approved.
        let doing = self.doing();
        let used: BTreeSet<&str> = parts(doing).iter().map(|part| part.tool).collect();
        let versions = TOOLS.iter().zip(&self.tools);
        let versions = versions.map(|(name, &version)| {
            if used.contains(&*format!("s.{name}")) {
                version
            } else {
                0
            }
        });
        // No person is asked about `undo` here, but its tool is pinned: it is `s.read`, as `a` is.
        (doing, versions.collect(), self.policy)
    }

    /// What the plan does, with the child as it is.
    pub(super) fn doing(&self) -> usize {
        match self.document % DOINGS {
            RUNS_PLAN => RUNS_PLAN + self.child,
            doing => doing,
        }
    }

    /// The plan as it would run now.
    pub(super) fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plans[self.child])
    }

    pub(super) fn judge(&mut self) -> JudgedPlan {
        let catalog = self.setting.catalog(&self.tools);
        self.policy().judge_plan(&self.plans[self.child], &catalog)
    }

    pub(super) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.setting.policies[self.policy])
    }

    pub(super) fn digest(&mut self) -> Digest {
        let about = self.about();
        let plan = &self.plans[self.child];
        let policy = &self.setting.policies[self.policy];
        let take = |about: &Fingerprint| {
            plan.digest(
                &make_catalog(&about.1),
                policy.version().unwrap_or("default-1"),
            )
        };
        if !self.as_meant {
            return take(&about);
        }
        let digests = &mut self.setting.digests;
        *digests.entry(about).or_insert_with_key(take)
    }

    pub(super) fn step(&mut self) {
        match self.dice.below(32) {
            0 => self.edit(),
            24 => self.rewrite(),
            25 => self.child = self.dice.below(2),
            26 => self.look(),
            27 if self.dice.below(4) == 0 => self.allow_for_good(),
            28 | 29 => self.stand_still(),
            30 => self.leave_out(),
            31 if self.dice.below(2) == 0 => self.end(),
            1 => {
                let tool = self.dice.below(self.tools.len());
                self.tools[tool] = u32::try_from(self.dice.below(3)).unwrap();
            }
            // What people always allow stays theirs when the operator changes the rules, until they
            // take it back.
            2 => {
                let always = if self.dice.below(4) == 0 {
                    0
                } else {
                    self.policy / BASES
                };
                self.policy = self.dice.below(BASES) + BASES * always;
            }
            3 => self.now += i64::try_from(self.dice.below(15_000)).unwrap(),
            4..=7 => self.approve(),
            8 => self.reject(),
            9..=11 => {
                let narrower = self.dice.below(8) == 0;
                self.open(narrower);
                if self.dice.below(5) == 0 {
                    self.leave_out();
                }
                self.work();
                if self.dice.below(4) == 0 {
                    let tool = self.dice.below(self.tools.len());
                    self.tools[tool] += 1;
                }
                self.work();
            }
            12 => self.crash(),
            13..=15 => {
                self.answer_step();
                self.work();
            }
            16 => self.race(),
            17 => self.revoke(),
            _ => self.work(),
        }
    }

    pub(super) fn give(&mut self, command: &ReviewCommand) -> bool {
        let Ok(events) = self.review.decide(command, at(self.now)) else {
            self.tally.refused += 1;
            return false;
        };
        self.write(events);
        true
    }

    pub(super) fn write(&mut self, events: Vec<ReviewEvent>) {
        for event in events {
            let seq = self.review.seq() + 1;
            let entry = Entry {
                seq,
                at: at(self.now),
                epoch: 0,
                cause: Cause::Command,
                event,
            };
            self.review
                .apply(&entry)
                .expect("what was decided can be applied");
            self.review_entries.push(entry);
        }
    }
}

pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_000_000 + millis)
}
