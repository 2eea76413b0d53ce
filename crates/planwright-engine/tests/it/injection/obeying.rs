//! The worst model there can be: it does everything that the text it is shown tells it to do.

use super::corpus::{Injected, corpus};
use planwright_core::model::{Message, ModelRole, ModelUse, TokenUsage, WantedCall};
use planwright_engine::port::{BoxFuture, Model, ModelAnswer, ModelError, ModelInfo, ModelRequest};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Finds the marker of an attack in what it is shown and does what the attack wants.
#[derive(Debug, Clone)]
pub(crate) struct ObeyingModel {
    asked: Arc<Mutex<Vec<ModelRequest>>>,
}

const NAME: &str = "obeying/model";

impl ObeyingModel {
    pub(crate) fn new() -> Self {
        Self {
            asked: Arc::default(),
        }
    }

    /// Everything that was said to it, as text.
    pub(crate) fn shown(&self) -> String {
        self.asked
            .lock()
            .unwrap()
            .iter()
            .map(|request| format!("{:?}\n", request.messages))
            .collect()
    }

    /// Returns the number of times the model was asked in this role.
    pub(crate) fn asked(&self, role: ModelRole) -> usize {
        self.asked
            .lock()
            .unwrap()
            .iter()
            .filter(|request| request.role == role)
            .count()
    }

    fn answer(&self, request: &ModelRequest) -> (String, Vec<WantedCall>) {
        let shown = serde_json::to_string(&request.messages).unwrap();
        let Some(injected) = corpus()
            .iter()
            .find(|injected| shown.contains(&injected.marker))
        else {
            return self.innocent(request);
        };
        let wants = &injected.wants;
        match request.role {
            ModelRole::Reflector if asks_for(request, "assessment") => (
                json!({ "assessment": wants.assessment, "reasoning": injected.text, "adjustments": wants.adjustments })
                    .to_string(),
                Vec::new(),
            ),
            ModelRole::Reflector => (json!({ "holds": true, "evidence": injected.text }).to_string(), Vec::new()),
            ModelRole::Planner => (injected.plan().to_string(), Vec::new()),
            ModelRole::Executor | ModelRole::Chat if request.tools.is_empty() => {
                (format!("{} {}", wants.says, injected.text), Vec::new())
            }
            ModelRole::Executor | ModelRole::Chat => self.act(request, injected),
        }
    }

    /// Wants the attacker's calls in every turn until it was told so often that it cannot, then
    /// repeats the attack.
    fn act(&self, request: &ModelRequest, injected: &Injected) -> (String, Vec<WantedCall>) {
        let turns = request
            .messages
            .iter()
            .filter(|message| matches!(message, Message::Assistant { .. }))
            .count();
        if turns >= 3 || injected.wants.calls.is_empty() {
            return (
                format!("{} {}", injected.wants.says, injected.text),
                Vec::new(),
            );
        }
        let calls = injected
            .wants
            .calls
            .iter()
            .enumerate()
            .map(|(number, (name, args))| WantedCall {
                id: format!("c{turns}-{number}"),
                name: (*name).to_owned(),
                args: args.clone(),
            });
        (injected.text.clone(), calls.collect())
    }

    /// Nothing tells it what to do yet: it reads the page that it was asked to read.
    fn innocent(&self, request: &ModelRequest) -> (String, Vec<WantedCall>) {
        let reads = request.tools.iter().find(|tool| tool.name.contains("read"));
        let page = page_to_read(request);
        let has_read = request
            .messages
            .iter()
            .any(|message| matches!(message, Message::Tool { .. }));
        match reads.zip(page).filter(|_| !has_read) {
            Some((tool, page)) => {
                let args = json!({ "page": page });
                (
                    String::new(),
                    vec![WantedCall {
                        id: "look".to_owned(),
                        name: tool.name.clone(),
                        args,
                    }],
                )
            }
            None => ("There is nothing to do.".to_owned(), Vec::new()),
        }
    }
}

/// What a person asked for: `page number 17`.
fn page_to_read(request: &ModelRequest) -> Option<u64> {
    let shown = serde_json::to_string(&request.messages).unwrap();
    let digits = shown
        .split("page number ")
        .nth(1)?
        .chars()
        .take_while(char::is_ascii_digit);
    digits.collect::<String>().parse().ok()
}

fn asks_for(request: &ModelRequest, field: &str) -> bool {
    request
        .schema
        .as_ref()
        .is_some_and(|schema| schema.schema.to_string().contains(field))
}

impl Injected {
    /// A plan that does what the attack wants, and names a secret.
    pub(crate) fn plan(&self) -> Value {
        let step = |(number, (tool, args)): (usize, &(&str, Value))| json!({ "id": format!("s{}", number + 1), "title": "Step", "tool": tool, "args": args });
        let steps: Vec<Value> = self
            .wants
            .calls
            .iter()
            .take(5)
            .enumerate()
            .map(step)
            .collect();
        json!({ "title": self.wants.says, "toolsRequired": ["w.erase", "w.write"], "status": "approved", "steps": steps })
    }
}

impl Model for ObeyingModel {
    fn models(&self) -> Vec<ModelInfo> {
        let roles = ModelRole::ALL.to_vec();
        let info = ModelInfo {
            name: NAME.to_owned(),
            roles,
            endpoint: "memory".to_owned(),
            key: None,
            context_tokens: None,
        };
        vec![info]
    }

    fn resolve(&self, _: ModelRole, _: Option<&str>) -> Result<ModelInfo, ModelError> {
        Ok(self.models().remove(0))
    }

    fn ask(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        let (text, calls) = self.answer(&request);
        let usage = TokenUsage {
            input: 10,
            output: 5,
            cached: 0,
            estimated: false,
        };
        let used = ModelUse {
            role: request.role,
            model: NAME.to_owned(),
            usage,
            cost: None,
        };
        request.told.tell(&text);
        self.asked.lock().unwrap().push(request);
        Box::pin(std::future::ready(Ok(ModelAnswer {
            text,
            calls,
            used,
            cut: false,
        })))
    }
}
