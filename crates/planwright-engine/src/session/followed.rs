//! A plan that a client carries out itself: each call that is the next step is made as that step.

use super::open_call::{ClientAnswer, ReceivedAnswer};
use super::sessions::Sessions;
use crate::context::{Observer, StepClaims, StepEnd};
use crate::journal::conversation::is_session;
use crate::port::ProgressSink;
use crate::review::plans::Candidate;
use crate::run::handle::RunHandle;
use crate::run::options::RunOptions;
use crate::run::start::StartRunError;
use planwright_core::id::{PlanId, RunId, StepId};
use planwright_core::plan::{Plan, StepIx, Values};
use planwright_core::principal::Principal;
use planwright_core::review::Review;
use planwright_core::run::{StepError, StepErrorCode};
use planwright_core::tool::{Catalog, ToolName};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The plans that a call is looked for in, the newest first.
const MAX_LOOKED_AT: usize = 32;

/// A run whose calls a client makes. It is paused when this is closed.
#[derive(Debug)]
pub struct FollowedRun {
    sessions: Sessions,
    plan: PlanId,
    agent: Principal,
    handle: RunHandle,
    claims: Arc<StepClaims>,
}

/// What came of a call that is a step.
#[derive(Debug)]
pub struct StepAnswer {
    /// The step that the call was.
    pub step: StepId,
    /// What came of it. A person is asked first where there is none.
    pub answer: Option<ClientAnswer>,
}

/// The values that are known before a run.
struct Variables(Map<String, Value>);

impl Values for Variables {
    fn variable(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    fn step(&self, _: StepIx) -> Option<&Value> {
        None
    }
}

impl Sessions {
    /// The plan that was agreed to and begins with this call, or went on with calls like it before.
    pub async fn find_plan_of_call(
        &self,
        tool: &ToolName,
        args: &Map<String, Value>,
    ) -> Option<PlanId> {
        let clients = &self.context.clients;
        let inbox = self.inbox();
        // Asked before the store is searched: what is written meanwhile is looked for by the next call.
        let changes = self.context.ports.store.plan_changes();
        if clients.is_nothing_left(changes) {
            return None;
        }
        let found = Box::pin(inbox.plans_with_calls_left(|plan| clients.is_session(plan)));
        // A store that cannot be read makes no call.
        let found = found.await.ok()?;
        if found.is_empty() {
            clients.note_nothing_left(changes);
            return None;
        }
        let catalog = self.context.catalog();
        for plan in found.iter().take(MAX_LOOKED_AT) {
            let Ok((review, _)) = Box::pin(self.plans().load_review(plan)).await else {
                continue;
            };
            if is_session(&review.current().document) {
                clients.note_session(plan);
                continue;
            }
            if Box::pin(self.can_follow(&review, &catalog, tool, args)).await {
                return Some(plan.clone());
            }
        }
        None
    }

    async fn can_follow(
        &self,
        review: &Review,
        catalog: &Catalog,
        tool: &ToolName,
        args: &Map<String, Value>,
    ) -> bool {
        let steps = &review.current().document.steps;
        if !steps
            .iter()
            .any(|step| calls(catalog, step.action_label(), tool))
        {
            return false;
        }
        if let Some(opened) = review.runs().last() {
            let loaded = self.runs().load_run(&opened.run, review).await;
            let Ok((run, _)) = loaded else {
                return false;
            };
            if !run.state().is_terminal() {
                // What a person stopped, and what no client began, goes on with a person's word.
                return run.start().stepwise && !run.pause().is_by_person();
            }
        }
        let candidate = self.plans().candidate(review, &Map::new()).await;
        candidate.is_ok_and(|candidate| begins_with(&candidate, catalog, tool, args))
    }

    /// Begins the run of an approved plan whose calls this agent makes, or goes on with it.
    pub async fn follow(
        &self,
        plan: &PlanId,
        agent: &Principal,
    ) -> Result<FollowedRun, StartRunError> {
        let claims = Arc::<StepClaims>::default();
        let mut options = RunOptions::new(agent.clone());
        options.linger = true;
        options.observers = vec![Arc::clone(&claims) as Arc<dyn Observer>];
        options.stepwise = Some(Arc::clone(&claims));
        let runs = self.runs();
        let (review, _) = self.plans().load_review(plan).await?;
        let handle = if runs.check_startable(&review).await.is_ok() {
            Box::pin(runs.start(plan, options)).await?
        } else {
            Box::pin(runs.resume(plan, options)).await?
        };
        Ok(FollowedRun {
            sessions: self.clone(),
            plan: plan.clone(),
            agent: agent.clone(),
            handle,
            claims,
        })
    }
}

/// Returns whether a step of this name calls this tool.
fn calls(catalog: &Catalog, label: &str, tool: &ToolName) -> bool {
    catalog
        .resolve(label)
        .is_ok_and(|known| known.name == *tool)
}

/// Returns whether a step that needs no other makes exactly this call.
fn begins_with(
    candidate: &Candidate,
    catalog: &Catalog,
    tool: &ToolName,
    args: &Map<String, Value>,
) -> bool {
    let plan: &Plan = &candidate.plan;
    let values = Variables(plan.initial_variables());
    plan.indices().any(|ix| {
        calls(catalog, plan.step(ix).action_label(), tool)
            && plan.graph().dependencies(ix).is_empty()
            && plan
                .resolve_args(ix, &values)
                .is_ok_and(|sent| sent == *args)
    })
}

impl FollowedRun {
    /// The plan that is carried out.
    pub fn plan(&self) -> &PlanId {
        &self.plan
    }

    /// The run that journals it.
    pub fn run(&self) -> &RunId {
        self.handle.run_id()
    }

    /// Returns whether nothing is called in it any more.
    pub fn is_over(&self) -> bool {
        self.handle.is_over()
    }

    /// Makes a call as the step that it is. Nothing if no step that is ready makes exactly this call.
    pub async fn call(
        &self,
        tool: &ToolName,
        args: &Map<String, Value>,
        progress: ProgressSink,
    ) -> Option<StepAnswer> {
        if self.is_over() {
            return None;
        }
        let received = ReceivedAnswer::default();
        let ears = received.ears(progress);
        let ended = self.claims.claim(tool.clone(), args.clone(), ears);
        let ended = tokio::select! {
            biased;
            ended = ended => ended.ok()?,
            // A claim that came when the run was over already is looked at by nothing.
            () = self.handle.closed() => return None,
        };
        let (step, outcome) = match ended {
            StepEnd::NoStep => {
                let step = self.find_waiting_step(tool, args).await?;
                return Some(StepAnswer { step, answer: None });
            }
            StepEnd::Waits(step) => return Some(StepAnswer { step, answer: None }),
            StepEnd::Failed(step, error) => (step, Err(error)),
            StepEnd::Completed(step, value) => {
                let read = self.sessions.journals().read_value(&value).await;
                let unread = |error: crate::port::ArtifactError| {
                    StepError::new(StepErrorCode::PlanUnavailable, error.to_string())
                };
                (step, read.map_err(unread))
            }
        };
        let answer = received.take(&self.sessions.context);
        let answer = Some(ClientAnswer { outcome, answer });
        Some(StepAnswer { step, answer })
    }

    /// The step that makes this call and waits for a person.
    async fn find_waiting_step(
        &self,
        tool: &ToolName,
        args: &Map<String, Value>,
    ) -> Option<StepId> {
        let sessions = &self.sessions;
        let (review, _) = sessions.plans().load_review(&self.plan).await.ok()?;
        let (run, _) = sessions.runs().load_run(self.run(), &review).await.ok()?;
        let catalog = sessions.context.catalog();
        for ix in run.schedule().waiting() {
            if calls(&catalog, run.definition(ix).action_label(), tool)
                && let Some(Value::Object(known)) =
                    sessions.journals().known_arguments(&run, ix).await
                && known == *args
            {
                return Some(run.step_id(ix).clone());
            }
        }
        None
    }

    /// Lets go of the run: it is paused where it is.
    pub async fn close(&self) {
        if self.is_over() {
            return;
        }
        if let Err(error) = self.handle.pause(self.agent.clone()).await {
            tracing::warn!(run = %self.run(), %error, "a run could not be paused");
        }
    }
}
