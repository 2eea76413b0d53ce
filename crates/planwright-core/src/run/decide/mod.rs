//! The commands of a run's life, one per file. Deciding changes nothing.

mod agent;
mod approve;
mod cancel;
mod consent;
mod input;
mod isolate;
mod loops;
mod pause;
mod recover;
mod reflect;
mod report;
mod resolve;
mod settle;
mod skip;
mod stall;
mod start;
mod tick;
mod undo;

pub use isolate::Crashes;

use super::{
    Asked, CallFacts, ClientTerms, CriterionCheck, Refusal, Reply, Resolution, Run, RunEvent,
    Shown, StepError, StoredValue, Wanted,
};
use crate::adjust::Reflected;
use crate::digest::Digest;
use crate::id::{AttemptNo, RunId};
use crate::model::ModelUse;
use crate::plan::StepIx;
use crate::principal::{Assurance, Principal};
use crate::time::Timestamp;
use crate::tool::{EffectClass, ToolName};

/// A change that a caller or the engine asks for in a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Call the step's tool with exactly these arguments.
    Start {
        /// The step or element.
        step: StepIx,
        /// The tool that is called.
        tool: ToolName,
        /// The class of its effect.
        class: EffectClass,
        /// The digest of the tool and its arguments.
        call: Digest,
        /// What is known about the call; a run that carries its consent starts nothing without.
        facts: Option<Box<CallFacts>>,
    },
    /// The call cannot be made: a value is missing, the tool is gone, the arguments do not fit.
    Fail {
        /// The step or element.
        step: StepIx,
        /// The error that ended it.
        error: StepError,
    },
    /// The step's tool is not there, and the plan says that this is fine.
    Skip {
        /// The step or element.
        step: StepIx,
        /// The reason, in words for people.
        reason: String,
    },
    /// A person says that the step is not to run.
    LeaveOut {
        /// The step or element.
        step: String,
        /// The principal who did it.
        by: Principal,
        /// The reason, in words for people.
        reason: String,
    },
    /// Run the step once for each element of this list.
    OpenLoop {
        /// The step or element.
        step: StepIx,
        /// The list.
        items: StoredValue,
        /// The number of elements.
        count: usize,
    },
    /// Every element had its turn: these are their values.
    CloseLoop {
        /// The step or element.
        step: StepIx,
        /// The value that came back.
        value: StoredValue,
    },
    /// Ask a person what the step wants to know.
    AskInput {
        /// The step or element.
        step: StepIx,
        /// The question in words; that of the plan when absent.
        message: Option<String>,
    },
    /// A person answers what was asked.
    GiveInput {
        /// The step or element.
        step: String,
        /// The principal who did it.
        by: Principal,
        /// What was on the screen: [`Asked::digest`].
        question: Digest,
        /// The answers, one per question.
        replies: Vec<Reply>,
    },
    /// A call came back, or will not.
    Report {
        /// The step or element.
        step: StepIx,
        /// The attempt, counted from 1.
        attempt: AttemptNo,
        /// The outcome of the call.
        answer: CallReport,
    },
    /// The executor of an agent step said something and wants these calls made.
    TakeTurn {
        /// The step or element.
        step: StepIx,
        /// The attempt, counted from 1.
        attempt: AttemptNo,
        /// The words of the executor.
        text: Option<StoredValue>,
        /// The calls it wants made.
        calls: Vec<Wanted>,
        /// The use of the model; absent for an executor that is no model of ours.
        used: Option<ModelUse>,
        /// Calls outside the scope are noted and go the way of every other call.
        observe: bool,
        /// The terms of the calls of a client of the gateway.
        client: Option<ClientTerms>,
    },
    /// A model was asked for this step.
    NoteModel {
        /// The step or element.
        step: StepIx,
        /// The tokens and the money that it took.
        used: ModelUse,
    },
    /// Time passed.
    Tick,
    /// A new owner took the run over.
    Recover,
    /// A new owner took the run over, while workers carry out the calls of these steps: they go on.
    RecoverOthers {
        /// The steps whose calls go on.
        carried: Vec<StepIx>,
    },
    /// Ask people about the steps that need it.
    AskApprovals,
    /// Agree to what was asked.
    Approve {
        /// The step or element.
        step: String,
        /// The principal who did it.
        by: Principal,
        /// The assurance that it was them.
        assurance: Assurance,
        /// The version or digest that was on the screen.
        shown: Shown,
    },
    /// Refuse what was asked.
    Deny {
        /// The step or element.
        step: String,
        /// The principal who did it.
        by: Principal,
        /// The version or digest that was on the screen.
        shown: Shown,
        /// The reason, in words for people.
        reason: String,
    },
    /// State the outcome of a call that was lost.
    Resolve {
        /// The step or element.
        step: String,
        /// The principal who did it.
        by: Principal,
        /// The outcome that the person states.
        resolution: Resolution,
    },
    /// Start nothing more until the run is resumed.
    Pause {
        /// The principal who did it.
        by: Principal,
    },
    /// Go on with a run that is paused or stalled.
    Resume {
        /// The principal who did it.
        by: Principal,
    },
    /// Stop the calls in flight, and end.
    Cancel {
        /// The principal who did it.
        by: Principal,
    },
    /// No process has executed the run since then.
    Stall {
        /// The time since when no process executes it.
        since: Timestamp,
    },
    /// Make the next call of the step while no other is in flight.
    Isolate {
        /// The step or element.
        step: StepIx,
    },
    /// Other calls are made beside the one that was made alone.
    EndIsolation,
    /// The service executes as many runs as it may.
    Queue {
        /// The number of runs that it executes at once.
        slots: u32,
    },
    /// Declare the run failed.
    GiveUp {
        /// The principal who did it.
        by: Principal,
        /// The reason, in words for people.
        reason: String,
    },
    /// The reflector looked at how the run went, and this is what it says.
    Reflect {
        /// The answer of the reflector.
        reflected: Box<Reflected>,
        /// The tokens and the money that it took.
        used: Vec<ModelUse>,
        /// Why the adjustments cannot be made, if the plan they lead to cannot run.
        problem: Option<String>,
    },
    /// The plan has this version, which is how the work goes on.
    Adjust {
        /// The version of the plan.
        version: u32,
        /// The remaining steps were planned anew.
        replanned: bool,
        /// The tokens and the money that it took.
        used: Vec<ModelUse>,
    },
    /// What was to be done about a run that did not go well cannot be done.
    Abandon {
        /// The reason, in words for people.
        reason: String,
        /// The tokens and the money that it took.
        used: Vec<ModelUse>,
    },
    /// After the end: whether the success criteria hold.
    NoteCriteria {
        /// The criteria with what was found out about them.
        checks: Vec<CriterionCheck>,
        /// The tokens and the money that it took.
        used: Vec<ModelUse>,
    },
    /// End the run if nothing is left to do.
    Settle,
    /// Look at the runs of sub-plans again that waited for a person.
    ResumeChildren,
    /// Take an ended run back by another one.
    Undo {
        /// The run that takes it back.
        run: RunId,
        /// The digest of exactly what runs.
        digest: Digest,
        /// The principal who did it.
        by: Principal,
        /// The assurance that it was them.
        assurance: Assurance,
    },
    /// The undo of this step succeeded.
    NoteUndone {
        /// The step or element.
        step: StepIx,
        /// The run that took it back.
        run: RunId,
    },
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallReport {
    /// It came back with a value.
    Succeeded(StoredValue),
    /// It came back with an error.
    Failed(StepError),
    /// It was stopped before it had any effect.
    NotMade,
    /// The run of a sub-plan cannot go on without a person.
    Parked {
        /// The run of the sub-plan.
        run: RunId,
    },
    /// The tool asks a person first; it had no effect.
    Asked(Box<Asked>),
    /// The tool asks a person in the middle of its work, and waits for the answer.
    Holds(Box<Asked>),
    /// The tool asked in the middle of its work and got no answer: the attempt is over, and what it
    /// did before it asked is unknown.
    AskedMidway(Box<Asked>),
    /// The outcome of the call is unknown.
    Lost {
        /// The reason, in words for people.
        reason: String,
    },
}

impl Run {
    /// Says what happens if `command` is given now. An empty list means: nothing, and that is fine.
    pub fn decide(&self, command: &Command, now: Timestamp) -> Result<Vec<RunEvent>, Refusal> {
        if self.state.is_terminal() {
            return self.decide_after_the_end(command);
        }
        match command {
            Command::Start {
                step,
                tool,
                class,
                call,
                facts,
            } => self.decide_start(*step, (tool, *class, *call), facts.as_deref(), now),
            Command::Fail { step, error } => self.decide_fail(*step, error),
            Command::Skip { step, reason } => self.decide_skip(*step, reason),
            Command::LeaveOut { step, by, reason } => self.decide_leave_out(step, by, reason),
            Command::OpenLoop { step, items, count } => self.decide_open_loop(*step, items, *count),
            Command::CloseLoop { step, value } => self.decide_close_loop(*step, value),
            Command::AskInput { step, message } => self.decide_ask_input(*step, message.as_deref()),
            Command::GiveInput {
                step,
                by,
                question,
                replies,
            } => self.decide_give_input(step, by, *question, replies),
            Command::Report {
                step,
                attempt,
                answer,
            } => self.decide_report(*step, *attempt, answer, now),
            Command::TakeTurn {
                step,
                attempt,
                text,
                calls,
                used,
                observe,
                client,
            } => {
                let text = text.as_ref();
                let used = used.as_ref();
                let turn = agent::Turn {
                    attempt: *attempt,
                    text,
                    calls,
                    used,
                    observe: *observe,
                    client: *client,
                };
                self.decide_turn(*step, &turn, now)
            }
            Command::NoteModel { step, used } => Ok(vec![RunEvent::ModelUsed {
                step: Some(self.step_id(*step).clone()),
                used: used.clone(),
            }]),
            Command::Tick => Ok(self.decide_tick(now)),
            Command::Recover => Ok(self.decide_recover(&[])),
            Command::RecoverOthers { carried } => Ok(self.decide_recover(carried)),
            Command::AskApprovals => Ok(self.decide_ask_approvals(now)),
            Command::Approve {
                step,
                by,
                assurance,
                shown,
            } => self.decide_approve(step, by, *assurance, *shown, now),
            Command::Deny {
                step,
                by,
                shown,
                reason,
            } => self.decide_deny(step, by, *shown, reason, now),
            Command::Resolve {
                step,
                by,
                resolution,
            } => self.decide_resolve(step, by, resolution, now),
            Command::Pause { by } => self.decide_pause(by),
            Command::Resume { by } => self.decide_resume(by),
            Command::Cancel { by } => Ok(self.decide_cancel(by)),
            Command::Stall { since } => Ok(self.decide_stall(*since)),
            Command::Isolate { step } => self.decide_isolate(*step),
            Command::EndIsolation => Ok(self.decide_end_isolation()),
            Command::Queue { slots } => Ok(self.decide_queue(*slots)),
            Command::GiveUp { by, reason } => self.decide_give_up(by, reason),
            Command::Reflect {
                reflected,
                used,
                problem,
            } => self.decide_reflect(reflected, used, problem.as_deref()),
            Command::Adjust {
                version,
                replanned,
                used,
            } => self.decide_adjust(*version, *replanned, used),
            Command::Abandon { reason, used } => self.decide_abandon(reason, used),
            Command::Settle => Ok(self.decide_settle()),
            Command::ResumeChildren => Ok(self.decide_resume_children()),
            Command::Undo { .. } | Command::NoteUndone { .. } | Command::NoteCriteria { .. } => {
                Err(Refusal::NotEnded {
                    status: self.status(),
                })
            }
        }
    }

    /// An ended run can be taken back, and accepts nothing else. What the engine asks by itself is
    /// not an error, only void.
    fn decide_after_the_end(&self, command: &Command) -> Result<Vec<RunEvent>, Refusal> {
        match command {
            Command::Tick
            | Command::Recover
            | Command::RecoverOthers { .. }
            | Command::AskApprovals
            | Command::Settle
            | Command::Stall { .. }
            | Command::Queue { .. }
            | Command::EndIsolation
            | Command::ResumeChildren => Ok(Vec::new()),
            Command::Undo {
                run,
                digest,
                by,
                assurance,
            } => self.decide_undo(run, *digest, by, *assurance),
            Command::NoteUndone { step, run } => self.decide_undone(*step, run),
            Command::NoteCriteria { checks, used } => Ok(vec![RunEvent::CriteriaChecked {
                checks: checks.clone(),
                used: used.clone(),
            }]),
            Command::Start { .. }
            | Command::Isolate { .. }
            | Command::Fail { .. }
            | Command::Skip { .. }
            | Command::LeaveOut { .. }
            | Command::OpenLoop { .. }
            | Command::CloseLoop { .. }
            | Command::AskInput { .. }
            | Command::GiveInput { .. }
            | Command::Report { .. }
            | Command::TakeTurn { .. }
            | Command::NoteModel { .. }
            | Command::Approve { .. }
            | Command::Deny { .. }
            | Command::Resolve { .. }
            | Command::Pause { .. }
            | Command::Resume { .. }
            | Command::GiveUp { .. }
            | Command::Reflect { .. }
            | Command::Adjust { .. }
            | Command::Abandon { .. }
            | Command::Cancel { .. } => Err(Refusal::RunEnded {
                status: self.status(),
            }),
        }
    }

    fn find_step(&self, step: &str) -> Result<StepIx, Refusal> {
        self.find(step)
            .ok_or_else(|| Refusal::UnknownStep(step.to_owned()))
    }
}
