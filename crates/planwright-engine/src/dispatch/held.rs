//! What servers ask in the middle of calls, held open until a person answers or the call is over.
//!
//! The question is durable before it is shown, and the answer before the server hears it.

use super::run_loop::{RunError, RunLoop};
use crate::port::PersonLine;
use crate::redaction::call_results::mask_questions;
use planwright_core::id::AttemptNo;
use planwright_core::journal::{Cause, Entry};
use planwright_core::plan::StepIx;
use planwright_core::run::{Asked, CallReport, Command, Reply, RunEvent, StepState};
use std::collections::BTreeMap;
use tokio::sync::{mpsc, oneshot};

/// The questions of all calls of a run that may wait to be taken up.
const MAX_UNHEARD: usize = 64;

/// What a call asks.
pub(super) struct Held {
    step: StepIx,
    attempt: AttemptNo,
    asked: Asked,
    /// Told `None` if there will be no replies. Dropped if this process does not wait for them any more.
    replies: oneshot::Sender<Option<Vec<Reply>>>,
}

/// The line on which one call asks.
#[derive(Clone)]
pub(super) struct QuestionLine {
    step: StepIx,
    attempt: AttemptNo,
    asking: mpsc::Sender<Held>,
}

/// This process does not wait for the replies any more. Another one may.
pub(super) struct LetGo;

impl QuestionLine {
    /// Asks, and waits for the replies; `None` if there will be none.
    pub(super) async fn ask(&self, asked: Asked) -> Result<Option<Vec<Reply>>, LetGo> {
        let (replies, replied) = oneshot::channel();
        let held = Held {
            step: self.step,
            attempt: self.attempt,
            asked,
            replies,
        };
        self.asking.send(held).await.map_err(|_| LetGo)?;
        replied.await.map_err(|_| LetGo)
    }

    /// The same for a call of this process, which ends with it.
    pub(super) fn of_own_call(self) -> PersonLine {
        PersonLine::new(move |asked| {
            let line = self.clone();
            Box::pin(async move { line.ask(asked).await.ok().flatten() })
        })
    }
}

/// The calls of one run that wait for a person.
pub(super) struct HeldQuestions {
    asking: mpsc::Sender<Held>,
    asked: mpsc::Receiver<Held>,
    open: BTreeMap<StepIx, oneshot::Sender<Option<Vec<Reply>>>>,
    /// Durable replies to questions of workers' calls that an earlier owner journaled, until the worker's question is seen here.
    unheard: BTreeMap<StepIx, (AttemptNo, Vec<Reply>)>,
}

impl Default for HeldQuestions {
    fn default() -> Self {
        let (asking, asked) = mpsc::channel(MAX_UNHEARD);
        Self {
            asking,
            asked,
            open: BTreeMap::new(),
            unheard: BTreeMap::new(),
        }
    }
}

impl HeldQuestions {
    /// The line on which one call asks.
    pub(super) fn line(&self, step: StepIx, attempt: AttemptNo) -> QuestionLine {
        QuestionLine {
            step,
            attempt,
            asking: self.asking.clone(),
        }
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
        self.unheard.remove(&step);
    }

    /// Waits for no answer any more: calls of this process get none, and those of workers wait for the next owner.
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
        // A person replied before this process saw that the worker waits for it: it is the same question.
        if let Some((of, given)) = self.questions.unheard.remove(&step)
            && of == attempt
        {
            drop(replies.send(Some(given)));
            return Ok(());
        }
        if self.is_asked_already(step, attempt) {
            self.questions.open.insert(step, replies);
            return Ok(());
        }
        let asked = mask_questions(&self.context.redaction.redactor(), asked);
        let report = Command::Report {
            step,
            attempt,
            answer: CallReport::Holds(Box::new(asked)),
        };
        if self.execute(&report, Cause::Report)?.is_some() {
            self.questions.open.insert(step, replies);
        } else {
            // A call that is over by now needs no word.
            drop(replies.send(None));
        }
        Ok(())
    }

    /// Returns whether an earlier owner journaled the question of a call that a worker makes. One attempt asks one
    /// question at a time.
    fn is_asked_already(&self, step: StepIx, attempt: AttemptNo) -> bool {
        let state = self.run.step(step);
        let is_open = matches!(state, StepState::Running { question: Some(_), tally, .. } if tally.attempts == attempt);
        is_open && self.offered.contains_key(&step) && !self.questions.open.contains_key(&step)
    }

    /// Passes on the answers that are durable now.
    pub(super) fn answer_calls(&mut self, entries: &[Entry<RunEvent>]) {
        for entry in entries {
            let RunEvent::InputGiven {
                step,
                attempt: Some(attempt),
                replies,
                ..
            } = &entry.event
            else {
                continue;
            };
            let Some(ix) = self.run.find(step.as_str()) else {
                continue;
            };
            if let Some(waiting) = self.questions.open.remove(&ix) {
                // A call that is over by now needs no answer.
                drop(waiting.send(Some(replies.clone())));
            } else if self.offered.get(&ix) == Some(attempt) {
                let unheard = &mut self.questions.unheard;
                unheard.insert(ix, (*attempt, replies.clone()));
            }
        }
    }
}
