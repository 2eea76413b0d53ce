//! The person's word about what a project's files describe, the same for servers and for models.

use crate::consent::{Answer, ask};
use crate::exit::{Exit, Failure};
use crate::printer::{Printer, line};
use planwright_core::digest::Digest;
use serde_json::json;

/// Asks whether what was just shown is trusted, unless that was said with the command.
pub(crate) fn agree(printer: Printer, yes: bool, command: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !printer.can_ask() {
        return Err(Failure::refused("a person has to see this and agree")
            .hint(format!("repeat it at a terminal, or planwright {command} --yes")));
    }
    match ask(printer, "Trust it?")? {
        Answer::Yes => Ok(()),
        Answer::No | Answer::Neither => Err(Failure::refused("not trusted")),
    }
}

pub(crate) fn trusted(printer: Printer, name: &str, digest: Digest) -> Result<Exit, Failure> {
    if printer.json {
        printer.document(&json!({ "name": name, "trusted": true, "digest": digest }))?;
    } else {
        printer.data(&format!("{}  trusted  {digest}", line(name)))?;
    }
    Ok(Exit::Done)
}

pub(crate) fn untrusted(printer: Printer, name: &str, was_trusted: bool) -> Result<Exit, Failure> {
    if printer.json {
        printer.document(&json!({ "name": name, "trusted": false, "wasTrusted": was_trusted }))?;
    } else if was_trusted {
        printer.data(&format!("{}  no longer trusted", line(name)))?;
    } else {
        printer.data(&format!("{}  was not trusted", line(name)))?;
    }
    Ok(Exit::Done)
}
