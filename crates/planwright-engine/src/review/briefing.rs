//! Saying what an approval covers, with the files and models of this machine.

use crate::context::Context;
use crate::redaction::entry_text::mask_text;
use crate::redaction::learning::learn_secrets;
use crate::review::plans::Candidate;
use planwright_core::briefing::{
    Briefing, BriefingFacts, CallBriefing, CurrentContent, CurrentFile, Effect, PlanAuthor,
    brief_call, brief_plan, path_written_by, wanted_files,
};
use planwright_core::model::ModelRole;
use planwright_core::policy::Permission;
use planwright_core::principal::{Principal, PrincipalKind};
use planwright_core::review::Review;
use planwright_core::secret::SecretName;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Briefings: what an approver reads before an approval. See [`crate::Engine::briefings`].
#[derive(Debug, Clone)]
pub struct Briefings {
    context: Arc<Context>,
}

impl Briefings {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self {
            context: Arc::clone(context),
        }
    }

    /// Says what an approval of the plan covers, as it would run now, to this viewer.
    pub async fn brief(
        &self,
        review: &Review,
        candidate: &Candidate,
        viewer: &Principal,
    ) -> Briefing {
        let version = review.current();
        let planning = version.planning.as_deref();
        let author = PlanAuthor {
            by: version.by.clone(),
            model: planning.and_then(|planning| planning.model.clone()),
        };
        self.brief_candidate(candidate, version.number, Some(author), viewer)
            .await
    }

    /// Says what every step of a plan does to the world, without looking at the files of this
    /// machine.
    pub fn brief_effects(&self, review: &Review, candidate: &Candidate) -> Briefing {
        let facts = BriefingFacts {
            version: review.current().number,
            digest: candidate.digest,
            author: None,
            files: BTreeMap::new(),
            default_model: None,
            default_timeout: Some(self.context.settings.call_timeout),
        };
        let catalog = self.context.catalog();
        brief_plan(
            &candidate.plan,
            &catalog,
            &self.context.settings.policy,
            &facts,
        )
    }

    /// Says what a plan that is not stored would do.
    pub async fn brief_candidate(
        &self,
        candidate: &Candidate,
        version: u32,
        author: Option<PlanAuthor>,
        viewer: &Principal,
    ) -> Briefing {
        let plan = &candidate.plan;
        let catalog = self.context.catalog();
        let wanted = wanted_files(plan, &catalog);
        let files = self.read_files(wanted, plan.all_secrets(), viewer).await;
        let model = self.context.ports.model.resolve(ModelRole::Executor, None);
        let facts = BriefingFacts {
            version,
            digest: candidate.digest,
            author,
            files,
            default_model: model.ok().map(|model| model.name),
            default_timeout: Some(self.context.settings.call_timeout),
        };
        brief_plan(plan, &catalog, &self.context.settings.policy, &facts)
    }

    /// Describes a concrete call that an approver is asked about.
    pub async fn brief_call(
        &self,
        tool: &str,
        args: Value,
        viewer: &Principal,
    ) -> (CallBriefing, Effect) {
        let catalog = self.context.catalog();
        let wanted = path_written_by(tool, &args, &catalog).into_iter().collect();
        let files = self.read_files(wanted, BTreeSet::new(), viewer).await;
        brief_call(tool, args, &catalog, &files)
    }

    /// Reads the files that would be written, secrets masked. Only a person who may approve sees
    /// them: a plan is no way to read a file that its author may not read.
    async fn read_files(
        &self,
        paths: BTreeSet<String>,
        secrets: BTreeSet<SecretName>,
        viewer: &Principal,
    ) -> BTreeMap<String, CurrentFile> {
        let roles = &self.context.settings.policy.roles;
        let may_see =
            viewer.kind == PrincipalKind::Person && roles.permits(viewer, Permission::Approve);
        if paths.is_empty() || !may_see {
            return BTreeMap::new();
        }
        let ports = &self.context.ports;
        let wanted = paths.into_iter().collect();
        let mut files = ports.surroundings.current_files(wanted).await;
        learn_secrets(&*ports.secrets, &self.context.redaction, secrets).await;
        let redactor = self.context.redaction.redactor();
        for file in files.values_mut() {
            if let CurrentContent::Text(text) = &mut file.content {
                mask_text(&redactor, text);
            }
        }
        files
    }
}
