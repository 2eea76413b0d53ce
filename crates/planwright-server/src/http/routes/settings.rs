//! How the service is set up, as far as those who use it need to know.

use crate::http::body::{JsonBody, read_value};
use crate::http::operator::OperatorSettings;
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use planwright_core::model::ModelRole;
use planwright_core::policy::{Policy, PolicyDocument};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(get_settings))
        .routes(routes!(get_operator_settings))
        .routes(routes!(check_policy))
}

/// How the service is set up.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ServiceSettings {
    /// The version of the program.
    version: &'static str,
    /// Part of every digest.
    policy_version: String,
    approval: ApprovalSettings,
    /// The model of each role that has one.
    models: Vec<RoleModel>,
    /// Servers whose tools plans can use now.
    servers: Vec<ServerLine>,
    /// Runs that are executed at once.
    max_runs: usize,
    dispatch: DispatchSettings,
}

/// What may carry out steps besides the service itself.
#[derive(Debug, Serialize, ToSchema)]
struct DispatchSettings {
    /// Whether there can be workers: they share a store in a database.
    workers: bool,
    /// Whether a broker tells them where to look, with a queue for each capability.
    broker: bool,
}

/// What an approval takes.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ApprovalSettings {
    /// How many people have to agree.
    required: u32,
    /// Whether authors may not approve their own plans.
    four_eyes: bool,
}

/// The model that does a kind of work.
#[derive(Debug, Serialize, ToSchema)]
struct RoleModel {
    /// `planner`, `reflector`, `executor` or `chat`.
    role: &'static str,
    model: String,
}

/// A server.
#[derive(Debug, Default, Serialize, ToSchema)]
struct ServerLine {
    name: String,
    /// How many tools it has.
    tools: usize,
    /// Whether it is trusted to say what its tools do.
    trusted: bool,
}

/// Says how the service is set up: its version, what an approval takes, its models and its servers.
#[utoipa::path(get, path = "/settings", operation_id = "getSettings", tag = "service",
    responses((status = 200, description = "The settings.", body = ServiceSettings)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn get_settings(State(http): State<Http>) -> Json<ServiceSettings> {
    let engine = &http.service.engine;
    let approval = &engine.policy().approval;
    let resolved = ModelRole::ALL.into_iter().filter_map(|role| {
        let model = engine.model().resolve(role, None).ok()?;
        Some(RoleModel {
            role: role.as_str(),
            model: model.name,
        })
    });
    let workers = engine.workers();
    let mut servers: BTreeMap<String, ServerLine> = BTreeMap::new();
    for tool in engine.catalog().iter() {
        let name = tool.name.server.to_string();
        let server = servers.entry(name.clone()).or_default();
        server.name = name;
        server.tools += 1;
        server.trusted = tool.trusted;
    }
    Json(ServiceSettings {
        version: env!("CARGO_PKG_VERSION"),
        policy_version: engine.policy_version().to_owned(),
        approval: ApprovalSettings {
            required: approval.required(),
            four_eyes: approval.four_eyes,
        },
        models: resolved.collect(),
        servers: servers.into_values().collect(),
        max_runs: http.settings.max_runs,
        dispatch: DispatchSettings {
            workers: workers.are_possible(),
            broker: workers.have_broker(),
        },
    })
}

/// Says more of how the service is set up, to those who administer it: the policy, servers and what is wrong with them, webhooks, and
/// the names of secrets.
#[utoipa::path(get, path = "/settings/operator", operation_id = "getOperatorSettings", tag = "service",
    responses((status = 200, description = "The settings.", body = OperatorSettings)),
    extensions(("x-planwright-action" = json!("administer"))))]
async fn get_operator_settings(State(http): State<Http>) -> HttpResult<Json<OperatorSettings>> {
    let Some(view) = &http.settings.operator else {
        return Ok(Json(OperatorSettings::default()));
    };
    let looked = view.look().await.map_err(|error| {
        tracing::error!(%error, "the settings cannot be read");
        Problem::of(ProblemCode::Internal, "the settings cannot be read")
    })?;
    Ok(Json(looked))
}

/// A policy that is not in force.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CheckPolicy {
    /// `[policy]` of planwright.toml, as JSON.
    #[schema(value_type = Object)]
    policy: Value,
}

/// Whether a policy can be used.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PolicyCheck {
    valid: bool,
    rules: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_version: Option<String>,
    /// Every mistake in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Says whether a policy could be used, and what is wrong with it. Nothing is changed.
#[utoipa::path(post, path = "/policy/check", operation_id = "checkPolicy", tag = "trials",
    request_body = CheckPolicy,
    responses((status = 200, description = "What is to be said about it.", body = PolicyCheck)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn check_policy(
    JsonBody(CheckPolicy { policy }): JsonBody<CheckPolicy>,
) -> Json<PolicyCheck> {
    let document = read_value::<PolicyDocument>(policy);
    let rules = document.as_ref().map_or(0, |document| document.rules.len());
    let read = document
        .map_err(|error| error.to_string())
        .and_then(|document| Policy::read(&document).map_err(|error| error.to_string()));
    Json(match read {
        Ok(policy) => PolicyCheck {
            valid: true,
            rules,
            policy_version: policy.version().map(str::to_owned),
            error: None,
        },
        Err(error) => PolicyCheck {
            valid: false,
            rules,
            policy_version: None,
            error: Some(error),
        },
    })
}
