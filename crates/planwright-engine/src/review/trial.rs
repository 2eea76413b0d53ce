//! Trying on paper: what is wrong with a plan, what a run or an edit of it would be, and whether an
//! approval would be taken. Nothing is called and nothing is stored.

use crate::context::Context;
use crate::review::given_approval::GivenApproval;
use crate::review::plans::{Candidate, Plans, ReviewError, approval_command};
use planwright_core::digest::Digest;
use planwright_core::plan::{Document, Finding, Plan, PlanDiff, ValidationReport, validate_with};
use planwright_core::policy::{JudgedPlan, LateChoice, Policy, Verdict};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::Review;
use planwright_core::run::{Preview, Shown, preview};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A document that was checked, sound or not.
#[derive(Debug)]
pub struct CheckedDocument {
    /// The plan, if the document can be kept as one.
    pub plan: Option<Plan>,
    /// The digest of the plan, with today's tools.
    pub digest: Option<Digest>,
    /// Everything that was found, errors first.
    pub findings: Vec<Finding>,
}

/// An edit of a plan that is not stored.
#[derive(Debug)]
pub struct EditPreview {
    /// The changes.
    pub diff: PlanDiff,
    /// The digest of the plan with these changes, if it could be kept.
    pub digest: Option<Digest>,
    /// Everything that was found in the plan with these changes.
    pub findings: Vec<Finding>,
}

/// The word of a policy about a plan, step by step.
#[derive(Debug)]
pub struct ExplainedPlan {
    /// The version of the policy that was asked.
    pub policy_version: String,
    /// The verdict on the plan as a whole.
    pub verdict: Verdict,
    /// Every step.
    pub judged: JudgedPlan,
    /// The choices for arguments that are only known later, by step.
    pub late: BTreeMap<String, LateChoice>,
}

/// Trials: questions about a plan that change nothing. See [`crate::Engine::trials`].
#[derive(Debug, Clone)]
pub struct Trials {
    plans: Plans,
}

impl Trials {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self {
            plans: Plans::new(context),
        }
    }

    /// Finds everything that is wrong with a document, at once.
    pub async fn check_document(&self, document: Document) -> Result<CheckedDocument, ReviewError> {
        let plans = match self.plans.known_plans(&document).await {
            Ok(plans) => plans,
            Err(ReviewError::Invalid(findings)) => {
                return Ok(CheckedDocument {
                    plan: None,
                    digest: None,
                    findings,
                });
            }
            Err(error) => return Err(error),
        };
        let catalog = self.plans.context.catalog();
        let settings = &self.plans.context.settings;
        let ValidationReport { plan, mut findings } =
            validate_with(document, &catalog, &plans, &settings.bounds);
        let missing = plan
            .iter()
            .flat_map(|plan| self.plans.missing_executor_findings(plan));
        findings.extend(missing);
        let digest = plan
            .as_ref()
            .map(|plan| plan.digest(&catalog, &settings.policy_version));
        Ok(CheckedDocument {
            plan,
            digest,
            findings,
        })
    }

    /// Goes through a run on paper, if the plan could run at all.
    pub fn preview_run(&self, candidate: &Candidate) -> Result<Preview, ReviewError> {
        self.plans.check_sound(candidate)?;
        let settings = &self.plans.context.settings;
        Ok(preview(
            &candidate.plan,
            &self.plans.context.catalog(),
            &settings.policy,
            &settings.policy_version,
        ))
    }

    /// Says what a plan would be with this document as its next version.
    pub async fn preview_edit(
        &self,
        review: &Review,
        mut document: Document,
        by: &Principal,
    ) -> Result<EditPreview, ReviewError> {
        let diff = PlanDiff::between(&review.current().document, &document);
        // The digest is that of the document as it would be kept.
        self.plans.settle_context(&mut document, by).await?;
        let CheckedDocument {
            digest, findings, ..
        } = self.check_document(document).await?;
        Ok(EditPreview {
            diff,
            digest,
            findings,
        })
    }

    /// Says what the policy, or another one, says about a plan.
    pub fn explain(
        &self,
        candidate: &Candidate,
        chosen: &BTreeMap<String, LateChoice>,
        other: Option<&Policy>,
    ) -> Result<ExplainedPlan, ReviewError> {
        let settings = &self.plans.context.settings;
        let policy = other.unwrap_or(&settings.policy);
        let policy_version = match other {
            None => settings.policy_version.clone(),
            Some(other) => other.version().unwrap_or_default().to_owned(),
        };
        let judged = policy.judge_plan(&candidate.plan, &self.plans.context.catalog());
        judged
            .check_choices(&candidate.plan, chosen)
            .map_err(ReviewError::BadChoice)?;
        Ok(ExplainedPlan {
            policy_version,
            verdict: judged.verdict(),
            late: judged.late_choices(chosen, &policy.late_bound),
            judged,
        })
    }
}

impl Plans {
    /// Refuses a plan that cannot run as it is: its tools have to be there, and it must not have
    /// errors.
    pub fn check_sound(&self, candidate: &Candidate) -> Result<(), ReviewError> {
        let missing = candidate.plan.missing_tools(&self.context.catalog());
        if !missing.is_empty() {
            return Err(ReviewError::MissingTools(missing));
        }
        if candidate.findings.iter().any(Finding::is_error) {
            return Err(ReviewError::Invalid(candidate.findings.clone()));
        }
        Ok(())
    }

    /// Checks that an approval of the plan by this principal would be taken, and says why not.
    /// Nothing is written.
    pub fn check_approval(
        &self,
        review: &Review,
        candidate: &Candidate,
        judged: &JudgedPlan,
        (by, assurance): (&Principal, Assurance),
    ) -> Result<(), ReviewError> {
        self.check_sound(candidate)?;
        let given = GivenApproval::new(Shown::Digest(candidate.digest), by.clone(), assurance);
        let (pins, _) = self.build_pins(&candidate.plan);
        let offer = self.build_offer((candidate, pins), judged, &given, None)?;
        let command = approval_command(candidate, &given, offer);
        review.decide(&command, self.context.ports.clock.now())?;
        Ok(())
    }
}
