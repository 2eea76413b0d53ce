//! What an object store answers, in our words.

use object_store::Error;
use planwright_engine::port::ArtifactError;
use std::error::Error as _;

/// The part of an answer that is told: it can hold a page of XML.
const MAX_WORDS: usize = 300;
/// How S3 says that there is no such bucket, which is no word about any value in it.
const NO_BUCKET: &str = "NoSuchBucket";

/// Returns whether the store says that there is no such object.
pub(super) fn is_missing(error: &Error) -> bool {
    matches!(error, Error::NotFound { source, .. } if !source.to_string().contains(NO_BUCKET))
}

/// Says what failed. It may work later, except for credentials and buckets, which a person corrects.
pub(super) fn describe(place: &str, error: &Error) -> ArtifactError {
    let why = match error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            "access is denied: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must allow to read and write there".to_owned()
        }
        Error::NotFound { .. } => "there is no such bucket".to_owned(),
        other => first_words(&innermost(other)),
    };
    ArtifactError::Io(format!("{place}: {why}"))
}

/// The cause of all others says most, and repeats nothing.
fn innermost(error: &Error) -> String {
    let mut last: &dyn std::error::Error = error;
    let mut causes = error.source();
    while let Some(cause) = causes {
        last = cause;
        causes = cause.source();
    }
    last.to_string()
}

fn first_words(text: &str) -> String {
    text.chars().take(MAX_WORDS).collect()
}
