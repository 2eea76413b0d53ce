//! `secrets`: which there are, where they are kept, and whether they can be used. Never what they
//! are.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::{BOLD, DIM, GREEN, RED, line};
use crate::workspace::app::CommandContext;
use planwright_adapters::secrets::ConfiguredSecrets;
use planwright_core::secret::SecretName;
use planwright_engine::port::Secrets as _;
use planwright_server::http::OperatorSecret;
use serde::Serialize;
use std::collections::BTreeSet;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: SecretsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum SecretsCommand {
    /// Names, sources and whether each can be used now.
    List,
    /// Fails with exit code 2 unless every secret named (default: all) can be used now.
    Check {
        /// Names as in `${secret.NAME}`.
        names: Vec<String>,
    },
}

/// One secret, for people and programs.
#[derive(Debug, Serialize)]
pub(crate) struct SecretLine {
    name: String,
    source: String,
    pub(crate) available: bool,
    /// The patterns of the tools that may have it; absent if every tool may.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

impl From<SecretLine> for OperatorSecret {
    fn from(line: SecretLine) -> Self {
        Self {
            name: line.name,
            source: line.source,
            available: line.available,
            tools: line.tools,
            problem: line.problem,
        }
    }
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let secrets = context.config.secrets(&context.workspace.root)?;
    let (names, check) = match &args.command {
        SecretsCommand::List => (secrets.names(), false),
        SecretsCommand::Check { names } if names.is_empty() => (secrets.names(), true),
        SecretsCommand::Check { names } => (
            names
                .iter()
                .map(|name| parse_name(name))
                .collect::<Result<_, _>>()?,
            true,
        ),
    };
    let listed = probe_secrets(&secrets, names).await;
    print_secrets(context, &listed)?;
    let unusable = listed.iter().filter(|secret| !secret.available).count();
    Ok(if check && unusable > 0 {
        Exit::Usage
    } else {
        Exit::Done
    })
}

fn parse_name(name: &str) -> Result<SecretName, Failure> {
    SecretName::new(name).ok_or_else(|| Failure::usage(format!("{name:?} is no name of a secret")))
}

/// Reads each secret to see whether it can be used, and lets it go at once.
pub(crate) async fn probe_secrets(
    secrets: &ConfiguredSecrets,
    names: BTreeSet<SecretName>,
) -> Vec<SecretLine> {
    let mut listed = Vec::new();
    for name in names {
        let spec = secrets.spec(&name);
        let problem = secrets
            .get(&name)
            .await
            .err()
            .map(|error| error.to_string());
        listed.push(SecretLine {
            name: name.to_string(),
            source: spec.source.to_string(),
            available: problem.is_none(),
            tools: spec.tools,
            problem,
        });
    }
    listed
}

fn print_secrets(context: &CommandContext, listed: &[SecretLine]) -> Result<(), Failure> {
    let printer = context.printer;
    if printer.json {
        return printer.document(&listed);
    }
    if listed.is_empty() {
        printer
            .talk("no secrets: configure them in planwright.toml, or set PLANWRIGHT_SECRET_<NAME>");
    }
    for SecretLine {
        name,
        source,
        available,
        tools,
        problem,
    } in listed
    {
        let name = printer.out(BOLD, &format!("{name:20}"));
        let state = if *available {
            printer.out(GREEN, "available")
        } else {
            printer.out(RED, "missing  ")
        };
        let tools = tools
            .as_ref()
            .map(|tools| format!("  for {}", tools.join(", ")))
            .unwrap_or_default();
        printer.data(&format!(
            "{name}  {state}  {}{}",
            line(source),
            printer.out(DIM, &line(&tools))
        ))?;
        if let Some(problem) = problem {
            printer.data(&format!("{:20}  {}", "", line(problem)))?;
        }
    }
    Ok(())
}
