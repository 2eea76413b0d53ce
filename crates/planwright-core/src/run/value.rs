//! Values as the journal keeps them.

use crate::artifact::ArtifactRef;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A step's value: in the journal if it is small, by name if it is large.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredValue {
    /// The value itself.
    Inline(Arc<Value>),
    /// The name of a value that is stored outside the journal.
    Artifact(ArtifactRef),
}

impl StoredValue {
    /// Values whose JSON is longer than this become artifacts.
    pub const MAX_INLINE_BYTES: usize = 64 * 1024;

    /// Values that nest deeper than this cannot be kept. JSON is read with a recursion limit, and
    /// what is written must be readable again, also inside the documents that quote it.
    pub const MAX_DEPTH: usize = 100;

    /// Returns whether a value can be written down and read again.
    pub fn can_keep(value: &Value) -> bool {
        let mut any_number = usize::MAX;
        crate::json::fits_within(value, Self::MAX_DEPTH, &mut any_number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_kept_up_to_the_depth_that_can_be_read_again() {
        let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        assert!(StoredValue::can_keep(&nested(StoredValue::MAX_DEPTH)));
        assert!(!StoredValue::can_keep(&nested(StoredValue::MAX_DEPTH + 1)));
        let kept = StoredValue::Inline(Arc::new(nested(StoredValue::MAX_DEPTH)));
        let quoted = serde_json::to_string(&json!({"a": [{"b": kept}]})).unwrap();
        assert!(serde_json::from_str::<Value>(&quoted).is_ok());
    }
}
