//! `schema`: the JSON Schema of plans.

use crate::exit::{Exit, Failure};
use crate::printer::Printer;
use planwright_core::plan::Document;

pub(crate) fn run(printer: Printer) -> Result<Exit, Failure> {
    let schema = schemars::schema_for!(Document).to_value();
    printer.data(&format!("{schema:#}"))?;
    Ok(Exit::Done)
}
