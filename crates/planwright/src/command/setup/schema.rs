//! `schema`: the JSON Schema of plans.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::Printer;
use planwright_core::plan::json_schema;

pub(crate) fn run(printer: Printer) -> Result<Exit, Failure> {
    printer.data(&format!("{:#}", json_schema()))?;
    Ok(Exit::Done)
}
