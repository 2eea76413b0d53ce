//! Reads YAML within tight limits.

use super::{ReadPlanError, SourceLocation};
use crate::plan::{Bounds, Code};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Limits on the number of values and their nesting.
const MAX_VALUES: usize = 20_000;
const MAX_DEPTH: usize = 64;

/// The reason a text is no YAML that is read here.
#[derive(Debug)]
pub(in crate::plan) struct YamlError {
    line: usize,
    column: usize,
    message: String,
}

impl YamlError {
    /// The same as the reason a text is not a plan. `what` is the part of the text that was read,
    /// which begins after this many lines.
    pub(in crate::plan) fn refuse(self, what: &str, lines_before: usize) -> ReadPlanError {
        ReadPlanError {
            code: Code::Syntax,
            place: SourceLocation::Text {
                line: self.line.saturating_add(lines_before),
                column: self.column,
            },
            message: format!("{what} cannot be read: {}", self.message),
            suggestion: Some(
                "it is YAML; a text with special characters stands in double quotes".to_owned(),
            ),
        }
    }
}

/// Reads a document of YAML that is no plan, within the same limits.
pub fn read_yaml_value(yaml: &str, bounds: &Bounds) -> Result<Value, ReadPlanError> {
    parse_yaml(yaml, bounds).map_err(|error| error.refuse("the YAML", 0))
}

/// Reads a value. Anchors, merges and keys given twice are refused: what is reviewed has to be what
/// is written.
pub(in crate::plan) fn parse_yaml<T: DeserializeOwned>(
    yaml: &str,
    bounds: &Bounds,
) -> Result<T, YamlError> {
    use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: MAX_VALUES,
            max_events: 4 * MAX_VALUES,
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_documents: 1,
            max_aliases: 0,
            max_anchors: 0,
            max_merge_keys: 0,
            max_total_scalar_bytes: bounds.max_document_bytes,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        reject_unsupported_tags: true,
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(yaml, options).map_err(|error| {
        let place = error
            .location()
            .map_or((1, 1), |place| (place.line(), place.column()));
        let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let message = error.without_snippet().to_string();
        YamlError {
            line: number(place.0),
            column: number(place.1),
            message: message.lines().next().unwrap_or_default().to_owned(),
        }
    })
}
