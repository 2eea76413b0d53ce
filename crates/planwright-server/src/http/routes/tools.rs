//! The tools that plans can use.

use crate::http::body::Params;
use crate::http::linked_page::{self, LinkedPage, LinkedParams};
use crate::http::problem::HttpResult;
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::extract::State;
use planwright_api::ToolLine;
use planwright_core::tool::{KnownTool, ToolName};
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default().routes(routes!(list_tools))
}

/// Lists the tools that plans can use now.
#[utoipa::path(get, path = "/tools", operation_id = "listTools", tag = "tools",
    params(LinkedParams),
    responses((status = 200, description = "A page of tools, with their schemas.", body = Vec<ToolLine>,
        headers(("Link" = Option<String>, description = "The address of the next page, if there is one: `<…>; rel=\"next\"`.")))),
    extensions(("x-planwright-action" = json!("read"))))]
async fn list_tools(
    State(http): State<Http>,
    Params(params): Params<LinkedParams>,
) -> HttpResult<LinkedPage> {
    let (mut page, last) = LinkedPage::open("/tools".to_owned(), params)?;
    let last = last.map(ToolName::try_from).transpose();
    let last = last.map_err(|_| linked_page::unknown_cursor())?;
    let catalog = http.service.engine.catalog();
    // In the order of their names: tools that come or go meanwhile move no other.
    let is_after = |tool: &KnownTool| last.as_ref().is_none_or(|last| tool.name > *last);
    for tool in catalog.iter().filter(|tool| is_after(tool)) {
        if !page.put(&tool.name, &line(tool))? {
            break;
        }
    }
    Ok(page)
}

fn line(tool: &KnownTool) -> ToolLine {
    let definition = &tool.definition;
    ToolLine {
        server: tool.name.server.to_string(),
        name: tool.name.tool.to_string(),
        class: tool.class.as_str().to_owned(),
        read_only: tool.is_read_only(),
        trusted: tool.trusted,
        reaches_out: tool.reaches_out(),
        annotations: serde_json::to_value(&definition.annotations).unwrap_or_default(),
        title: definition.title.clone(),
        description: definition.description.clone(),
        digest: tool.digest().to_string(),
        input_schema: definition.input_schema.clone(),
        output_schema: definition.output_schema.clone(),
    }
}
