//! `version`: which program this is.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::Printer;
use serde_json::json;

pub(crate) fn run(printer: Printer) -> Result<Exit, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    if printer.json {
        printer.document(&json!({ "version": version }))?;
    } else {
        printer.data(&format!("planwright {version}"))?;
    }
    Ok(Exit::Done)
}
