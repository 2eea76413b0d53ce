//! Keys by which tools recognise a repeated call.

use crate::digest::Digest;
use crate::id::{RunId, StepId};

/// The key under which a tool may recognise a repeated call: the same for every attempt of a step
/// in a run.
pub fn idempotency_key(run: &RunId, digest: &Digest, step: &StepId) -> String {
    Digest::of_parts(&[
        run.as_str().as_bytes(),
        digest.as_bytes(),
        step.as_str().as_bytes(),
    ])
    .hex()[..32]
        .to_owned()
}
