//! Asking, while the caller waits.

use super::{ChatAnswer, ChatUsage};
use crate::http::problem::{HttpResult, Problem};
use crate::http::state::Http;
use http::StatusCode;
use planwright_engine::port::{ModelAnswer, ModelError, ModelRequest};

/// The whole answer at once. The model is told to stop when the caller has gone or the service
/// stops.
pub(super) async fn whole(
    http: &Http,
    request: ModelRequest,
    trace: String,
) -> HttpResult<ChatAnswer> {
    let answer = ask_model(http, request).await.map_err(problem)?;
    Ok(chat_answer(http, answer, trace))
}

/// Asks the model. Dropping this tells it that its answer is not wanted any more.
pub(super) async fn ask_model(
    http: &Http,
    request: ModelRequest,
) -> Result<ModelAnswer, ModelError> {
    let unwanted = request.cancelled.clone().drop_guard();
    let answer = tokio::select! {
        answer = http.service.engine.model().ask(request) => answer,
        () = http.stop.cancelled() => Err(ModelError::Cancelled),
    };
    drop(unwanted);
    answer
}

/// The answer as it is sent, with everything masked that must not be seen.
pub(super) fn chat_answer(http: &Http, answer: ModelAnswer, trace_id: String) -> ChatAnswer {
    let redactor = http.service.engine.redaction().redactor();
    ChatAnswer {
        response: redactor.text(&answer.text).into_owned(),
        trace_id,
        model: answer.used.model,
        usage: ChatUsage::new(&answer.used.usage, answer.used.cost),
        truncated: answer.cut,
    }
}

/// Returns why there is no answer. Without a model this route can do nothing for anybody, so that
/// is the service's trouble.
pub(super) fn problem(error: ModelError) -> Problem {
    let lacks_a_model = matches!(
        error,
        ModelError::NotConfigured { .. } | ModelError::NoKey { .. }
    );
    let problem = Problem::from(error);
    if lacks_a_model {
        problem.with_status(StatusCode::SERVICE_UNAVAILABLE)
    } else {
        problem
    }
}
