//! Proposing, approving, rejecting and deleting plans, and looking at them.

use crate::context::Context;
use crate::journal::load::{LoadError, latest_run_status, load_review, load_version, plan_status};
use crate::journal::recent::load_recent_review;
use crate::port::{AppendError, ArtifactError};
use crate::review::given_approval::GivenApproval;
use planwright_core::digest::Digest;
use planwright_core::id::PlanId;
use planwright_core::journal::Head;
use planwright_core::plan::{
    Code, Document, EditError, Finding, KnownPlan, KnownPlans, Plan, PlanDiff, Subplans,
    ValidationReport, validate_with,
};
use planwright_core::policy::{JudgedPlan, JudgedStep, LateChoice, Permission, PolicyDenial};
use planwright_core::principal::{Assurance, Principal, PrincipalKind};
use planwright_core::review::{
    Offer, Pin, PlanningRecord, Review, ReviewCommand, ReviewEvent, ReviewRefusal, ReviewStage,
    ReviewState, Version,
};
use planwright_core::run::Shown;
use planwright_core::status::{PlanStatus, RunStatus};
use planwright_core::trace::TraceId;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The reason a request about a plan was not carried out. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The plan cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The core refuses the command.
    #[error(transparent)]
    Refused(#[from] ReviewRefusal),
    /// The plan has errors, listed as findings.
    #[error("the plan is not valid")]
    Invalid(Vec<Finding>),
    /// The edit cannot be applied.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The edited document names another plan.
    #[error("the edited plan has the id `{found}`, the plan is `{plan}`")]
    OtherPlan {
        /// The plan that is edited.
        plan: PlanId,
        /// The id in the document.
        found: PlanId,
    },
    /// These tools are not available, so the plan could not run.
    #[error("Required tools not available: {}", .0.join(", "))]
    MissingTools(Vec<String>),
    /// A rule of the policy forbids a step.
    #[error(transparent)]
    Denied(#[from] PolicyDenial),
    /// A choice about late-bound arguments does not fit the plan, in words.
    #[error("{0}")]
    BadChoice(String),
    /// The principal has brought as much into the store as one may.
    #[error("{by} has brought {} MiB into the store, and may bring no more", .limit >> 20)]
    StoredTooMuch {
        /// The principal who would bring more.
        by: Principal,
        /// Bytes that one principal may bring.
        limit: u64,
    },
    /// A large value could not be read or stored.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// The decision could not be written.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// The options with which a document is stored.
#[derive(Debug, Clone, Default)]
pub struct StoreOptions {
    /// Stores a draft, which waits for its author and not for an approver.
    pub draft: bool,
    /// The trace of the request that brought the document.
    pub trace: Option<TraceId>,
    /// Records how a planner wrote the document.
    pub planning: Option<Box<PlanningRecord>>,
}

impl StoreOptions {
    /// Stores the document as a draft.
    pub fn draft() -> Self {
        Self {
            draft: true,
            ..Self::default()
        }
    }
}

/// A plan as it would run now: its variables applied, its digest taken over today's tools.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The compiled plan.
    pub plan: Arc<Plan>,
    /// The digest that an approval of it is bound to.
    pub digest: Digest,
    /// Warnings, and errors that the caller has decided to tolerate.
    pub findings: Vec<Finding>,
}

/// A plan as it was loaded, compiled and judged to be shown to a person who decides on it.
#[derive(Debug)]
pub struct ShownPlan {
    /// The plan with its review.
    pub review: Review,
    /// Where its journal ended.
    pub head: Head,
    /// The plan as it would run.
    pub candidate: Candidate,
    /// The judgement of the policy about each step.
    pub judged: JudgedPlan,
}

/// Builds the command that records an approval of a plan.
pub(crate) fn approval_command(
    candidate: &Candidate,
    given: &GivenApproval,
    offer: Offer,
) -> ReviewCommand {
    let GivenApproval {
        shown,
        by,
        assurance,
        late: _,
    } = given.clone();
    ReviewCommand::Approve {
        shown,
        digest: candidate.digest,
        by,
        assurance,
        offer: Box::new(offer),
    }
}

/// The review life of plans: proposing, editing, discussing, approving, putting away.
///
/// Cheap to clone: it shares the engine's context.
///
/// ```
/// # use planwright_engine::{Engine, FunctionTools};
/// # use std::sync::Arc;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder(Arc::new(FunctionTools::new())).build();
/// let document = planwright_core::plan::Document::read(
///     br#"{"title": "A note", "steps": []}"#,
///     &planwright_core::plan::Bounds::default(),
/// )?;
/// let author = planwright_core::principal::Principal::person("ada");
/// let (review, _) = engine.plans().draft(document, &author).await?;
/// assert_eq!(review.current().number, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Plans {
    pub(crate) context: Arc<Context>,
}

impl Plans {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self {
            context: Arc::clone(context),
        }
    }

    /// Stores a document as a new plan or as the next version of a known one. The same content
    /// again changes nothing. Findings that more knowledge can mend (a tool that is not there yet)
    /// do not stand in the way of proposing. A document without an id gets one from its content, so
    /// that the same file is the same plan.
    pub async fn propose(
        &self,
        document: Document,
        by: &Principal,
    ) -> Result<(Review, Vec<Finding>), ReviewError> {
        self.store_document(document, by, StoreOptions::default())
            .await
    }

    /// Stores a document as [`Plans::propose`] does, as a proposal or as a draft.
    pub async fn store_document(
        &self,
        mut document: Document,
        by: &Principal,
        options: StoreOptions,
    ) -> Result<(Review, Vec<Finding>), ReviewError> {
        let StoreOptions {
            draft,
            trace,
            planning,
        } = options;
        self.permit(by, Permission::Propose)?;
        let parts = self.settle_context(&mut document, by).await?;
        let Candidate {
            plan,
            digest,
            findings,
        } = self.compile(document).await?;
        let document = Arc::clone(plan.document());
        let by = by.clone();
        let now = self.context.ports.clock.now();
        let completed = |event: ReviewEvent| event.traced(trace).planned(planning.clone());
        let review = match load_review(&*self.context.ports.store, plan.id()).await {
            Ok((review, head)) => {
                let command = match draft {
                    true => ReviewCommand::Draft {
                        document,
                        digest,
                        by,
                    },
                    false => ReviewCommand::Propose {
                        document,
                        digest,
                        by,
                    },
                };
                let events = review.decide(&command, now)?;
                let events: Vec<_> = events.into_iter().map(completed).collect();
                self.keep_parts(&events, parts).await?;
                self.append_review(review, head, (now, events)).await?
            }
            Err(LoadError::NoSuchPlan(id)) => {
                let first = match draft {
                    true => Review::draft_first(document, digest, by),
                    false => Review::propose_first(document, digest, by),
                };
                let first = completed(first);
                self.keep_parts(std::slice::from_ref(&first), parts).await?;
                self.open_review(&id, now, first).await?
            }
            Err(error) => return Err(error.into()),
        };
        Ok((review, findings))
    }

    /// Agrees to what was shown. Tools the plan needs must be there, and it must have no errors: a
    /// plan that cannot run cannot be approved.
    pub async fn approve(
        &self,
        id: &PlanId,
        variables: &Map<String, Value>,
        shown: Shown,
        by: &Principal,
        assurance: Assurance,
    ) -> Result<Review, ReviewError> {
        let given = GivenApproval {
            shown,
            by: by.clone(),
            assurance,
            late: BTreeMap::new(),
        };
        self.approve_on_terms(id, variables, &given).await
    }

    /// Agrees to what was shown, and says what holds for arguments that are only known later.
    pub async fn approve_on_terms(
        &self,
        id: &PlanId,
        variables: &Map<String, Value>,
        given: &GivenApproval,
    ) -> Result<Review, ReviewError> {
        let (review, head) = load_review(&*self.context.ports.store, id).await?;
        let shown_plan = self.compile_shown_plan(review, head, variables).await?;
        self.approve_as_loaded(shown_plan, given).await
    }

    /// Compiles and judges a plan that was loaded, for a person who decides on it.
    pub async fn compile_shown_plan(
        &self,
        review: Review,
        head: Head,
        variables: &Map<String, Value>,
    ) -> Result<ShownPlan, ReviewError> {
        let candidate = self.candidate(&review, variables).await?;
        let judged = self.judge(&candidate.plan);
        Ok(ShownPlan {
            review,
            head,
            candidate,
            judged,
        })
    }

    /// Agrees to what the caller has loaded, compiled and judged to show it: nothing of that is
    /// done again, unless the plan has changed meanwhile.
    pub async fn approve_shown_plan(
        &self,
        shown_plan: ShownPlan,
        variables: &Map<String, Value>,
        given: &GivenApproval,
    ) -> Result<Review, ReviewError> {
        let id = shown_plan.review.id().clone();
        match self.approve_as_loaded(shown_plan, given).await {
            // Another process wrote to the plan since it was loaded. What was shown decides: an
            // approval of another version is refused.
            Err(ReviewError::Append(AppendError::Conflict { .. })) => {
                self.approve_on_terms(&id, variables, given).await
            }
            done => done,
        }
    }

    async fn approve_as_loaded(
        &self,
        shown_plan: ShownPlan,
        given: &GivenApproval,
    ) -> Result<Review, ReviewError> {
        let ShownPlan {
            review,
            head,
            candidate,
            judged,
        } = shown_plan;
        let (review, head) = self.without_lost_approvals(review, head).await?;
        self.check_sound(&candidate)?;
        let command = self
            .build_approval((&review, &candidate), &judged, given, None)
            .await?;
        self.write_review(review, head, &command).await
    }

    /// Builds the command that records an approval: what the policy says of the plan, its tools
    /// pinned. Where people `agreed` to some steps before, policy may agree to the rest.
    pub(crate) async fn build_approval(
        &self,
        (review, candidate): (&Review, &Candidate),
        judged: &JudgedPlan,
        given: &GivenApproval,
        agreed: Option<&BTreeSet<String>>,
    ) -> Result<ReviewCommand, ReviewError> {
        if let Some(denied) = judged.denial() {
            return Err(denied.into());
        }
        let without_inputs = match given.shown {
            Shown::Version(_) => Box::pin(self.digest_without_inputs(review, candidate)).await?,
            Shown::Digest(_) => None,
        };
        let pins = self.pins(&candidate.plan).await?;
        let mut offer = self.build_offer((candidate, pins), judged, given, agreed)?;
        offer.without_inputs = without_inputs;
        Ok(approval_command(candidate, given, offer))
    }

    /// Returns what the version says by itself, where inputs were given.
    async fn digest_without_inputs(
        &self,
        review: &Review,
        candidate: &Candidate,
    ) -> Result<Option<Digest>, ReviewError> {
        let written = &review.current().document;
        if candidate.plan.document() == written {
            return Ok(None);
        }
        let compiled = self.compile(Document::clone(written)).await?;
        Ok(Some(compiled.digest))
    }

    /// Builds what an approval of a plan with these pins is given on.
    pub(crate) fn build_offer(
        &self,
        (candidate, pins): (&Candidate, BTreeMap<String, Pin>),
        judged: &JudgedPlan,
        given: &GivenApproval,
        agreed: Option<&BTreeSet<String>>,
    ) -> Result<Offer, ReviewError> {
        let is_new =
            |step: &&JudgedStep| agreed.is_none_or(|agreed| !agreed.contains(step.step.as_str()));
        if let Some(denied) = judged.denial() {
            return Err(denied.into());
        }
        judged
            .check_choices(&candidate.plan, &given.late)
            .map_err(ReviewError::BadChoice)?;
        let policy = &self.context.settings.policy;
        Ok(Offer {
            policy: Arc::clone(policy),
            asks_about: judged
                .asked_steps()
                .find(is_new)
                .map(|step| step.step.to_string()),
            pins,
            late: judged.late_choices(&given.late, &policy.late_bound),
            // Policy agrees to the change alone; a run of everything is another matter.
            only_to_go_on: agreed.is_some() && given.by.kind == PrincipalKind::Policy,
            without_inputs: None,
        })
    }

    /// Judges every step of a plan by the policy, on what is known before it runs.
    pub fn judge(&self, plan: &Plan) -> JudgedPlan {
        self.context
            .settings
            .policy
            .judge_plan(plan, &self.context.catalog())
    }

    /// Returns what holds for late arguments when an approver agrees without a choice of their own:
    /// what an executor wants and what cannot be repeated is asked about once it is known.
    pub fn careful_choices(&self, candidate: &Candidate) -> BTreeMap<String, LateChoice> {
        let judged = self.judge(&candidate.plan);
        let default = &self.context.settings.policy.late_bound;
        judged.careful_choices(&candidate.plan, &self.context.catalog(), default)
    }

    /// Refuses what the policy does not let this principal do.
    pub(crate) fn permit(&self, by: &Principal, action: Permission) -> Result<(), ReviewRefusal> {
        if self.context.settings.policy.roles.permits(by, action) {
            return Ok(());
        }
        Err(planwright_core::run::Refusal::MayNot {
            by: by.clone(),
            action,
        }
        .into())
    }

    /// Rejects what was shown, for a reason.
    pub async fn reject(
        &self,
        id: &PlanId,
        shown: Shown,
        by: &Principal,
        reason: &str,
    ) -> Result<Review, ReviewError> {
        if !self
            .context
            .settings
            .policy
            .roles
            .permits(by, Permission::Approve)
        {
            return Err(
                ReviewRefusal::from(planwright_core::run::Refusal::MayNotApprove(by.clone()))
                    .into(),
            );
        }
        let (review, head) = load_review(&*self.context.ports.store, id).await?;
        let candidate = self.candidate(&review, &Map::new()).await?;
        let command = ReviewCommand::Reject {
            shown,
            digest: candidate.digest,
            by: by.clone(),
            reason: reason.to_owned(),
        };
        self.write_review(review, head, &command).await
    }

    /// Deletes a plan, unless a run of it is executing. Its journal remains.
    pub async fn delete(&self, id: &PlanId, by: &Principal) -> Result<Review, ReviewError> {
        self.permit(by, Permission::Delete)?;
        let (review, head) = load_review(&*self.context.ports.store, id).await?;
        let executing = self.status(&review).await?.is_executing();
        self.write_review(
            review,
            head,
            &ReviewCommand::Delete {
                by: by.clone(),
                executing,
            },
        )
        .await
    }

    /// The current version as it would run now. Structural errors are refused; the rest is for the
    /// caller to judge.
    pub async fn candidate(
        &self,
        review: &Review,
        variables: &Map<String, Value>,
    ) -> Result<Candidate, ReviewError> {
        self.compile(review.current().document.with_variables(variables))
            .await
    }

    /// Compiles and checks a document against today's tools and the plans it runs as they are
    /// today.
    pub async fn compile(&self, document: Document) -> Result<Candidate, ReviewError> {
        let plans = self.known_plans(&document).await?;
        let catalog = self.context.catalog();
        let ValidationReport { plan, findings } =
            validate_with(document, &catalog, &plans, &self.context.settings.bounds);
        match plan {
            Some(plan) if !findings.iter().any(|finding| finding.code.blocks_import()) => {
                let digest = plan.digest(&catalog, &self.context.settings.policy_version);
                let mut findings = findings;
                findings.extend(self.missing_executor_findings(&plan));
                Ok(Candidate {
                    plan: Arc::new(plan),
                    digest,
                    findings,
                })
            }
            Some(_) | None => Err(ReviewError::Invalid(findings)),
        }
    }

    /// The stored plans that a document runs, directly or through others. Those that are not there,
    /// or that a person rejected, are left out.
    pub async fn known_plans(&self, document: &Document) -> Result<KnownPlans, ReviewError> {
        let mut known = KnownPlans::default();
        let mut left: BTreeSet<PlanId> = document.subplan_ids().into_iter().cloned().collect();
        let mut seen = BTreeSet::new();
        while let Some(id) = left.pop_first() {
            if !seen.insert(id.clone()) {
                continue;
            }
            if seen.len() > KnownPlans::MAX_PLANS {
                let limit = KnownPlans::MAX_PLANS;
                let message = format!(
                    "the plan runs more than {limit} other plans, directly or through others"
                );
                return Err(ReviewError::Invalid(vec![Finding::new(
                    Code::PlanCycle,
                    "/steps",
                    message,
                )]));
            }
            let review = match self.load_review(&id).await {
                Ok((review, _)) => review,
                Err(LoadError::NoSuchPlan(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            match review.state() {
                // No person touched an expired one; that says nothing against it.
                ReviewState::Active(
                    ReviewStage::Proposed | ReviewStage::Approved | ReviewStage::Expired,
                ) => {}
                ReviewState::Active(
                    ReviewStage::Draft
                    | ReviewStage::Rejected
                    | ReviewStage::NeedsReview
                    | ReviewStage::ChangesRequested,
                )
                | ReviewState::Archived(_)
                | ReviewState::Deleted => continue,
            }
            let version = review.current().number;
            let document = Arc::clone(&review.current().document);
            left.extend(document.subplan_ids().into_iter().cloned());
            let needs_person = review.lost_safeguards().map(|lost| lost.to_string());
            known.insert(
                id,
                KnownPlan {
                    version,
                    document,
                    needs_person,
                },
            );
        }
        Ok(known)
    }

    /// The sub-plans of a document, compiled, as they are today.
    pub(crate) async fn subplans(&self, document: &Document) -> Result<Subplans, ReviewError> {
        if document.subplan_ids().is_empty() {
            return Ok(Subplans::default());
        }
        let plans = self.known_plans(document).await?;
        let validated = validate_with(
            document.clone(),
            &self.context.catalog(),
            &plans,
            &self.context.settings.bounds,
        );
        Ok(validated
            .plan
            .map(|plan| plan.subplans().clone())
            .unwrap_or_default())
    }

    /// Returns where a plan stands, over its review and its latest run.
    pub async fn status(&self, review: &Review) -> Result<PlanStatus, LoadError> {
        let Context {
            ports, settings, ..
        } = &*self.context;
        plan_status(&*ports.store, review, &settings.bounds).await
    }

    /// Returns the status of the plan's latest run.
    pub(crate) async fn latest_run_status(
        &self,
        review: &Review,
    ) -> Result<Option<RunStatus>, LoadError> {
        let Context {
            ports, settings, ..
        } = &*self.context;
        latest_run_status(&*ports.store, review, &settings.bounds).await
    }

    /// Reads a version of a plan with its content; nothing if the plan has none with this number.
    pub async fn load_version(
        &self,
        review: &Review,
        number: u32,
    ) -> Result<Option<Version>, LoadError> {
        load_version(&*self.context.ports.store, review, number).await
    }

    /// Compares two versions of a plan.
    pub async fn diff(&self, review: &Review, from: u32, to: u32) -> Result<PlanDiff, ReviewError> {
        let from = self.find_version(review, from).await?;
        let to = self.find_version(review, to).await?;
        Ok(PlanDiff::between(&from.document, &to.document))
    }

    /// Reads a version of a plan that has to be there.
    pub(crate) async fn find_version(
        &self,
        review: &Review,
        number: u32,
    ) -> Result<Version, ReviewError> {
        let found = self.load_version(review, number).await?;
        Ok(found.ok_or(ReviewRefusal::NoSuchVersion(number))?)
    }

    /// Folds the journal of a plan, and returns its head too.
    pub async fn load_review(&self, id: &PlanId) -> Result<(Review, Head), LoadError> {
        let store = &*self.context.ports.store;
        load_recent_review(store, &self.context.reviews, id).await
    }
}
