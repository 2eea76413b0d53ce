//! The oracle: its own books about what people trusted and agreed to, from which it says what may
//! leave. It shares no rule with the program.

use super::files::{Brought, Effective, Files, Says, tightens};
use std::collections::BTreeMap;

/// What is run: a plan, and what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct About {
    pub(super) plan: &'static str,
    pub(super) content: String,
    policy: &'static str,
    /// A program that works on steps is part of what is agreed to, trusted or not.
    executor: usize,
}

#[derive(Debug, Clone)]
struct Yes {
    about: About,
    uses: u32,
}

/// A version of the plan that changes: whether it has a limit, and whether a person agreed to it.
#[derive(Debug, Clone, Copy)]
struct Told {
    limited: bool,
    by_person: bool,
}

/// An order to run a plan, as it was given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    pub(super) agent: bool,
    pub(super) yes: bool,
    /// The servers, models and executors of the folder are to count for this command.
    pub(super) flag: bool,
}

/// Why a call may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Covered {
    ByPolicy,
    Always,
    Approved,
    ByYes,
}

#[derive(Debug, Default)]
pub(super) struct Books {
    trusted: BTreeMap<Brought, usize>,
    pub(super) always: bool,
    yes: Vec<Yes>,
    versions: Vec<Told>,
}

impl Books {
    /// A person trusts all that the files say now.
    pub(super) fn trust(&mut self, files: &Files) {
        for of in super::files::ALL {
            if !tightens(of, files.way(of)) {
                self.trusted.insert(of, files.way(of));
            }
        }
    }

    /// A person takes it back.
    pub(super) fn revoke(&mut self) {
        self.trusted.clear();
    }

    /// Whether what the files say about something counts: exactly that was trusted.
    pub(super) fn counts(&self, files: &Files, of: Brought) -> bool {
        let way = files.way(of);
        tightens(of, way) || self.trusted.get(&of) == Some(&way)
    }

    /// Whether it counts for this command.
    pub(super) fn counts_for(&self, files: &Files, of: Brought, order: Order) -> bool {
        let for_now = matches!(of, Brought::Executor | Brought::Server | Brought::Provider);
        let flagged = for_now && order.flag && !order.agent;
        files.way(of) > 0 && (flagged || self.counts(files, of))
    }

    pub(super) fn policy(&self, files: &Files) -> Effective {
        let way = files.way(Brought::Policy);
        Effective::new(way, self.counts(files, Brought::Policy))
    }

    pub(super) fn about(&self, files: &Files, plan: &'static str, content: String) -> About {
        About {
            plan,
            content,
            policy: self.policy(files).text(),
            executor: files.way(Brought::Executor),
        }
    }

    /// A version was proposed of the plan that changes. An approval goes on only if it is of just
    /// that.
    pub(super) fn proposed(&mut self, about: &About, limited: bool) {
        self.versions.push(Told {
            limited,
            by_person: false,
        });
        self.yes
            .retain(|yes| yes.about.plan != about.plan || yes.about == *about);
    }

    /// A person agreed.
    pub(super) fn approved(&mut self, about: &About, policy: Effective) {
        // Agreeing twice is agreeing once.
        if !self.is_approved(about) {
            self.yes.push(Yes {
                about: about.clone(),
                uses: policy.uses(),
            });
        }
        if let Some(current) = self.versions.last_mut().filter(|_| about.plan == "p") {
            current.by_person = true;
        }
    }

    /// Whether the limit is gone, and no person agreed to that.
    pub(super) fn lost_limit(&self) -> bool {
        let Some(current) = self.versions.last() else {
            return false;
        };
        let unseen = self
            .versions
            .iter()
            .rev()
            .take_while(|told| !told.by_person);
        let seen = self.versions.iter().rfind(|told| told.by_person);
        let had = unseen.chain(seen).any(|told| told.limited);
        !current.by_person && !current.limited && had
    }

    fn is_approved(&self, about: &About) -> bool {
        self.yes
            .iter()
            .any(|yes| yes.about == *about && yes.uses > 0)
    }

    /// Why a call of this tool may leave, if it may.
    pub(super) fn cover(
        &self,
        files: &Files,
        about: &About,
        tool: &str,
        order: Order,
    ) -> Option<Covered> {
        let says = self.policy(files).says(tool);
        let lost = about.plan == "p" && self.lost_limit();
        let always = self.always && tool == "local.append_file";
        if says == Says::Deny {
            None
        } else if self.is_approved(about) {
            Some(Covered::Approved)
        } else if says == Says::Allow && !lost {
            Some(Covered::ByPolicy)
        } else if always && !lost {
            Some(Covered::Always)
        } else {
            (order.yes && !order.agent).then_some(Covered::ByYes)
        }
    }

    /// A run began, and this covered it.
    pub(super) fn ran(&mut self, about: &About, how: Covered, policy: Effective) {
        if how == Covered::ByYes {
            self.approved(about, policy);
        }
        let mut good = self.yes.iter_mut().filter(|yes| yes.about == *about);
        if matches!(how, Covered::ByYes | Covered::Approved)
            && let Some(yes) = good.find(|yes| yes.uses > 0)
        {
            yes.uses -= 1;
        }
    }
}
