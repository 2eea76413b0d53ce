//! Going on after an adjustment: what has to be agreed to, who may, and the run that takes over
//! what was done.

use crate::journal::load::{LoadError, load_review, load_run, plan_of_run};
use crate::review::given_approval::GivenApproval;
use crate::review::plans::{Candidate, ReviewError};
use crate::run::handle::RunHandle;
use crate::run::options::RunOptions;
use crate::run::runs::Runs;
use crate::run::start::StartRunError;
use planwright_core::id::{RunId, StepId};
use planwright_core::plan::{Action, PlanDiff};
use planwright_core::policy::{AdjustmentConsent, LateChoice, Verdict};
use planwright_core::principal::Assurance;
use planwright_core::review::{BuildsOn, Review, steps_already_approved};
use planwright_core::run::{
    Fork, Reflection, Run, RunEvent, RunState, Shown, StepState, carry_over,
};
use planwright_core::status::{CachedStatus, RunStatus};
use std::collections::{BTreeMap, BTreeSet};

/// The things that a run begins with besides its plan.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) fork: Fork,
    /// The entries that are taken over from the run it comes from.
    pub(crate) taken_over: Vec<RunEvent>,
    /// The bounds of the work that goes on.
    pub(crate) reflection: Option<Reflection>,
    /// Steps that people agreed to before, and what they said about their arguments.
    pub(crate) agreed: BTreeSet<String>,
    pub(crate) late: BTreeMap<String, Vec<LateChoice>>,
}

/// The way in which the work of an adjusted run would go on.
#[derive(Debug)]
pub struct Continuation {
    /// The plan with its adjusted version.
    pub review: Review,
    /// The plan as it would continue.
    pub candidate: Candidate,
    /// The version that was agreed to for the run that was adjusted.
    pub since: BuildsOn,
    /// The changes since then.
    pub diff: PlanDiff,
    /// The steps that are just as they were agreed to. None if a tool or the policy changed since,
    /// or if the approver has lost their access.
    pub agreed: Vec<StepId>,
    /// The steps that were tried before and run again as they are.
    pub again: Vec<StepId>,
    /// Those of the agreed steps that wait for nothing that changed or is tried again.
    untouched: Vec<StepId>,
    /// Policy alone may agree to the change.
    pub by_policy: bool,
}

impl Runs {
    /// Finds how the work of this run goes on, if it was adjusted and nothing went on from it yet.
    pub async fn continuation(
        &self,
        source: &RunId,
    ) -> Result<Option<Continuation>, StartRunError> {
        let (review, run, _) = self.load_run_with_review(source).await?;
        self.continuation_of(&run, review).await
    }

    async fn continuation_of(
        &self,
        run: &Run,
        review: Review,
    ) -> Result<Option<Continuation>, StartRunError> {
        let is_latest = review
            .runs()
            .last()
            .is_some_and(|opened| opened.run == *run.id());
        if !matches!(run.state(), RunState::Adjusted { .. }) || !is_latest {
            return Ok(None);
        }
        let candidate = self.check_runnable(&review, &run.start().variables).await?;
        let since = BuildsOn {
            version: run.start().version,
            digest: run.start().digest,
        };
        let before = self.plans().load_version(&review, since.version).await?;
        let before = before.unwrap_or_else(|| review.current().clone());
        let diff = PlanDiff::between(&before.document, &review.current().document);
        let is_other = |step: &StepId| {
            diff.steps
                .iter()
                .any(|change| change.executable && change.id == *step)
        };
        let again: Vec<StepId> = again(run, &candidate)
            .into_iter()
            .filter(|step| !is_other(step))
            .collect();
        let unchanged = match self.plans().rests_on_lost_approval(run, &review).await? {
            true => Vec::new(),
            false => self.unchanged_since(run, &candidate).await?,
        };
        let agreed: Vec<StepId> = unchanged
            .into_iter()
            .filter(|step| !again.contains(step))
            .collect();
        let untouched = untouched(&candidate, &agreed);
        let by_policy =
            review.lost_safeguards().is_none() && self.may_policy_agree(&candidate, &untouched);
        Ok(Some(Continuation {
            review,
            candidate,
            since,
            diff,
            agreed,
            again,
            untouched,
            by_policy,
        }))
    }

    /// The steps that are as they were when the run was agreed to. None if a tool or the policy
    /// changed since.
    async fn unchanged_since(
        &self,
        run: &Run,
        candidate: &Candidate,
    ) -> Result<Vec<StepId>, StartRunError> {
        let document = (**run.plan().document()).clone();
        Ok(match self.plans().compile(document).await {
            Ok(earlier) if earlier.digest == run.start().digest => steps_already_approved(
                (&earlier.plan, &self.plans().judge(&earlier.plan)),
                (&candidate.plan, &self.plans().judge(&candidate.plan)),
            ),
            Ok(_) | Err(ReviewError::Invalid(_)) => Vec::new(),
            Err(error) => return Err(error.into()),
        })
    }

    /// Returns whether everything that is not agreed to yet only reads, and policy allows it. A
    /// step that waits for something that changed counts as one of those: its approver agreed to
    /// what was to come before it.
    fn may_policy_agree(&self, candidate: &Candidate, agreed: &[StepId]) -> bool {
        if self.context.settings.policy.adjust != AdjustmentConsent::Auto {
            return false;
        }
        let plan = &candidate.plan;
        let catalog = self.context.catalog();
        let judged = self.plans().judge(plan);
        plan.indices()
            .filter(|&ix| !agreed.contains(plan.step_id(ix)))
            .all(|ix| {
                let step = plan.step(ix);
                let reads = match step.action() {
                    Some(Action::Tool { name, .. }) => {
                        catalog.resolve(name).is_ok_and(|tool| tool.is_read_only())
                    }
                    Some(
                        Action::Think(_) | Action::Agent(_) | Action::Input(_) | Action::Plan(_),
                    )
                    | None => false,
                };
                let judged = &judged.steps[ix.index()];
                let allowed = judged.judgement.verdict == Verdict::Allow && step.undo.is_none();
                // Leaving a step out can make a success of a failure, so that is for people.
                let is_plain = !step.skip && !step.receives_secrets();
                reads && allowed && is_plain && judged.judgement.undecided.is_empty()
            })
    }

    /// The approval that policy gives to the change, if it may.
    pub fn approval_by_policy(&self, continuation: &Continuation) -> Option<GivenApproval> {
        continuation.by_policy.then(|| {
            let shown = Shown::Digest(continuation.candidate.digest);
            GivenApproval::new(
                shown,
                self.context.settings.policy.principal(),
                Assurance::Policy,
            )
        })
    }

    /// Begins the run in which the work of an adjusted run goes on. It takes over what was done,
    /// and its budgets are what was left. Needs an approval like any run: one that is there, one
    /// that comes with the order, or policy's where that is enough.
    pub async fn continue_adjusted(
        &self,
        source: &RunId,
        mut options: RunOptions,
    ) -> Result<RunHandle, StartRunError> {
        let plan = plan_of_run(&*self.context.ports.store, source).await?;
        let (review, head) = load_review(&*self.context.ports.store, &plan).await?;
        let (run, _) = load_run(
            &*self.context.ports.store,
            source,
            &review,
            &self.context.settings.bounds,
        )
        .await?;
        let status = run.status();
        let nothing = || StartRunError::Ended {
            run: source.clone(),
            status,
        };
        let reflection = run.reflection().continuation().ok_or_else(nothing)?;
        let continuation = self
            .continuation_of(&run, review.clone())
            .await?
            .ok_or_else(nothing)?;
        options.variables = run.start().variables.clone();
        options.max_concurrency = Some(run.start().max_concurrency);
        options.guards = run.start().guards;
        options.trace = options.trace.or_else(|| run.start().trace);
        let now = self.context.ports.clock.now();
        let is_approved = review
            .usable_approvals(&continuation.candidate.digest, now)
            .is_some();
        if options.approval.is_none() && !is_approved {
            options.approval = self.approval_by_policy(&continuation);
        }
        let candidate = continuation.candidate;
        let taken_over = carry_over(&run, &candidate.plan);
        let again = continuation
            .again
            .iter()
            .cloned()
            .chain(changed(&continuation.diff));
        let (agreed, late) = agreed_before(&run, &continuation.untouched);
        let origin = Origin {
            fork: Fork {
                run: source.clone(),
                from: again.collect::<BTreeSet<_>>().into_iter().collect(),
            },
            taken_over,
            reflection: Some(reflection),
            agreed,
            late,
        };
        self.open(review, head, candidate, options, Some(origin))
            .await
    }

    /// The latest run of a plan, if the plan was adjusted after it and nothing went on from it yet.
    pub async fn adjusted_run(&self, review: &Review) -> Result<Option<RunId>, LoadError> {
        let Some(opened) = review.runs().last() else {
            return Ok(None);
        };
        let stream = planwright_core::journal::StreamName::Run(opened.run.clone());
        let info = self.context.ports.store.info(&stream).await?;
        Ok(info
            .filter(|info| info.status.status == CachedStatus::Run(RunStatus::Adjusted))
            .map(|_| opened.run.clone()))
    }
}

/// Steps that did not succeed and are in the plan as they were: they are tried again.
fn again(run: &Run, candidate: &Candidate) -> Vec<StepId> {
    let plan = &candidate.plan;
    let tried = |id: &StepId| {
        let ix = run.plan().find(id.as_str())?;
        let failed = matches!(
            run.step(ix),
            StepState::Failed { .. } | StepState::Denied { .. }
        );
        let called = run.step(ix).tally().attempts > 0 && run.step(ix).value().is_none();
        (failed || called).then_some(())
    };
    plan.indices()
        .filter(|&ix| !plan.step(ix).skip)
        .map(|ix| plan.step_id(ix).clone())
        .filter(|id| tried(id).is_some())
        .collect()
}

/// The agreed steps that depend, directly or through others, only on agreed steps.
fn untouched(candidate: &Candidate, agreed: &[StepId]) -> Vec<StepId> {
    let plan = &candidate.plan;
    let agreed = agreed.iter().collect::<BTreeSet<_>>();
    let mut touched = BTreeSet::new();
    let mut left = Vec::new();
    for &ix in plan.graph().order() {
        let below = plan
            .graph()
            .dependencies(ix)
            .iter()
            .any(|dependency| touched.contains(dependency));
        if below || !agreed.contains(plan.step_id(ix)) {
            touched.insert(ix);
        } else {
            left.push(plan.step_id(ix).clone());
        }
    }
    left
}

/// Steps that are new or other than they were.
fn changed(diff: &PlanDiff) -> impl Iterator<Item = StepId> + '_ {
    diff.steps.iter().map(|change| change.id.clone())
}

/// Finds what people agreed to for the earlier run and still holds.
fn agreed_before(
    run: &Run,
    unchanged: &[StepId],
) -> (BTreeSet<String>, BTreeMap<String, Vec<LateChoice>>) {
    let Some(consent) = run.start().consent.as_deref() else {
        return Default::default();
    };
    let steps = unchanged.iter().map(ToString::to_string);
    let agreed: BTreeSet<String> = steps
        .filter(|step| consent.is_a_persons_for(step))
        .collect();
    let late = consent
        .late
        .iter()
        .filter(|(step, _)| agreed.contains(*step));
    let late = late
        .map(|(step, choices)| (step.clone(), choices.clone()))
        .collect();
    (agreed, late)
}
