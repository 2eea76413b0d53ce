//! Traces and places in them, in the form of W3C Trace Context.

use crate::digest::Digest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Names everything that follows from one order: a request, the run it started, the calls of that
/// run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(u128);

impl TraceId {
    /// Makes an id of random bits. All zeros mean "no trace", so they are avoided.
    pub fn mint(high: u64, low: u64) -> Self {
        let bits = u128::from(high) << 64 | u128::from(low);
        Self(if bits == 0 { 1 } else { bits })
    }

    /// The trace of something that no order with a trace began. The same name has the same trace.
    pub fn of_name(name: &str) -> Self {
        let digest = Digest::of_parts(&[b"trace", name.as_bytes()]);
        let half = |at: usize| {
            digest.as_bytes()[at..at + 8]
                .iter()
                .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte))
        };
        Self::mint(half(0), half(8))
    }

    /// Returns the id in network byte order.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// `None` if all are zero.
    pub fn from_bytes(bytes: [u8; 16]) -> Option<Self> {
        Some(u128::from_be_bytes(bytes))
            .filter(|bits| *bits != 0)
            .map(Self)
    }
}

/// As a UUID, which is how people are shown it. Trace Context leaves the dashes out.
impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        let parts = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ];
        f.write_str(&parts.join("-"))
    }
}

/// The error for a text that is no trace context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no trace context: 00-<32 hex digits>-<16 hex digits>-<2 hex digits> is expected")]
pub struct ParseTraceError;

impl FromStr for TraceId {
    type Err = ParseTraceError;

    /// With or without the dashes of a UUID.
    fn from_str(text: &str) -> Result<Self, ParseTraceError> {
        let dashed = text.len() == 36
            && [8, 13, 18, 23]
                .iter()
                .all(|at| text.as_bytes()[*at] == b'-');
        let text = if dashed { &text.replace('-', "") } else { text };
        parse_hex::<32>(text)
            .filter(|bits| *bits != 0)
            .map(Self)
            .ok_or(ParseTraceError)
    }
}

impl Serialize for TraceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// The place in a trace that something belongs below: the header `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace.
    pub trace: TraceId,
    /// Never zero.
    span: u64,
    /// True if the service that began the trace records it.
    pub sampled: bool,
}

impl TraceParent {
    /// `None` if the span is zero, which means "no span".
    pub fn new(trace: TraceId, span: u64, sampled: bool) -> Option<Self> {
        (span != 0).then_some(Self {
            trace,
            span,
            sampled,
        })
    }

    /// A place for something that no tracing system recorded. The same name has the same place.
    pub fn of_name(trace: TraceId, name: &str) -> Self {
        let digest = Digest::of_bytes(name.as_bytes());
        let span = digest
            .as_bytes()
            .iter()
            .take(8)
            .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        Self {
            trace,
            span: span.max(1),
            sampled: false,
        }
    }

    /// Returns the id of the span.
    pub fn span(&self) -> u64 {
        self.span
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace.0,
            self.span,
            u8::from(self.sampled)
        )
    }
}

impl FromStr for TraceParent {
    type Err = ParseTraceError;

    /// Reads the header. A later version may say more behind what version 00 says; what is known of
    /// it is used.
    fn from_str(text: &str) -> Result<Self, ParseTraceError> {
        let mut parts = text.split('-');
        let mut next = || parts.next().ok_or(ParseTraceError);
        let version = next()?;
        let trace = next()?;
        let span = next()?;
        let flags = next()?;
        let version = parse_hex::<2>(version)
            .filter(|version| *version != 0xff)
            .ok_or(ParseTraceError)?;
        if version == 0 && parts.next().is_some() {
            return Err(ParseTraceError);
        }
        let span = parse_hex::<16>(span)
            .and_then(|bits| u64::try_from(bits).ok())
            .ok_or(ParseTraceError)?;
        let flags = parse_hex::<2>(flags).ok_or(ParseTraceError)?;
        Self::new(trace.parse()?, span, flags & 1 == 1).ok_or(ParseTraceError)
    }
}

/// Exactly this many lower-case hexadecimal digits.
fn parse_hex<const DIGITS: usize>(text: &str) -> Option<u128> {
    let digits = text.len() == DIGITS
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    digits
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_header_is_read_and_written() {
        let parent: TraceParent = HEADER.parse().unwrap();
        assert_eq!(
            parent.trace.to_string(),
            "4bf92f35-77b3-4da6-a3ce-929d0e0e4736"
        );
        assert_eq!(parent.trace.to_string().parse(), Ok(parent.trace));
        assert_eq!(parent.span(), 0x00f0_67aa_0ba9_02b7);
        assert!(parent.sampled);
        assert_eq!(parent.to_string(), HEADER);
        assert_eq!(
            TraceId::from_bytes(parent.trace.to_bytes()),
            Some(parent.trace)
        );
        let later: TraceParent = format!("cc{}-more", &HEADER[2..]).parse().unwrap();
        assert_eq!(later, parent);
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        let wrong = [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
        ];
        for text in wrong {
            assert_eq!(text.parse::<TraceParent>(), Err(ParseTraceError), "{text}");
        }
    }

    #[test]
    fn a_name_has_one_place_and_it_is_not_recorded() {
        let trace = TraceId::mint(0, 0);
        assert_eq!(trace.to_bytes()[15], 1);
        let place = TraceParent::of_name(trace, "run_1");
        assert_eq!(place, TraceParent::of_name(trace, "run_1"));
        assert_ne!(place, TraceParent::of_name(trace, "run_2"));
        assert_eq!(place.to_string().parse(), Ok(place));
        assert!(!place.sampled);
    }
}
