//! `init`: a first configuration of this folder, with what is found on this machine.

use super::found::{FoundModel, FoundServer, find_models, find_servers};
use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::line;
use crate::workspace::app::CommandContext;
use serde_json::json;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};

/// The file that is written.
const FILE: &str = "planwright.toml";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the configuration instead of writing it.
    #[arg(long)]
    print: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let printer = context.printer;
    let models = find_models();
    let servers = find_servers();
    let text = write_configuration(&models, &servers);
    if args.print {
        printer.raw(text.as_bytes())?;
        return Ok(Exit::Done);
    }
    let path = context.workspace.root.join(FILE);
    let written = match OpenOptions::new().write(true).create_new(true).open(&path) {
        Ok(mut file) => {
            let done = file.write_all(text.as_bytes());
            done.map_err(|error| Failure::usage(format!("cannot write {FILE}: {error}")))?;
            true
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
        Err(error) => return Err(Failure::usage(format!("cannot write {FILE}: {error}"))),
    };
    let untrusted = context.folder.untrusted_loosenings().next().is_some();
    let next = next_command(!models.is_empty(), untrusted);
    if printer.json {
        let servers: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        printer.document(&json!({
            "file": path.display().to_string(), "written": written,
            "models": models.iter().map(|model| &model.name).collect::<Vec<_>>(),
            "servers": servers, "next": next,
        }))?;
        return Ok(Exit::Done);
    }
    match written {
        true => printer.data(&format!("wrote {}", line(&path.display().to_string())))?,
        false => printer.data(&format!("{FILE} already exists; left unchanged"))?,
    }
    for model in &models {
        printer.data(&format!(
            "model   {}  ({})",
            line(&model.name),
            line(&model.origin)
        ))?;
    }
    if models.is_empty() {
        printer.data("model   none found: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or start Ollama")?;
    }
    let count = count_of(servers.len(), "server", "servers");
    printer.data(&format!("servers {count} in the files of other programs"))?;
    printer.hint(&format!("Next: {next}"));
    Ok(Exit::Done)
}

fn next_command(has_model: bool, untrusted: bool) -> &'static str {
    match (untrusted, has_model) {
        (true, _) => "planwright trust",
        (false, true) => "planwright create \"what you want done\"",
        (false, false) => "planwright new -o plan.json, then planwright run plan.json",
    }
}

/// The configuration, with everything that is a choice as a comment.
fn write_configuration(models: &[FoundModel], servers: &[FoundServer]) -> String {
    let mut text = String::from(
        "# Planwright in this folder. Everything here is optional; `planwright doctor` checks it.\n\n",
    );
    text.push_str("# Who plans, thinks and reflects: provider/name.\n[models]\n");
    match models.split_first() {
        Some((first, others)) => {
            text.push_str(&model_line("", first));
            for other in others {
                text.push_str(&model_line("# ", other));
            }
        }
        None => text.push_str("# default = \"anthropic/claude-sonnet-4-5\"\n"),
    }
    text.push_str(
        "\n# What may run without asking. The first rule that fits decides; what no rule fits is asked about\n\
         # unless it only reads.\n\
         # [[policy.rules]]\n# tool = \"local.write_file\"\n# if = 'args.path.startsWith(\"out/\")'\n# then = \"allow\"\n\
         \n# Commands are off by default.\n# [local]\n# run_command = true\n",
    );
    text.push_str(
        "\n# MCP servers. Those of .mcp.json and .vscode/mcp.json are used once you trust them.\n",
    );
    match servers {
        [] => text.push_str(
            "# [servers.files]\n# command = \"npx\"\n\
             # args = [\"-y\", \"@modelcontextprotocol/server-filesystem\", \".\"]\n",
        ),
        servers => {
            for server in servers {
                text.push_str(&server.as_comment());
            }
        }
    }
    text
}

fn model_line(mark: &str, model: &FoundModel) -> String {
    let name = toml::Value::String(model.name.clone());
    let origin = line(&model.origin);
    format!("{mark}default = {name}   # {origin}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_sound_with_and_without_its_comments() {
        let models = [
            FoundModel::new("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY is set"),
            FoundModel::new("ollama/qwen3:8b", "Ollama on this machine"),
        ];
        let server = FoundServer {
            name: "git hub".to_owned(),
            origin: "~/.cursor/mcp.json".to_owned(),
            command: Some("npx\nevil = true".to_owned()),
            args: vec!["-y".to_owned(), "x\"y".to_owned()],
            url: None,
            variables: vec!["TOKEN".to_owned()],
        };
        for text in [
            write_configuration(&models, &[server]),
            write_configuration(&[], &[]),
        ] {
            crate::config::file::Config::parse(&text).unwrap();
            let lines = text.lines().filter(|line| {
                // Sentences stay comments, and one of the models is enough.
                let setting = line.strip_prefix("# ").unwrap_or_default();
                setting.starts_with('[')
                    || setting.contains(" = ") && !setting.starts_with("default")
            });
            let bare: Vec<&str> = lines.map(|line| line.trim_start_matches("# ")).collect();
            toml::from_str::<toml::Table>(&bare.join("\n")).unwrap();
        }
    }
}
