//! The life of a run: [`Run::decide`] says what may happen, [`Run::apply`] notes what happened.
//!
//! `decide` changes nothing and `apply` is the only mutation, so that a live run and one read back
//! from its journal go through the same code. All costs are per event, never per step of the plan.

mod agent;
mod apply;
mod child_runs;
mod consent;
mod decide;
mod event;
mod fork;
mod guard;
mod history;
mod idempotency;
mod index;
mod instances;
mod look;
mod pause;
mod permit;
mod preview;
mod question;
mod reflection;
mod refusal;
mod refusal_kind;
mod report;
mod schedule;
mod state;
mod step_event;
mod step_state;
mod undo;
mod value;

pub use crate::policy::Verdict;
pub use crate::status::StepErrorCode;
pub use agent::{
    AgentCall, AgentTurn, AgentWork, CallFate, ClientTerms, Wanted, WantedCallFacts, agent_tool,
    think_tool,
};
pub use child_runs::ChildRuns;
pub use consent::{AskedCall, CallFacts, Consent};
pub use decide::{CallReport, Command, Crashes};
pub use event::{CallEffect, Fork, Parent, Resolution, RunEvent, StepError};
pub use fork::{ReusedResult, carry_over, reusable_results};
pub use guard::GuardBlock;
pub use history::{AttemptHistory, AttemptOutcome, StepHistories, StepHistory};
pub use idempotency::idempotency_key;
pub use instances::{Instance, Loop};
pub use look::{Look, LookedAt, RunReflection};
pub use pause::RunPause;
pub use preview::{Preview, PreviewStep, preview};
pub use question::{Answered, Asked, Question, Reply};
pub use reflection::{CriterionCheck, Reflection, ReflectionWish, Spent};
pub use refusal::{Corrupt, Refusal, Shown};
pub use report::{ItemReport, RunReport, StepReport};
pub use schedule::RunSchedule;
pub use state::RunState;
pub use step_event::StepEvent;
pub use step_state::{HeldQuestion, StepState, Tally};
pub use undo::{Kept, PlanUndoError, UndoPlan, plan_undo, undo_step_id, undone_by};
pub use value::StoredValue;

use crate::digest::{Digest, DigestWriter};
use crate::id::RunId;
use crate::plan::{OnFailure, Plan, StepIx, Subplans};
use crate::principal::{Principal, PrincipalKind};
use crate::status::{RunStatus, StepStatus};
use crate::time::Timestamp;
use crate::trace::TraceId;
use guard::Usage;
use instances::Loops;
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// One run, folded from its journal.
#[derive(Debug, Clone)]
pub struct Run {
    id: RunId,
    plan: Arc<Plan>,
    start: Start,
    state: RunState,
    steps: Vec<StepState>,
    /// The number of the last entry applied.
    seq: u64,
    /// When the last entry was written.
    updated_at: Timestamp,
    ended_at: Option<Timestamp>,
    /// The number of critical steps that did not succeed, once the run completed without them.
    failures: u32,
    index: Index,
    usage: Usage,
    /// The first critical step that a person denied: the run goes on, but cannot succeed.
    denied: Option<StepIx>,
    /// The critical loop of which a call failed after a person had denied another element of it.
    /// The step is denied already, so this is no transition of its own; nothing starts any more.
    failed_after_denial: Option<StepIx>,
    /// The runs that took or take this one back, in order.
    undos: Vec<RunId>,
    /// Steps whose value was taken over from another run.
    reused: BTreeSet<StepIx>,
    loops: Loops,
    /// The answers of people to the tools of steps, oldest first.
    answered: BTreeMap<StepIx, Vec<Answered>>,
    /// The one call of a step that a person agreed to. Kept beside the states, because it outlives
    /// retries.
    approved_calls: BTreeMap<StepIx, Digest>,
    scope: crate::tool::ToolScope,
    /// The result of looking at the run before its end.
    looked_at: Option<LookedAt>,
    /// The run was adjusted by planning its remaining steps anew.
    replanned: bool,
    /// The reason for declaring the run failed, if that is how it ended.
    given_up: Option<String>,
    /// The success criteria with what was found out about them last.
    checks: Vec<CriterionCheck>,
    /// The work of the executors of agent steps.
    agents: BTreeMap<StepIx, AgentWork>,
    /// The last entry says that the run waits for one of so many others to end.
    queued: Option<u32>,
    /// It was paused by a rule, and only a person lets it go on.
    held: bool,
    /// Counts the deaths of the process while a call of the step was in flight.
    crashes: BTreeMap<StepIx, Crashes>,
    /// The step whose call is made alone.
    isolated: Option<StepIx>,
    /// The order by which it stands still.
    paused: Option<PauseOrder>,
    /// The last order by which it went on.
    resumed: Option<PauseOrder>,
}

/// An order to stand still, or to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseOrder {
    /// The principal who gave it.
    pub by: Principal,
    /// The time at which it was given.
    pub at: Timestamp,
}

impl PauseOrder {
    /// An order that this principal gave.
    pub fn new(by: &Principal, at: Timestamp) -> Self {
        Self { by: by.clone(), at }
    }
}

/// The first entry of a run, as fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The time at which it happened.
    pub at: Timestamp,
    /// The version of the plan.
    pub version: u32,
    /// The digest of exactly what runs.
    pub digest: Digest,
    /// Given at run time.
    pub variables: Map<String, Value>,
    /// The number of calls that may be in flight at once.
    pub max_concurrency: u32,
    /// The budget of the plan is enforced.
    pub guards: bool,
    /// The principal who did it.
    pub by: Principal,
    /// The run whose results it takes over.
    pub forked_from: Option<Box<Fork>>,
    /// The approvals that it carries.
    pub consent: Option<Box<Consent>>,
    /// The run that this one takes back.
    pub undoes: Option<RunId>,
    /// The step that this run is the work of.
    pub parent: Option<Parent>,
    /// The trace of the order that started it.
    pub trace: Option<TraceId>,
    /// The run is looked at before it ends.
    pub reflection: Option<Reflection>,
    /// The time limit of calls whose step names none.
    pub call_timeout: Option<Duration>,
    /// A client makes its calls, one by one: no process goes on with it by itself.
    pub stepwise: bool,
}

impl Start {
    /// The person whose name the run is in: the one who started it, or the last one who agreed to it
    /// if a program did. What policy starts and agrees to is in no person's name.
    pub fn acts_for(&self) -> Option<&Principal> {
        let is_person = |principal: &&Principal| principal.kind == PrincipalKind::Person;
        let starter = Some(&self.by).filter(is_person);
        starter.or_else(|| {
            let consent = self.consent.as_deref()?;
            consent.approved_by.iter().rev().find(is_person)
        })
    }
}

/// Sets of steps by what can happen to them next. Derived from the states; kept so that no decision
/// has to look at every step.
#[derive(Debug, Clone, Default)]
struct Index {
    /// Longest remaining path first, then plan order.
    priority: Arc<[u64]>,
    ready: BTreeSet<(Reverse<u64>, StepIx)>,
    /// Ready, but a person has to be asked first.
    unasked: BTreeSet<StepIx>,
    running: BTreeSet<StepIx>,
    /// Retries that fall due and deadlines of calls in flight.
    timers: BTreeSet<(Timestamp, StepIx)>,
    /// Approvals that are void if not given by then. They keep no run from being parked.
    expiries: BTreeSet<(Timestamp, StepIx)>,
    /// Waiting for a person: approval, input, unknown outcome.
    waiting: BTreeSet<StepIx>,
    /// Loops whose instances are all done.
    closable: BTreeSet<StepIx>,
    /// Steps that have not ended, instances included.
    open: usize,
    /// Steps of the plan that have not ended.
    open_own: usize,
    /// Steps of the plan.
    completed: usize,
    /// Every step that completed, in the order they did.
    finished: Vec<StepIx>,
    /// The steps that the last entry changed, in order. A step may be in it more than once.
    changed: Vec<StepIx>,
}

impl Run {
    /// Returns true if a rule holds it: it does not go on, and can only be ended.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// The most calls of one step that may be lost, and the most that may be alone in flight when
    /// the process dies, before the run stops calling it.
    pub const MAX_INTERRUPTIONS: u16 = 5;

    /// The id of the run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The plan that it executes.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Tells the run which sub-plans its plan stands for now. They are not part of its journal:
    /// each child run has its own, and the digest that was approved covers them.
    pub fn set_subplans(&mut self, subplans: Subplans) {
        if *self.plan.subplans() != subplans {
            Arc::make_mut(&mut self.plan).set_subplans(subplans);
        }
    }

    /// The content of its first entry.
    pub fn start(&self) -> &Start {
        &self.start
    }

    /// The state of the run.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// The number of the last entry applied.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The state of a step or instance.
    pub fn step(&self, ix: StepIx) -> &StepState {
        &self.steps[ix.index()]
    }

    /// Completed steps, the first to complete first. Those taken back since are still in the list.
    pub fn finished_steps(&self) -> &[StepIx] {
        &self.index.finished
    }

    /// The steps whose state the last entry changed: the one it is about first, then those it has
    /// consequences for.
    pub fn changed_steps(&self) -> &[StepIx] {
        &self.index.changed
    }

    /// The runs that took or take this one back, the latest last.
    pub fn undos(&self) -> &[RunId] {
        &self.undos
    }

    /// Returns the answers of people to the tool of this step, oldest first.
    pub fn answered(&self, ix: StepIx) -> &[Answered] {
        self.answered.get(&ix).map_or(&[], Vec::as_slice)
    }

    /// Nothing is in flight and nothing can start without a person: approval, input, an unknown
    /// outcome, a resume.
    pub fn is_parked(&self) -> bool {
        if self.state.is_terminal() || !self.index.running.is_empty() {
            return false;
        }
        if self.stopping_on().is_some() {
            return false;
        }
        match self.state {
            RunState::Paused | RunState::Stalled { .. } => true,
            RunState::Running => {
                let idle = self.index.ready.is_empty() && self.index.timers.is_empty();
                let decided = self.index.unasked.is_empty() && self.index.closable.is_empty();
                idle && decided && self.reflection().next_look().is_none()
            }
            RunState::Stopping { .. }
            | RunState::Cancelling
            | RunState::Completed
            | RunState::Failed { .. }
            | RunState::GivenUp
            | RunState::Adjusted { .. }
            | RunState::Cancelled => false,
        }
    }

    /// Returns the status that lists and other programs see.
    pub fn status(&self) -> RunStatus {
        match self.state {
            RunState::Running if self.is_parked() && !self.index.waiting.is_empty() => {
                RunStatus::Waiting
            }
            RunState::Running | RunState::Stopping { .. } | RunState::Cancelling => {
                RunStatus::Executing
            }
            RunState::Paused => RunStatus::Paused,
            RunState::Stalled { .. } => RunStatus::Stalled,
            RunState::Completed if self.failures > 0 => RunStatus::CompletedWithFailures,
            RunState::Completed => RunStatus::Completed,
            RunState::Failed { .. } | RunState::GivenUp => RunStatus::Failed,
            RunState::Adjusted { .. } => RunStatus::Adjusted,
            RunState::Cancelled => RunStatus::Cancelled,
        }
    }

    /// A digest of where every step ended. The terminal entry records it; a replay must reach it.
    pub fn steps_digest(&self) -> Digest {
        let mut steps = DigestWriter::default();
        let mut line = Vec::new();
        for ix in self.indices() {
            let state = self.step(ix);
            let fields = (
                self.step_id(ix),
                state.status(),
                state.tally().attempts,
                state.value(),
            );
            line.clear();
            serde_json::to_writer(&mut line, &fields).expect("writing JSON to memory cannot fail");
            steps.add_part(&line);
        }
        steps.finish()
    }

    /// Returns the critical step whose failure lets nothing start any more, if there is one.
    fn stopping_on(&self) -> Option<StepIx> {
        match self.state {
            RunState::Stopping { failed } => Some(failed),
            RunState::Running | RunState::Paused => self.failed_after_denial,
            RunState::Stalled { .. }
            | RunState::Cancelling
            | RunState::Completed
            | RunState::Failed { .. }
            | RunState::GivenUp
            | RunState::Adjusted { .. }
            | RunState::Cancelled => None,
        }
    }

    /// Returns the time limit of one attempt of a step.
    fn time_limit(&self, ix: StepIx) -> Option<Duration> {
        let step = self.definition(ix);
        let default = self.start.call_timeout.filter(|_| step.tool.is_some());
        step.timeout().or(default)
    }

    /// Returns the number of critical steps that did not succeed.
    fn count_failures(&self) -> u32 {
        let failed = self.plan.indices().filter(|&ix| {
            let is_lost = matches!(
                self.step(ix).status(),
                StepStatus::Failed | StepStatus::Denied
            );
            is_lost && self.plan.step(ix).is_critical()
        });
        u32::try_from(failed.count()).unwrap_or(u32::MAX)
    }

    /// Returns whether the failure of this step ends the run.
    fn is_critical(&self, ix: StepIx) -> bool {
        let limits = &self.plan.document().limits;
        self.plan.step(ix).is_critical() && limits.on_failure != Some(OnFailure::Continue)
    }
}

/// The priority of each step: the longest time from its start to the end of the plan, in
/// microseconds.
pub fn priorities(plan: &Plan, estimate: impl Fn(StepIx) -> Duration) -> Arc<[u64]> {
    let remaining = plan.graph().remaining(estimate);
    remaining
        .into_iter()
        .map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
        .collect()
}

/// Every step takes equally long: the estimate when nothing is known.
pub fn unit_estimate(_: StepIx) -> Duration {
    Duration::from_secs(1)
}

/// Estimates by tool name, from history.
pub fn estimates_by_tool<'a>(
    plan: &'a Plan,
    history: &'a BTreeMap<String, Duration>,
) -> impl Fn(StepIx) -> Duration + 'a {
    move |ix| {
        history
            .get(plan.step(ix).action_label())
            .copied()
            .unwrap_or(Duration::from_secs(1))
    }
}
