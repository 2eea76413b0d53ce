//! `tools`: what plans can call, and what is turned off.

use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::{BOLD, DIM, Printer, YELLOW, ago, block, line};
use crate::workspace::app::{Access, App, CommandContext};
use planwright_adapters::mcp::{ServerState, ServerStatus};
use planwright_core::time::Timestamp;
use planwright_core::tool::{Catalog, KnownTool, ResolveToolError};
use planwright_engine::port::Tools as _;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The characters for what a tool's results looked like.
const MAX_SEEN: usize = 2_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// One tool, in full.
    name: Option<String>,
    /// Start the servers and ask them, instead of showing what they said to an earlier command.
    #[arg(long)]
    refresh: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    find_tools(&app, args).await?;
    let catalog = app.tools.catalog();
    let seen = app.tools.remote().recalled_servers();
    match &args.name {
        Some(name) => print_tool(&app, &catalog, name, &seen),
        None => print_tools(&app, &catalog, &seen),
    }?;
    tell_when_seen(&app, &seen);
    Ok(Exit::Done)
}

/// Says that servers were not asked, and when they were.
fn tell_when_seen(app: &App, seen: &BTreeMap<String, Timestamp>) {
    let Some(first) = seen.values().min() else {
        return;
    };
    let names: Vec<String> = seen.keys().map(|name| line(name)).collect();
    let whose = match names.as_slice() {
        [_, _, _, _, ..] => count_of(names.len(), "server", "servers"),
        few => few.join(", "),
    };
    let when = ago(app.now().since(*first));
    app.printer().talk(&format!(
        "tools of {whose}: as seen {when}; planwright tools --refresh asks again"
    ));
}

/// Makes the tools known of the server of the tool that was named, or of every server that is ready.
async fn find_tools(app: &App, args: &Args) -> Result<(), Failure> {
    let name = args.name.as_deref();
    let server = name.and_then(|name| match name.strip_prefix("mcp__") {
        Some(rest) => rest.split_once("__"),
        None => name.split_once('.'),
    });
    let named = server.and_then(|(server, _)| app.roster.find(server));
    let wanted: BTreeSet<String> = match (named, server) {
        (Some(server), _) => {
            if let Some((reason, hint)) = server.obstacle() {
                return Err(Failure {
                    hint,
                    ..Failure::refused(reason)
                });
            }
            BTreeSet::from([server.name.clone()])
        }
        (None, Some(("local" | "demo", _))) => BTreeSet::new(),
        (None, _) => app.roster.ready().map(|spec| spec.name.clone()).collect(),
    };
    app.warn_of_problems();
    let mut started = match args.refresh {
        true => Vec::new(),
        false => app.look_up(&wanted).await?,
    };
    // One that is not known may be new.
    let is_unknown = |name: &str| app.tools.catalog().resolve(name).is_err();
    if args.refresh || name.is_some_and(is_unknown) {
        started.extend(app.open_connections(&wanted).await?);
    }
    for ServerStatus { name, state } in started {
        if let ServerState::Failed { reason, .. } = state {
            app.printer().warn(&format!(
                "the server `{name}` could not be started: {reason}"
            ));
        }
    }
    for server in app.roster.untrusted_servers().filter(|_| named.is_none()) {
        app.printer().warn(&format!(
            "the server `{}` is not trusted, so its tools are unknown (planwright servers trust {0})",
            line(&server.name)
        ));
    }
    Ok(())
}

fn print_tool(
    app: &App,
    catalog: &Catalog,
    name: &str,
    seen: &BTreeMap<String, Timestamp>,
) -> Result<(), Failure> {
    let disabled = app.tools.local().disabled_tools();
    let is_off = disabled
        .iter()
        .find(|(tool, _)| tool == name || tool.ends_with(&format!(".{name}")));
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
    let document = dated_document(tool, seen);
    if app.printer().json {
        app.printer().document(&document)
    } else {
        app.printer().data(&block(&format!("{document:#}")))
    }
}

fn print_tools(
    app: &App,
    catalog: &Catalog,
    seen: &BTreeMap<String, Timestamp>,
) -> Result<(), Failure> {
    let disabled = app.tools.local().disabled_tools();
    let refused = app.tools.remote().refused_tools();
    let printer = app.printer();
    if printer.json {
        let known = catalog.iter().map(|tool| dated_document(tool, seen));
        let off = disabled.iter().map(|(tool, how)| {
            let (server, name) = tool.split_once('.').unwrap_or_default();
            json!({ "server": server, "name": name, "enabled": false, "enable": how })
        });
        let refused = refused.iter().map(|tool| {
            json!({ "server": tool.server, "name": tool.tool, "enabled": false, "refused": tool.reason })
        });
        return printer.document(&known.chain(off).chain(refused).collect::<Vec<Value>>());
    }
    for tool in catalog.iter() {
        print_tool_line(printer, tool)?;
    }
    for (server, said) in app.tools.instructions() {
        let first = said.lines().next().unwrap_or_default();
        let first = printer.out(DIM, &line(first));
        printer.data(&format!("{:20}  says  {first}", line(&server)))?;
    }
    for (tool, how) in &disabled {
        printer.data(&format!(
            "{tool:20}  {}  {}",
            printer.out(YELLOW, "off"),
            printer.out(DIM, how)
        ))?;
    }
    for tool in &refused {
        let name = format!("{}.{}", tool.server, line(&tool.tool));
        let reason = printer.out(DIM, &line(&tool.reason));
        printer.data(&format!(
            "{name:20}  {}  {reason}",
            printer.out(YELLOW, "refused")
        ))?;
    }
    Ok(())
}

/// The tools of a catalog whose names contain a word; one that is named exactly is shown in full.
pub(crate) fn print_matching_tools(
    printer: Printer,
    catalog: &Catalog,
    filter: Option<&str>,
) -> Result<(), Failure> {
    if let Some(tool) = filter.and_then(|name| catalog.resolve(name).ok()) {
        return match printer.json {
            true => printer.document(&tool_document(tool)),
            false => printer.data(&block(&format!("{:#}", tool_document(tool)))),
        };
    }
    let word = filter.unwrap_or_default().to_lowercase();
    let named: Vec<&Arc<KnownTool>> = catalog
        .iter()
        .filter(|tool| tool.name.to_string().to_lowercase().contains(&word))
        .collect();
    if printer.json {
        return printer.document(&named.into_iter().map(tool_document).collect::<Vec<Value>>());
    }
    if named.is_empty() {
        printer.talk("no tool has such a name");
    }
    named
        .into_iter()
        .try_for_each(|tool| print_tool_line(printer, tool))
}

/// What a tool says about itself is its server's word, and may be long.
fn print_tool_line(printer: Printer, tool: &KnownTool) -> Result<(), Failure> {
    const SHOWN: usize = 160;
    let reads = if tool.is_read_only() {
        "read-only"
    } else {
        "writes"
    };
    let description = line(tool.definition.description.as_deref().unwrap_or_default());
    let short: String = description.chars().take(SHOWN).collect();
    let more = if short.len() < description.len() {
        "…"
    } else {
        ""
    };
    let name = printer.out(BOLD, &format!("{:20}", tool.name.to_string()));
    let class = tool.class.as_shown();
    let digest = tool.digest().short();
    printer.data(&format!(
        "{name}  {class:10}  {reads:9}  {digest}  {short}{more}"
    ))?;
    match &tool.doubt {
        Some(doubt) => printer.data(&format!("    {} {doubt}", printer.out(YELLOW, "!"))),
        None => Ok(()),
    }
}

/// The document of a tool, and when its server listed it, if that was to an earlier command.
fn dated_document(tool: &Arc<KnownTool>, seen: &BTreeMap<String, Timestamp>) -> Value {
    let mut document = tool_document(tool);
    document["seenAt"] = json!(seen.get(&tool.name.server));
    document
}

fn tool_document(tool: &Arc<KnownTool>) -> Value {
    let definition = &tool.definition;
    json!({
        "server": tool.name.server,
        "name": tool.name.tool,
        "enabled": true,
        "class": tool.class.as_str(),
        "readOnly": tool.is_read_only(),
        "believed": tool.trusted,
        "doubt": tool.doubt,
        "title": definition.title,
        "description": definition.description,
        "digest": tool.digest(),
        "inputSchema": definition.input_schema,
        "outputSchema": definition.output_schema,
        "returnsAsSeen": tool.seen_shape().and_then(|seen| seen.write(MAX_SEEN)),
        "annotations": definition.annotations,
    })
}
