//! The flags and the description of one execution: the common part of `run`, `resume`, `fork` and
//! `undo`.

use crate::command::execution::reflection::ReflectFlags;
use crate::exit::Failure;
use crate::terminal::late_bound::LateFlags;
use crate::workspace::variables::VariableFlags;
use clap::Args;
use planwright_core::id::{PlanId, RunId, StepId};
use planwright_core::policy::LateChoice;
use planwright_engine::{Engine, GivenApproval, RunHandle, RunOptions};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Flags of the commands that execute a run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) variables: VariableFlags,
    /// Show what every step would send and what would be asked; call nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// How many steps may be in flight at once.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_concurrency: Option<u32>,
    /// Approve the plan as the person at the keyboard. Steps that ask for their own approval still
    /// wait.
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) late: LateFlags,
    /// Disable budgets and runaway detection.
    #[arg(long)]
    pub(crate) no_guards: bool,
    /// Keep waiting when the run needs a person, instead of exiting with code 4.
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) reflection: ReflectFlags,
    /// After the run, check whether the success criteria of the plan hold. Only then is it a
    /// success.
    #[arg(long)]
    pub(crate) check: bool,
}

/// The run to execute: a new one, or one that continues.
#[derive(Debug)]
pub(crate) enum ExecutionKind {
    Start(PlanId),
    Resume(PlanId),
    Fork {
        plan: PlanId,
        source: RunId,
        from: Vec<StepId>,
    },
    /// Continues exactly this run.
    ResumeRun {
        plan: PlanId,
        run: RunId,
    },
    /// Continues the work of this adjusted run in a new one.
    ContinueAdjusted {
        plan: PlanId,
        run: RunId,
    },
    /// Undoes this run.
    Undo {
        plan: PlanId,
        run: RunId,
    },
}

impl ExecutionKind {
    pub(crate) fn plan(&self) -> &PlanId {
        match self {
            Self::Start(plan)
            | Self::Resume(plan)
            | Self::Fork { plan, .. }
            | Self::ResumeRun { plan, .. }
            | Self::ContinueAdjusted { plan, .. }
            | Self::Undo { plan, .. } => plan,
        }
    }

    pub(crate) async fn open_run(
        &self,
        engine: &Engine,
        options: RunOptions,
    ) -> Result<RunHandle, Failure> {
        Ok(match self {
            Self::Start(plan) => engine.runs().start(plan, options).await?,
            Self::Resume(plan) => engine.runs().resume(plan, options).await?,
            Self::Fork { source, from, .. } => engine.runs().fork(source, from, options).await?,
            Self::ResumeRun { run, .. } => engine.runs().resume_run(run, options).await?,
            Self::ContinueAdjusted { run, .. } => {
                engine.runs().continue_adjusted(run, options).await?
            }
            Self::Undo { run, .. } => Box::pin(engine.runs().undo(run, options)).await?,
        })
    }
}

/// One execution: the run, its approval and its variables.
#[derive(Debug)]
pub(crate) struct ExecutionOrder {
    pub(crate) kind: ExecutionKind,
    pub(crate) approval: Option<GivenApproval>,
    /// What the run must not be wider than, as `--late` says.
    pub(crate) late: BTreeMap<String, LateChoice>,
    pub(crate) variables: Map<String, Value>,
    /// For the progress bar.
    pub(crate) steps: usize,
}
