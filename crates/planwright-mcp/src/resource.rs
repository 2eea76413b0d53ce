//! Plans and runs as resources: `plan://ID` and `run://ID`.

use crate::answer::Problem;
use crate::call::run_value;
use crate::server::Host;
use planwright_core::briefing::{RenderOptions, render_briefing};
use planwright_core::id::RunId;
use planwright_core::principal::Principal;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde_json::json;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
/// Resources of a list.
const MAX_LISTED: usize = 100;

impl Host {
    pub(crate) async fn list_plans_as_resources(&self) -> Result<ListResourcesResult, Problem> {
        let plans = self.newest_plans(None, MAX_LISTED).await?;
        let resources = plans.into_iter().map(|plan| {
            Resource::new(format!("plan://{}", plan.id), plan.id.clone())
                .with_title(plan.title)
                .with_description(format!("version {}, {}", plan.version, plan.status))
                .with_mime_type(TEXT)
        });
        Ok(ListResourcesResult::with_all_items(resources.collect()))
    }

    pub(crate) fn resource_templates() -> ListResourceTemplatesResult {
        let plan = ResourceTemplate::new("plan://{id}", "plan")
            .with_title("A plan as its approver sees it, and as JSON")
            .with_mime_type(TEXT);
        let run = ResourceTemplate::new("run://{id}", "run")
            .with_title("A run: where its steps stand")
            .with_mime_type(JSON);
        ListResourceTemplatesResult::with_all_items(vec![plan, run])
    }

    /// Reads a resource. Nothing if there is none with this address.
    pub(crate) async fn read_resource_at(
        &self,
        uri: &str,
        viewer: &Principal,
    ) -> Result<Option<ReadResourceResult>, Problem> {
        if let Some(id) = uri.strip_prefix("plan://") {
            return self.read_plan(uri, id, viewer).await.map(Some);
        }
        match uri.strip_prefix("run://").and_then(|id| id.parse().ok()) {
            Some(id) => self.read_run(uri, &id).await.map(Some),
            None => Ok(None),
        }
    }

    async fn read_plan(
        &self,
        uri: &str,
        id: &str,
        viewer: &Principal,
    ) -> Result<ReadResourceResult, Problem> {
        let review = self.load_plan(id).await?;
        let candidate = self.candidate(&review).await?;
        let briefing = self
            .engine
            .briefings()
            .brief(&review, &candidate, viewer)
            .await;
        let lines = render_briefing(&briefing, &RenderOptions::default());
        let lines: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        let status = self.stands(&review).await?;
        let text = format!("{}\n\nstatus: {status}\n", lines.join("\n"));
        let document = json!(review.current().document).to_string();
        Ok(ReadResourceResult::new(vec![
            ResourceContents::text(text, uri).with_mime_type(TEXT),
            ResourceContents::text(document, uri).with_mime_type(JSON),
        ]))
    }

    async fn read_run(&self, uri: &str, id: &RunId) -> Result<ReadResourceResult, Problem> {
        let plan = self.engine.journals().plan_of_run(id).await;
        let plan = plan.map_err(|error| Problem::of(&error))?;
        let loaded = self.engine.plans().load_review(&plan).await;
        let (review, _) = loaded.map_err(|error| Problem::of(&error))?;
        let loaded = self.engine.runs().load_run(id, &review).await;
        let (run, _) = loaded.map_err(|error| Problem::of(&error))?;
        let text = run_value(&self.engine, &run).to_string();
        let contents = ResourceContents::text(text, uri).with_mime_type(JSON);
        Ok(ReadResourceResult::new(vec![contents]))
    }
}
