//! What servers ask in the middle of calls, held open until a person answers or the call is over.
//!
//! The question is durable before it is shown, and the answer before the server hears it.

use super::run_loop::{RunError, RunLoop};
use crate::port::PersonLine;
use crate::redaction::call_results::mask_questions;
use planwright_core::id::AttemptNo;
use planwright_core::journal::{Cause, Entry};
use planwright_core::plan::StepIx;
use planwright_core::run::{Asked, CallReport, Command, Reply, RunEvent};
use std::collections::BTreeMap;
use tokio::sync::{mpsc, oneshot};

/// The questions of all calls of a run that may wait to be taken up.
const MAX_UNHEARD: usize = 64;

/// What a call asks.
pub(super) struct Held {
    step: StepIx,
    attempt: AttemptNo,
    asked: Asked,
    replies: oneshot::Sender<Vec<Reply>>,
}

/// The calls of one run that wait for a person.
pub(super) struct HeldQuestions {
    asking: mpsc::Sender<Held>,
    asked: mpsc::Receiver<Held>,
    open: BTreeMap<StepIx, oneshot::Sender<Vec<Reply>>>,
}

impl Default for HeldQuestions {
    fn default() -> Self {
        let (asking, asked) = mpsc::channel(MAX_UNHEARD);
        Self {
            asking,
            asked,
            open: BTreeMap::new(),
        }
    }
}

impl HeldQuestions {
    /// The line on which one call asks.
    pub(super) fn line(&self, step: StepIx, attempt: AttemptNo) -> PersonLine {
        let asking = self.asking.clone();
        PersonLine::new(move |asked| {
            let asking = asking.clone();
            Box::pin(async move {
                let (replies, replied) = oneshot::channel();
                let held = Held {
                    step,
                    attempt,
                    asked,
                    replies,
                };
                asking.send(held).await.ok()?;
                replied.await.ok()
            })
        })
    }

    /// The next question.
    pub(super) async fn next(&mut self) -> Held {
        match self.asked.recv().await {
            Some(held) => held,
            // It holds a sender itself.
            None => std::future::pending().await,
        }
    }

    /// The call is over, and its question with it.
    pub(super) fn forget(&mut self, step: StepIx) {
        self.open.remove(&step);
    }

    /// Tells all calls that wait that there will be no answer.
    pub(super) fn let_go(&mut self) {
        self.open.clear();
    }
}

impl RunLoop {
    /// Journals a question. A call that may not ask is told that it gets no answer.
    pub(super) fn hold(&mut self, held: Held) -> Result<(), RunError> {
        let Held {
            step,
            attempt,
            asked,
            replies,
        } = held;
        let asked = mask_questions(&self.context.redaction.redactor(), asked);
        let report = Command::Report {
            step,
            attempt,
            answer: CallReport::Holds(Box::new(asked)),
        };
        if self.execute(&report, Cause::Report)?.is_some() {
            self.questions.open.insert(step, replies);
        }
        Ok(())
    }

    /// Passes on the answers that are durable now.
    pub(super) fn answer_calls(&mut self, entries: &[Entry<RunEvent>]) {
        for entry in entries {
            if let RunEvent::InputGiven {
                step,
                attempt: Some(_),
                replies,
                ..
            } = &entry.event
                && let Some(ix) = self.run.find(step.as_str())
                && let Some(waiting) = self.questions.open.remove(&ix)
            {
                // A call that is over by now needs no answer.
                drop(waiting.send(replies.clone()));
            }
        }
    }
}
