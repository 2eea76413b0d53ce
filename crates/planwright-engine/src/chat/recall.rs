//! What a conversation has spent before this process goes on with it, read from the journals: its
//! own calls and answers, and those of everything it began, also of a plan whose run a crash cut
//! off.

use super::spending::Spending;
use crate::engine::Engine;
use crate::journal::load::{LoadError, load_review, read_entries};
use crate::journal::stored_value::read_value;
use crate::plan_tools::{PLAN_TOOLS_SERVER, PlanTool, plans_by_trace, trace_of_call, trace_of_run};
use crate::review::pins::CHILD_SERVER;
use planwright_core::id::{PlanId, RunId, StepId, split_instance};
use planwright_core::journal::{Head, StreamName};
use planwright_core::model::ModelUse;
use planwright_core::run::{AgentCall, CallFate, Parent, RunEvent, StepErrorCode, StoredValue};
use planwright_core::trace::TraceId;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

impl Engine {
    /// Counts the calls and tokens of a conversation so far, those of the plans it had made, and
    /// those of their runs.
    pub async fn recall_spending(
        &self,
        conversation: &RunId,
        spending: &Spending,
    ) -> Result<(), LoadError> {
        let mut recall = Recall {
            engine: self,
            spending,
            open: vec![conversation.clone()],
            seen: BTreeSet::new(),
            made: None,
        };
        while let Some(run) = recall.open.pop() {
            if recall.seen.insert(run.clone()) {
                recall.count(&run).await?;
            }
        }
        Ok(())
    }
}

struct Recall<'a> {
    engine: &'a Engine,
    spending: &'a Spending,
    /// Runs that belong to the conversation and are not counted yet.
    open: Vec<RunId>,
    seen: BTreeSet<RunId>,
    /// The plans that were brought with a trace; looked up once, if a call did not say which plan
    /// it made.
    made: Option<BTreeMap<TraceId, PlanId>>,
}

/// The figures that one run has of itself.
#[derive(Default)]
struct Noted {
    /// Attempts at calls of tools.
    calls: u64,
    used: Vec<ModelUse>,
    wanted: Vec<AgentCall>,
    /// Steps that run other plans.
    plans: BTreeSet<StepId>,
}

impl Recall<'_> {
    async fn count(&mut self, run: &RunId) -> Result<(), LoadError> {
        let mut noted = Noted::default();
        let stream = StreamName::Run(run.clone());
        read_entries::<RunEvent>(&*self.engine.context.ports.store, &stream, |_, entry| {
            noted.take(entry.event);
            Ok(())
        })
        .await?;
        self.spending.before(noted.calls, &noted.used);
        for step in &noted.plans {
            self.count_subplan(run, step).await?;
        }
        for call in &noted.wanted {
            let CallFate::Run(child) = &call.fate else {
                continue;
            };
            self.open.push(child.clone());
            if let Some(tool) = PlanTool::from_name(&call.tool) {
                self.count_plan(tool, call, child).await?;
            }
        }
        Ok(())
    }

    /// A step that runs another plan calls nothing itself, unless a server has the name that such
    /// steps go by.
    async fn count_subplan(&mut self, run: &RunId, step: &StepId) -> Result<(), LoadError> {
        let (name, index) = match split_instance(step.as_str()) {
            Some((name, index)) => (name.parse().unwrap_or_else(|_| step.clone()), Some(index)),
            None => (step.clone(), None),
        };
        let place = Parent {
            run: run.clone(),
            step: name,
            index,
            call: None,
            outside: false,
        };
        let child = place.child();
        if self
            .engine
            .context
            .ports
            .store
            .head(&StreamName::Run(child.clone()))
            .await?
            == Head::EMPTY
        {
            self.spending.before(1, []);
        } else {
            self.open.push(child);
        }
        Ok(())
    }

    /// What a plan tool had made, and the run it began: as it said when it came back, else by the
    /// trace it left.
    async fn count_plan(
        &mut self,
        tool: PlanTool,
        call: &AgentCall,
        child: &RunId,
    ) -> Result<(), LoadError> {
        let Some((trace, result)) = self.call(child).await? else {
            return Ok(());
        };
        let said = |key: &str| {
            result
                .as_ref()
                .and_then(|result| result.get(key)?.as_str().map(str::to_owned))
        };
        let plan = match said("planId").and_then(|plan| plan.parse().ok()) {
            Some(plan) => Some(plan),
            None if tool == PlanTool::Execute => self.named_plan(call).await,
            None => self.made_by(trace).await?,
        };
        let Some(plan) = plan else { return Ok(()) };
        let review = match load_review(&*self.engine.context.ports.store, &plan).await {
            Ok((review, _)) => review,
            Err(LoadError::NoSuchPlan(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        if tool != PlanTool::Execute {
            let first = review.versions().first();
            let planned = first.and_then(|version| version.planning.as_deref());
            self.spending
                .before(0, planned.into_iter().flat_map(|planning| &planning.used));
        }
        if let Some(run) = said("runId").and_then(|run| run.parse().ok()) {
            self.open.push(run);
            return Ok(());
        }
        for opened in review.runs() {
            if trace_of_run(&*self.engine.context.ports.store, &opened.run).await? == Some(trace) {
                self.open.push(opened.run.clone());
            }
        }
        Ok(())
    }

    /// The trace of what a call began, and its result if it came back.
    async fn call(&self, child: &RunId) -> Result<Option<(TraceId, Option<Value>)>, LoadError> {
        let mut trace = None;
        let mut stored = None;
        let stream = StreamName::Run(child.clone());
        read_entries::<RunEvent>(&*self.engine.context.ports.store, &stream, |_, entry| {
            match entry.event {
                RunEvent::RunStarted { digest, .. } => trace = trace_of_call(child, &digest),
                RunEvent::AttemptSucceeded { value, .. } => stored = Some(value),
                _ => {}
            }
            Ok(())
        })
        .await?;
        let Some(trace) = trace else { return Ok(None) };
        let result = match &stored {
            Some(stored) => self.value(stored).await,
            None => None,
        };
        Ok(Some((trace, result)))
    }

    async fn named_plan(&self, call: &AgentCall) -> Option<PlanId> {
        let args = self.value(&call.args).await?;
        args.get("planId")?.as_str()?.parse().ok()
    }

    async fn made_by(&mut self, trace: TraceId) -> Result<Option<PlanId>, LoadError> {
        let made = match &mut self.made {
            Some(made) => made,
            none => none.insert(plans_by_trace(&*self.engine.context.ports.store).await?),
        };
        Ok(made.get(&trace).cloned())
    }

    /// A value that cannot be read is found by its trace instead.
    async fn value(&self, stored: &StoredValue) -> Option<Value> {
        read_value(&*self.engine.context.ports.artifacts, stored)
            .await
            .ok()
    }
}

impl Noted {
    fn take(&mut self, event: RunEvent) {
        match event {
            RunEvent::ModelUsed { used, .. } => self.used.push(used),
            RunEvent::AgentTurn { calls, .. } => self.wanted.extend(calls),
            // Steps of models, and plan tools, call nothing themselves.
            RunEvent::AttemptStarted { tool, .. } if tool.server == PLAN_TOOLS_SERVER => {}
            RunEvent::AttemptStarted { tool, step, .. } if tool.server == CHILD_SERVER => {
                self.plans.insert(step);
            }
            RunEvent::AttemptStarted { .. } => self.calls += 1,
            RunEvent::AttemptFailed { error, .. } if error.code == StepErrorCode::GuardBlocked => {
                self.calls = self.calls.saturating_sub(1);
            }
            _ => {}
        }
    }
}
