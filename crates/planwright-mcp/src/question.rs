//! Asking the person behind a client: a form with the whole briefing, and one clear answer.
//!
//! Clients of the earlier era are sent a request and answer it. Clients of the modern era get the
//! question as the result of the call, and make the call again with the answer. In both cases the
//! answer is bound to what was shown: a digest, once, for a while.

use crate::call::review_url;
use crate::run_question::{RunQuestion, find_question};
use planwright_core::briefing::{RenderOptions, render_briefing};
use planwright_core::digest::Digest;
use planwright_core::id::PlanId;
use planwright_core::policy::LateChoice;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::Review;
use planwright_core::run::{Run, Shown};
use planwright_engine::port::BoxFuture;
use planwright_engine::{Candidate, Consented, Consenter, Engine, GivenApproval};
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InputRequest, InputRequests, InputRequiredResult, InputResponses,
};
use rmcp::service::{Peer, RoleServer};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A briefing that is longer is not squeezed into a form.
pub(crate) const MAX_MESSAGE: usize = 60_000;
/// The time a person may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// The most questions that wait for an answer.
const MAX_OPEN: usize = 64;
/// The name of our question among those of a call.
pub(crate) const KEY: &str = "approval";
/// The field of a form that asks for late values to be shown.
const SEE_LATE_VALUES: &str = "seeLateValues";
/// Columns of the briefing in a form.
pub(crate) const WIDTH: usize = 80;

/// Questions that were asked as results and are not answered yet.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions(Mutex<HashMap<String, OpenQuestion>>);

#[derive(Debug)]
struct OpenQuestion {
    about: About,
    asked: Instant,
}

/// What was shown with a question.
#[derive(Debug)]
enum About {
    Plan(PlanId, Digest),
    Run(Box<RunQuestion>),
    /// The person was given the address of the review of this plan.
    Address(PlanId),
}

impl OpenQuestions {
    /// Notes a question and returns the word by which its answer is known. Nothing if too many are
    /// open.
    fn open(&self, about: About) -> Option<String> {
        let state = format!(
            "{:016x}{:016x}",
            getrandom::u64().ok()?,
            getrandom::u64().ok()?
        );
        let mut open = self.questions();
        open.retain(|_, question| question.asked.elapsed() < PATIENCE);
        if open.len() >= MAX_OPEN {
            return None;
        }
        let asked = Instant::now();
        open.insert(state.clone(), OpenQuestion { about, asked });
        Some(state)
    }

    /// Notes what a page shows, in place of what was shown longest ago if there is too much.
    fn open_latest(&self, about: About) -> Option<String> {
        let mut open = self.questions();
        if open.len() >= MAX_OPEN {
            let oldest = open.iter().min_by_key(|(_, question)| question.asked);
            let oldest = oldest.map(|(state, _)| state.clone());
            oldest.and_then(|state| open.remove(&state));
        }
        drop(open);
        self.open(about)
    }

    /// Takes the digest of this plan that was shown under this word, once.
    fn take_plan(&self, state: &str, plan: &PlanId) -> Option<Digest> {
        match self.take(state)? {
            About::Plan(shown, digest) if shown == *plan => Some(digest),
            About::Plan(..) | About::Run(_) | About::Address(_) => None,
        }
    }

    /// Takes the question that gave the address of this plan's review, once.
    fn take_address(&self, state: &str, plan: &PlanId) -> bool {
        matches!(self.take(state), Some(About::Address(shown)) if shown == *plan)
    }

    /// Takes the question of a run that was asked under this word, once. One about a plan stays.
    fn take_run(&self, state: &str) -> Option<Box<RunQuestion>> {
        if !matches!(self.questions().get(state)?.about, About::Run(_)) {
            return None;
        }
        match self.take(state)? {
            About::Run(question) => Some(question),
            About::Plan(..) | About::Address(_) => None,
        }
    }

    fn take(&self, state: &str) -> Option<About> {
        let question = self.questions().remove(state)?;
        (question.asked.elapsed() < PATIENCE).then_some(question.about)
    }

    fn questions(&self) -> MutexGuard<'_, HashMap<String, OpenQuestion>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the person behind this call is reached.
#[derive(Debug)]
pub(crate) enum Channel {
    /// The client is sent a request.
    Request(Peer<RoleServer>),
    /// The question is the result of the call; these came with it.
    Result {
        responses: Option<InputResponses>,
        state: Option<String>,
    },
    /// The client cannot ask.
    None,
}

/// Where people review plans in a browser, and how a client is told to open it.
#[derive(Debug)]
pub(crate) struct ReviewAddress {
    /// The address of the service.
    pub(crate) service: String,
    pub(crate) channel: Channel,
}

/// What a person said about a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Approve {
        /// True if every value that is only known later is shown before it is sent.
        sees_late_values: bool,
    },
    Changes(String),
    Reject(String),
    /// No answer, or none that is one of these.
    Unclear,
}

/// The person behind the client of one call.
pub(crate) struct AskedPerson {
    engine: Engine,
    /// The agent that calls.
    agent: Principal,
    person: Principal,
    channel: Channel,
    /// Where the person is sent when no form can be.
    address: Option<ReviewAddress>,
    /// The person went to the review in their browser.
    went_to_review: AtomicBool,
    open: Arc<OpenQuestions>,
    /// What pages of the client show.
    shown: Arc<OpenQuestions>,
    /// The question that the result of the call has to ask.
    wanted: Mutex<Option<InputRequiredResult>>,
    /// Runs ask for themselves.
    leaves_runs: AtomicBool,
}

impl fmt::Debug for AskedPerson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskedPerson")
            .field("person", &self.person)
            .finish_non_exhaustive()
    }
}

impl AskedPerson {
    pub(crate) fn new(
        engine: Engine,
        agent: Principal,
        person: Principal,
        (channel, address): (Channel, Option<ReviewAddress>),
        (open, shown): (Arc<OpenQuestions>, Arc<OpenQuestions>),
    ) -> Self {
        Self {
            engine,
            agent,
            person,
            channel,
            address,
            went_to_review: AtomicBool::new(false),
            open,
            shown,
            wanted: Mutex::default(),
            leaves_runs: AtomicBool::new(false),
        }
    }

    /// Asks nothing that a run waits for.
    pub(crate) fn leave_runs_alone(&self) {
        self.leaves_runs.store(true, Ordering::Relaxed);
    }

    /// Returns whether the result of the call has to be a question.
    pub(crate) fn has_question(&self) -> bool {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.is_some()
    }

    /// Takes the question that has to be the result of the call.
    pub(crate) fn take_question(&self) -> Option<InputRequiredResult> {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.take()
    }

    pub(crate) fn principal(&self) -> &Principal {
        &self.person
    }

    /// Shows the plan and asks. Nothing if no person could be asked, or not yet.
    pub(crate) async fn ask(
        &self,
        review: &Review,
        candidate: &Candidate,
        words: &str,
    ) -> Option<Decision> {
        let late = self.engine.plans().careful_choices(candidate);
        let message = match self.channel {
            Channel::None => None,
            Channel::Request(_) | Channel::Result { .. } => {
                self.message(review, candidate, words, &late).await
            }
        };
        let Some(message) = message else {
            return self.send_to_review(review.id(), words).await;
        };
        let form = || match late.values().any(|choice| *choice != LateChoice::Ask) {
            true => plan_form(message.clone()),
            false => decision_form(message.clone()),
        };
        match &self.channel {
            Channel::None => None,
            Channel::Request(peer) => {
                let answer = ask_client(peer, form()?).await?;
                Some(decision_of(&answer))
            }
            Channel::Result { responses, state } => {
                if let Some(state) = state {
                    let shown = self.open.take_plan(state, review.id());
                    // An answer to something else than what would run is no answer.
                    return match (shown, answer_in(responses.as_ref())) {
                        (Some(shown), Some(answer)) if shown == candidate.digest => {
                            Some(decision_of(&answer))
                        }
                        _ => Some(Decision::Unclear),
                    };
                }
                let about = About::Plan(review.id().clone(), candidate.digest);
                self.ask_as_result(form()?, about)?;
                None
            }
        }
    }

    /// Returns whether the person went to the review in their browser, where they decide.
    pub(crate) fn went_to_review(&self) -> bool {
        self.went_to_review.load(Ordering::Relaxed)
    }

    /// Has the client open the review in a browser. What the person decides there is recorded
    /// there: it is no answer here.
    async fn send_to_review(&self, plan: &PlanId, words: &str) -> Option<Decision> {
        let ReviewAddress { service, channel } = self.address.as_ref()?;
        let id = format!("{:016x}", getrandom::u64().ok()?);
        let question = ElicitRequestParams::UrlElicitationParams {
            meta: None,
            message: format!("{words} Decide in your browser: the review of `{plan}`."),
            url: review_url(service, plan),
            elicitation_id: id,
        };
        let answer = match channel {
            Channel::None => return None,
            Channel::Request(peer) => ask_client(peer, question).await?,
            Channel::Result { state: None, .. } => {
                self.ask_as_result(question, About::Address(plan.clone()))?;
                return None;
            }
            Channel::Result {
                responses,
                state: Some(state),
            } => {
                let is_ours = self.open.take_address(state, plan);
                answer_in(responses.as_ref()).filter(|_| is_ours)?
            }
        };
        if answer.action != ElicitationAction::Accept {
            return Some(Decision::Unclear);
        }
        self.went_to_review.store(true, Ordering::Relaxed);
        None
    }

    /// The review for a page of the client, with the nonce that its decision needs. Nothing if the
    /// plan is too long to be shown whole.
    pub(crate) async fn show_review(
        &self,
        review: &Review,
        candidate: &Candidate,
    ) -> Option<Value> {
        let late = self.engine.plans().careful_choices(candidate);
        let words = "An agent asks you to approve this plan.";
        let text = self.message(review, candidate, words, &late).await?;
        let about = About::Plan(review.id().clone(), candidate.digest);
        let nonce = self.shown.open_latest(about)?;
        let asks_late = late.values().any(|choice| *choice != LateChoice::Ask);
        Some(json!({
            "planId": review.id(), "version": review.current().number,
            "digest": candidate.digest, "text": text, "lateValues": asks_late, "nonce": nonce,
        }))
    }

    /// Takes the digest of the plan that a page showed with this nonce, once.
    pub(crate) fn take_shown(&self, nonce: &str, plan: &PlanId) -> Option<Digest> {
        self.shown.take_plan(nonce, plan)
    }

    /// Makes the question the result of the call. Nothing if too many are open.
    fn ask_as_result(&self, form: ElicitRequestParams, about: About) -> Option<()> {
        let state = self.open.open(about)?;
        let question = InputRequest::Elicitation(ElicitRequest::new(form));
        let requests = InputRequests::from([(KEY.to_owned(), question)]);
        let question = InputRequiredResult::new(Some(requests), Some(state));
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        *wanted = Some(question);
        Some(())
    }

    /// Takes the answer to a question of a run, if that is what came with the call.
    pub(crate) fn take_run_answer(&self) -> Option<(Box<RunQuestion>, ElicitResult)> {
        let Channel::Result {
            responses,
            state: Some(state),
        } = &self.channel
        else {
            return None;
        };
        let question = self.open.take_run(state)?;
        let answer = answer_in(responses.as_ref())?;
        Some((question, answer))
    }

    /// Tells a run what the person said. Returns whether it took that for a decision.
    pub(crate) async fn tell_run(&self, question: &RunQuestion, answer: &ElicitResult) -> bool {
        let command = question.command(answer, &self.person);
        let told = self.engine.runs().command(&question.run, command).await;
        told.inspect_err(
            |error| tracing::warn!(run = %question.run, %error, "an answer was not taken"),
        )
        .is_ok()
    }

    /// Asks the first thing that a run waits for. Returns whether anything was decided.
    async fn ask_for_run(&self, run: &Run) -> Option<bool> {
        if self.leaves_runs.load(Ordering::Relaxed) {
            return None;
        }
        let question = find_question(&self.engine, run, &self.agent).await?;
        match &self.channel {
            Channel::None => None,
            Channel::Request(peer) => {
                let answer = ask_client(peer, question.form.clone()).await?;
                Some(self.tell_run(&question, &answer).await)
            }
            Channel::Result { .. } => {
                let form = question.form.clone();
                self.ask_as_result(form, About::Run(Box::new(question)))?;
                None
            }
        }
    }

    /// Everything that an approver has to see, or nothing if it does not fit into a form.
    async fn message(
        &self,
        review: &Review,
        candidate: &Candidate,
        words: &str,
        late: &BTreeMap<String, LateChoice>,
    ) -> Option<String> {
        let briefings = self.engine.briefings();
        let briefing = briefings.brief(review, candidate, &self.person).await;
        let options = RenderOptions {
            width: WIDTH,
            full: true,
            ..RenderOptions::default()
        };
        let lines = render_briefing(&briefing, &options);
        let lines: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        let late: String = late
            .iter()
            .map(|(step, choice)| format!("step {step}: {}\n", choice.consequence()))
            .collect();
        let text = format!(
            "{words}\n\n{}\n\n{late}digest {}",
            lines.join("\n"),
            candidate.digest
        );
        (text.len() <= MAX_MESSAGE).then_some(text)
    }

    /// The approval of a person who agreed. Never looser than a yes at the terminal.
    pub(crate) fn approval(&self, candidate: &Candidate, sees_late_values: bool) -> GivenApproval {
        let mut late = self.engine.plans().careful_choices(candidate);
        if sees_late_values {
            late.values_mut()
                .for_each(|choice| *choice = LateChoice::Ask);
        }
        GivenApproval {
            shown: Shown::Digest(candidate.digest),
            by: self.person.clone(),
            assurance: Assurance::HostMediated,
            late,
        }
    }

    /// Records what the person said, if it is anything but a yes.
    async fn refuse(&self, review: &Review, candidate: &Candidate, decision: &Decision) {
        let plans = self.engine.plans();
        let shown = Shown::Digest(candidate.digest);
        let id = review.id();
        let recorded = match decision {
            Decision::Changes(reason) => {
                plans.request_changes(id, shown, &self.person, reason).await
            }
            Decision::Reject(reason) => plans.reject(id, shown, &self.person, reason).await,
            Decision::Approve { .. } | Decision::Unclear => return,
        };
        if let Err(error) = recorded {
            tracing::warn!(plan = %id, %error, "a person's no could not be recorded");
        }
    }
}

impl Consenter for AskedPerson {
    fn agree<'a>(
        &'a self,
        review: &'a Review,
        candidate: &'a Candidate,
    ) -> BoxFuture<'a, Consented> {
        Box::pin(async move {
            let words = "An agent wants to run this plan.";
            match self.ask(review, candidate, words).await {
                None => Consented::NotAsked,
                Some(Decision::Approve { sees_late_values }) => {
                    Consented::Yes(Box::new(self.approval(candidate, sees_late_values)))
                }
                Some(decision) => {
                    self.refuse(review, candidate, &decision).await;
                    Consented::No
                }
            }
        })
    }

    fn decide<'a>(&'a self, run: &'a Run) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.ask_for_run(run).await.unwrap_or(false) })
    }
}

/// Has the client ask its person. Nothing if it did not.
pub(crate) async fn ask_client(
    peer: &Peer<RoleServer>,
    form: ElicitRequestParams,
) -> Option<ElicitResult> {
    let asked = peer.create_elicitation_with_timeout(form, Some(PATIENCE));
    asked
        .await
        .inspect_err(|error| tracing::warn!(%error, "the client did not ask its person"))
        .ok()
}

/// The answer to our question among those that came with a call.
fn answer_in(responses: Option<&InputResponses>) -> Option<ElicitResult> {
    let answer = responses?.get(KEY)?;
    serde_json::from_value(answer.clone()).ok()
}

/// The form for a plan of which some values are only known later.
fn plan_form(message: String) -> Option<ElicitRequestParams> {
    let mut schema = decision_schema();
    schema["properties"][SEE_LATE_VALUES] = json!({
        "type": "boolean",
        "title": "Show me each value that is only known later, before it is sent",
        "default": false,
    });
    form_of(message, schema)
}

/// A form with three answers.
pub(crate) fn decision_form(message: String) -> Option<ElicitRequestParams> {
    form_of(message, decision_schema())
}

fn decision_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Decision",
                "oneOf": [
                    { "const": "approve", "title": "Approve exactly this plan" },
                    { "const": "changes", "title": "Ask for changes" },
                    { "const": "reject", "title": "Reject" },
                ],
            },
            "comment": { "type": "string", "title": "Why", "maxLength": 2000 },
        },
        "required": ["decision"],
    })
}

fn form_of(message: String, schema: Value) -> Option<ElicitRequestParams> {
    let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema,
    })
}

/// Reads an answer. Only an accepted form with exactly the word `approve` approves.
pub(crate) fn decision_of(result: &ElicitResult) -> Decision {
    if result.action != ElicitationAction::Accept {
        return Decision::Unclear;
    }
    let content = result.content.as_ref();
    decision_in(|name| content.and_then(|content| content.get(name)))
}

/// Reads the fields of an answer.
pub(crate) fn decision_in<'a>(value: impl Fn(&str) -> Option<&'a Value>) -> Decision {
    let field = |name: &str| value(name).and_then(Value::as_str).unwrap_or_default();
    let comment = field("comment").chars().take(2_000).collect::<String>();
    match field("decision") {
        "approve" => Decision::Approve {
            // Anything but a clear no means that the person wants to see them.
            sees_late_values: value(SEE_LATE_VALUES).is_some_and(|sees| *sees != json!(false)),
        },
        "changes" => Decision::Changes(comment),
        "reject" => Decision::Reject(comment),
        _ => Decision::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(value: Value) -> Decision {
        decision_of(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn only_an_accepted_form_with_the_word_approves() {
        let content =
            |decision: Value| json!({ "action": "accept", "content": { "decision": decision } });
        let approved = |sees_late_values| Decision::Approve { sees_late_values };
        assert_eq!(answer(content(json!("approve"))), approved(false));
        for (said, sees) in [
            (json!(false), false),
            (json!(true), true),
            (json!("no"), true),
        ] {
            let content = json!({ "decision": "approve", "seeLateValues": said });
            let said = answer(json!({ "action": "accept", "content": content }));
            assert_eq!(said, approved(sees));
        }
        for not in [
            content(json!("Approve")),
            content(json!("yes")),
            content(json!(true)),
            content(json!(["approve"])),
            json!({ "action": "accept" }),
            json!({ "action": "decline", "content": { "decision": "approve" } }),
            json!({ "action": "cancel", "content": { "decision": "approve" } }),
        ] {
            assert_eq!(answer(not.clone()), Decision::Unclear, "{not}");
        }
    }

    #[test]
    fn what_is_shown_last_can_always_be_decided() {
        let shown = OpenQuestions::default();
        let plan: PlanId = "one".parse().unwrap();
        let about = || About::Plan(plan.clone(), Digest::ZERO);
        let first = shown.open_latest(about()).unwrap();
        for _ in 0..MAX_OPEN {
            shown.open_latest(about()).unwrap();
        }
        let last = shown.open_latest(about()).unwrap();
        assert_eq!(shown.take_plan(&first, &plan), None);
        assert_eq!(shown.take_plan(&last, &plan), Some(Digest::ZERO));
    }

    #[test]
    fn an_answer_counts_once_and_for_its_own_plan() {
        let open = OpenQuestions::default();
        let one: PlanId = "one".parse().unwrap();
        let two: PlanId = "two".parse().unwrap();
        let about = || About::Plan(one.clone(), Digest::ZERO);
        let state = open.open(about()).unwrap();
        assert_eq!(open.take_plan(&state, &two), None);
        assert_eq!(open.take_plan(&state, &one), None, "it was used");
        let state = open.open(about()).unwrap();
        assert!(open.take_run(&state).is_none(), "it is about a plan");
        assert_eq!(open.take_plan(&state, &one), Some(Digest::ZERO));
        assert_eq!(open.take_plan(&state, &one), None);
        for _ in 0..MAX_OPEN {
            assert!(open.open(about()).is_some());
        }
        assert!(open.open(about()).is_none());
    }
}
