//! Noting what happened: the only place where a run changes.

use super::state::RunSignal;
use super::{
    AgentTurn, Answered, Corrupt, Index, LookedAt, Loops, PauseOrder, Reply, Resolution, Run,
    RunEvent, RunState, Start, StepEvent, StepState, StoredValue, Tally,
};
use crate::id::{AttemptNo, RunId, StepId};
use crate::journal::{Cause, Entry};
use crate::plan::{Plan, StepIx};
use crate::principal::PrincipalKind;
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

impl Run {
    /// Begins a run from its first entry. `priority` orders ready steps; it is not part of the
    /// state.
    pub fn open(
        id: RunId,
        plan: Arc<Plan>,
        priority: Arc<[u64]>,
        first: &Entry<RunEvent>,
    ) -> Result<Self, Corrupt> {
        let RunEvent::RunStarted {
            version,
            digest,
            max_concurrency,
            guards,
            by,
            forked_from,
            consent,
            undoes,
            parent,
            plan: _,
            variables,
            document: _,
            trace,
            reflection,
            call_timeout_ms,
            stepwise,
        } = &first.event
        else {
            return Err(Corrupt::NoStart);
        };
        if first.seq != 1 {
            return Err(Corrupt::Gap {
                last: 0,
                found: first.seq,
            });
        }
        let start = Start {
            at: first.at,
            version: *version,
            digest: *digest,
            variables: variables.clone(),
            max_concurrency: (*max_concurrency).max(1),
            guards: *guards,
            by: by.clone(),
            forked_from: forked_from.clone(),
            consent: consent.clone(),
            undoes: undoes.clone(),
            parent: parent.as_deref().cloned(),
            trace: trace.as_deref().copied(),
            reflection: reflection.as_deref().cloned(),
            call_timeout: call_timeout_ms.map(Duration::from_millis),
            stepwise: *stepwise,
        };
        let steps = plan.indices().map(|ix| initial_state(&plan, ix)).collect();
        let mut run = Self {
            id,
            start,
            state: RunState::Running,
            steps,
            seq: 1,
            updated_at: first.at,
            ended_at: None,
            failures: 0,
            index: Index {
                priority,
                ..Index::default()
            },
            usage: super::Usage::after(reflection.as_deref().map(|reflection| &reflection.spent)),
            denied: None,
            failed_after_denial: None,
            undos: Vec::new(),
            reused: BTreeSet::new(),
            loops: Loops::default(),
            answered: BTreeMap::new(),
            approved_calls: std::collections::BTreeMap::new(),
            scope: plan.document().required_scope(),
            looked_at: None,
            replanned: false,
            given_up: None,
            checks: Vec::new(),
            agents: BTreeMap::new(),
            queued: None,
            held: false,
            crashes: BTreeMap::new(),
            isolated: None,
            paused: None,
            resumed: None,
            plan,
        };
        for ix in run.plan.indices() {
            run.enter_index(ix);
        }
        Ok(run)
    }

    /// Notes one entry. An entry that cannot follow leaves the run as it was.
    pub fn apply(&mut self, entry: &Entry<RunEvent>) -> Result<(), Corrupt> {
        if entry.seq != self.seq + 1 {
            return Err(Corrupt::Gap {
                last: self.seq,
                found: entry.seq,
            });
        }
        self.index.changed.clear();
        self.apply_event(entry)?;
        self.queued = if let RunEvent::RunQueued { slots } = entry.event {
            Some(slots)
        } else {
            // Every other event means that the run had its turn, or does not wait for it any more.
            None
        };
        let isolating = matches!(entry.event, RunEvent::StepIsolated { .. });
        if !isolating && self.schedule().isolated_step().is_none() {
            self.isolated = None;
        }
        self.note_usage(&entry.event);
        self.seq = entry.seq;
        self.updated_at = entry.at;
        Ok(())
    }

    fn apply_event(&mut self, entry: &Entry<RunEvent>) -> Result<(), Corrupt> {
        use RunEvent as E;
        use StepEvent as S;
        let at = entry.at;
        match &entry.event {
            E::RunStarted { .. } => Err(self.cannot_follow(entry, "run_started")),
            E::ResultReused { step, value } => {
                self.note(entry, step, &S::Reused { value })?;
                self.reused.insert(self.locate(entry.seq, step)?);
                Ok(())
            }
            E::AttemptStarted {
                step,
                attempt,
                class,
                ..
            } => {
                let ix = self.locate(entry.seq, step)?;
                let deadline = self.time_limit(ix).map(|limit| at.plus(limit));
                self.note(
                    entry,
                    step,
                    &S::AttemptStarted {
                        attempt: *attempt,
                        class: *class,
                        at,
                        deadline,
                    },
                )
            }
            E::AttemptSucceeded {
                step,
                attempt,
                value,
            } => self.note(
                entry,
                step,
                &S::AttemptSucceeded {
                    attempt: *attempt,
                    value,
                    at,
                },
            ),
            E::AttemptFailed {
                step,
                attempt,
                error,
                retry_at,
            } => self.note(
                entry,
                step,
                &S::AttemptFailed {
                    attempt: *attempt,
                    error,
                    retry_at: *retry_at,
                    at,
                },
            ),
            E::StepIsolated { step } => {
                let ix = self.locate(entry.seq, step)?;
                if self.state.is_terminal() || self.step(ix).is_terminal() {
                    return Err(self.impossible(entry, ix, "step_isolated"));
                }
                self.isolated = Some(ix);
                Ok(())
            }
            E::IsolationEnded { step } => {
                let ix = self.locate(entry.seq, step)?;
                if self.schedule().isolated_step() != Some(ix) {
                    return Err(self.impossible(entry, ix, "isolation_ended"));
                }
                self.isolated = None;
                Ok(())
            }
            E::AttemptInterrupted { step, attempt, .. } => {
                let alone = self.schedule().isolated_step();
                self.note(entry, step, &S::AttemptInterrupted { attempt: *attempt })?;
                if entry.cause == Cause::Recovery {
                    let ix = self.locate(entry.seq, step)?;
                    let crashes = self.crashes.entry(ix).or_default();
                    crashes.all = crashes.all.saturating_add(1);
                    crashes.alone += u16::from(alone == Some(ix));
                }
                Ok(())
            }
            E::AttemptCancelled { step, attempt } => {
                self.note(entry, step, &S::AttemptCancelled { attempt: *attempt })
            }
            E::OutcomeLost {
                step,
                attempt,
                reason,
            } => self.note(
                entry,
                step,
                &S::OutcomeLost {
                    attempt: *attempt,
                    reason,
                },
            ),
            E::OutcomeResolved {
                step, resolution, ..
            } => match resolution {
                Resolution::Happened { value } => self.note(entry, step, &S::Happened { value }),
                Resolution::RunAgain => self.note(entry, step, &S::RunAgain),
                Resolution::DidNotHappen => self.note(entry, step, &S::DidNotHappen),
            },
            E::ChildParked { step, attempt, run } => self.note(
                entry,
                step,
                &S::ChildParked {
                    attempt: *attempt,
                    run,
                },
            ),
            E::ChildResumed { step } => self.note(entry, step, &S::ChildResumed),
            E::StepFailed { step, error } => {
                self.note(entry, step, &S::FailedWithoutCall { error })
            }
            E::StepSkipped { step, reason, .. } => self.note(entry, step, &S::Skipped { reason }),
            E::ApprovalRequested {
                step,
                call,
                expires_at,
            } => {
                let call = call.as_deref();
                let expires_at = *expires_at;
                self.note(
                    entry,
                    step,
                    &S::ApprovalRequested {
                        at,
                        call,
                        expires_at,
                    },
                )
            }
            E::ApprovalGranted { step, call, .. } => {
                self.note(entry, step, &S::ApprovalGranted { call: *call })?;
                if let Some(call) = call {
                    let ix = self.locate(entry.seq, step)?;
                    self.approved_calls.insert(ix, *call);
                }
                Ok(())
            }
            E::ApprovalDenied { step, reason, .. } => {
                self.note(entry, step, &S::ApprovalDenied { reason })
            }
            E::LoopOpened { step, items, count } => {
                self.note_loop_opened(entry, step, items, *count)
            }
            E::LoopClosed { step, value } => {
                let ix = self.locate(entry.seq, step)?;
                if !self.is_closable(ix) {
                    return Err(self.impossible(entry, ix, "loop_closed"));
                }
                self.note(entry, step, &S::LoopClosed { value, at })
            }
            E::InputRequested {
                step,
                attempt,
                asked,
                held: false,
            } => self.note(
                entry,
                step,
                &S::InputRequested {
                    attempt: *attempt,
                    asked,
                    at,
                },
            ),
            E::InputRequested {
                step,
                attempt,
                asked,
                held: true,
            } => {
                let attempt = attempt.unwrap_or_default();
                self.note(entry, step, &S::QuestionHeld { attempt, asked, at })
            }
            E::InputGiven {
                step,
                attempt,
                replies,
                by,
            } => self.note_input(
                entry,
                step,
                *attempt,
                replies,
                &format!("{by} declined to answer"),
            ),
            E::RunPaused { by } => {
                self.signal(entry, "run_paused", RunSignal::Paused)?;
                self.held |= by.kind == PrincipalKind::Policy;
                self.paused = Some(PauseOrder::new(by, entry.at));
                Ok(())
            }
            E::RunResumed { by } => {
                self.signal(entry, "run_resumed", RunSignal::Resumed)?;
                self.held = false;
                self.paused = None;
                self.resumed = Some(PauseOrder::new(by, entry.at));
                Ok(())
            }
            E::RunStalled { since } => {
                self.signal(entry, "run_stalled", RunSignal::Stalled(*since))
            }
            E::RunQueued { .. } => {
                if self.state == RunState::Running && self.index.running.is_empty() {
                    Ok(())
                } else {
                    Err(self.cannot_follow(entry, "run_queued"))
                }
            }
            E::RunGivenUp {
                reason,
                steps_digest,
                ..
            } => {
                self.end(entry, "run_given_up", RunSignal::GivenUp, *steps_digest)?;
                self.given_up = Some(reason.clone()).filter(|reason| !reason.is_empty());
                Ok(())
            }
            E::CancelRequested { .. } => {
                self.signal(entry, "cancel_requested", RunSignal::CancelRequested)
            }
            E::RunCompleted {
                steps_digest,
                failures,
            } => {
                // Journals from before failures were counted say 0.
                if *failures != 0 && *failures != self.count_failures() {
                    return Err(self.cannot_follow(entry, "run_completed"));
                }
                self.failures = *failures;
                self.end(entry, "run_completed", RunSignal::Completed, *steps_digest)
            }
            E::RunFailed { steps_digest } => {
                let failed = self
                    .failed_step()
                    .ok_or_else(|| self.cannot_follow(entry, "run_failed"))?;
                self.end(
                    entry,
                    "run_failed",
                    RunSignal::Failed(failed),
                    *steps_digest,
                )
            }
            E::RunCancelled { steps_digest } => {
                self.end(entry, "run_cancelled", RunSignal::Cancelled, *steps_digest)
            }
            E::ModelUsed { step, used } => {
                self.note_model(entry, step.as_ref(), used.usage.total())
            }
            E::AgentTurn {
                step,
                attempt,
                turn,
                text,
                calls,
            } => {
                let said = AgentTurn {
                    attempt: *attempt,
                    text: text.clone(),
                    calls: calls.clone(),
                };
                self.note_turn(entry, step, *turn, said)
            }
            E::RunReflected {
                cycle,
                assessment,
                reasoning,
                adjustments,
            } => {
                let found = LookedAt {
                    cycle: *cycle,
                    assessment: *assessment,
                    reasoning: reasoning.clone(),
                    adjustments: adjustments.clone(),
                };
                self.note_reflected(entry, found)
            }
            E::RunAdjusted {
                version,
                replanned,
                steps_digest,
            } => {
                self.end(
                    entry,
                    "run_adjusted",
                    RunSignal::Adjusted(*version),
                    *steps_digest,
                )?;
                self.replanned = *replanned;
                Ok(())
            }
            E::CriteriaChecked { checks, used: _ } => {
                if self.state.is_terminal() {
                    self.checks.clone_from(checks);
                    Ok(())
                } else {
                    Err(self.cannot_follow(entry, "criteria_checked"))
                }
            }
            E::UndoOpened { run, .. } => self.note_undo(entry, run),
            E::StepUndone { step, run } => self.note_undone(entry, step, run),
        }
    }

    /// The step because of which the run cannot succeed, if there is one.
    pub(super) fn failed_step(&self) -> Option<StepIx> {
        if let RunState::Stopping { failed } = self.state {
            Some(failed)
        } else {
            self.denied
        }
    }

    pub(super) fn locate(&self, seq: u64, step: &StepId) -> Result<StepIx, Corrupt> {
        self.find(step.as_str())
            .ok_or_else(|| Corrupt::UnknownStep {
                seq,
                step: step.to_string(),
            })
    }

    pub(super) fn impossible(
        &self,
        entry: &Entry<RunEvent>,
        ix: StepIx,
        event: &'static str,
    ) -> Corrupt {
        let step = self.step_id(ix).to_string();
        let state = self.step(ix).status();
        Corrupt::StepTransition {
            seq: entry.seq,
            event,
            step,
            state,
        }
    }

    fn note_loop_opened(
        &mut self,
        entry: &Entry<RunEvent>,
        step: &StepId,
        items: &StoredValue,
        count: u32,
    ) -> Result<(), Corrupt> {
        let ix = self.locate(entry.seq, step)?;
        let fits = count as usize <= Self::MAX_ELEMENTS.min(Self::MAX_INSTANCES - self.instances());
        if !fits || !self.loops(ix) {
            return Err(self.impossible(entry, ix, "loop_opened"));
        }
        self.note(
            entry,
            step,
            &StepEvent::LoopOpened {
                count,
                at: entry.at,
            },
        )?;
        self.enter_loop(ix, items, count);
        Ok(())
    }

    fn note_input(
        &mut self,
        entry: &Entry<RunEvent>,
        step: &StepId,
        attempt: Option<AttemptNo>,
        replies: &[Reply],
        declined: &str,
    ) -> Result<(), Corrupt> {
        let ix = self.locate(entry.seq, step)?;
        let Some(attempt) = attempt else {
            return match self.input_value(ix, replies) {
                Some(value) => {
                    let value = StoredValue::Inline(Arc::new(value));
                    self.note(
                        entry,
                        step,
                        &StepEvent::InputGiven {
                            value: &value,
                            at: entry.at,
                        },
                    )
                }
                None => self.note(entry, step, &StepEvent::InputDeclined { reason: declined }),
            };
        };
        let asked = self.step(ix).question().cloned();
        self.note(entry, step, &StepEvent::QuestionAnswered { attempt })?;
        if let Some(asked) = asked {
            self.answered.entry(ix).or_default().push(Answered {
                asked,
                replies: replies.to_vec(),
            });
        }
        Ok(())
    }

    pub(super) fn cannot_follow(&self, entry: &Entry<RunEvent>, event: &'static str) -> Corrupt {
        Corrupt::RunTransition {
            seq: entry.seq,
            event,
            status: self.status(),
        }
    }

    /// Moves a step and everything that follows from it.
    fn note(
        &mut self,
        entry: &Entry<RunEvent>,
        step: &StepId,
        event: &StepEvent<'_>,
    ) -> Result<(), Corrupt> {
        if self.state.is_terminal() {
            return Err(self.cannot_follow(entry, event_name(event)));
        }
        let ix = self.locate(entry.seq, step)?;
        let Some(next) = self.step(ix).after(event) else {
            return Err(Corrupt::StepTransition {
                seq: entry.seq,
                event: event_name(event),
                step: step.to_string(),
                state: self.step(ix).status(),
            });
        };
        self.replace(ix, next);
        if self.instance(ix).is_some() {
            self.settle_instance(ix);
        } else {
            self.propagate(ix);
        }
        Ok(())
    }

    /// Tells the dependants of a step that ended, and theirs in turn.
    pub(super) fn propagate(&mut self, ix: StepIx) {
        let consequence = match self.step(ix) {
            StepState::Completed { .. } | StepState::Skipped { .. } => StepEvent::DependencyDone,
            StepState::Failed { .. } => {
                if self.is_critical(ix)
                    && let Some(next) = self.state.after(RunSignal::CriticalStepFailed(ix))
                {
                    self.state = next;
                }
                StepEvent::DependencyFailed { root: ix }
            }
            StepState::Denied { .. } => {
                if self.is_critical(ix) && self.denied.is_none() {
                    self.denied = Some(ix);
                }
                StepEvent::DependencyFailed { root: ix }
            }
            StepState::Pending { .. }
            | StepState::Blocked { .. }
            | StepState::Ready { .. }
            | StepState::AwaitingApproval { .. }
            | StepState::AwaitingInput { .. }
            | StepState::AwaitingPlan { .. }
            | StepState::Running { .. }
            | StepState::Looping { .. }
            | StepState::RetryDue { .. }
            | StepState::Cancelled { .. }
            | StepState::OutcomeUnknown { .. }
            | StepState::Undone { .. } => return,
        };
        let plan = Arc::clone(&self.plan);
        let mut reached = vec![ix];
        while let Some(from) = reached.pop() {
            for &dependant in plan.graph().dependants(from) {
                let was_blocked = matches!(self.step(dependant), StepState::Blocked { .. });
                let Some(next) = self.step(dependant).after(&consequence) else {
                    continue;
                };
                self.replace(dependant, next);
                // Only a failure travels further, and only once.
                if !was_blocked && matches!(self.step(dependant), StepState::Blocked { .. }) {
                    reached.push(dependant);
                }
            }
        }
    }

    fn signal(
        &mut self,
        entry: &Entry<RunEvent>,
        name: &'static str,
        signal: RunSignal,
    ) -> Result<(), Corrupt> {
        self.state = self
            .state
            .after(signal)
            .ok_or_else(|| self.cannot_follow(entry, name))?;
        Ok(())
    }

    /// Ends the run: what has not ended by itself never will.
    fn end(
        &mut self,
        entry: &Entry<RunEvent>,
        name: &'static str,
        signal: RunSignal,
        recorded: crate::digest::Digest,
    ) -> Result<(), Corrupt> {
        let next = self.state.after(signal).filter(|_| self.may_end(signal));
        let next = next.ok_or_else(|| self.cannot_follow(entry, name))?;
        let folded = self.steps_digest();
        if folded != recorded {
            return Err(Corrupt::StateMismatch {
                seq: entry.seq,
                recorded,
                folded,
            });
        }
        let reason = match signal {
            RunSignal::Failed(failed) => {
                format!("not run: step `{}` did not succeed", self.step_id(failed))
            }
            RunSignal::Adjusted(version) => {
                format!("not run: the work continues with version {version} of the plan")
            }
            RunSignal::Paused
            | RunSignal::Resumed
            | RunSignal::CancelRequested
            | RunSignal::CriticalStepFailed(_)
            | RunSignal::Completed
            | RunSignal::Stalled(_)
            | RunSignal::GivenUp
            | RunSignal::Cancelled => given_up(&entry.event)
                .unwrap_or_else(|| "not run: the run was cancelled".to_owned()),
        };
        self.state = next;
        self.ended_at = Some(entry.at);
        for ix in self.indices() {
            if let Some(next) = self
                .step(ix)
                .after(&StepEvent::RunEnded { reason: &reason })
            {
                self.replace(ix, next);
            }
        }
        Ok(())
    }

    /// A run ends with no call in flight, and completes only if nothing is open and nothing
    /// critical was denied.
    fn may_end(&self, signal: RunSignal) -> bool {
        let idle = self.index.running.is_empty();
        match signal {
            RunSignal::Completed => idle && self.index.open == 0 && self.failed_step().is_none(),
            RunSignal::Failed(_)
            | RunSignal::Cancelled
            | RunSignal::Stalled(_)
            | RunSignal::GivenUp
            | RunSignal::Adjusted(_)
            | RunSignal::Paused
            | RunSignal::Resumed
            | RunSignal::CancelRequested
            | RunSignal::CriticalStepFailed(_) => idle,
        }
    }

    /// When the last entry was written down.
    pub fn updated_at(&self) -> Timestamp {
        self.updated_at
    }
}

/// Returns why what had not ended never will, if that is what this event says.
fn given_up(event: &RunEvent) -> Option<String> {
    let RunEvent::RunGivenUp { by, reason, .. } = event else {
        return None;
    };
    Some(if reason.is_empty() {
        format!("not run: {by} gave the run up")
    } else {
        format!("not run: {by} gave the run up: {reason}")
    })
}

fn initial_state(plan: &Plan, ix: StepIx) -> StepState {
    match u32::try_from(plan.graph().dependencies(ix).len())
        .expect("edges are bounded below u32::MAX")
    {
        0 => StepState::Ready {
            tally: Tally::default(),
            approved: false,
        },
        waits_for => StepState::Pending { waits_for },
    }
}

pub(super) fn event_name(event: &StepEvent<'_>) -> &'static str {
    match event {
        StepEvent::DependencyDone => "dependency_done",
        StepEvent::DependencyFailed { .. } => "dependency_failed",
        StepEvent::RunEnded { .. } => "run_ended",
        StepEvent::Reused { .. } => "result_reused",
        StepEvent::ApprovalRequested { .. } => "approval_requested",
        StepEvent::ApprovalGranted { .. } => "approval_granted",
        StepEvent::ApprovalDenied { .. } => "approval_denied",
        StepEvent::AttemptStarted { .. } => "attempt_started",
        StepEvent::AttemptSucceeded { .. } => "attempt_succeeded",
        StepEvent::AttemptFailed { .. } => "attempt_failed",
        StepEvent::AttemptInterrupted { .. } => "attempt_interrupted",
        StepEvent::AttemptCancelled { .. } => "attempt_cancelled",
        StepEvent::OutcomeLost { .. } => "outcome_lost",
        StepEvent::Happened { .. } => "outcome_resolved",
        StepEvent::DidNotHappen => "outcome_resolved",
        StepEvent::RunAgain => "outcome_resolved",
        StepEvent::ChildParked { .. } => "child_parked",
        StepEvent::ChildResumed => "child_resumed",
        StepEvent::Undone => "step_undone",
        StepEvent::FailedWithoutCall { .. } => "step_failed",
        StepEvent::Skipped { .. } => "step_skipped",
        StepEvent::LoopStopped { .. } => "loop_stopped",
        StepEvent::ElementFailed { .. } => "element_failed",
        StepEvent::ElementDenied { .. } => "element_denied",
        StepEvent::LoopOpened { .. } => "loop_opened",
        StepEvent::LoopClosed { .. } => "loop_closed",
        StepEvent::InputRequested { .. } => "input_requested",
        StepEvent::QuestionHeld { .. } => "input_requested",
        StepEvent::QuestionAnswered { .. } => "input_given",
        StepEvent::InputGiven { .. } => "input_given",
        StepEvent::InputDeclined { .. } => "input_given",
    }
}
