//! `tools`: what plans can call, and what is turned off.

use crate::exit::{Exit, Failure};
use crate::printer::{BOLD, DIM, YELLOW, line};
use crate::wire_up::Setting;
use planwright_core::tool::{KnownTool, ResolveToolError};
use planwright_engine::port::Tools as _;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// One tool, with its schemas.
    name: Option<String>,
}

pub(crate) fn run(setting: &Setting, args: &Args) -> Result<Exit, Failure> {
    let (toolbox, printer) = (setting.toolbox()?, setting.printer);
    let catalog = toolbox.catalog();
    let disabled = toolbox.disabled();
    if let Some(name) = &args.name {
        let is_off = disabled.iter().find(|(tool, _)| tool == name || tool.ends_with(&format!(".{name}")));
        let tool = catalog.resolve(name).map_err(|error| {
            let nearest = match &error {
                ResolveToolError::Unknown { nearest, .. } => nearest.join(", "),
                ResolveToolError::Ambiguous { .. } => String::new(),
            };
            match is_off {
                Some((tool, how)) => Failure::usage(format!("{tool} is turned off")).hint(*how),
                None if nearest.is_empty() => Failure::usage(error.to_string()),
                None => Failure::usage(error.to_string()).hint(format!("did you mean {nearest}?")),
            }
        })?;
        if printer.json {
            printer.document(&describe(tool))?;
        } else {
            printer.data(&format!("{:#}", describe(tool)))?;
        }
        return Ok(Exit::Done);
    }
    if printer.json {
        let known = catalog.iter().map(describe);
        let off = disabled.iter().map(|(tool, how)| {
            let (server, name) = tool.split_once('.').unwrap_or_default();
            json!({ "server": server, "name": name, "enabled": false, "enable": how })
        });
        printer.document(&known.chain(off).collect::<Vec<Value>>())?;
        return Ok(Exit::Done);
    }
    for tool in catalog.iter() {
        let reads = if tool.is_read_only() { "read-only" } else { "writes" };
        let description = line(tool.definition.description.as_deref().unwrap_or_default());
        let name = printer.out(BOLD, &format!("{:20}", tool.name.to_string()));
        printer.data(&format!(
            "{name}  {:6}  {reads:9}  {}  {description}",
            tool.class.as_str(),
            tool.digest.short()
        ))?;
    }
    for (tool, how) in &disabled {
        printer.data(&format!("{tool:20}  {}  {}", printer.out(YELLOW, "off"), printer.out(DIM, how)))?;
    }
    Ok(Exit::Done)
}

fn describe(tool: &Arc<KnownTool>) -> Value {
    let definition = &tool.definition;
    json!({
        "server": tool.name.server,
        "name": tool.name.tool,
        "enabled": true,
        "class": tool.class.as_str(),
        "readOnly": tool.is_read_only(),
        "description": definition.description,
        "digest": tool.digest,
        "inputSchema": definition.input_schema,
        "outputSchema": definition.output_schema,
        "annotations": definition.annotations,
    })
}
