//! Calls that workers make: what is offered to them, and waiting for what comes of it.

use super::call;
use super::held::{LetGo, QuestionLine};
use super::offered_call::{OfferedCall, decode_answer};
use super::run_loop::{RunError, RunLoop};
use super::schedule::Prepared;
use crate::context::offered_talk::{decode_question, encode_replies};
use crate::context::telemetry;
use crate::context::{Context, OfferSight, WatchedOffer};
use crate::journal::secret_values::SecretValues;
use crate::port::{
    AppendError, BoxFuture, Call, CallError, OfferChange, OfferKey, OfferQuestion, OfferState,
    Offers, Outcome, StepNotice, StepOffer,
};
use crate::redaction::call_results::mask_progress;
use planwright_core::digest::Digest;
use planwright_core::plan::StepIx;
use planwright_core::run::{Command, Reply, StepError, StepErrorCode, StepState};
use planwright_core::tool::{EffectClass, KnownTool};
use planwright_core::trace::TraceParent;
use serde_json::Value;
use std::sync::Arc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// For so long a value that a worker stored is tried to be read.
const PATIENCE: std::time::Duration = std::time::Duration::from_mins(1);

/// An offer is taken back at most this long before the time of its attempt is over.
const EXPIRY_MARGIN: std::time::Duration = std::time::Duration::from_secs(1);

/// Replies that could not be written for their worker are written again after this time.
const REPLY_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// A call that a worker makes.
pub(super) struct WorkerCall {
    context: Arc<Context>,
    offers: Arc<dyn Offers>,
    offer: WatchedOffer,
    /// This process lets go of the run. The call goes on.
    left: CancellationToken,
    /// When an offer that no worker has taken is taken back, shortly before the time of the attempt is over.
    expires_at: Option<Instant>,
    /// Where its questions are journaled, if a person may be there who replies.
    questions: Option<QuestionLine>,
    /// The replies that this attempt has got so far, in the order of its questions.
    replied: Vec<Vec<Reply>>,
}

impl WorkerCall {
    /// Waits for what comes of it.
    pub(super) async fn outcome(mut self, cancelled: CancellationToken) -> Outcome {
        let mut is_withdrawn = false;
        let mut asked = 0;
        let mut replying: BoxFuture<'static, ()> = Box::pin(std::future::pending());
        loop {
            let OfferSight { state, question } = self.offer.sight.borrow_and_update().clone();
            if let Some(question) = question.filter(|question| question.number > asked) {
                asked = question.number;
                replying = self.reply(question);
            }
            match state {
                OfferState::Answered(answer) => {
                    let artifacts = &*self.context.ports.artifacts;
                    return decode_answer(artifacts, &answer, PATIENCE).await;
                }
                OfferState::Withdrawn => return Err(CallError::Cancelled),
                OfferState::Lost => {
                    return Err(CallError::Lost(
                        "the worker that made the call ended, or could not record the answer"
                            .to_owned(),
                    ));
                }
                OfferState::Offered | OfferState::Claimed { .. } => {}
            }
            tokio::select! {
                () = &mut replying => replying = Box::pin(std::future::pending()),
                changed = self.offer.sight.changed() => if changed.is_err() {
                    return Err(CallError::Lost("the offer is not watched any more".to_owned()));
                },
                () = self.left.cancelled() => {
                    return Err(CallError::Lost("another process takes the run over".to_owned()));
                }
                () = expiry(self.expires_at), if self.expires_at.is_some() => {
                    self.expires_at = None;
                    if let Some(outcome) = self.expire().await {
                        return outcome;
                    }
                }
                () = cancelled.cancelled(), if !is_withdrawn => {
                    is_withdrawn = true;
                    if let Some(outcome) = self.withdraw().await {
                        return outcome;
                    }
                }
            }
        }
    }

    /// Has a question journaled, and writes the replies for the worker once they are durable. What an earlier owner journaled is
    /// not asked again: attempts ask one question after the other.
    fn reply(&self, question: OfferQuestion) -> BoxFuture<'static, ()> {
        let OfferQuestion { number, asked } = question;
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        let known = self.replied.get(place.saturating_sub(1)).cloned();
        let line = self.questions.clone();
        let (offers, key) = (Arc::clone(&self.offers), self.offer.key.clone());
        Box::pin(async move {
            let replies = match (known, line, decode_question(&asked)) {
                (Some(known), _, _) => Some(known),
                (None, Some(line), Some(asked)) => match line.ask(asked).await {
                    Ok(replies) => replies,
                    Err(LetGo) => return,
                },
                (None, _, _) => None,
            };
            let replies = encode_replies(replies.as_deref());
            while let Err(error) = offers.reply_to_offer(&key, number, replies.clone()).await {
                tracing::warn!(offer = %key, %error, "the replies to a question cannot be written; the store is asked again");
                tokio::time::sleep(REPLY_PAUSE).await;
            }
        })
    }

    /// Takes back an offer that no worker has taken: nothing was called, and that is known only now.
    async fn expire(&self) -> Option<Outcome> {
        if self.offer.sight.borrow().state != OfferState::Offered {
            return None;
        }
        let withdrawn = self.withdraw().await?;
        Some(withdrawn.map_err(|_| {
            CallError::Unavailable(
                "no worker took the step within its time limit: planwright workers".to_owned(),
            )
        }))
    }

    /// Says that the call is not wanted any more. Its outcome, if it is known at once.
    async fn withdraw(&self) -> Option<Outcome> {
        match self.offers.withdraw_offer(&self.offer.key).await {
            Ok(Some(OfferState::Withdrawn)) => Some(Err(CallError::Cancelled)),
            // It ends with the time that a call has to stop, or its worker answers.
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(offer = %self.offer.key, %error, "a worker cannot be told to stop");
                None
            }
        }
    }
}

async fn expiry(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The offer of a call.
pub(super) fn make_offer(
    call: &Call,
    (capability, class, definition): (String, EffectClass, Digest),
    offered: &OfferedCall,
) -> StepOffer {
    StepOffer {
        key: OfferKey {
            run: call.run.clone(),
            step: call.step.clone(),
            attempt: call.attempt,
        },
        capability,
        idempotency_key: call.idempotency_key.clone(),
        tool: call.tool.clone(),
        definition,
        class,
        call: serde_json::to_vec(offered).expect("an offered call is JSON"),
    }
}

impl RunLoop {
    /// The capability of the worker that makes the calls of a step; `None` if they are made here.
    pub(super) fn worker_capability(&self, step: StepIx) -> Result<Option<String>, StepError> {
        let context = &self.context;
        let capability = self.run.definition(step).capability.as_deref();
        let Some(capability) =
            capability.filter(|name| context.settings.dispatch.capabilities.contains(*name))
        else {
            return Ok(None);
        };
        if context.ports.offers.is_none() {
            let message = format!(
                "steps with the capability `{capability}` are carried out by workers, which need a store in Postgres: \
                 --store postgres://…"
            );
            return Err(StepError::new(StepErrorCode::ToolUnavailable, message));
        }
        Ok(Some(capability.to_owned()))
    }

    /// The call as a worker gets it.
    pub(super) fn offered_call(
        &self,
        step: StepIx,
        tool: &KnownTool,
    ) -> Result<OfferedCall, StepError> {
        let names = self.run.plan().secrets(self.run.plan_step(step));
        let (marks, secrets) = SecretValues::marks(&names, &*self.context.ports.ids);
        let args = self.resolved(step, tool, &marks)?;
        let artifacts = match self.takes_artifacts(step) {
            true => self.find_artifacts(step, tool, &args)?,
            false => Vec::new(),
        };
        let answered = self.run.answered(step).to_vec();
        let place = |trace| TraceParent::of_name(trace, &self.key(step)).to_string();
        let call = OfferedCall {
            plan: self.run.plan().id().clone(),
            top_run: self.family.top().clone(),
            acts_for: self.run.start().acts_for().cloned(),
            args,
            secrets,
            artifacts,
            answered,
            trace: self.run.start().trace.map(place),
            // What can be called again waits for its answer without holding anything.
            holds_questions: self.holds_questions && tool.class == EffectClass::Unsafe,
        };
        self.refuse_secrets(&call)?;
        Ok(call)
    }

    /// A value that is known to be secret does not travel, in any argument.
    fn refuse_secrets(&self, call: &OfferedCall) -> Result<(), StepError> {
        let redactor = self.context.redaction.redactor();
        if redactor.is_empty() {
            return Ok(());
        }
        let written = serde_json::json!({ "args": call.args, "answered": call.answered });
        let mut masked: Value = written.clone();
        redactor.value(&mut masked);
        if masked == written {
            return Ok(());
        }
        Err(StepError::new(
            StepErrorCode::SecretNotAllowed,
            "an argument has the value of a secret, which is not sent to workers: name it as ${secret.NAME}",
        ))
    }

    /// What the next append says about offers: those of the calls that it starts, and those that are over.
    pub(super) fn offer_changes(&mut self, calls: &[Prepared]) -> Vec<OfferChange> {
        let mut changes: Vec<OfferChange> = Vec::new();
        let run = &self.run;
        let is_running = |step: StepIx, attempt| matches!(run.step(step), StepState::Running { tally, .. } if tally.attempts == attempt);
        self.offered.retain(|step, attempt| {
            let goes_on = is_running(*step, *attempt);
            if !goes_on {
                changes.push(OfferChange::End(OfferKey {
                    run: run.id().clone(),
                    step: run.step_id(*step).clone(),
                    attempt: *attempt,
                }));
            }
            goes_on
        });
        let made = calls.iter().filter_map(|prepared| {
            let offer = prepared.offer.clone()?;
            Some((prepared.step, offer))
        });
        for (step, offer) in made {
            self.offered.insert(step, offer.key.attempt);
            changes.push(OfferChange::Make(offer));
        }
        changes
    }

    /// Calls of this run that workers make.
    pub(super) fn count_offered(&self) -> usize {
        let flights = self.in_flight.values();
        flights.filter(|flight| flight.left.is_some()).count()
    }

    /// Watches a call that a worker makes.
    pub(super) fn watch_worker(
        &self,
        prepared: &Prepared,
    ) -> Option<(WorkerCall, CancellationToken)> {
        let offer = prepared.offer.as_deref()?;
        let offers = self.context.ports.offers.clone()?;
        let notice = StepNotice {
            capability: offer.capability.clone(),
            run: offer.key.run.clone(),
            step: offer.key.step.clone(),
            attempt: offer.key.attempt,
            idempotency_key: offer.idempotency_key.clone(),
            trace: prepared.call.trace,
        };
        // A worker masks what it knows, and this process what it knows.
        let redaction = &self.context.redaction;
        let progress = mask_progress(redaction, prepared.call.progress.clone());
        let context = Arc::clone(&self.context);
        let watched = context.watch_offer(&offers, notice, offer.definition, progress);
        let left = CancellationToken::new();
        let expires_at = self.expiry_of(prepared.step);
        // A person who was asked by an earlier owner may reply at any time.
        let is_asked = self.run.step(prepared.step).question().is_some();
        let may_ask = (self.holds_questions || is_asked) && offer.class == EffectClass::Unsafe;
        let questions = may_ask.then(|| self.questions.line(prepared.step, offer.key.attempt));
        // Those before were given to earlier attempts.
        let replied = self.run.answered(prepared.step).iter();
        let replied = replied.skip(prepared.call.answered.len());
        let by_worker = WorkerCall {
            questions,
            replied: replied.map(|answered| answered.replies.clone()).collect(),
            context,
            offers,
            offer: watched,
            left: left.clone(),
            expires_at,
        };
        Some((by_worker, left))
    }

    /// Shortly before the attempt would be given up as one whose outcome is unknown.
    fn expiry_of(&self, step: StepIx) -> Option<Instant> {
        let StepState::Running { deadline, .. } = self.run.step(step) else {
            return None;
        };
        let left = (*deadline)?.since(self.context.ports.clock.now());
        Some(Instant::now() + left.saturating_sub(EXPIRY_MARGIN.min(left / 4)))
    }

    /// Settles what an earlier process had in flight, and goes on waiting for the calls that workers make.
    pub(super) async fn recover(&mut self) -> Result<(), RunError> {
        let carried = self.carried_offers().await?;
        let command = if carried.is_empty() {
            Command::Recover
        } else {
            Command::RecoverOthers {
                carried: carried.iter().map(|(step, _)| *step).collect(),
            }
        };
        self.execute(&command, planwright_core::journal::Cause::Recovery)?;
        for (step, offer) in carried {
            self.adopt(step, offer).await;
        }
        Ok(())
    }

    /// The offers of calls that are in flight as the journal has it.
    async fn carried_offers(&mut self) -> Result<Vec<(StepIx, StepOffer)>, RunError> {
        let Some(offers) = self.context.ports.offers.clone() else {
            return Ok(Vec::new());
        };
        if self.run.schedule().running().next().is_none() {
            return Ok(Vec::new());
        }
        let found = offers.offers(self.run.id()).await;
        let found = found.map_err(AppendError::from)?;
        let running = found.into_iter().filter_map(|(offer, _)| {
            let step = self.run.find(offer.key.step.as_str())?;
            let StepState::Running { tally, .. } = self.run.step(step) else {
                return None;
            };
            (tally.attempts == offer.key.attempt).then_some((step, offer))
        });
        Ok(running.collect())
    }

    /// Waits for a call that a worker makes, as the process did that started it.
    async fn adopt(&mut self, step: StepIx, offer: StepOffer) {
        let offered: Option<OfferedCall> = serde_json::from_slice(&offer.call).ok();
        let args = offered
            .as_ref()
            .map(OfferedCall::shown_args)
            .unwrap_or_default();
        let own = self.run.plan_step(step);
        let answered = offered.map_or_else(
            || self.run.answered(step).to_vec(),
            |offered| offered.answered,
        );
        // What cannot be loaded is not expected either: the value that comes is checked as far as it can be.
        if let Err(error) = self.load(step).await {
            tracing::warn!(run = %self.run.id(), step = %offer.key.step, message = error.message, "the values of a step cannot be read");
        }
        let plan = Arc::clone(self.run.plan());
        let expectation = plan.expectation(own, &args, &self.values(step));
        let progress = self.observers.sink(self.run.id(), self.run.step_id(step));
        let call = Call {
            tool: offer.tool.clone(),
            args,
            definition: Some(offer.definition),
            plan: plan.id().clone(),
            run: self.run.id().clone(),
            top_run: self.family.top().clone(),
            acts_for: self.run.start().acts_for().cloned(),
            step: offer.key.step.clone(),
            attempt: offer.key.attempt,
            idempotency_key: offer.idempotency_key.clone(),
            cancelled: CancellationToken::new(),
            answered,
            progress,
            trace: None,
            answer: crate::port::AnswerSink::default(),
            client: None,
            person: None,
            files: Vec::new(),
        };
        let permit = self.context.limiter.admit_carried(&offer.tool.server);
        self.offered.insert(step, offer.key.attempt);
        tracing::info!(run = %self.run.id(), step = %offer.key.step, "a worker makes the call of this step; its answer is waited for");
        self.dispatch(Prepared {
            step,
            call,
            permit,
            expectation,
            offer: Some(Box::new(offer)),
        });
    }

    /// Makes a call, or waits for the worker that makes it.
    pub(super) fn dispatch(&mut self, mut prepared: Prepared) {
        crate::context::crash::point("run: before call");
        let call = &mut prepared.call;
        let span = telemetry::call_span(call, &self.context.redaction);
        call.trace = telemetry::call_place(&span, self.run.start().trace, call);
        let (step, attempt) = (prepared.step, call.attempt);
        let cancelled = call.cancelled.clone();
        let (by_worker, left) = self.watch_worker(&prepared).unzip();
        self.note_flight(step, attempt, cancelled, span.clone(), left);
        let made = call::make(&self.context, &self.inline, prepared, span, by_worker);
        self.calls.push(made);
    }
}
