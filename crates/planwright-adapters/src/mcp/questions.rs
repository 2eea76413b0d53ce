//! What servers ask people, in the shape of the protocol and in ours.

use planwright_core::run::{Answered, Asked, Question, Reply};
use rmcp::model::{ElicitResult, ElicitationAction, InputResponses};
use serde_json::{Value, json};

/// The question in the parameters of `elicitation/create`, if there is one.
pub(super) fn question(key: &str, params: &Value) -> Option<Question> {
    let message = params.get("message")?.as_str()?.to_owned();
    match params.get("url").and_then(Value::as_str) {
        Some(url) => Some(Question {
            key: key.to_owned(),
            message,
            schema: json!({"type": "object"}),
            url: Some(url.to_owned()),
        }),
        None => {
            let schema = params
                .get("requestedSchema")
                .filter(|schema| schema.is_object())?
                .clone();
            Some(Question {
                key: key.to_owned(),
                message,
                schema,
                url: None,
            })
        }
    }
}

/// Finds a person's reply to the very same question in an earlier attempt. The latest reply counts.
pub(super) fn known_reply(answered: &[Answered], params: &Value) -> Option<ElicitResult> {
    let (action, content) = known(answered, &question("", params)?)?;
    let mut result = ElicitResult::new(action);
    result.content = content;
    Some(result)
}

/// The reply to one question in the words of the protocol.
pub(super) fn reply_of(question: &Question, reply: &Reply) -> ElicitResult {
    let (action, content) = spoken(question, reply);
    let mut result = ElicitResult::new(action);
    result.content = content;
    result
}

/// Finds a person's replies to all of these questions in earlier attempts, for a server that
/// forgot.
pub(super) fn known_responses(answered: &[Answered], asked: &Asked) -> Option<InputResponses> {
    let responses = asked.questions.iter().map(|question| {
        let (action, content) = known(answered, question)?;
        Some((question.key.clone(), response(action, content)))
    });
    responses.collect()
}

fn known(answered: &[Answered], asked: &Question) -> Option<(ElicitationAction, Option<Value>)> {
    let same = |question: &Question| {
        question.message == asked.message
            && question.schema == asked.schema
            && question.url == asked.url
    };
    answered.iter().rev().find_map(|answered| {
        let place = answered.asked.questions.iter().position(same)?;
        Some(spoken(
            &answered.asked.questions[place],
            answered.replies.get(place)?,
        ))
    })
}

/// The questions of an `input_required` result with the server's note. `None` if it wants anything
/// else than answers of a person.
pub(super) fn of_result(result: &Value) -> Option<Asked> {
    let state = result
        .get("requestState")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let requests = match result.get("inputRequests") {
        None | Some(Value::Null) => {
            return Some(Asked {
                questions: Vec::new(),
                state,
            });
        }
        Some(requests) => requests.as_object()?,
    };
    let questions = requests.iter().map(|(key, request)| {
        // A server must not ask in the name of this program.
        if key.starts_with(Asked::OWN_KEYS) {
            return None;
        }
        let elicits = request.get("method").and_then(Value::as_str) == Some("elicitation/create");
        elicits
            .then(|| question(key, request.get("params")?))
            .flatten()
    });
    Some(Asked {
        questions: questions.collect::<Option<_>>()?,
        state,
    })
}

/// The questions of an error that sends the person to a page first.
pub(super) fn of_error(data: &Value) -> Option<Asked> {
    let list = data.get("elicitations")?.as_array()?;
    let questions: Option<Vec<_>> = list
        .iter()
        .enumerate()
        .map(|(place, params)| question(&format!("q{}", place + 1), params))
        .collect();
    questions
        .filter(|questions| !questions.is_empty())
        .map(|questions| Asked {
            questions,
            state: None,
        })
}

/// Builds the responses a modern server gets on the next attempt.
pub(super) fn responses(answered: &Answered) -> InputResponses {
    let pairs = answered.asked.questions.iter().zip(&answered.replies);
    pairs
        .map(|(question, reply)| {
            let (action, content) = spoken(question, reply);
            (question.key.clone(), response(action, content))
        })
        .collect()
}

fn response(action: ElicitationAction, content: Option<Value>) -> Value {
    let mut response = json!({"action": action});
    if let Some(content) = content {
        response["content"] = content;
    }
    response
}

fn spoken(question: &Question, reply: &Reply) -> (ElicitationAction, Option<Value>) {
    match reply {
        // A page takes its values itself.
        Reply::Values(_) if question.url.is_some() => (ElicitationAction::Accept, None),
        Reply::Values(values) => (
            ElicitationAction::Accept,
            Some(Value::Object(values.clone())),
        ),
        Reply::Decline => (ElicitationAction::Decline, None),
    }
}
