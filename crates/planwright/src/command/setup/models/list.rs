//! `models list`: which models there are. None is asked.

use crate::exit::{Exit, Failure};
use crate::terminal::no_model::CONFIGURE_MODEL;
use crate::terminal::printer::{BOLD, DIM, GREEN, Printer, RED, line};
use crate::workspace::app::CommandContext;
use planwright_adapters::model::Models;
use planwright_engine::Redaction;
use planwright_engine::port::{KeyState, Model as _, ModelInfo};
use serde_json::{Value, json};

pub(crate) fn run(context: &CommandContext) -> Result<Exit, Failure> {
    let models = context.models(&Redaction::default())?;
    let printer = context.printer;
    let listed = models.models();
    if printer.json {
        printer.document(
            &listed
                .iter()
                .map(|model| model_document(&models, model))
                .collect::<Vec<Value>>(),
        )?;
        return Ok(Exit::Done);
    }
    if listed.is_empty() {
        printer.talk("no model is configured");
        printer.hint(CONFIGURE_MODEL);
    }
    for model in &listed {
        print_model(printer, &models, model)?;
    }
    Ok(Exit::Done)
}

fn print_model(printer: Printer, models: &Models, model: &ModelInfo) -> Result<(), Failure> {
    let roles: Vec<&str> = model.roles.iter().map(|role| role.as_str()).collect();
    let name = printer.out(BOLD, &format!("{:36}", line(&model.name)));
    printer.data(&format!("{name}  {}", roles.join(", ")))?;
    let key = match &model.key {
        None => printer.out(DIM, "no key"),
        Some(KeyState {
            source,
            present: true,
        }) => {
            format!("{}  {}", printer.out(GREEN, "key"), line(source))
        }
        Some(KeyState {
            source,
            present: false,
        }) => {
            format!("{}  {}", printer.out(RED, "key missing"), line(source))
        }
    };
    let context = model
        .context_tokens
        .map(|tokens| format!("  {tokens} tokens of context"))
        .unwrap_or_default();
    let price = models
        .price(&model.name)
        .map(|price| format!("  ${}/${} per million", price.input, price.output));
    printer.data(&format!(
        "  {}  {key}{context}{}",
        line(&model.endpoint),
        price.unwrap_or_default()
    ))?;
    if let Some(obstacle) = models.obstacle(&model.name) {
        printer.data(&format!(
            "  {}  {}",
            printer.out(RED, "cannot be asked"),
            line(&obstacle)
        ))?;
    }
    Ok(())
}

fn model_document(models: &Models, model: &ModelInfo) -> Value {
    let price = models.price(&model.name);
    json!({
        "name": model.name,
        "roles": model.roles,
        "endpoint": model.endpoint,
        "key": model.key.as_ref().map(|key| json!({ "source": key.source, "present": key.present })),
        "contextTokens": model.context_tokens,
        "price": price.map(|price| json!({
            "input": price.input, "output": price.output, "cached": price.cached,
        })),
        "obstacle": models.obstacle(&model.name),
    })
}
