//! A call as a run would make it, for tests of what is called.

use crate::port::{AnswerSink, Call, ProgressSink};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The first attempt of a call. `tool` is a full name; the arguments are an object.
pub fn first(tool: &str, args: Value) -> Call {
    let Value::Object(args) = args else {
        panic!("arguments are an object")
    };
    Call {
        tool: tool.to_owned().try_into().unwrap(),
        args,
        definition: None,
        plan: "plan-a".parse().unwrap(),
        run: "run_b".parse().unwrap(),
        top_run: "run_b".parse().unwrap(),
        acts_for: None,
        step: "step_c".parse().unwrap(),
        attempt: 1,
        idempotency_key: "key-d".into(),
        cancelled: CancellationToken::new(),
        answered: Vec::new(),
        progress: ProgressSink::default(),
        trace: None,
        answer: AnswerSink::default(),
        client: None,
        person: None,
        files: Vec::new(),
    }
}
