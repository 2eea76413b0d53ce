//! How much of the values of runs one answer holds. What does not fit is linked, never left out in
//! silence.

use planwright_api::{AskedCallWire, LargeBriefing, LargeValue};
use planwright_core::briefing::Briefing;
use planwright_core::id::{PlanId, RunId};
use planwright_core::json::length;
use planwright_core::run::{AskedCall, StoredValue};
use planwright_engine::port::{ArtifactError, Artifacts};
use planwright_engine::read_value;
use serde_json::Value;
use std::fmt::Write as _;

/// Bytes of all values in one answer.
const MAX_ANSWER: usize = 4 << 20;

/// Bytes of one value, and of the arguments of one call that a person is asked about.
const MAX_VALUE: usize = 256 << 10;
const MAX_ASKED: usize = 1 << 20;

/// Bytes of briefings that are made for one answer, whether they are in it or not.
const MAX_BRIEFED: usize = 16 << 20;

/// Bytes that are read for the sake of previews.
const MAX_PREVIEWED: u64 = 32 << 20;

/// Characters of a preview.
const PREVIEW: usize = 500;

/// The room that is left in an answer.
#[derive(Debug)]
pub struct AnswerSize {
    left: usize,
    /// Bytes of one value.
    max_value: usize,
    briefed_left: usize,
    previewed_left: u64,
}

impl Default for AnswerSize {
    fn default() -> Self {
        Self {
            left: MAX_ANSWER,
            max_value: MAX_VALUE,
            briefed_left: MAX_BRIEFED,
            previewed_left: MAX_PREVIEWED,
        }
    }
}

impl AnswerSize {
    /// The room of an answer in which no value has more bytes than this.
    pub(super) fn with_values_of(max_value: usize) -> Self {
        Self {
            max_value: max_value.min(MAX_VALUE),
            ..Self::default()
        }
    }

    /// What a step adds to the answer at most, besides its elements.
    pub(super) fn most_of_step(
        &self,
        value: Option<&StoredValue>,
        asked: Option<&AskedCall>,
    ) -> usize {
        let value = value.map_or(0, stored_length);
        let asked = asked.map_or(0, |asked| stored_length(&asked.args));
        let fits = |bytes: usize, most: usize| if bytes <= most { bytes } else { 0 };
        fits(value, self.max_value) + fits(asked, MAX_ASKED)
    }

    /// Returns whether so many bytes would fit.
    pub(super) fn fits(&self, bytes: usize) -> bool {
        bytes <= self.left
    }

    /// Counts bytes that are in the answer in any case.
    pub(super) fn take(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// Returns whether no more briefings are made for this answer.
    pub(crate) fn is_spent(&self) -> bool {
        self.left == 0 || self.briefed_left == 0
    }

    /// Returns a briefing if there is room for it; else says how long it is and where. It is shown
    /// whole or not at all: no approver decides on a part of it.
    pub(crate) fn place_briefing(
        &mut self,
        briefing: &Briefing,
        href: impl FnOnce() -> String,
    ) -> (Option<Value>, Option<LargeBriefing>) {
        let value = serde_json::to_value(briefing).unwrap_or(Value::Null);
        let bytes = length(&value);
        self.briefed_left = self.briefed_left.saturating_sub(bytes);
        if bytes <= MAX_ASKED && self.fits(bytes) {
            self.take(bytes);
            return (Some(value), None);
        }
        let large = LargeBriefing {
            bytes: bytes as u64,
            summary: briefing.counts.describe(),
            href: href(),
        };
        (None, Some(large))
    }

    /// Reads a value if there is room for it; else says how it begins and where it is.
    pub(super) async fn place_value(
        &mut self,
        stored: &StoredValue,
        href: impl FnOnce() -> String,
        artifacts: &dyn Artifacts,
    ) -> Result<(Option<Value>, Option<LargeValue>), ArtifactError> {
        let bytes = stored_length(stored);
        if bytes <= self.max_value && self.fits(bytes) {
            self.take(bytes);
            return Ok((Some(read_value(artifacts, stored).await?), None));
        }
        let large = LargeValue {
            bytes: bytes as u64,
            digest: digest_of(stored),
            preview: self.preview(stored, artifacts).await?,
            href: href(),
        };
        self.take(large.preview.as_ref().map_or(0, String::len) + large.href.len());
        Ok((None, Some(large)))
    }

    /// Reads a call that waits for an approver, with its arguments if there is room for them.
    pub async fn place_asked_call(
        &mut self,
        asked: &AskedCall,
        href: impl FnOnce() -> String,
        artifacts: &dyn Artifacts,
    ) -> Result<AskedCallWire, ArtifactError> {
        let bytes = stored_length(&asked.args);
        if bytes <= MAX_ASKED && self.fits(bytes) {
            self.take(bytes);
            let args = read_value(artifacts, &asked.args).await?;
            return Ok(AskedCallWire::new(asked, args));
        }
        let large = LargeValue {
            bytes: bytes as u64,
            digest: digest_of(&asked.args),
            preview: self.preview(&asked.args, artifacts).await?,
            href: href(),
        };
        Ok(AskedCallWire::without_args(asked, large))
    }

    async fn preview(
        &mut self,
        stored: &StoredValue,
        artifacts: &dyn Artifacts,
    ) -> Result<Option<String>, ArtifactError> {
        let bytes = match stored {
            StoredValue::Inline(value) => value.to_string().into_bytes(),
            StoredValue::Artifact(artifact) if artifact.bytes <= self.previewed_left => {
                self.previewed_left -= artifact.bytes;
                artifacts.get(artifact).await?
            }
            StoredValue::Artifact(_) => return Ok(None),
        };
        // A character that is cut off is replaced.
        let begin = bytes.get(..PREVIEW * 4).unwrap_or(&bytes);
        let begin = String::from_utf8_lossy(begin);
        Ok(Some(begin.chars().take(PREVIEW).collect()))
    }
}

/// The name of a value that is kept beside the journal.
fn digest_of(stored: &StoredValue) -> Option<String> {
    match stored {
        StoredValue::Inline(_) => None,
        StoredValue::Artifact(artifact) => Some(artifact.digest.to_string()),
    }
}

fn stored_length(stored: &StoredValue) -> usize {
    match stored {
        StoredValue::Inline(value) => length(value),
        StoredValue::Artifact(artifact) => usize::try_from(artifact.bytes).unwrap_or(usize::MAX),
    }
}

/// Where a part of a step is served: `value` or `arguments`.
pub fn step_href(plan: &PlanId, run: &RunId, step: &str, part: &str) -> String {
    let mut href = format!("/plan/{plan}/runs/{run}/steps/");
    for byte in step.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            href.push(char::from(byte));
        } else {
            let _ = write!(href, "%{byte:02X}");
        }
    }
    href.push('/');
    href.push_str(part);
    href
}

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_engine::memory::MemoryArtifacts;
    use serde_json::json;
    use std::sync::Arc;

    #[tokio::test]
    async fn what_does_not_fit_is_linked() {
        let artifacts = MemoryArtifacts::default();
        let mut room = AnswerSize::default();
        let href = || "/there".to_owned();
        let small = StoredValue::Inline(Arc::new(json!("small")));
        let (value, large) = room.place_value(&small, href, &artifacts).await.unwrap();
        assert!(value == Some(json!("small")) && large.is_none());
        let text = serde_json::to_vec(&json!("ä".repeat(MAX_VALUE))).unwrap();
        let length = text.len() as u64;
        let stored = StoredValue::Artifact(artifacts.put(text).await.unwrap());
        let (value, large) = room.place_value(&stored, href, &artifacts).await.unwrap();
        let large = large.unwrap();
        assert!(value.is_none());
        assert_eq!((large.bytes, large.href.as_str()), (length, "/there"));
        assert!(large.preview.unwrap().starts_with("\"äää"));
        room.take(MAX_ANSWER);
        let (value, large) = room.place_value(&small, href, &artifacts).await.unwrap();
        assert!(value.is_none() && large.is_some());
    }

    #[test]
    fn the_step_of_a_link_is_escaped() {
        let href = step_href(
            &"p".parse().unwrap(),
            &"run_x".parse().unwrap(),
            "fetch[3]",
            "value",
        );
        assert_eq!(href, "/plan/p/runs/run_x/steps/fetch%5B3%5D/value");
    }
}
