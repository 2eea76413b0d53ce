//! The terms of an approval.

use crate::artifact::ArtifactRef;
use crate::digest::Digest;
use crate::policy::{LateChoice, Policy};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The terms on which an approval was given. All of it was on the screen, or follows from the policy in
/// the digest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terms {
    /// The tools that may be called, as they were defined.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pins: BTreeMap<String, Pin>,
    /// The choices for steps whose arguments were not all known.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub late: BTreeMap<String, LateChoice>,
    /// Void if not used by then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The number of different people who have to agree; 1 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<u32>,
    /// The number of runs that it is good for; 1 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<u32>,
    /// The version that was agreed to before, if this approval was asked for what changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub builds_on: Option<BuildsOn>,
}

/// An earlier version that was agreed to and edited before it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BuildsOn {
    /// Its number.
    pub version: u32,
    /// The digest that was agreed to.
    pub digest: Digest,
}

/// One tool as it was when the plan was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pin {
    /// The digest of its definition.
    pub digest: Digest,
    /// The definition itself, so that a change can be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<ArtifactRef>,
}

/// What is offered for approval, besides the digest: what the policy says about it, and what the
/// approver chose.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offer {
    /// The rules that hold now.
    pub policy: Arc<Policy>,
    /// The first step a person has to be asked about; nothing if policy alone may approve.
    pub asks_about: Option<String>,
    /// The tools that may be called, as they are defined.
    pub pins: BTreeMap<String, Pin>,
    /// The choices of the approver for steps whose arguments are not all known.
    pub late: BTreeMap<String, LateChoice>,
    /// It is about what changed since a run, so it is good for the run that goes on from that one,
    /// and for no other.
    pub only_to_go_on: bool,
    /// The digest without the inputs that came with this order, where any came: what the version
    /// says by itself.
    pub without_inputs: Option<Digest>,
}

impl Terms {
    /// Returns the number of different people who have to agree.
    pub fn required(&self) -> u32 {
        self.required.unwrap_or(1).max(1)
    }

    /// Returns the number of runs that the approval is good for.
    pub fn uses(&self) -> u32 {
        self.uses.unwrap_or(1).max(1)
    }

    pub(super) fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

impl Offer {
    /// The terms of an approval given now.
    pub(super) fn terms(&self, now: Timestamp) -> Terms {
        let rules = &self.policy.approval;
        Terms {
            pins: self.pins.clone(),
            late: self.late.clone(),
            expires_at: rules
                .expires_after
                .map(|after| now.plus(after.as_duration())),
            required: rules.required.filter(|&required| required > 1),
            uses: rules.uses.filter(|&uses| uses > 1 && !self.only_to_go_on),
            builds_on: None,
        }
    }
}
