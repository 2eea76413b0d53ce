//! Statistics as other programs see them. Durations are in milliseconds, rates between 0 and 1.

use crate::{DispatchStats, ModelCostLine};
use planwright_core::stats::{Day, Durations, PredictionStats, ReviewStats, Statistics};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::ToSchema;

/// What `stats --json` prints and `GET /stats` answers.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatsResult {
    /// From when on things were counted; absent if from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// How many plans stand where.
    pub plans: BTreeMap<String, u64>,
    /// How many runs stand where.
    pub runs: BTreeMap<String, u64>,
    /// The most often called first.
    pub tools: Vec<ToolLatency>,
    pub approvals: ApprovalStats,
    pub prediction: Prediction,
    /// Tools that plans ask for and no server offers at this moment, the most wanted first.
    pub tool_gaps: Vec<ToolGap>,
    /// What asking models took, by model, and together.
    pub models: Vec<ModelCostLine>,
    pub model_cost_usd: f64,
    /// Calls that executors and clients wanted and that were refused.
    pub refused_calls: u64,
    /// Calls of clients that a gateway told to enforce would have refused.
    pub let_through_calls: u64,
    /// How often runs were looked at before their end.
    pub reflections: u64,
    /// How often a plan was adjusted after that.
    pub adjustments: u64,
    /// Plans whose journals could not be read. They are not counted.
    pub unreadable: u64,
    /// Day by day in UTC, the first one first; days on which nothing happened are left out. Over HTTP only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<DayLine>,
    /// Workers and queues as they are now; absent where no step is offered to workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatch: Option<DispatchStats>,
}

/// One day.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DayLine {
    /// As `2026-01-31`.
    pub day: String,
    /// Runs that began.
    pub runs: u64,
    /// Runs that ended, however.
    pub ended: u64,
    /// Runs that failed, or completed with failures.
    pub failures: u64,
    /// How long runs that ended took, without waiting for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_p50_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_p95_ms: Option<u64>,
    pub calls: u64,
    pub failed_calls: u64,
    /// By people, of plans and of steps.
    pub approvals: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub model_cost_usd: f64,
}

impl DayLine {
    pub fn new(day: &Day) -> Self {
        let models = ModelCostLine::new("", &day.models.total());
        let begins = day.begins.map(|at| at.to_string()).unwrap_or_default();
        Self {
            day: begins.chars().take(10).collect(),
            runs: day.runs.begun,
            ended: day.runs.ended,
            failures: day.runs.failed,
            run_p50_ms: percentile(&day.runs.took, 50),
            run_p95_ms: percentile(&day.runs.took, 95),
            calls: day.calls,
            failed_calls: day.failed_calls,
            approvals: day.approvals,
            input_tokens: models.input_tokens,
            output_tokens: models.output_tokens,
            model_cost_usd: models.cost_usd,
        }
    }
}

/// The calls of one tool.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolLatency {
    pub tool: String,
    pub calls: u64,
    pub failures: u64,
    pub failure_rate: f64,
    pub mean_ms: u64,
    pub p50_ms: u64,
    pub p95_ms: u64,
}

/// What people decided.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalStats {
    pub plans: u64,
    pub versions: u64,
    /// Given by people.
    pub approvals: u64,
    pub by_policy: u64,
    pub per_plan: f64,
    /// Of single steps, in runs.
    pub step_approvals: u64,
    pub step_denials: u64,
    /// From the proposal of a version to the first yes of a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_approval_p50_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_approval_p95_ms: Option<u64>,
    pub rejections: u64,
    /// The most often that one plan was rejected.
    pub most_rejections: u64,
    pub change_requests: u64,
    pub comments: u64,
    /// Plans and approvals that were not touched in time.
    pub expired: u64,
}

/// How long completed runs were expected to take, against how long they took without waiting
/// for people.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prediction {
    /// Runs for which something was known before.
    pub runs: u64,
    pub mean_predicted_ms: u64,
    pub mean_actual_ms: u64,
    /// How far the predictions were off on average.
    pub mean_off_ms: u64,
}

/// A tool that is asked for and not there.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ToolGap {
    pub tool: String,
    /// How many plans ask for it.
    pub plans: u64,
}

impl StatsResult {
    pub fn new(figures: &Statistics, since: Option<String>) -> Self {
        let mut tools: Vec<ToolLatency> = figures
            .tools
            .iter()
            .map(|(tool, figures)| ToolLatency {
                tool: tool.clone(),
                calls: figures.calls,
                failures: figures.failures,
                failure_rate: rate(figures.failures, figures.calls),
                mean_ms: millis(figures.latency.mean().unwrap_or_default()),
                p50_ms: percentile(&figures.latency, 50).unwrap_or_default(),
                p95_ms: percentile(&figures.latency, 95).unwrap_or_default(),
            })
            .collect();
        tools.sort_by_key(|tool| std::cmp::Reverse(tool.calls));
        let gaps = figures.gaps.iter().map(|(tool, &plans)| ToolGap {
            tool: tool.clone(),
            plans,
        });
        let mut tool_gaps: Vec<ToolGap> = gaps.collect();
        tool_gaps.sort_by_key(|gap| std::cmp::Reverse(gap.plans));
        Self {
            since,
            plans: figures.plans.clone(),
            runs: figures.runs.clone(),
            tools,
            approvals: ApprovalStats::new(&figures.reviews),
            prediction: Prediction::new(&figures.predictions),
            tool_gaps,
            models: ModelCostLine::all(&figures.models),
            model_cost_usd: ModelCostLine::new("", &figures.models.total()).cost_usd,
            refused_calls: figures.refused,
            let_through_calls: figures.let_through,
            reflections: figures.reflections,
            adjustments: figures.adjustments,
            unreadable: figures.unreadable,
            days: Vec::new(),
            dispatch: None,
        }
    }
}

impl ApprovalStats {
    fn new(figures: &ReviewStats) -> Self {
        Self {
            plans: figures.plans,
            versions: figures.versions,
            approvals: figures.approvals,
            by_policy: figures.by_policy,
            per_plan: rate(figures.approvals + figures.step_approvals, figures.plans),
            step_approvals: figures.step_approvals,
            step_denials: figures.step_denials,
            time_to_approval_p50_ms: percentile(&figures.time_to_approval, 50),
            time_to_approval_p95_ms: percentile(&figures.time_to_approval, 95),
            rejections: figures.rejections,
            most_rejections: figures.most_rejections,
            change_requests: figures.change_requests,
            comments: figures.comments,
            expired: figures.expiries,
        }
    }
}

impl Prediction {
    fn new(figures: &PredictionStats) -> Self {
        let mean = |total: Duration| millis(total).checked_div(figures.runs).unwrap_or_default();
        Self {
            runs: figures.runs,
            mean_predicted_ms: mean(figures.predicted),
            mean_actual_ms: mean(figures.actual),
            mean_off_ms: mean(figures.off),
        }
    }
}

fn percentile(durations: &Durations, percent: u64) -> Option<u64> {
    durations.percentile(percent).map(millis)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Rounded to four digits: more would be noise.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of things that happened stay far below 2^52"
)]
fn rate(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    (part as f64 / whole as f64 * 10_000.0).round() / 10_000.0
}
