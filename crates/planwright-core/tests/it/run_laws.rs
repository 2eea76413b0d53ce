//! What must be true of every journal, told a second time and without the state table: a reader
//! that only looks at entries.

use planwright_core::digest::Digest;
use planwright_core::journal::{Cause, Entry, Journaled as _};
use planwright_core::plan::{OnFailure, Plan, StepIx};
use planwright_core::run::{CallEffect, Resolution, Run, RunEvent, RunState, StepState};
use planwright_core::time::Timestamp;
use planwright_core::tool::EffectClass;
use std::collections::{BTreeMap, BTreeSet};

/// Returns whether a step failed that the run cannot do without.
fn has_failed(run: &Run) -> bool {
    let goes_on = run.plan().document().limits.on_failure == Some(OnFailure::Continue);
    let mut steps = run.indices();
    !goes_on
        && steps.any(|ix| {
            matches!(run.step(ix), StepState::Failed { .. })
                && run.definition(ix).critical != Some(false)
        })
}

/// The index sets say exactly what a look at every step says.
pub(crate) fn check_index(run: &Run, now: Timestamp) {
    let plan = run.plan();
    let mut running = Vec::new();
    let mut waiting = Vec::new();
    let mut startable = Vec::new();
    let mut open = 0;
    let mut completed = 0;
    let mut next_timer = None::<Timestamp>;
    let mut closable = Vec::new();
    let mut looping = BTreeMap::new();
    for ix in run.indices() {
        let state = run.step(ix);
        let own = ix.index() < plan.len();
        open += usize::from(own && !state.is_terminal());
        let timer = match state {
            StepState::Running {
                deadline, question, ..
            } => {
                if question.is_some() {
                    waiting.push(ix);
                }
                running.push(ix);
                *deadline
            }
            StepState::RetryDue { due_at, .. } => {
                if *due_at <= now {
                    startable.push(ix);
                }
                Some(*due_at)
            }
            StepState::Ready { approved, .. } => {
                if *approved || !run.needs_approval(ix) {
                    startable.push(ix);
                }
                None
            }
            StepState::AwaitingApproval { expires_at, .. } => {
                waiting.push(ix);
                *expires_at
            }
            StepState::AwaitingInput { .. }
            | StepState::AwaitingPlan { .. }
            | StepState::OutcomeUnknown { .. } => {
                waiting.push(ix);
                None
            }
            StepState::Completed { .. } => {
                completed += usize::from(own);
                None
            }
            StepState::Looping { .. } => {
                looping.insert(ix, true);
                None
            }
            _ => None,
        };
        if let Some(instance) = run.instance(ix)
            && let Some(all_done) = looping.get_mut(&instance.step)
        {
            *all_done &= matches!(
                state,
                StepState::Completed { .. } | StepState::Skipped { .. }
            );
        }
        if let Some(at) = timer.filter(|at| *at > now) {
            next_timer = Some(next_timer.map_or(at, |earliest| earliest.min(at)));
        }
    }
    for opened in looping.keys().filter_map(|ix| run.open_loop(*ix)) {
        let is_done = |ix: &StepIx| {
            matches!(
                run.step(*ix),
                StepState::Completed { .. } | StepState::Skipped { .. }
            )
        };
        let done = opened.instances().filter(is_done).count();
        assert_eq!(
            opened.done_count() as usize,
            done,
            "instances that are done"
        );
    }
    closable.extend(
        looping
            .into_iter()
            .filter_map(|(ix, all_done)| all_done.then_some(ix)),
    );
    if !run.state().is_terminal() {
        assert!(run.schedule().closable().eq(closable));
    }
    assert!(run.schedule().running().eq(running.iter().copied()));
    assert!(run.schedule().waiting().eq(waiting.iter().copied()));
    assert_eq!(
        (
            run.schedule().open_steps(),
            run.schedule().completed_steps()
        ),
        (open, completed)
    );
    assert_eq!(run.schedule().next_timer(now), next_timer);

    let free = match run.state() {
        // Nothing starts beside a call that is made alone, or after a failure that a denial has to
        // wait for.
        RunState::Running if run.schedule().isolated_step().is_some() || has_failed(run) => 0,
        RunState::Running => (run.start().max_concurrency as usize).saturating_sub(running.len()),
        _ => 0,
    };
    assert_eq!(run.schedule().free_slots(), free);
    let mut offered: Vec<StepIx> = run.schedule().startable(now).collect();
    offered.sort_unstable();
    if free == 0 {
        startable.clear();
    }
    assert_eq!(
        offered, startable,
        "each step that may start is offered once"
    );
}

/// What a reader of entries alone knows about one step.
#[derive(Default)]
struct Seen {
    attempts: u32,
    in_flight: bool,
    class: Option<EffectClass>,
    /// The outcome of the last attempt is in question, and no person has said that it may be made
    /// again.
    in_doubt: bool,
    approved: bool,
    /// Failures that were followed by a retry.
    retries: u32,
    /// Attempts that do not count against the retry policy.
    repeats: u32,
    crashes: u32,
    ended: bool,
    /// Ended in a way that lets dependants go on.
    done: bool,
    /// Waits for the run of a sub-plan.
    parked: bool,
    undone: bool,
    /// A person was asked for values, and has not answered.
    asked: bool,
    /// How many elements the step runs over, once it does.
    elements: Option<u32>,
    /// Began, as an element of a loop.
    begun: bool,
}

/// Reads a journal and holds it against the promises.
pub(crate) fn check_journal(plan: &Plan, entries: &[Entry<RunEvent>]) {
    let mut reader = Reader::new(plan, entries);
    for entry in entries {
        reader.read(entry);
    }
}

struct Reader<'a> {
    plan: &'a Plan,
    /// Steps of the plan and elements of loops, by id.
    steps: BTreeMap<String, Seen>,
    keys: BTreeSet<String>,
    seq: u64,
    begun_at: Timestamp,
    max_concurrency: usize,
    guards: bool,
    calls: u64,
    per_tool: BTreeMap<String, u64>,
    same_call: BTreeMap<Digest, u64>,
    paused: bool,
    stopped: bool,
    ended: bool,
}

impl<'a> Reader<'a> {
    fn new(plan: &'a Plan, entries: &[Entry<RunEvent>]) -> Self {
        let RunEvent::RunStarted {
            max_concurrency,
            guards,
            ..
        } = &entries[0].event
        else {
            panic!("a journal begins with the start of a run")
        };
        Self {
            plan,
            steps: plan
                .indices()
                .map(|ix| (plan.step_id(ix).to_string(), Seen::default()))
                .collect(),
            keys: BTreeSet::new(),
            seq: 0,
            begun_at: entries[0].at,
            max_concurrency: (*max_concurrency).max(1) as usize,
            guards: *guards,
            calls: 0,
            per_tool: BTreeMap::new(),
            same_call: BTreeMap::new(),
            paused: false,
            stopped: false,
            ended: false,
        }
    }

    fn step(&mut self, step: &planwright_core::id::StepId) -> (StepIx, &mut Seen) {
        let ix = self.written(step);
        (
            ix,
            self.steps
                .get_mut(step.as_str())
                .expect("the step or the element is there"),
        )
    }

    /// The step of the plan that is named, or is run over.
    fn written(&self, step: &planwright_core::id::StepId) -> StepIx {
        let name = step.as_str().split('[').next().unwrap_or_default();
        self.plan.find(name).expect("the plan has the step")
    }

    /// The step that runs over the element `step` is about.
    fn parent(&self, step: &planwright_core::id::StepId) -> Option<planwright_core::id::StepId> {
        step.as_str()
            .contains('[')
            .then(|| self.plan.step_id(self.written(step)).clone())
    }

    /// The elements of a step.
    fn elements(&self, step: &planwright_core::id::StepId) -> impl Iterator<Item = &Seen> {
        let count = self.steps[step.as_str()].elements.unwrap_or_default();
        let step = step.clone();
        (0..count).map(move |index| &self.steps[step.instance(index).as_str()])
    }

    /// One element failed or was denied: the step that runs over it has ended.
    fn stop_loop(&mut self, step: &planwright_core::id::StepId) {
        let Some(parent) = self.parent(step) else {
            return;
        };
        if !self.steps[parent.as_str()].ended {
            self.end_step(&parent, false);
        }
    }

    fn read(&mut self, entry: &Entry<RunEvent>) {
        assert_eq!(entry.seq, self.seq + 1, "the journal has no gaps");
        self.seq = entry.seq;
        let after_the_end = matches!(
            entry.event,
            RunEvent::UndoOpened { .. } | RunEvent::StepUndone { .. }
        );
        assert_eq!(
            self.ended, after_the_end,
            "only an undo follows the end of a run: {:?}",
            entry.event
        );
        if let Some(key) = entry.event.unique_key() {
            assert!(self.keys.insert(key.clone()), "{key:?} happened twice");
        }
        match &entry.event {
            RunEvent::RunStarted { .. } => {}
            RunEvent::UndoOpened { by, .. } => assert!(by.may_approve(), "{by} ordered an undo"),
            RunEvent::StepUndone { step, .. } => self.read_undone(step),
            RunEvent::ChildParked { step, .. } => {
                let (_, seen) = self.step(step);
                assert!(
                    seen.in_flight,
                    "`{step}` waits for a run that it did not begin"
                );
                (seen.in_flight, seen.parked) = (false, true);
            }
            RunEvent::ChildResumed { step } => {
                let (_, seen) = self.step(step);
                assert!(std::mem::take(&mut seen.parked), "`{step}` did not wait");
            }
            RunEvent::AttemptStarted { .. } => self.read_start(entry),
            RunEvent::ResultReused { step, .. }
            | RunEvent::AttemptSucceeded { step, .. }
            | RunEvent::StepSkipped { step, .. }
            | RunEvent::OutcomeResolved {
                step,
                resolution: Resolution::Happened { .. },
                ..
            } => {
                self.end_step(step, true);
            }
            RunEvent::AttemptFailed {
                step,
                retry_at: Some(_),
                error,
                ..
            } => {
                let (ix, seen) = self.step(step);
                assert!(
                    !seen.in_flight
                        || seen.class != Some(EffectClass::Unsafe)
                        || error.effect == CallEffect::None,
                    "`{step}` is retried though its call may have had its effect"
                );
                (seen.in_flight, seen.in_doubt) = (false, false);
                seen.retries += 1;
                let retries = seen.retries;
                let max = self.plan.step(ix).retry.as_ref().map_or(0, |r| r.max);
                assert!(
                    retries <= max,
                    "`{step}` is retried {retries} times, the plan allows {max}"
                );
            }
            RunEvent::AttemptFailed {
                step,
                retry_at: None,
                ..
            }
            | RunEvent::StepFailed { step, .. } => {
                self.end_step(step, false);
                self.stop_loop(step);
                let ix = self.written(step);
                let goes_on = self.plan.document().limits.on_failure.is_some();
                self.stopped |= self.plan.step(ix).is_critical() && !goes_on;
            }
            RunEvent::ApprovalDenied { step, by, .. } => {
                assert!(by.may_approve());
                self.end_step(step, false);
                self.stop_loop(step);
            }
            RunEvent::AttemptCancelled { step, .. } => self.end_step(step, false),
            RunEvent::AttemptInterrupted { step, reason, .. } => {
                let (_, seen) = self.step(step);
                let harmless =
                    seen.class != Some(EffectClass::Unsafe) || reason == "the call was not made";
                assert!(
                    harmless,
                    "`{step}` is unsafe and would be repeated by itself"
                );
                seen.in_flight = false;
                // The end of a process is counted against the calls that were alone in flight.
                let (repeats, limit) = if entry.cause == Cause::Recovery {
                    (&mut seen.crashes, Run::MAX_CRASHES)
                } else {
                    (&mut seen.repeats, Run::MAX_INTERRUPTIONS)
                };
                *repeats += 1;
                assert!(
                    u32::from(limit) >= *repeats,
                    "`{step}` is repeated for ever"
                );
            }
            RunEvent::OutcomeLost { step, .. } => {
                let (_, seen) = self.step(step);
                (seen.in_flight, seen.in_doubt) = (false, true);
            }
            RunEvent::OutcomeResolved {
                step,
                by,
                resolution,
            } => {
                assert!(by.may_approve(), "{by} resolved an outcome");
                let (_, seen) = self.step(step);
                assert!(seen.in_doubt, "`{step}` was not in doubt");
                if *resolution == Resolution::RunAgain {
                    seen.in_doubt = false;
                }
            }
            RunEvent::ApprovalGranted { step, by, .. } => {
                assert!(by.may_approve(), "{by} approved a step");
                self.step(step).1.approved = true;
            }
            RunEvent::ApprovalRequested { step, call, .. } => {
                let (ix, seen) = self.step(step);
                assert!(!seen.ended && (call.is_some() || !seen.approved));
                assert!(call.is_some() || self.plan.step(ix).approval_required);
            }
            RunEvent::LoopOpened { .. }
            | RunEvent::LoopClosed { .. }
            | RunEvent::InputRequested { .. }
            | RunEvent::InputGiven { .. } => self.read_flow(&entry.event),
            // Words of models change nothing by themselves.
            RunEvent::ModelUsed { .. }
            | RunEvent::AgentTurn { .. }
            | RunEvent::RunReflected { .. }
            | RunEvent::CriteriaChecked { .. } => {}
            RunEvent::RunPaused { .. } => self.paused = true,
            RunEvent::RunResumed { .. } => self.paused = false,
            RunEvent::CancelRequested { .. } => self.stopped = true,
            // Nothing starts in a run that no process executes, until it is resumed.
            RunEvent::RunStalled { .. } => self.paused = true,
            RunEvent::StepIsolated { .. } | RunEvent::IsolationEnded { .. } => {}
            RunEvent::RunQueued { .. } => assert!(
                self.steps.values().all(|seen| !seen.in_flight),
                "a run waits for its turn with calls in flight"
            ),
            RunEvent::RunCompleted { .. }
            | RunEvent::RunFailed { .. }
            | RunEvent::RunGivenUp { .. }
            | RunEvent::RunAdjusted { .. }
            | RunEvent::RunCancelled { .. } => {
                assert!(
                    self.steps.values().all(|seen| !seen.in_flight),
                    "the run ended with calls in flight"
                );
                self.ended = true;
            }
        }
    }

    fn read_start(&mut self, entry: &Entry<RunEvent>) {
        let RunEvent::AttemptStarted {
            step,
            attempt,
            tool,
            class,
            call,
        } = &entry.event
        else {
            return;
        };
        let plan = self.plan;
        assert!(
            !self.paused && !self.stopped,
            "`{step}` started though nothing may"
        );
        let (ix, seen) = self.step(step);
        assert!(!seen.ended, "`{step}` started after its end");
        assert!(
            !seen.in_flight && !seen.parked,
            "`{step}` is in flight twice"
        );
        assert!(
            !seen.in_doubt,
            "`{step}` was called again though it is not known what the last call did"
        );
        assert_eq!(*attempt, seen.attempts + 1);
        assert!(
            seen.approved || !plan.step(ix).approval_required,
            "`{step}` started without approval"
        );
        (seen.attempts, seen.in_flight, seen.class) = (*attempt, true, Some(*class));
        assert!(!seen.asked, "`{step}` started with a question open");
        seen.begun = true;
        self.check_dependencies(step, ix);
        if let Some(parent) = self.parent(step) {
            assert!(
                !self.steps[parent.as_str()].ended,
                "`{step}` started after its loop had ended"
            );
            let busy = self
                .elements(&parent)
                .filter(|seen| seen.begun && !seen.ended)
                .count();
            let limit = plan.step(ix).max_parallel.unwrap_or(u32::MAX) as usize;
            assert!(
                busy <= limit,
                "{busy} elements of `{parent}` at once, {limit} allowed"
            );
        }
        let in_flight = self.steps.values().filter(|seen| seen.in_flight).count();
        assert!(
            in_flight <= self.max_concurrency,
            "{in_flight} in flight, {} allowed",
            self.max_concurrency
        );
        if self.guards {
            self.charge(entry.at, &tool.to_string(), *call);
        }
    }

    fn check_dependencies(&self, step: &planwright_core::id::StepId, ix: StepIx) {
        for dependency in self.plan.graph().dependencies(ix) {
            let name = self.plan.step_id(*dependency);
            assert!(
                self.steps[name.as_str()].done,
                "`{step}` started before `{name}` was done"
            );
        }
    }

    fn read_flow(&mut self, event: &RunEvent) {
        match event {
            RunEvent::LoopOpened { step, count, .. } => {
                assert!(
                    !self.paused && !self.stopped,
                    "`{step}` began though nothing may"
                );
                let (ix, seen) = self.step(step);
                assert!(!seen.ended && seen.elements.is_none());
                seen.elements = Some(*count);
                self.check_dependencies(step, ix);
                for index in 0..*count {
                    self.steps
                        .insert(step.instance(index).to_string(), Seen::default());
                }
            }
            RunEvent::LoopClosed { step, value } => {
                assert!(
                    self.elements(step).all(|seen| seen.done),
                    "`{step}` has elements left"
                );
                let planwright_core::run::StoredValue::Inline(list) = value else {
                    panic!("small")
                };
                let count = self.steps[step.as_str()].elements.unwrap_or_default();
                assert_eq!(list.as_array().map(Vec::len), Some(count as usize));
                self.end_step(step, true);
            }
            RunEvent::InputRequested {
                step,
                attempt,
                held,
                ..
            } => {
                let (ix, seen) = self.step(step);
                assert!(!seen.asked && !seen.ended);
                assert_eq!(
                    seen.in_flight,
                    attempt.is_some(),
                    "only a call in flight can ask"
                );
                (seen.in_flight, seen.asked) = (*held, true);
                let approved = seen.approved || !self.plan.step(ix).approval_required;
                assert!(approved, "`{step}` asked without approval");
                self.check_dependencies(step, ix);
            }
            RunEvent::InputGiven {
                step,
                attempt,
                by,
                replies,
            } => {
                assert_eq!(
                    by.kind,
                    planwright_core::principal::PrincipalKind::Person,
                    "{by} answered"
                );
                let (_, seen) = self.step(step);
                assert!(seen.asked, "`{step}` asked nothing");
                seen.asked = false;
                if attempt.is_none() {
                    let declined = replies.contains(&planwright_core::run::Reply::Decline);
                    self.end_step(step, !declined);
                    if declined {
                        self.stop_loop(step);
                    }
                }
            }
            _ => {}
        }
    }

    fn charge(&mut self, at: Timestamp, tool: &str, call: Digest) {
        let budget = &self.plan.document().limits.budget;
        self.calls += 1;
        let of_tool = self.per_tool.entry(tool.to_owned()).or_default();
        *of_tool += 1;
        let same = self.same_call.entry(call).or_default();
        *same += 1;
        assert!(budget.calls.is_none_or(|limit| self.calls <= limit));
        assert!(
            budget
                .per_tool
                .get(tool)
                .is_none_or(|limit| *of_tool <= *limit)
        );
        assert!(budget.same_call.is_none_or(|limit| *same <= limit));
        let spent = at.since(self.begun_at).as_secs_f64();
        assert!(budget.seconds.is_none_or(|limit| spent < limit));
    }

    /// A step is taken back once, and only after everything that was built on it and can be taken
    /// back.
    fn read_undone(&mut self, step: &planwright_core::id::StepId) {
        let plan = self.plan;
        let (ix, seen) = self.step(step);
        assert!(
            seen.done && !seen.undone,
            "`{step}` did nothing that could be taken back"
        );
        seen.undone = true;
        for dependant in plan.graph().dependants(ix) {
            let later = &self.steps[plan.step_id(*dependant).as_str()];
            let stands = later.attempts > 0 && later.done && !later.undone;
            let name = plan.step_id(*dependant);
            assert!(
                !stands || plan.step(*dependant).undo.is_none(),
                "`{step}` was taken back before `{name}`"
            );
        }
    }

    fn end_step(&mut self, step: &planwright_core::id::StepId, done: bool) {
        let (_, seen) = self.step(step);
        assert!(!seen.ended, "`{step}` ended twice");
        (seen.ended, seen.done, seen.in_flight, seen.in_doubt) = (true, done, false, false);
    }
}
