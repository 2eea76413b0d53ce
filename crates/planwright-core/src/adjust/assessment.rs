//! The state of a run, in one word.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The state of a run as a model or a rule judges it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assessment {
    /// The work goes well and is not done.
    OnTrack,
    /// The goal can be reached after a change.
    NeedsAdjustment,
    /// The work leads elsewhere.
    OffTrack,
    /// The goal is reached.
    Complete,
    /// The goal cannot be reached.
    Failed,
    /// The model could not be asked, or what it said makes no sense.
    Unknown,
}

impl Assessment {
    /// Every assessment.
    pub const ALL: [Self; 6] = [
        Self::OnTrack,
        Self::NeedsAdjustment,
        Self::OffTrack,
        Self::Complete,
        Self::Failed,
        Self::Unknown,
    ];

    /// Returns the word that models and documents use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnTrack => "on_track",
            Self::NeedsAdjustment => "needs_adjustment",
            Self::OffTrack => "off_track",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Assessment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no assessment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no assessment")]
pub struct UnknownAssessment(pub String);

impl FromStr for Assessment {
    type Err = UnknownAssessment;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL
            .into_iter()
            .find(|assessment| assessment.as_str() == word);
        found.ok_or_else(|| UnknownAssessment(word.to_owned()))
    }
}
