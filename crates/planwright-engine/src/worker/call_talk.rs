//! What a call says while a worker makes it, for the owner of its run: how far it is, what its server logs, and what its tool
//! asks a person.

use crate::context::Context;
use crate::context::offered_talk::{ToldOfCall, decode_replies, encode_question};
use crate::port::{
    CallNews, ClaimError, OfferClaim, OfferQuestion, Offers, PersonLine, ProgressSink,
};
use crate::redaction::call_results::{mask_progress, mask_questions};
use planwright_core::run::{Asked, Reply};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// News are written at most this often, and the newest win: the owner looks as often by itself.
const NEWS_PAUSE: Duration = Duration::from_secs(1);
/// How often replies are looked for if nothing is heard of them.
const SLOW_LOOK: Duration = Duration::from_secs(2);
/// News about offers lead to a look for replies at most this often.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// The words of one call.
pub(super) struct CallTalk {
    context: Arc<Context>,
    asker: Arc<Asker>,
    latest: Arc<Latest>,
}

#[derive(Default)]
struct Latest {
    told: Mutex<ToldOfCall>,
    changed: Notify,
}

impl Latest {
    fn note(&self, change: impl FnOnce(&mut ToldOfCall)) {
        change(&mut self.told());
        self.changed.notify_one();
    }

    fn told(&self) -> MutexGuard<'_, ToldOfCall> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks the owner of the run.
struct Asker {
    context: Arc<Context>,
    offers: Arc<dyn Offers>,
    claim: OfferClaim,
    /// The number of the question that was asked last. Held while one waits for its replies.
    asked: tokio::sync::Mutex<u32>,
}

impl CallTalk {
    pub(super) fn new(context: Arc<Context>, offers: Arc<dyn Offers>, claim: OfferClaim) -> Self {
        let asker = Asker {
            context: Arc::clone(&context),
            offers,
            claim,
            asked: tokio::sync::Mutex::new(0),
        };
        Self {
            context,
            asker: Arc::new(asker),
            latest: Arc::default(),
        }
    }

    /// Takes what the call tells, masked.
    pub(super) fn sink(&self) -> ProgressSink {
        let progress = Arc::clone(&self.latest);
        let log = Arc::clone(&self.latest);
        let sink =
            ProgressSink::new(move |told| progress.note(|latest| latest.note_progress(&told)))
                .with_log(move |line| log.note(|latest| latest.note_line(&line)));
        mask_progress(&self.context.redaction, sink)
    }

    /// Writes what the call tells for the owner, for as long as this is waited for. What cannot be written is told with what
    /// comes next.
    pub(super) async fn tell_owner(&self) -> Infallible {
        let Asker { offers, claim, .. } = &*self.asker;
        let clock = &self.context.ports.clock;
        let mut number = 0;
        loop {
            self.latest.changed.notified().await;
            number += 1;
            let told = self.latest.told().to_json();
            if let Err(error) = offers.tell_news(claim, CallNews { number, told }).await {
                tracing::debug!(offer = %claim.key, %error, "the owner is not told how far a call is");
            }
            clock.sleep(NEWS_PAUSE).await;
        }
    }

    /// The person behind the owner of the run.
    pub(super) fn person(&self) -> PersonLine {
        let asker = Arc::clone(&self.asker);
        PersonLine::new(move |asked| {
            let asker = Arc::clone(&asker);
            Box::pin(async move { asker.ask(asked).await })
        })
    }
}

impl Asker {
    /// Asks, and waits for the replies. Nothing if there will be none, or if the claim is over.
    async fn ask(&self, asked: Asked) -> Option<Vec<Reply>> {
        // A second question at the same time gets no replies, as it gets none from an owner that makes the call itself.
        let mut last = self.asked.try_lock().ok()?;
        let asked = mask_questions(&self.context.redaction.redactor(), asked);
        let asked = encode_question(&asked)?;
        *last += 1;
        let question = OfferQuestion {
            number: *last,
            asked,
        };
        let mut news = self.offers.answer_news();
        self.write(&question).await?;
        loop {
            news.borrow_and_update();
            match self.offers.find_replies(&self.claim, question.number).await {
                Ok(Some(replies)) => return decode_replies(&replies),
                Ok(None) => {}
                Err(ClaimError::Over(_)) => return None,
                Err(ClaimError::Store(error)) => {
                    tracing::debug!(offer = %self.claim.key, %error, "replies cannot be looked for");
                }
            }
            tokio::select! {
                _ = news.changed() => tokio::time::sleep(LOOK_PAUSE).await,
                () = tokio::time::sleep(SLOW_LOOK) => {}
            }
        }
    }

    /// Writes a question, again where the store does not answer; `None` if the claim is over.
    async fn write(&self, question: &OfferQuestion) -> Option<()> {
        loop {
            match self.offers.ask_owner(&self.claim, question.clone()).await {
                Ok(()) => return Some(()),
                Err(ClaimError::Over(_)) => return None,
                Err(ClaimError::Store(error)) => {
                    tracing::warn!(offer = %self.claim.key, %error, "a question cannot be written; the store is asked again");
                    tokio::time::sleep(SLOW_LOOK).await;
                }
            }
        }
    }
}
