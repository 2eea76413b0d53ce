//! Asking, while somebody waits.

use super::{ChatAnswer, ChatUsage};
use crate::http::problem::{Answer, Problem};
use crate::http::state::Http;
use planwright_engine::port::{ModelAnswer, ModelError, ModelRequest};

/// The whole answer at once. The model is told to stop when nobody waits any more or the service stops.
pub(super) async fn whole(http: &Http, request: ModelRequest, trace: String) -> Answer<ChatAnswer> {
    Ok(asked(http, request).await.map(|answer| written(http, answer, trace))?)
}

/// Asks the model. Dropping this tells it that its answer is not wanted any more.
pub(super) async fn asked(http: &Http, request: ModelRequest) -> Result<ModelAnswer, ModelError> {
    let unwanted = request.cancelled.clone().drop_guard();
    let answer = tokio::select! {
        answer = http.service.engine.environment().model.ask(request) => answer,
        () = http.stop.cancelled() => Err(ModelError::Cancelled),
    };
    drop(unwanted);
    answer
}

/// The answer as it is sent, with everything masked that must not be seen.
pub(super) fn written(http: &Http, answer: ModelAnswer, trace_id: String) -> ChatAnswer {
    let redactor = http.service.engine.environment().redaction.redactor();
    ChatAnswer {
        response: redactor.text(&answer.text).into_owned(),
        trace_id,
        model: answer.used.model,
        usage: ChatUsage::new(&answer.used.usage, answer.used.cost),
        truncated: answer.cut,
    }
}

/// What is told of an error once the answer has begun.
pub(super) fn problem(error: ModelError) -> Problem {
    error.into()
}
