//! Commands that one process leaves for the process that executes a run.

use crate::redaction::entry_text::{EntryText, mask_reply, mask_stored, mask_text};
use planwright_core::digest::Digest;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::{Command, Reply, Resolution, Shown};
use planwright_core::secret::Redactor;
use serde::{Deserialize, Serialize};

/// A command that a caller gives to a run, wherever it is executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "command",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum RunCommand {
    /// Approves a call that waits.
    Approve {
        /// The step that waits.
        step: String,
        /// The approver.
        by: Principal,
        /// The way the approver was recognised.
        assurance: Assurance,
        /// The version or digest that the approver saw.
        shown: ShownText,
    },
    /// Rejects a call that waits.
    Deny {
        /// The step that waits.
        step: String,
        /// The approver.
        by: Principal,
        /// The version or digest that the approver saw.
        shown: ShownText,
        /// The approver's reason.
        reason: String,
    },
    /// Says what became of a call whose outcome is unknown.
    Resolve {
        /// The step of the call.
        step: String,
        /// The person who found out.
        by: Principal,
        /// The outcome.
        resolution: Resolution,
    },
    /// Answers what was asked, named by its digest.
    GiveInput {
        /// The step that asks.
        step: String,
        /// The person who answers.
        by: Principal,
        /// The question that was shown.
        question: Digest,
        /// One reply per question.
        replies: Vec<Reply>,
    },
    /// A person leaves out a step that has not begun.
    LeaveOut {
        /// The step that is skipped.
        step: String,
        /// The person who decides.
        by: Principal,
        /// The person's reason.
        reason: String,
    },
    /// Lets calls in flight finish, and starts nothing new.
    Pause {
        /// The principal that pauses.
        by: Principal,
    },
    /// Go on, while the owner of the paused run still waits for calls in flight.
    Resume {
        /// The principal that resumes.
        by: Principal,
    },
    /// Stops calls in flight, and ends the run.
    Cancel {
        /// The principal that cancels.
        by: Principal,
    },
    /// Declare the run failed, though no step of it was why.
    GiveUp {
        /// The person who decides.
        by: Principal,
        /// The person's reason.
        reason: String,
    },
}

/// The screen that was decided on, in a form that can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShownText {
    /// The number of the version.
    Version(u32),
    /// The digest of the plan or call.
    Digest(Digest),
}

impl From<ShownText> for Shown {
    fn from(shown: ShownText) -> Self {
        match shown {
            ShownText::Version(version) => Self::Version(version),
            ShownText::Digest(digest) => Self::Digest(digest),
        }
    }
}

impl From<Shown> for ShownText {
    fn from(shown: Shown) -> Self {
        match shown {
            Shown::Version(version) => Self::Version(version),
            Shown::Digest(digest) => Self::Digest(digest),
        }
    }
}

impl RunCommand {
    /// Returns whether it answers what a run waits for.
    pub(crate) fn is_decision(&self) -> bool {
        match self {
            Self::Approve { .. }
            | Self::Deny { .. }
            | Self::Resolve { .. }
            | Self::GiveInput { .. } => true,
            Self::LeaveOut { .. }
            | Self::Pause { .. }
            | Self::Resume { .. }
            | Self::Cancel { .. }
            | Self::GiveUp { .. } => false,
        }
    }

    /// Returns whether it has text that a person typed: the secrets that the plan names have to be
    /// known before it is written down.
    pub(crate) fn has_typed_text(&self) -> bool {
        match self {
            Self::Deny { .. }
            | Self::GiveInput { .. }
            | Self::LeaveOut { .. }
            | Self::GiveUp { .. } => true,
            Self::Resolve { resolution, .. } => match resolution {
                Resolution::Happened { .. } => true,
                Resolution::DidNotHappen | Resolution::RunAgain => false,
            },
            Self::Approve { .. }
            | Self::Pause { .. }
            | Self::Resume { .. }
            | Self::Cancel { .. } => false,
        }
    }

    pub(crate) fn into_command(self) -> Command {
        match self {
            Self::Approve {
                step,
                by,
                assurance,
                shown,
            } => Command::Approve {
                step,
                by,
                assurance,
                shown: shown.into(),
            },
            Self::Deny {
                step,
                by,
                shown,
                reason,
            } => Command::Deny {
                step,
                by,
                shown: shown.into(),
                reason,
            },
            Self::Resolve {
                step,
                by,
                resolution,
            } => Command::Resolve {
                step,
                by,
                resolution,
            },
            Self::GiveInput {
                step,
                by,
                question,
                replies,
            } => Command::GiveInput {
                step,
                by,
                question,
                replies,
            },
            Self::LeaveOut { step, by, reason } => Command::LeaveOut { step, by, reason },
            Self::Pause { by } => Command::Pause { by },
            Self::Resume { by } => Command::Resume { by },
            Self::Cancel { by } => Command::Cancel { by },
            Self::GiveUp { by, reason } => Command::GiveUp { by, reason },
        }
    }
}

/// A message in a mailbox is stored, too.
impl EntryText for RunCommand {
    fn mask(&mut self, redactor: &Redactor) {
        match self {
            Self::Deny { reason, .. }
            | Self::LeaveOut { reason, .. }
            | Self::GiveUp { reason, .. } => mask_text(redactor, reason),
            Self::GiveInput { replies, .. } => {
                for reply in replies {
                    mask_reply(redactor, reply);
                }
            }
            Self::Resolve {
                resolution: Resolution::Happened { value },
                ..
            } => mask_stored(redactor, value),
            Self::Resolve { .. }
            | Self::Approve { .. }
            | Self::Pause { .. }
            | Self::Resume { .. }
            | Self::Cancel { .. } => {}
        }
    }
}
