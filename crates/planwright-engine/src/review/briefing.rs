//! Saying what an approval covers, with the files and models of this machine.

use crate::review::plans::{Candidate, Plans};
use planwright_core::briefing::{
    Briefing, BriefingFacts, CallBriefing, Effect, PlanAuthor, brief_call, brief_plan,
    path_written_by, wanted_files,
};
use planwright_core::model::ModelRole;
use planwright_core::review::{Review, Version};
use serde_json::Value;

impl Plans {
    /// Says what an approval of the plan covers, as it would run now.
    pub async fn brief(&self, review: &Review, candidate: &Candidate) -> Briefing {
        self.brief_version(review.current(), candidate).await
    }

    /// Says what an approval of this version covers.
    async fn brief_version(&self, version: &Version, candidate: &Candidate) -> Briefing {
        let model = version
            .planning
            .as_deref()
            .and_then(|planning| planning.model.clone());
        let author = PlanAuthor {
            by: version.by.clone(),
            model,
        };
        self.brief_candidate(candidate, version.number, Some(author))
            .await
    }

    /// Says what a plan that is not stored would do.
    pub async fn brief_candidate(
        &self,
        candidate: &Candidate,
        version: u32,
        author: Option<PlanAuthor>,
    ) -> Briefing {
        let catalog = self.context.catalog();
        let ports = &self.context.ports;
        let wanted = wanted_files(&candidate.plan, &catalog)
            .into_iter()
            .collect();
        let files = ports.surroundings.current_files(wanted).await;
        let default_model = ports.model.resolve(ModelRole::Executor, None).ok();
        let facts = BriefingFacts {
            version,
            digest: candidate.digest,
            author,
            files,
            default_model: default_model.map(|model| model.name),
            default_timeout: None,
        };
        brief_plan(
            &candidate.plan,
            &catalog,
            &self.context.settings.policy,
            &facts,
        )
    }

    /// Describes a concrete call that an approver is asked about.
    pub async fn brief_call(&self, tool: &str, args: Value) -> (CallBriefing, Effect) {
        let catalog = self.context.catalog();
        let wanted = path_written_by(tool, &args, &catalog).into_iter().collect();
        let files = self.context.ports.surroundings.current_files(wanted).await;
        brief_call(tool, args, &catalog, &files)
    }
}
