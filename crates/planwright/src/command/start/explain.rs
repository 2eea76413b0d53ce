//! `explain`: what a code of a finding or an error means, and the pages of the documentation.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::{BOLD, Printer, line};
use planwright_core::plan::{Code, Severity};
use planwright_core::text::nearest_names;
use serde_json::json;

/// Every code of an error, with its kind, its exit code, its HTTP status and its meaning.
const ERROR_CODES: &str = include_str!("../../../../../docs/errors/codes.md");

/// A page of the documentation, under its name.
macro_rules! page {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../../../docs/", $name, ".md")),
        )
    };
}

/// The documentation: those who have the program have no folder of it.
const PAGES: &[(&str, &str)] = &[
    page!("access"),
    page!("agents-setup"),
    page!("agents"),
    page!("chat"),
    page!("configuration"),
    page!("control-flow"),
    page!("editing"),
    page!("events"),
    page!("gateway"),
    page!("glossary"),
    page!("injection"),
    page!("installing"),
    page!("journal"),
    page!("mcp-server"),
    page!("mcp"),
    page!("models"),
    page!("observability"),
    page!("one-developer"),
    page!("page"),
    page!("plan-files"),
    page!("planning"),
    page!("policy"),
    page!("receipts"),
    page!("reflection"),
    page!("review"),
    page!("scale"),
    page!("secrets"),
    page!("servers"),
    page!("service"),
    page!("store"),
    page!("sub-plans"),
    page!("templates"),
    page!("terminal"),
    page!("trust"),
    page!("undo"),
    page!("webhooks"),
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A code, as `E0106` or `plan_not_approved`, or a page of the documentation, as `policy`.
    #[arg(value_name = "CODE|PAGE")]
    code: String,
}

pub(crate) fn run(printer: Printer, args: &Args) -> Result<Exit, Failure> {
    let named = args.code.trim();
    let finding = Code::ALL
        .into_iter()
        .find(|code| code.as_str().eq_ignore_ascii_case(named));
    if let Some(code) = finding {
        return explain_finding(printer, code);
    }
    let error = error_rows().find(|row| row.code == named.to_ascii_lowercase());
    if let Some(row) = error {
        return explain_error(printer, &row);
    }
    match PAGES.iter().find(|(name, _)| *name == named) {
        Some((name, text)) => show_page(printer, name, text),
        None => Err(unknown_code(named)),
    }
}

fn show_page(printer: Printer, name: &str, text: &str) -> Result<Exit, Failure> {
    if printer.json {
        printer.document(&json!({ "page": name, "text": text }))?;
    } else {
        printer.data(text.trim_end())?;
    }
    Ok(Exit::Done)
}

fn explain_finding(printer: Printer, code: Code) -> Result<Exit, Failure> {
    let severity = match code.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    if printer.json {
        printer.document(&json!({
            "code": code.as_str(),
            "severity": severity,
            "title": code.title(),
            "explanation": code.explanation(),
        }))?;
        return Ok(Exit::Done);
    }
    let heading = format!("{} ({severity}): {}", code.as_str(), code.title());
    printer.data(&printer.out(BOLD, &heading))?;
    printer.data("")?;
    printer.data(code.explanation())?;
    Ok(Exit::Done)
}

/// A row of the table of errors.
struct ErrorRow<'a> {
    code: &'a str,
    kind: &'a str,
    /// `None`: only the service answers with it.
    exit: Option<&'a str>,
    status: &'a str,
    meaning: &'a str,
}

fn error_rows() -> impl Iterator<Item = ErrorRow<'static>> {
    let rows = ERROR_CODES.lines().filter(|line| line.starts_with("| `"));
    rows.filter_map(|row| {
        let mut cells = row.trim_matches('|').splitn(5, '|').map(str::trim);
        Some(ErrorRow {
            code: cells.next()?.trim_matches('`'),
            kind: cells.next()?,
            exit: Some(cells.next()?).filter(|cell| !cell.is_empty()),
            status: cells.next()?,
            meaning: cells.next().unwrap_or_default(),
        })
    })
}

fn explain_error(printer: Printer, row: &ErrorRow<'_>) -> Result<Exit, Failure> {
    let ErrorRow {
        code,
        kind,
        exit,
        status,
        meaning,
    } = row;
    if printer.json {
        printer.document(&json!({
            "code": code, "kind": kind, "exitCode": exit, "status": status, "explanation": meaning,
        }))?;
        return Ok(Exit::Done);
    }
    printer.data(&printer.out(BOLD, &format!("{code} ({kind})")))?;
    printer.data("")?;
    if !meaning.is_empty() {
        printer.data(meaning)?;
    }
    printer.data(&match exit {
        Some(exit) => format!("exit code {exit}, HTTP status {status}"),
        None => format!("HTTP status {status}"),
    })?;
    Ok(Exit::Done)
}

fn unknown_code(named: &str) -> Failure {
    let findings = Code::ALL.into_iter().map(|code| code.as_str().to_owned());
    let errors = error_rows().map(|row| row.code.to_owned());
    let pages = PAGES.iter().map(|(name, _)| (*name).to_owned());
    let near = nearest_names(named, findings.chain(errors).chain(pages));
    let failure = Failure::usage(format!("there is no code or page `{}`", line(named)));
    match near.as_slice() {
        [] => failure.hint(format!(
            "codes are printed with errors, as in `error E0106`; pages are {}",
            PAGES
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(", ")
        )),
        near => failure.hint(format!("did you mean {}?", near.join(" or "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_pages_that_are_there() {
        for (name, text) in PAGES {
            assert!(text.starts_with("# "), "{name}");
        }
        let hint = crate::terminal::no_model::CONFIGURE_MODEL;
        let page = hint.rsplit("planwright explain ").next().unwrap();
        let page = page.trim_end_matches(')');
        assert!(PAGES.iter().any(|(name, _)| *name == page), "{hint}");
    }

    #[test]
    fn every_row_of_the_table_is_read() {
        let rows: Vec<ErrorRow<'_>> = error_rows().collect();
        assert!(rows.len() > 50, "{}", rows.len());
        for row in rows {
            assert!(!row.code.is_empty() && !row.kind.is_empty(), "{}", row.code);
            assert!(row.status.parse::<u16>().is_ok(), "{}", row.code);
            if let Some(exit) = row.exit {
                assert!(exit.parse::<u8>().is_ok(), "{}: {exit}", row.code);
            }
        }
    }
}
