//! One offer that was claimed: its call is made, and its answer written. A worker whose claim is over does neither.

use super::call_talk::CallTalk;
use super::claim_tenure::ClaimTenure;
use crate::context::telemetry;
use crate::context::{Context, Demand, Pauses, Permit, crash};
use crate::dispatch::call::{GRACE, guarded};
use crate::dispatch::offered_call::{OfferedCall, encode_answer};
use crate::dispatch::placed::put_artifacts;
use crate::dispatch::schedule::{ErrorDetail, check_args};
use crate::port::{
    AnswerSink, Call, CallError, ClaimError, ClaimStanding, ClaimedOffer, OfferClaim, Offers,
    Outcome, StepOffer,
};
use crate::redaction::call_results::mask_outcome;
use planwright_core::run::{CallEffect, StepError, StepErrorCode};
use planwright_core::secret::SecretName;
use planwright_core::tool::KnownTool;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// For so long an answer is tried to be written while its claim lasts.
const PATIENCE: Duration = Duration::from_mins(10);
/// News about offers lead to a look at a claim at most this often.
const NEWS_PAUSE: Duration = Duration::from_millis(250);

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CarriedOut {
    Answered,
    /// The claim was over first: nothing was written.
    Fenced,
    /// The tool is gone since: another worker may have it.
    Returned,
}

/// The claim on an offer while it is carried out.
struct Held {
    context: Arc<Context>,
    offers: Arc<dyn Offers>,
    claim: OfferClaim,
    /// What its call says while it goes on.
    talk: CallTalk,
    tenure: ClaimTenure,
    /// The answer is not wanted any more.
    cancelled: CancellationToken,
}

/// Carries out an offer that was claimed when the store was asked at `asked_at`.
pub(super) async fn carry_out(
    context: Arc<Context>,
    offers: Arc<dyn Offers>,
    claimed: ClaimedOffer,
    permit: Option<Permit>,
    (ttl, asked_at): (Duration, Duration),
) -> CarriedOut {
    let ClaimedOffer { offer, claim } = claimed;
    let talk = CallTalk::new(Arc::clone(&context), Arc::clone(&offers), claim.clone());
    let held = Held {
        context,
        offers,
        claim,
        talk,
        tenure: ClaimTenure::new(ttl, asked_at),
        cancelled: CancellationToken::new(),
    };
    let done = tokio::select! {
        () = held.keep() => CarriedOut::Fenced,
        done = held.work(&offer, permit) => done,
        never = held.talk.tell_owner() => match never {},
    };
    if done == CarriedOut::Fenced {
        // A call that is under way is told to stop, and its future dropped: nothing more is done for it.
        held.cancelled.cancel();
        tracing::warn!(offer = %offer.key, tool = %offer.tool, "the claim is over; what came of the call is not written");
    }
    done
}

impl Held {
    /// Renews the claim. Returns when it is over.
    async fn keep(&self) {
        let mut news = self.offers.answer_news();
        let clock = Arc::clone(&self.context.ports.clock);
        let mut pause = self.tenure.ttl() / 3;
        loop {
            tokio::select! {
                () = clock.sleep(pause) => {}
                _ = news.changed() => clock.sleep(NEWS_PAUSE.min(self.tenure.ttl() / 3)).await,
            }
            news.borrow_and_update();
            let asked_at = clock.uptime();
            let renewed = self
                .offers
                .renew_claim(&self.claim, self.tenure.ttl())
                .await;
            match renewed {
                Ok(standing) => {
                    self.tenure.confirm(asked_at);
                    pause = self.tenure.ttl() / 3;
                    if standing == ClaimStanding::Unwanted {
                        self.cancelled.cancel();
                    }
                }
                Err(ClaimError::Over(_)) => return,
                Err(ClaimError::Store(error)) => {
                    if self.tenure.is_over(clock.uptime()) {
                        return;
                    }
                    tracing::warn!(%error, offer = %self.claim.key, "the claim could not be renewed; the store is asked again");
                    pause = self.tenure.ttl() / 12;
                }
            }
        }
    }

    async fn work(&self, offer: &StepOffer, permit: Option<Permit>) -> CarriedOut {
        let tool = match self.judged_tool(offer) {
            Ok(tool) => tool,
            Err(error) => {
                tracing::info!(offer = %offer.key, %error, "an offer is given back");
                return match self.offers.return_offer(&self.claim).await {
                    Ok(()) => CarriedOut::Returned,
                    Err(_) => CarriedOut::Fenced,
                };
            }
        };
        let outcome = match self.prepare(offer, &tool, permit).await {
            Ok((call, permit)) => self.call(call, permit).await,
            Err(error) => Err(error),
        };
        crash::point("worker: answered");
        let outcome = mask_outcome(&self.context.redaction, outcome).await;
        let artifacts = &*self.context.ports.artifacts;
        let answer = encode_answer(artifacts, outcome, PATIENCE, &self.cancelled).await;
        let mut pauses = Pauses::within(PATIENCE);
        loop {
            match self.offers.answer_offer(&self.claim, answer.clone()).await {
                Ok(()) => {
                    crash::point("worker: answer written");
                    return CarriedOut::Answered;
                }
                Err(ClaimError::Over(_)) => return CarriedOut::Fenced,
                Err(ClaimError::Store(error)) => {
                    let Some(pause) = pauses.next() else {
                        return CarriedOut::Fenced;
                    };
                    tracing::warn!(%error, offer = %offer.key, "the answer cannot be written; the store is asked again");
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    /// Puts the call together with what only this process has: its tools, secrets and files.
    async fn prepare(
        &self,
        offer: &StepOffer,
        tool: &KnownTool,
        permit: Option<Permit>,
    ) -> Result<(Call, Permit), CallError> {
        let context = &self.context;
        let offered: OfferedCall = serde_json::from_slice(&offer.call).map_err(|error| {
            CallError::Unavailable(format!("the worker cannot read the call: {error}"))
        })?;
        let args = self.arguments(tool, &offered).await.map_err(refused)?;
        let (args, files) = put_artifacts(&*context.ports.artifacts, &offered.artifacts, args)
            .await
            .map_err(refused)?;
        let args = check_args(tool, args, ErrorDetail::Redacted).map_err(refused)?;
        let call = Call {
            tool: tool.name.clone(),
            args,
            definition: Some(offer.definition),
            plan: offered.plan,
            run: offer.key.run.clone(),
            top_run: offered.top_run,
            acts_for: offered.acts_for,
            step: offer.key.step.clone(),
            attempt: offer.key.attempt,
            idempotency_key: offer.idempotency_key.clone(),
            cancelled: self.cancelled.clone(),
            answered: offered.answered,
            progress: self.talk.sink(),
            trace: offered.trace.and_then(|trace| trace.parse().ok()),
            answer: AnswerSink::default(),
            client: None,
            person: offered.holds_questions.then(|| self.talk.person()),
            files,
        };
        let permit = match permit {
            Some(permit) => permit,
            None => self.admit(tool).await,
        };
        Ok((call, permit))
    }

    /// The tool, if it is the one that was judged.
    fn judged_tool(&self, offer: &StepOffer) -> Result<Arc<KnownTool>, CallError> {
        let catalog = self.context.ports.tools.catalog();
        let name = offer.tool.to_string();
        let tool = catalog
            .resolve(&name)
            .map_err(|error| CallError::Unavailable(format!("the worker: {error}")))?;
        if tool.digest() != offer.definition {
            return Err(CallError::Unavailable(format!(
                "the tool `{name}` of the worker is not the one that was approved: planwright diff"
            )));
        }
        Ok(Arc::clone(tool))
    }

    /// The arguments with the secrets of this process.
    async fn arguments(
        &self,
        tool: &KnownTool,
        offered: &OfferedCall,
    ) -> Result<Map<String, Value>, StepError> {
        let unreadable = || StepError::new(StepErrorCode::InvalidArgs, "a secret has no name");
        let names: Vec<SecretName> = offered.secret_names().ok_or_else(unreadable)?;
        let shown = offered.shown_args();
        if names.is_empty() {
            return Ok(shown);
        }
        let shown = Value::Object(shown);
        let secrets = self.context.unseal(&names, &tool.name, &shown).await?;
        let text = |name: &str| secrets.get(name).and_then(Value::as_str).map(str::to_owned);
        offered.args_with(text).ok_or_else(unreadable)
    }

    /// Waits until the limits of this process allow the call.
    async fn admit(&self, tool: &KnownTool) -> Permit {
        let context = &self.context;
        let mut freed = context.limiter.watch_freed();
        let demand = Demand::of(&*context.ports.tools, &tool.name.server);
        loop {
            freed.borrow_and_update();
            if let Some(permit) = context.limiter.try_admit(tool, demand) {
                return permit;
            }
            // The limiter lives as long as the context.
            drop(freed.changed().await);
        }
    }

    /// Makes the call, unless the store has not confirmed the claim for too long.
    async fn call(&self, call: Call, permit: Permit) -> Outcome {
        let clock = &self.context.ports.clock;
        while !self.tenure.allows_call(clock.uptime()) {
            // The claim is renewed meanwhile, or found to be over: then this ends.
            clock.sleep(self.tenure.ttl() / 24).await;
        }
        if self.cancelled.is_cancelled() {
            return Err(CallError::Cancelled);
        }
        crash::point("worker: before call");
        let span = telemetry::call_span(&call, &self.context.redaction);
        let top_run = call.top_run.clone();
        let cancelled = self.cancelled.clone();
        let given_up = async {
            cancelled.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        let calling = span.in_scope(|| guarded(&*self.context.ports.tools, call));
        let outcome = tokio::select! {
            biased;
            outcome = calling.instrument(span.clone()) => outcome,
            () = given_up => Err(CallError::Lost("the call did not stop when it was told to".into())),
        };
        drop(permit);
        self.context.ports.tools.release(&top_run);
        outcome
    }
}

/// An error from before anything was called.
fn refused(error: StepError) -> CallError {
    CallError::Failed {
        code: error.code,
        message: error.message,
        retryable: error.retryable,
        effect: CallEffect::None,
    }
}
