//! Plans that a client carries out itself, call by call.

use super::drive::{ClientRequest, problem};
use super::server::GatewayServer;
use crate::question::{Channel, PATIENCE};
use crate::run_question::find_question;
use planwright_core::id::PlanId;
use planwright_engine::port::ProgressSink;
use planwright_engine::{FollowedRun, StepAnswer};
use rmcp::model::CallToolResult;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most plans that one client carries out at once.
const MAX_FOLLOWED: usize = 8;
/// How often one call asks a person.
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
    ) -> Option<CallToolResult> {
        let followed = self.followed.of(&request.key);
        for run in &followed {
            if let Some(answer) = run
                .call(&request.tool, &request.args, progress.clone())
                .await
            {
                return Some(self.describe_step(run, answer, request, progress).await);
            }
        }
        let run = self.begin_plan_of(request, followed.len()).await?;
        let answer = run
            .call(&request.tool, &request.args, progress.clone())
            .await?;
        Some(self.describe_step(&run, answer, request, progress).await)
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
        let run = sessions.follow(&plan, &request.agent).await;
        let run = run
            .inspect_err(
                |error| tracing::warn!(%plan, %error, "a plan could not be begun by a call"),
            )
            .ok()?;
        let run = Arc::new(run);
        self.followed.insert(&request.key, Arc::clone(&run));
        Some(run)
    }

    /// What a client is told of a step. What a person is asked first is asked where the client is.
    async fn describe_step(
        &self,
        run: &FollowedRun,
        answer: StepAnswer,
        request: &ClientRequest,
        progress: &ProgressSink,
    ) -> CallToolResult {
        let mut answer = answer;
        for _ in 0..MAX_QUESTIONS {
            if let Some(answer) = answer.answer {
                return self.result(answer, None);
            }
            if !self.ask_about_step(run, request).await {
                break;
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
        problem(
            "needs_person",
            &why,
            "make the call again once the person has agreed",
        )
    }

    /// Has the client ask what the step waits for. Returns whether that was decided.
    async fn ask_about_step(&self, run: &FollowedRun, request: &ClientRequest) -> bool {
        let (Channel::Request(peer), Some(person)) = (&request.channel, &request.person) else {
            return false;
        };
        let engine = &self.host.engine;
        let Ok((review, _)) = engine.plans().load_review(run.plan()).await else {
            return false;
        };
        let Ok((state, _)) = engine.runs().load_run(run.run(), &review).await else {
            return false;
        };
        let Some(question) = find_question(engine, &state, &request.agent).await else {
            return false;
        };
        let asking = peer.create_elicitation_with_timeout(question.form.clone(), Some(PATIENCE));
        let Ok(answer) = asking.await else {
            return false;
        };
        let command = question.command(&answer, person);
        engine.runs().command(&question.run, command).await.is_ok()
    }
}
