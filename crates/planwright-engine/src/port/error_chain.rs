//! Errors as they are told.

use std::error::Error;

/// An error and its causes, joined. A cause whose text its parent already repeats is not said
/// twice.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}
