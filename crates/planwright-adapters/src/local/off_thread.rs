//! File work blocks, so it happens on threads that may block.

use planwright_engine::port::{BoxFuture, Call, CallError, Outcome};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

/// Does work that changes nothing. It ends as soon as the call is cancelled; long work also watches
/// the token itself, so that the thread becomes free.
pub(super) fn reading<A, W>(call: Call, work: W) -> BoxFuture<'static, Outcome>
where
    A: DeserializeOwned + Send + 'static,
    W: FnOnce(A, &CancellationToken) -> Outcome + Send + 'static,
{
    Box::pin(async move {
        let args = parse(call.args)?;
        let stop = call.cancelled.clone();
        let work = tokio::task::spawn_blocking(move || work(args, &stop));
        tokio::select! {
            biased;
            outcome = work => outcome.unwrap_or_else(broken),
            () = call.cancelled.cancelled() => Err(CallError::Cancelled),
        }
    })
}

/// Does work that changes something. Once begun it is seen through, because only its own answer
/// says what happened.
pub(super) fn writing<A, W>(call: Call, work: W) -> BoxFuture<'static, Outcome>
where
    A: DeserializeOwned + Send + 'static,
    W: FnOnce(A) -> Outcome + Send + 'static,
{
    Box::pin(async move {
        let args = parse(call.args)?;
        if call.cancelled.is_cancelled() {
            return Err(CallError::Cancelled);
        }
        tokio::task::spawn_blocking(move || work(args))
            .await
            .unwrap_or_else(broken)
    })
}

/// The arguments as the tool's own type. They fit the schema already; this catches what a schema
/// cannot say, such as an integer written as `1.0`.
pub(super) fn parse<A: DeserializeOwned>(args: Map<String, Value>) -> Result<A, CallError> {
    serde_json::from_value(Value::Object(args)).map_err(|error| {
        let message = format!("the arguments cannot be read: {error}");
        CallError::refused("invalid_args", message)
    })
}

fn broken(error: JoinError) -> Outcome {
    match error.try_into_panic() {
        // The panic goes on where the toolbox catches it.
        Ok(payload) => std::panic::resume_unwind(payload),
        Err(error) => Err(CallError::Lost(format!("the work was stopped: {error}"))),
    }
}
