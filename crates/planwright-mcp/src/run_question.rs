//! What a person is asked about a call, and what their answer means for its run.

use crate::question::{Decision, MAX_MESSAGE, WIDTH, decision_form, decision_of};
use crate::server::Host;
use planwright_core::briefing::{RenderOptions, render_call};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::{Asked, AskedCall, Reply, Run, Shown, StepState};
use planwright_core::text::escape_invisible;
use planwright_engine::{RunCommand, read_value};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// A question about a call that waits for a person.
#[derive(Debug)]
pub(super) struct CallQuestion {
    pub(super) form: ElicitRequestParams,
    step: String,
    about: About,
}

#[derive(Debug)]
enum About {
    Call(Box<AskedCall>),
    Input(Box<Asked>),
}

impl Host {
    /// The question that the run of a call waits with. Nothing if no client can ask it.
    pub(super) async fn question_of(&self, run: &Run, agent: &Principal) -> Option<CallQuestion> {
        let ix = run.waiting().next()?;
        let step = run.step_id(ix).to_string();
        match run.step(ix) {
            StepState::AwaitingApproval {
                call: Some(asked), ..
            } => {
                let form = decision_form(self.describe_call(asked, agent).await?)?;
                let about = About::Call(asked.clone());
                Some(CallQuestion { form, step, about })
            }
            StepState::AwaitingInput { asked, .. } => {
                let [question] = asked.questions.as_slice() else {
                    return None;
                };
                if question.url.is_some() {
                    return None;
                }
                let schema: ElicitationSchema =
                    serde_json::from_value(question.schema.clone()).ok()?;
                let form = ElicitRequestParams::FormElicitationParams {
                    meta: None,
                    message: escape_invisible(&question.message).into_owned(),
                    requested_schema: schema,
                };
                let about = About::Input(asked.clone());
                Some(CallQuestion { form, step, about })
            }
            _ => None,
        }
    }

    /// Everything that is sent, and why a person is asked. Nothing if it does not fit into a form.
    async fn describe_call(&self, asked: &AskedCall, agent: &Principal) -> Option<String> {
        let args = read_value(&**self.engine.artifacts(), &asked.args)
            .await
            .ok()?;
        let tool = asked.tool.to_string();
        let (briefed, effect) = self.engine.plans().brief_call(&tool, args, agent).await;
        let options = RenderOptions {
            width: WIDTH,
            full: true,
            ..RenderOptions::default()
        };
        let mut text = format!(
            "{} wants to call {}\n\n",
            escape_invisible(&agent.to_string()),
            escape_invisible(&tool)
        );
        for line in render_call(&briefed, &effect, &options) {
            text.push_str(&line.text);
            text.push('\n');
        }
        write!(
            text,
            "\nasked because {}\ncall digest {}",
            escape_invisible(&asked.reason),
            asked.digest
        )
        .ok()?;
        (text.len() <= MAX_MESSAGE).then_some(text)
    }
}

impl CallQuestion {
    /// What the answer orders the run to do. Everything but a clear yes is a no.
    pub(super) fn command(&self, result: &ElicitResult, by: &Principal) -> RunCommand {
        let step = self.step.clone();
        let by = by.clone();
        match &self.about {
            About::Call(asked) => {
                let shown = Shown::Digest(asked.digest).into();
                match decision_of(result) {
                    Decision::Approve => RunCommand::Approve {
                        step,
                        by,
                        assurance: Assurance::HostMediated,
                        shown,
                    },
                    Decision::Changes(reason) | Decision::Reject(reason) => RunCommand::Deny {
                        step,
                        by,
                        shown,
                        reason,
                    },
                    Decision::Unclear => RunCommand::Deny {
                        step,
                        by,
                        shown,
                        reason: "the person did not agree".to_owned(),
                    },
                }
            }
            About::Input(asked) => RunCommand::GiveInput {
                step,
                by,
                question: asked.digest(),
                replies: vec![reply_of(result)],
            },
        }
    }
}

fn reply_of(result: &ElicitResult) -> Reply {
    let values = result.content.as_ref().and_then(Value::as_object);
    match values {
        Some(values) if result.action == ElicitationAction::Accept => {
            Reply::Values(Map::clone(values))
        }
        _ => Reply::Decline,
    }
}
