//! Plans that a client carries out itself, call by call.

use super::drive::{ClientRequest, as_requests, problem};
use super::pending::Waiting;
use super::server::GatewayServer;
use crate::question::{Channel, PATIENCE};
use crate::run_question::{RunQuestion, find_questions};
use planwright_core::id::PlanId;
use planwright_core::run::StepErrorCode;
use planwright_engine::port::ProgressSink;
use planwright_engine::{FollowedRun, StepAnswer};
use rmcp::ErrorData;
use rmcp::model::CallToolResponse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most plans that one client carries out at once.
const MAX_FOLLOWED: usize = 8;
/// The number of times one call asks a person.
const MAX_QUESTIONS: usize = 3;

/// The runs that clients make the calls of.
#[derive(Debug, Default)]
pub(super) struct FollowedRuns {
    runs: Mutex<BTreeMap<String, Vec<Arc<FollowedRun>>>>,
    /// One call at a time looks for a plan to carry out: two would begin the same one.
    beginning: tokio::sync::Mutex<()>,
}

impl FollowedRuns {
    /// Those of one client that go on.
    fn of(&self, client: &str) -> Vec<Arc<FollowedRun>> {
        let mut runs = self.runs();
        let Some(followed) = runs.get_mut(client) else {
            return Vec::new();
        };
        followed.retain(|run| !run.is_over());
        followed.clone()
    }

    fn insert(&self, client: &str, run: Arc<FollowedRun>) {
        self.runs().entry(client.to_owned()).or_default().push(run);
    }

    /// Lets go of all of them.
    pub(super) async fn close(&self) {
        let runs = std::mem::take(&mut *self.runs());
        for run in runs.into_values().flatten() {
            run.close().await;
        }
    }

    /// Lets go of a plan that the client wants to go on by itself.
    pub(super) async fn release(&self, client: &str, plan: &PlanId) {
        for run in self.of(client) {
            if run.plan() == plan {
                run.close().await;
            }
        }
    }

    fn runs(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Arc<FollowedRun>>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GatewayServer {
    /// Makes a call as the step of an approved plan that it is. Nothing if it is none.
    pub(super) async fn call_as_step(
        &self,
        request: &ClientRequest,
        progress: &ProgressSink,
    ) -> Option<Result<CallToolResponse, ErrorData>> {
        let followed = self.followed.of(&request.caller.key);
        for run in &followed {
            if let Some(answer) = run
                .call(&request.tool, &request.args, progress.clone())
                .await
            {
                let described = self.describe_step(run, answer, request, progress);
                return Some(Box::pin(described).await);
            }
        }
        let run = self.begin_plan_of(request, followed.len()).await?;
        let answer = run
            .call(&request.tool, &request.args, progress.clone())
            .await?;
        Some(Box::pin(self.describe_step(&run, answer, request, progress)).await)
    }

    /// Begins the plan that this call is the first step of.
    async fn begin_plan_of(
        &self,
        request: &ClientRequest,
        followed: usize,
    ) -> Option<Arc<FollowedRun>> {
        if followed >= MAX_FOLLOWED {
            return None;
        }
        let sessions = self.host.engine.sessions();
        let _one_at_a_time = self.followed.beginning.lock().await;
        let plan = sessions
            .find_plan_of_call(&request.tool, &request.args)
            .await?;
        let run = Box::pin(sessions.follow(&plan, &request.caller.principal)).await;
        let run = run
            .inspect_err(
                |error| tracing::warn!(%plan, %error, "a plan could not be begun by a call"),
            )
            .ok()?;
        let run = Arc::new(run);
        self.followed.insert(&request.caller.key, Arc::clone(&run));
        Some(run)
    }

    /// What a client is told of a step. What a person is asked first is asked where the client is.
    async fn describe_step(
        &self,
        run: &Arc<FollowedRun>,
        answer: StepAnswer,
        request: &ClientRequest,
        progress: &ProgressSink,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut answer = answer;
        for _ in 0..MAX_QUESTIONS {
            if let Some(answer) = answer.answer {
                return self.result(answer, None);
            }
            match self.ask_about_step(run, request).await {
                Asked::Decided => {}
                Asked::AsResult(question) => return Ok(*question),
                Asked::No => break,
            }
            let again = run
                .call(&request.tool, &request.args, progress.clone())
                .await;
            let Some(again) = again else {
                break;
            };
            answer = again;
        }
        let why = format!(
            "step `{}` of plan {} waits for a person: planwright show {}",
            answer.step,
            run.plan(),
            run.plan()
        );
        let next = "make the call again once the person has agreed";
        Ok(problem("needs_person", &why, next).into())
    }

    /// Has the client ask what the step waits for.
    async fn ask_about_step(&self, run: &Arc<FollowedRun>, request: &ClientRequest) -> Asked {
        let Some(question) = self.question_of_step(run, request).await else {
            return Asked::No;
        };
        let peer = match &request.channel {
            Channel::Request(peer) => peer,
            Channel::Result { .. } => {
                let forms = as_requests(&question);
                let waiting = Waiting::Step(Arc::clone(run), Box::new(question));
                let question = self.ask_as_result(waiting, forms, request);
                return Asked::AsResult(Box::new(question));
            }
            Channel::None => return Asked::No,
        };
        let mut answers = Vec::new();
        for (_, form) in question.forms() {
            let asking = peer.create_elicitation_with_timeout(form, Some(PATIENCE));
            let Ok(answer) = asking.await else {
                return Asked::No;
            };
            answers.push(answer);
        }
        match self.decide(&question, &answers, request).await {
            Ok(()) => Asked::Decided,
            Err(_) => Asked::No,
        }
    }

    async fn question_of_step(
        &self,
        run: &FollowedRun,
        request: &ClientRequest,
    ) -> Option<RunQuestion> {
        let engine = &self.host.engine;
        let (review, _) = engine.plans().load_review(run.plan()).await.ok()?;
        let (state, _) = engine.runs().load_run(run.run(), &review).await.ok()?;
        find_questions(engine, &state, &request.caller.principal).await
    }

    /// Goes on with a step that a modern client was asked about. Without an answer the step waits
    /// on: the plan was approved, and only a clear word ends it.
    pub(super) async fn take_up_step(
        &self,
        run: &Arc<FollowedRun>,
        question: &RunQuestion,
        request: &ClientRequest,
        progress: &ProgressSink,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(answers) = request.answers(question)
            && let Err(refused) = self.decide(question, &answers, request).await
        {
            return Ok((*refused).into());
        }
        let again = run.call(&request.tool, &request.args, progress.clone());
        match again.await {
            Some(answer) => self.describe_step(run, answer, request, progress).await,
            None => {
                let next = "plan_status says how the plan stands";
                Ok(problem(
                    StepErrorCode::Denied.as_str(),
                    "the step is not waiting any more",
                    next,
                )
                .into())
            }
        }
    }
}

/// The outcome of asking about a step.
enum Asked {
    Decided,
    /// The question is the result of the request.
    AsResult(Box<CallToolResponse>),
    /// There is no person here, or they gave no answer.
    No,
}
