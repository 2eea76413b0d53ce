//! Instants as the core is told them: whole milliseconds since the epoch.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::Duration;

/// An instant, written as RFC 3339 in UTC with milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Makes an instant of milliseconds since the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Reads the date of an HTTP header, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
    pub fn from_http_date(text: &str) -> Option<Self> {
        let zoned = jiff::fmt::rfc2822::DateTimeParser::new()
            .parse_timestamp(text)
            .ok()?;
        Some(Self(zoned.as_millisecond()))
    }

    /// The instant `duration` later; stays at the end of time instead of wrapping.
    pub fn plus(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// The instant `duration` earlier; stays at the beginning of time instead of wrapping.
    pub fn minus(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// The time from `earlier` to this instant, zero if the clock went backwards.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(f, "{instant:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let instant: jiff::Timestamp = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Self(instant.as_millisecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_reads_as_rfc_3339() {
        let at = Timestamp::from_millis(1_700_000_000_123);
        assert_eq!(at.to_string(), "2023-11-14T22:13:20.123Z");
        let json = serde_json::to_string(&at).unwrap();
        assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), at);
    }

    #[test]
    fn the_date_of_a_header_is_read() {
        let at = Timestamp::from_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(at.to_string(), "1994-11-06T08:49:37.000Z");
        assert_eq!(Timestamp::from_http_date("tomorrow"), None);
    }

    #[test]
    fn time_never_runs_backwards() {
        let at = Timestamp::from_millis(5);
        assert_eq!(at.since(Timestamp::from_millis(9)), Duration::ZERO);
        assert_eq!(
            Timestamp::from_millis(i64::MAX)
                .plus(Duration::from_secs(1))
                .as_millis(),
            i64::MAX
        );
    }
}
