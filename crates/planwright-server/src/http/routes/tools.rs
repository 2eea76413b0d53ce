//! The tools that plans can use.

use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use planwright_api::ToolLine;
use planwright_core::tool::KnownTool;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default().routes(routes!(list_tools))
}

/// Lists the tools that plans can use now.
#[utoipa::path(get, path = "/tools", operation_id = "listTools", tag = "tools",
    responses((status = 200, description = "The tools, with their schemas.", body = Vec<ToolLine>)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn list_tools(State(http): State<Http>) -> Json<Vec<ToolLine>> {
    Json(
        http.service
            .engine
            .catalog()
            .iter()
            .map(|tool| line(tool))
            .collect(),
    )
}

fn line(tool: &KnownTool) -> ToolLine {
    let definition = &tool.definition;
    ToolLine {
        server: tool.name.server.to_string(),
        name: tool.name.tool.to_string(),
        class: tool.class.as_str().to_owned(),
        read_only: tool.is_read_only(),
        title: definition.title.clone(),
        description: definition.description.clone(),
        digest: tool.digest.to_string(),
        input_schema: definition.input_schema.clone(),
        output_schema: definition.output_schema.clone(),
    }
}
