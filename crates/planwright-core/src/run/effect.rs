//! What the outside has to do, derived from the state: after a crash and in normal life it is the
//! same question.

use super::{Run, RunState};
use crate::digest::Digest;
use crate::id::{AttemptNo, RunId, StepId};
use crate::plan::StepIx;

/// Something the engine must do in the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Make the call, unless this attempt is already in flight.
    CallTool { step: StepIx, attempt: AttemptNo },
    /// The answer is not wanted any more.
    CancelCall { step: StepIx, attempt: AttemptNo },
}

impl Run {
    /// Everything the outside should be doing now.
    pub fn effects(&self) -> impl Iterator<Item = Effect> + '_ {
        let cancelling = self.state == RunState::Cancelling;
        self.running().map(move |step| {
            let attempt = self.step(step).tally().attempts;
            if cancelling {
                Effect::CancelCall { step, attempt }
            } else {
                Effect::CallTool { step, attempt }
            }
        })
    }
}

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
