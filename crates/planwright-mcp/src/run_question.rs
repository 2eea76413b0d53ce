//! What a run asks a person, and what their answer means for it.

use crate::question::{Decision, KEY, MAX_MESSAGE, WIDTH, decision_form, decision_of};
use planwright_core::briefing::{RenderOptions, render_call};
use planwright_core::digest::Digest;
use planwright_core::id::{PlanId, RunId};
use planwright_core::plan::StepIx;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::{Asked, AskedCall, Question, Reply, Run, Shown, StepState};
use planwright_core::text::escape_invisible;
use planwright_engine::{Engine, RunCommand, read_value};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// A question that a step waits with.
#[derive(Debug, Clone)]
pub(crate) struct RunQuestion {
    pub(crate) form: ElicitRequestParams,
    /// What a tool asks at the same time.
    also: Vec<ElicitRequestParams>,
    /// The run that asks: that of a sub-plan perhaps.
    pub(crate) run: RunId,
    /// The plan and the run that go on once this is decided.
    pub(crate) plan: PlanId,
    pub(crate) top: RunId,
    step: String,
    about: About,
}

#[derive(Debug, Clone)]
enum About {
    /// A step or the concrete call that this digest stands for.
    Consent(Digest),
    Input(Box<Asked>),
}

/// The first question that a run waits with. Nothing if no client can ask it, or it asks more than one
/// thing.
pub(crate) async fn find_question(
    engine: &Engine,
    run: &Run,
    agent: &Principal,
) -> Option<RunQuestion> {
    let question = find_questions(engine, run, agent).await?;
    question.also.is_empty().then_some(question)
}

/// The first question that a run waits with, and what is asked at the same time. Nothing if no client
/// can ask it.
pub(crate) async fn find_questions(
    engine: &Engine,
    run: &Run,
    agent: &Principal,
) -> Option<RunQuestion> {
    let ix = run.schedule().waiting().next()?;
    let asks = |form, about| RunQuestion {
        form,
        also: Vec::new(),
        run: run.id().clone(),
        plan: run.plan().id().clone(),
        top: run.id().clone(),
        step: run.step_id(ix).to_string(),
        about,
    };
    match run.step(ix) {
        StepState::AwaitingApproval {
            call: Some(asked), ..
        } => {
            let form = decision_form(describe_call(engine, asked, agent).await?)?;
            Some(asks(form, About::Consent(asked.digest)))
        }
        StepState::AwaitingApproval { call: None, .. } => {
            let form = decision_form(describe_gate(engine, run, ix, agent).await?)?;
            Some(asks(form, About::Consent(run.start().digest)))
        }
        StepState::AwaitingInput { asked, .. } => {
            let forms = asked.questions.iter().map(input_form);
            let mut forms = forms.collect::<Option<Vec<_>>>()?.into_iter();
            let form = forms.next()?;
            Some(RunQuestion {
                also: forms.collect(),
                ..asks(form, About::Input(asked.clone()))
            })
        }
        StepState::AwaitingPlan { run: child, .. } => {
            let plan = engine.journals().plan_of_run(child).await.ok()?;
            let (review, _) = engine.plans().load_review(&plan).await.ok()?;
            let (child, _) = engine.runs().load_run(child, &review).await.ok()?;
            let question = Box::pin(find_questions(engine, &child, agent)).await?;
            Some(RunQuestion {
                plan: run.plan().id().clone(),
                top: run.id().clone(),
                ..question
            })
        }
        _ => None,
    }
}

/// The form for what a step or a tool wants to know. Nothing if it asks at an address.
fn input_form(question: &Question) -> Option<ElicitRequestParams> {
    if question.url.is_some() {
        return None;
    }
    let schema: ElicitationSchema = serde_json::from_value(question.schema.clone()).ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: escape_invisible(&question.message).into_owned(),
        requested_schema: schema,
    })
}

/// Everything that is sent, and why a person is asked. Nothing if it does not fit into a form.
async fn describe_call(engine: &Engine, asked: &AskedCall, agent: &Principal) -> Option<String> {
    let args = read_value(&**engine.artifacts(), &asked.args).await.ok()?;
    let tool = asked.tool.to_string();
    let lines = call_lines(engine, &tool, args, agent).await;
    let mut text = format!(
        "{} wants to call {}\n\n{lines}",
        escape_invisible(&agent.to_string()),
        escape_invisible(&tool)
    );
    write!(
        text,
        "\nasked because {}\ncall digest {}",
        escape_invisible(&asked.reason),
        asked.digest
    )
    .ok()?;
    (text.len() <= MAX_MESSAGE).then_some(text)
}

/// A step that its plan lets a person decide on, with all that is known of what it sends.
async fn describe_gate(
    engine: &Engine,
    run: &Run,
    ix: StepIx,
    agent: &Principal,
) -> Option<String> {
    let step = run.definition(ix);
    let known = engine.journals().known_arguments(run, ix).await;
    let args = match known {
        Some(args) => args,
        None => serde_json::to_value(&step.args).ok()?,
    };
    let lines = call_lines(engine, step.action_label(), args, agent).await;
    let title = step.title.as_deref();
    let text = format!(
        "Step {} of plan {} waits for a person: {}\n\n{lines}\nplan digest {}",
        run.step_id(ix),
        run.plan().id(),
        escape_invisible(title.unwrap_or_else(|| step.action_label())),
        run.start().digest
    );
    (text.len() <= MAX_MESSAGE).then_some(text)
}

async fn call_lines(engine: &Engine, tool: &str, args: Value, agent: &Principal) -> String {
    let (briefed, effect) = engine.briefings().brief_call(tool, args, agent).await;
    let options = RenderOptions {
        width: WIDTH,
        full: true,
        ..RenderOptions::default()
    };
    let lines = render_call(&briefed, &effect, &options);
    lines
        .iter()
        .fold(String::new(), |text, line| text + &line.text + "\n")
}

impl RunQuestion {
    /// The name of the question among all that its run ever asks.
    pub(crate) fn key(&self) -> String {
        let digest = match &self.about {
            About::Consent(digest) => *digest,
            About::Input(asked) => asked.digest(),
        };
        format!("{}/{}/{digest}", self.run, self.step)
    }

    /// Returns whether a tool asks, and not we.
    pub(crate) fn is_of_tool(&self) -> bool {
        matches!(self.about, About::Input(_))
    }

    /// What is asked, each under its key: a tool knows its questions by its own.
    pub(crate) fn forms(&self) -> Vec<(String, ElicitRequestParams)> {
        let forms = std::iter::once(&self.form).chain(&self.also).cloned();
        match &self.about {
            About::Consent(_) => forms.map(|form| (KEY.to_owned(), form)).collect(),
            About::Input(asked) => {
                let keys = asked.questions.iter().map(|question| question.key.clone());
                keys.zip(forms).collect()
            }
        }
    }

    /// What the answer orders the run to do. Everything but a clear yes is a no.
    pub(crate) fn command(&self, result: &ElicitResult, by: &Principal) -> RunCommand {
        self.command_of(std::slice::from_ref(result), by)
    }

    /// What the answers to all forms order the run to do.
    pub(crate) fn command_of(&self, results: &[ElicitResult], by: &Principal) -> RunCommand {
        let step = self.step.clone();
        let by = by.clone();
        match &self.about {
            About::Consent(digest) => {
                let shown = Shown::Digest(*digest).into();
                match results.first().map_or(Decision::Unclear, decision_of) {
                    Decision::Approve { .. } => RunCommand::Approve {
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

fn reply_of(result: &ElicitResult) -> Reply {
    let values = result.content.as_ref().and_then(Value::as_object);
    match values {
        Some(values) if result.action == ElicitationAction::Accept => {
            Reply::Values(Map::clone(values))
        }
        _ => Reply::Decline,
    }
}
