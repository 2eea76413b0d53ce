//! `models check`: asks, and says how that went.

use crate::exit::{Exit, Failure};
use crate::terminal::no_model::CONFIGURE_MODEL;
use crate::terminal::printer::{BOLD, DIM, GREEN, Printer, RED, YELLOW, duration, line};
use crate::workspace::app::CommandContext;
use futures::future::join_all;
use planwright_adapters::model::{Dialect, Models};
use planwright_core::model::{AnswerSchema, Cost, Message, ModelRole, OfferedTool, TokenUsage};
use planwright_engine::Redaction;
use planwright_engine::port::{Model as _, ModelAnswer, ModelError, ModelRequest};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Models as provider/name. Without any: all that are configured.
    names: Vec<String>,
}

/// Enough for a small answer, also with thoughts before it.
const MAX_TOKENS: u32 = 2000;
/// The name of the schema that is asked for.
const SCHEMA: &str = "sum";

/// How one model did.
struct CheckedModel {
    name: String,
    /// The way JSON was asked for, if an answer came.
    dialect: Option<Dialect>,
    structured: Result<(), String>,
    calls: Result<(), String>,
    took: Duration,
    usage: TokenUsage,
    cost: Option<Cost>,
    /// It gave no answer at all.
    silent: bool,
}

impl CheckedModel {
    fn works(&self) -> bool {
        self.structured.is_ok()
    }
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let models = context.models(&Redaction::default())?;
    let printer = context.printer;
    let names = models_to_check(&models, args)?;
    if names.is_empty() {
        return Err(Failure::new(Exit::Model, "no model is configured").hint(CONFIGURE_MODEL));
    }
    let checked = join_all(names.iter().map(|name| check_model(&models, name))).await;
    if printer.json {
        printer.document(&checked.iter().map(model_document).collect::<Vec<Value>>())?;
    } else {
        for model in &checked {
            print_model(printer, model)?;
        }
    }
    Ok(if checked.iter().all(CheckedModel::works) {
        Exit::Done
    } else {
        Exit::RunFailed
    })
}

fn models_to_check(models: &Models, args: &Args) -> Result<Vec<String>, Failure> {
    if args.names.is_empty() {
        return Ok(models
            .models()
            .into_iter()
            .map(|model| model.name)
            .collect());
    }
    for name in &args.names {
        models
            .resolve(ModelRole::Chat, Some(name))
            .map_err(|error| {
                let known = match &error {
                    ModelError::Unknown { known, .. } => known.join(", "),
                    _ => String::new(),
                };
                Failure::usage(error.to_string()).hint(format!("known here: {known}"))
            })?;
    }
    Ok(args.names.clone())
}

async fn check_model(models: &Models, name: &str) -> CheckedModel {
    let since = Instant::now();
    let asked = models.ask(sum_request(name)).await;
    let took = since.elapsed();
    let mut checked = CheckedModel {
        name: name.to_owned(),
        dialect: models.dialect(name, SCHEMA).filter(|_| asked.is_ok()),
        silent: asked.is_err(),
        structured: asked
            .as_ref()
            .map_err(ToString::to_string)
            .and_then(check_sum),
        calls: Err("not asked for".to_owned()),
        took,
        usage: TokenUsage::default(),
        cost: None,
    };
    checked.count(asked.as_ref().ok());
    if !checked.silent {
        let asked = models.ask(note_request(name)).await;
        checked.count(asked.as_ref().ok());
        checked.calls = asked
            .as_ref()
            .map_err(ToString::to_string)
            .and_then(check_note);
    }
    checked
}

impl CheckedModel {
    fn count(&mut self, answer: Option<&ModelAnswer>) {
        if let Some(ModelAnswer { used, .. }) = answer {
            self.usage += used.usage;
            if let Some(cost) = used.cost {
                *self.cost.get_or_insert_default() += cost;
            }
        }
    }
}

fn sum_request(model: &str) -> ModelRequest {
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["answer"],
        "properties": { "answer": { "type": "integer" } },
    });
    let said = vec![Message::user(
        "What is two plus two? Give the number as `answer`.",
    )];
    ModelRequest {
        model: Some(model.to_owned()),
        schema: Some(AnswerSchema {
            name: SCHEMA.to_owned(),
            schema,
        }),
        max_tokens: Some(MAX_TOKENS),
        ..ModelRequest::new(ModelRole::Chat, said)
    }
}

/// Returns whether it is of the schema. That it is right is not asked: the smallest models cannot
/// add.
fn check_sum(answer: &ModelAnswer) -> Result<(), String> {
    let value: Option<Value> = serde_json::from_str(&answer.text).ok();
    match value.and_then(|value| value.get("answer")?.as_i64()) {
        Some(_) => Ok(()),
        None if answer.cut => Err("the answer was cut off".to_owned()),
        None => Err("the answer is not the JSON that was asked for".to_owned()),
    }
}

fn note_request(model: &str) -> ModelRequest {
    let schema = json!({ "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } });
    let description = "Writes a note down.".to_owned();
    ModelRequest {
        model: Some(model.to_owned()),
        tools: vec![OfferedTool {
            name: "write_note".to_owned(),
            description,
            schema,
        }],
        max_tokens: Some(MAX_TOKENS),
        ..ModelRequest::new(
            ModelRole::Chat,
            vec![Message::user(
                "Call the tool `write_note` with the text \"ready\".",
            )],
        )
    }
}

fn check_note(answer: &ModelAnswer) -> Result<(), String> {
    let called = answer
        .calls
        .iter()
        .any(|call| call.name == "write_note" && call.args.is_object());
    if called {
        Ok(())
    } else {
        Err("it called no tool when it was asked to".to_owned())
    }
}

fn print_model(printer: Printer, model: &CheckedModel) -> Result<(), Failure> {
    let name = printer.out(BOLD, &format!("{:36}", line(&model.name)));
    let took = printer.out(DIM, &duration(model.took));
    match &model.structured {
        Ok(()) => {
            let how = model.dialect.map_or("", Dialect::as_str);
            printer.data(&format!(
                "{name}  {}  JSON by {how}  {took}",
                printer.out(GREEN, "ok  ")
            ))?;
        }
        Err(problem) => {
            printer.data(&format!(
                "{name}  {}  {}  {took}",
                printer.out(RED, "fail"),
                line(problem)
            ))?;
        }
    }
    match &model.calls {
        _ if model.silent => {}
        Ok(()) => printer.data(&format!("  {}  it calls tools", printer.out(GREEN, "ok  ")))?,
        Err(problem) => {
            printer.data(&format!(
                "  {}  {} (agent steps need that)",
                printer.out(YELLOW, "warn"),
                line(problem)
            ))?;
        }
    }
    if let Some(cost) = model.cost {
        printer.data(&format!(
            "  {}",
            printer.out(DIM, &format!("{} tokens, {cost}", model.usage.total()))
        ))?;
    }
    Ok(())
}

fn model_document(model: &CheckedModel) -> Value {
    json!({
        "name": model.name,
        "ok": model.works(),
        "reachable": !model.silent,
        "problem": model.structured.as_ref().err(),
        "structured": model.dialect.map(Dialect::as_str),
        "toolCalling": model.calls.is_ok(),
        "toolProblem": model.calls.as_ref().err().filter(|_| !model.silent),
        "millis": u64::try_from(model.took.as_millis()).unwrap_or(u64::MAX),
        "usage": model.usage,
        "cost": model.cost,
    })
}
