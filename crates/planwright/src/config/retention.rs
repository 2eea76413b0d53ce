//! `[retention]` of `planwright.toml`: what is kept, where, and for how long.

use crate::config::file::FILE;
use crate::exit::Failure;
use planwright_core::policy::TimeSpan;
use serde::{Deserialize, Deserializer};
use std::time::Duration;

/// Less than this would keep no log.
const MIN_LOGS_BYTES: u64 = 64 << 10;

/// The time of grace of a large value that no journal refers to, where nothing else is said.
const ARTIFACT_GRACE: Duration = Duration::from_hours(24);

/// A span of time, or the word `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    Never,
    Span(TimeSpan),
}

impl After {
    pub(crate) fn duration(self) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::Span(span) => Some(span.as_duration()),
        }
    }
}

impl<'de> Deserialize<'de> for After {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "never" {
            return Ok(Self::Never);
        }
        let span = text
            .parse()
            .map_err(|error| serde::de::Error::custom(format!("{error}, or never")));
        Ok(Self::Span(span?))
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RetentionTable {
    pub(super) archive_after: Option<After>,
    pub(super) delete_after: Option<After>,
    pub(super) seal_after: Option<After>,
    pub(super) remove_after: Option<After>,
    pub(super) remove_artifacts_after: Option<After>,
    pub(super) max_logs_bytes: Option<u64>,
}

impl RetentionTable {
    /// Values that contradict each other are refused: both cannot be meant.
    pub(super) fn check(&self, days: (Option<u32>, Option<u32>)) -> Result<(), Failure> {
        let both = [
            ("archive_after", self.archive_after, days.0),
            ("delete_after", self.delete_after, days.1),
        ];
        for (name, span, days) in both {
            if span.is_some() && days.is_some() {
                return Err(Failure::usage(format!(
                    "{FILE}: `{name}` of [retention] and `{name}_days` of [plans] say the same thing"
                ))
                .hint("keep the one of [retention]"));
            }
        }
        let removes = self.remove_after.is_some_and(|after| after != After::Never);
        if removes && self.seal_after == Some(After::Never) {
            return Err(Failure::usage(format!(
                "{FILE}: `remove_after` removes what is sealed, and `seal_after` is never"
            ))
            .hint("give `seal_after` a span of time, or leave it out"));
        }
        if self
            .max_logs_bytes
            .is_some_and(|bytes| bytes < MIN_LOGS_BYTES)
        {
            return Err(Failure::usage(format!(
                "{FILE}: `max_logs_bytes` is at least {MIN_LOGS_BYTES}: less would keep no log"
            )));
        }
        Ok(())
    }

    /// The time after which large values that no journal refers to are removed.
    pub(super) fn artifact_grace(&self) -> Option<Duration> {
        let removes = self.remove_after.and_then(After::duration).is_some();
        match self.remove_artifacts_after {
            Some(after) => after.duration(),
            None => removes.then_some(ARTIFACT_GRACE),
        }
    }
}
