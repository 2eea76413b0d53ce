//! The review inside a client that shows pages of servers (MCP Apps): what an approver has to see,
//! with buttons that a person presses.
//!
//! A result about a plan that waits for a decision carries the review in the part that clients hand
//! to the page and keep from the model. With it comes a nonce that counts once, for that plan and
//! that digest: `plan_decide`, which only the page may call, is nothing without it.

use crate::answer::{Problem, success};
use crate::call::{Done, ToolCall, object, text};
use crate::question::decision_in;
use crate::server::Host;
use crate::tool::PlanCall;
use planwright_core::review::Review;
use planwright_core::status::PlanStatus;
use planwright_engine::Candidate;
use rmcp::model::{
    CallToolResult, MetaObject, ReadResourceResult, Resource, ResourceContents, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

/// The page, as a resource.
const PAGE: &str = "ui://planwright/review";
const MEDIA_TYPE: &str = "text/html;profile=mcp-app";
/// What clients call the ability to show pages.
const EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The name of the review in a result.
const REVIEW: &str = "planwright/review";
/// All of the page: it fetches nothing.
const HTML: &str = include_str!("review.html");

/// Returns whether the client shows pages.
pub(crate) fn shows_pages(context: &RequestContext<RoleServer>) -> bool {
    let capabilities = context.client_capabilities();
    let extensions = capabilities.and_then(|client| client.extensions);
    let kinds = extensions.and_then(|all| all.get(EXTENSION)?.get("mimeTypes").cloned());
    let kinds = kinds.as_ref().and_then(Value::as_array);
    kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == MEDIA_TYPE))
}

/// The page in a list of resources.
pub(crate) fn page_resource() -> Resource {
    Resource::new(PAGE, "review")
        .with_title("The review of a plan")
        .with_mime_type(MEDIA_TYPE)
}

/// The page itself, if that is what the address names.
pub(crate) fn read_page(uri: &str) -> Option<ReadResourceResult> {
    (uri == PAGE).then(|| {
        let contents = ResourceContents::text(HTML, PAGE).with_mime_type(MEDIA_TYPE);
        ReadResourceResult::new(vec![contents])
    })
}

/// The tools for a client that shows pages: those with a review say so, and one more decides.
pub(crate) fn tools_with_page() -> Vec<Tool> {
    let decide = PlanCall::Decide.definition();
    let decide = with_meta(decide, json!({ "visibility": ["app"] }));
    let others = PlanCall::ALL.into_iter().map(|tool| {
        let definition = tool.definition();
        match tool.has_review() {
            true => with_meta(definition, json!({ "resourceUri": PAGE })),
            false => definition,
        }
    });
    others.chain([decide]).collect()
}

fn with_meta(mut tool: Tool, ui: Value) -> Tool {
    tool.meta = Some(MetaObject(object(json!({ "ui": ui }))));
    tool
}

impl Host {
    /// Adds the review to a result about a plan, if the plan waits for a decision and the client
    /// shows pages.
    pub(crate) async fn with_review(
        &self,
        call: &ToolCall,
        (review, candidate): (&Review, &Candidate),
        mut result: CallToolResult,
    ) -> CallToolResult {
        if !call.has_page || self.stands(review).await.ok() != Some(PlanStatus::Proposed) {
            return result;
        }
        if let Some(shown) = call.person.show_review(review, candidate).await {
            let meta = result.meta.get_or_insert_with(MetaObject::new);
            meta.0.insert(REVIEW.to_owned(), shown);
        }
        result
    }

    /// Records what a person decided on the page.
    pub(crate) async fn decide(&self, call: &ToolCall) -> Done {
        let review = self.load(call).await?;
        let nonce = text(call, "nonce").unwrap_or_default();
        let shown = call.person.take_shown(nonce, review.id());
        let candidate = self.candidate(&review).await?;
        if shown != Some(candidate.digest) {
            let error = "what was shown is not what would run, or it was decided already";
            return Err(Problem::new(error).next("plan_get shows the plan anew"));
        }
        let decision = decision_in(|name| call.args.get(name));
        let plan = (&review, &candidate);
        let status = self.record_decision(call, plan, &decision).await?;
        let fields = json!({
            "planId": review.id(), "recorded": text(call, "decision"), "status": status,
        });
        Ok(success(object(fields), "tell the agent to go on"))
    }
}
