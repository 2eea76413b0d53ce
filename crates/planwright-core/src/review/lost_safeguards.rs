//! Safeguards that a plan had when people last agreed to it, or since then.

use super::{Approval, Review, Version};
use crate::plan::{LossKind, SafeguardLoss, names_safeguards};
use crate::principal::PrincipalKind;
use std::fmt;
use std::sync::Arc;

/// The number of earlier versions whose content is kept. Before them a plan that names safeguards is
/// taken to have lost some.
const MAX_KEPT: usize = 8;

/// The safeguards that the current version lacks, and since when.
#[derive(Debug, Clone, PartialEq)]
pub struct LostSafeguards {
    /// The version that had it.
    pub since: u32,
    /// What is gone or holds back less, never empty.
    pub losses: Vec<SafeguardLoss>,
}

impl fmt::Display for LostSafeguards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.since;
        let count = self.losses.len();
        let (noun, verb) = match count {
            1 => ("safeguard", "is"),
            _ => ("safeguards", "are"),
        };
        write!(f, "{count} {noun} of version {since} {verb} gone or weaker")?;
        let Some(first) = self.losses.first() else {
            return Ok(());
        };
        write!(f, " ({first}")?;
        f.write_str(if count > 1 { ", …)" } else { ")" })
    }
}

impl Review {
    /// Returns what the current version lacks of the safeguards that any version had since a person
    /// last agreed to one; nothing if it has all of them. Only a person may agree to such a version,
    /// regardless of the policy and of who wrote it: a loss cannot be spread over several versions,
    /// nor hidden behind one that changes only words.
    pub fn lost_safeguards(&self) -> Option<LostSafeguards> {
        let current = self.current();
        let by_person =
            |approval: &&Approval| approval.by.kind == PrincipalKind::Person && !approval.is_void();
        let agreed = self.approvals.iter().filter(by_person);
        let first = agreed.map(|approval| approval.version).max().unwrap_or(1);
        if self.forgotten >= first {
            let unknown = SafeguardLoss {
                step: None,
                path: format!("what versions up to {} had", self.forgotten),
                kind: LossKind::Replaced,
                before: None,
                after: None,
            };
            return Some(LostSafeguards {
                since: self.forgotten,
                losses: vec![unknown],
            });
        }
        let earlier = self.earlier.iter().filter(|version| {
            (first..current.number).contains(&version.number)
                && version.document != current.document
        });
        earlier
            .map(|version| LostSafeguards {
                since: version.number,
                losses: SafeguardLoss::between(&version.document, &current.document),
            })
            .find(|lost| !lost.losses.is_empty())
    }

    /// Keeps the content of a version that another one has taken the place of.
    pub(super) fn keep_for_comparison(&mut self, version: Option<Arc<Version>>) {
        self.earlier.extend(version);
        while self.earlier.len() > MAX_KEPT {
            let Some(oldest) = self.earlier.pop_front() else {
                break;
            };
            if names_safeguards(&oldest.document) {
                self.forgotten = oldest.number;
            }
        }
    }
}
