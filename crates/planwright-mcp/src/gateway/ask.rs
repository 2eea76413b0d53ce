//! What a person is asked about a call, and what their answer means for its run.

use crate::question::{Decision, KEY, MAX_MESSAGE, WIDTH, decision_form, decision_of};
use crate::server::Host;
use planwright_core::briefing::{RenderOptions, render_call};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::{Asked, AskedCall, Question, Reply, Run, Shown, StepState};
use planwright_core::text::escape_invisible;
use planwright_engine::{RunCommand, read_value};
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputResponses,
};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// A question about a call that waits for a person.
#[derive(Debug)]
pub(super) struct CallQuestion {
    /// What is asked, each under its key.
    pub(super) forms: Vec<(String, ElicitRequestParams)>,
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
                let forms = vec![(KEY.to_owned(), form)];
                let about = About::Call(asked.clone());
                Some(CallQuestion { forms, step, about })
            }
            StepState::AwaitingInput { asked, .. } => {
                let forms = asked
                    .questions
                    .iter()
                    .map(|question| Some((question.key.clone(), form_of(question)?)));
                let forms: Vec<_> = forms.collect::<Option<_>>()?;
                let about = About::Input(asked.clone());
                (!forms.is_empty()).then_some(CallQuestion { forms, step, about })
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
    /// Returns whether the server asks, and not we.
    pub(super) fn is_of_server(&self) -> bool {
        matches!(self.about, About::Input(_))
    }

    /// The answers of a client in the order of the forms, if it gave all of them.
    pub(super) fn answers(&self, responses: Option<&InputResponses>) -> Option<Vec<ElicitResult>> {
        let answers = self.forms.iter().map(|(key, _)| {
            let answer = responses?.get(key)?;
            serde_json::from_value(answer.clone()).ok()
        });
        answers.collect()
    }

    /// What the answers order the run to do. Everything but a clear yes is a no.
    pub(super) fn command(&self, results: &[ElicitResult], by: &Principal) -> RunCommand {
        let step = self.step.clone();
        let by = by.clone();
        match &self.about {
            About::Call(asked) => {
                let shown = Shown::Digest(asked.digest).into();
                match results.first().map_or(Decision::Unclear, decision_of) {
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
                replies: results.iter().map(reply_of).collect(),
            },
        }
    }
}

/// A server's question as its client shows it.
fn form_of(question: &Question) -> Option<ElicitRequestParams> {
    // A page is opened by the person, at the terminal or signed in.
    if question.url.is_some() {
        return None;
    }
    let requested_schema: ElicitationSchema =
        serde_json::from_value(question.schema.clone()).ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: escape_invisible(&question.message).into_owned(),
        requested_schema,
    })
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
