//! Waiting questions to people, looked up in the journals.

use crate::journal::conversation::listens;
use crate::journal::load::{LoadError, load_run, plan_status};
use crate::journal::recent::load_recent_review;
use crate::review::inbox::{AwaitingPeople, Inbox};
use planwright_core::digest::Digest;
use planwright_core::id::{PlanId, RunId};
use planwright_core::plan::StepIx;
use planwright_core::review::{Review, ReviewState};
use planwright_core::run::{Run, StepState};
use planwright_core::status::PlanStatus;
use planwright_core::time::Timestamp;

/// The thing that a person is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitKind {
    /// To approve a plan.
    Plan,
    /// To approve a step.
    Step,
    /// To answer a question.
    Input,
    /// To say what became of a call.
    Outcome,
}

impl WaitKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Plan, Self::Step, Self::Input, Self::Outcome];

    /// Returns the word for it in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Step => "step",
            Self::Input => "input",
            Self::Outcome => "outcome",
        }
    }

    /// Returns what a step in this state asks for; nothing if it asks for nothing, or waits for the
    /// run of a sub-plan, which asks itself.
    pub fn of_step(state: &StepState) -> Option<Self> {
        if let StepState::AwaitingApproval { .. } = state {
            Some(Self::Step)
        } else if state.question().is_some() {
            // Also one that a call in flight asks.
            Some(Self::Input)
        } else if let StepState::OutcomeUnknown { .. } = state {
            Some(Self::Outcome)
        } else {
            None
        }
    }
}

/// The waiting work of one plan.
#[derive(Debug)]
pub struct PlanWaits {
    /// The plan.
    pub review: Review,
    /// True if it has to be approved itself.
    pub decides_plan: bool,
    /// Its runs of which steps wait.
    pub runs: Vec<RunWaits>,
}

/// The waiting steps of one run.
#[derive(Debug)]
pub struct RunWaits {
    /// The run.
    pub run: Run,
    /// The steps that wait, and for what.
    pub steps: Vec<(StepIx, WaitKind)>,
}

/// The amount of work that waits for people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitCounts {
    /// Plans to approve.
    pub plans: u64,
    /// Steps to approve.
    pub steps: u64,
    /// Questions.
    pub inputs: u64,
    /// Calls whose outcome is unknown.
    pub outcomes: u64,
    /// When the plan that waits longest was last changed.
    pub oldest: Option<Timestamp>,
    /// Another value whenever something else waits.
    pub mark: Option<Digest>,
}

impl WaitCounts {
    /// Returns how much waits in all.
    pub fn total(&self) -> u64 {
        self.plans + self.steps + self.inputs + self.outcomes
    }

    /// Returns how much of a kind waits.
    pub fn of_kind(&self, kind: WaitKind) -> u64 {
        match kind {
            WaitKind::Plan => self.plans,
            WaitKind::Step => self.steps,
            WaitKind::Input => self.inputs,
            WaitKind::Outcome => self.outcomes,
        }
    }

    fn add(&mut self, kind: WaitKind) {
        match kind {
            WaitKind::Plan => self.plans += 1,
            WaitKind::Step => self.steps += 1,
            WaitKind::Input => self.inputs += 1,
            WaitKind::Outcome => self.outcomes += 1,
        }
    }
}

impl Inbox {
    /// Looks up what waits of a plan and of these runs of it. With `all`, also the conversations in
    /// which it is the person's turn to say something.
    pub async fn load_waits(
        &self,
        plan: &PlanId,
        runs: &[RunId],
        all: bool,
    ) -> Result<PlanWaits, LoadError> {
        let store = &*self.context.ports.store;
        let bounds = &self.context.settings.bounds;
        let (review, _) = load_recent_review(store, &self.context.reviews, plan).await?;
        let status = plan_status(store, &review, bounds).await?;
        let decides_plan = matches!(status, PlanStatus::Proposed | PlanStatus::NeedsReview)
            && review.state() != ReviewState::Deleted;
        let mut waits = PlanWaits {
            review,
            decides_plan,
            runs: Vec::new(),
        };
        for run in runs {
            let (run, _) = load_run(store, run, &waits.review, bounds).await?;
            let held = run
                .schedule()
                .running()
                .filter(|ix| run.step(*ix).question().is_some());
            let asking = run
                .schedule()
                .waiting()
                .chain(held)
                .filter(|&ix| all || !listens(&run, ix));
            let steps: Vec<_> = asking
                .filter_map(|ix| Some((ix, WaitKind::of_step(run.step(ix))?)))
                .collect();
            if !steps.is_empty() {
                waits.runs.push(RunWaits { run, steps });
            }
        }
        Ok(waits)
    }

    /// Counts what waits for people. Plans that cannot be read are left out.
    pub async fn count(&self) -> Result<WaitCounts, LoadError> {
        let AwaitingPeople { plans, runs } = self.plans_awaiting_people().await?;
        let mut counts = WaitCounts::default();
        let mut names = Vec::new();
        for info in plans {
            let plan = &info.status.plan;
            let of_plan = runs.get(plan).map_or(&[][..], Vec::as_slice);
            let waits = match self.load_waits(plan, of_plan, false).await {
                Ok(waits) => waits,
                Err(LoadError::Store(error)) => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(%plan, %error, "a plan cannot be looked at");
                    continue;
                }
            };
            let before = counts.total();
            if waits.decides_plan {
                counts.add(WaitKind::Plan);
                names.push(format!("{plan} {}", waits.review.current().number));
            }
            for of_run in &waits.runs {
                for (ix, kind) in &of_run.steps {
                    counts.add(*kind);
                    let run = &of_run.run;
                    names.push(format!(
                        "{} {} {}",
                        run.id(),
                        run.step_id(*ix),
                        kind.as_str()
                    ));
                }
            }
            if counts.total() > before {
                let since = waits.review.updated_at();
                counts.oldest = Some(counts.oldest.map_or(since, |oldest| oldest.min(since)));
            }
        }
        names.sort();
        counts.mark = Some(Digest::of_bytes(names.join("\n").as_bytes()));
        Ok(counts)
    }
}
