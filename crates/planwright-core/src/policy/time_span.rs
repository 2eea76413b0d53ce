//! Spans of time as operators write them: `45s`, `30m`, `12h`, `7d`.

use jiff::SpanRelativeTo;
use jiff::fmt::friendly::SpanParser;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::str::FromStr;
use std::time::Duration;

/// A span of time in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeSpan(u64);

impl TimeSpan {
    /// Makes a span of this many seconds.
    pub fn from_seconds(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Returns the span in seconds.
    pub fn seconds(self) -> u64 {
        self.0
    }

    /// Returns the span as a duration.
    pub fn as_duration(self) -> Duration {
        Duration::from_secs(self.0)
    }

    fn parse(text: &str) -> Option<Self> {
        let span = SpanParser::new().parse_span(text.trim_start()).ok()?;
        // A month has no fixed length, and `m` is a minute: units from weeks on are not read.
        if span.get_years() != 0 || span.get_months() != 0 || span.get_weeks() != 0 {
            return None;
        }
        let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
        let seconds = u64::try_from(duration.as_secs()).ok()?;
        (seconds > 0 && duration.subsec_nanos() == 0).then_some(Self(seconds))
    }
}

/// The error for a text that is no span of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no span of time: write 45s, 30m, 12h or 7d")]
pub struct ParseTimeSpanError(String);

impl FromStr for TimeSpan {
    type Err = ParseTimeSpanError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text).ok_or_else(|| ParseTimeSpanError(text.to_owned()))
    }
}

impl Serialize for TimeSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{}s", self.0))
    }
}

impl<'de> Deserialize<'de> for TimeSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_with_their_unit() {
        for (text, seconds) in [
            ("45s", 45),
            ("30m", 1800),
            ("12h", 43_200),
            ("7d", 604_800),
            ("1 d", 86_400),
            ("1h30m", 5400),
        ] {
            assert_eq!(TimeSpan::parse(text), Some(TimeSpan(seconds)), "{text}");
        }
        for text in [
            "",
            "7",
            "d",
            "0s",
            "-1d",
            "7w",
            "1mo",
            "1.5s",
            "1h ago",
            "99999999999999999999d",
            "9999999999999999d",
            "é",
        ] {
            assert_eq!(TimeSpan::parse(text), None, "{text}");
        }
    }
}
