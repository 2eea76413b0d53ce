//! `call`: calls a tool of the plan from inside an executor. The step's own gateway decides about
//! it.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::Printer;
use planwright_adapters::executor::{CallGatewayError, GATEWAY, STEP_TOKEN, call_gateway};
use serde_json::{Value, json};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The tool, as the plan names it. Without one, the tools in scope are listed.
    tool: Option<String>,
    /// Its arguments as a JSON object; `-` reads them from standard input.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    args: String,
}

pub(crate) async fn run(printer: Printer, args: &Args) -> Result<Exit, Failure> {
    let (gateway, token) = read_place()?;
    let text = match args.args.as_str() {
        "-" => std::io::read_to_string(std::io::stdin())
            .map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?,
        text => text.to_owned(),
    };
    let given: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("--args is not JSON: {error}")))?;
    let call = args.tool.as_deref().map(|tool| (tool, given));
    match call_gateway(&gateway, &token, call).await {
        Ok(value) if printer.json => printer.document(&json!({"result": value}))?,
        // Data for the script that asked, so it is printed as it is.
        Ok(Value::String(text)) => printer.data(&text)?,
        Ok(value) => printer.data(&value.to_string())?,
        Err(error @ (CallGatewayError::Refused { .. } | CallGatewayError::Address(_))) => {
            return Err(Failure::refused(error.to_string()));
        }
        Err(error) => return Err(Failure::new(Exit::RunFailed, error.to_string())),
    }
    Ok(Exit::Done)
}

/// The address and the token of the gateway, as the environment says.
pub(super) fn read_place() -> Result<(String, String), Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (Some(gateway), Some(token)) = (variable(GATEWAY), variable(STEP_TOKEN)) else {
        return Err(Failure::usage(format!("{GATEWAY} and {STEP_TOKEN} are not set"))
            .hint("This command works inside an executor that a step of a plan started. To see how: planwright explain agents"));
    };
    Ok((gateway, token))
}
