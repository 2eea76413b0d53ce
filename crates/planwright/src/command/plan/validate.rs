//! `validate`: everything that is wrong with a plan, at once.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::Printer;
use crate::workspace::app::{Access, CommandContext};
use crate::workspace::plan_file;
use crate::workspace::plan_source::{self, PlanSource, read_text, unreadable_plan};
use crate::workspace::servers::Need;
use crate::workspace::variables::VariableFlags;
use planwright_api::ValidationResult;
use planwright_core::plan::{Code, Document, ReadPlanError};
use planwright_engine::CheckedDocument;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A file, `-` for stdin, or a plan id.
    #[arg(value_name = "FILE|ID")]
    plan: String,
    #[command(flatten)]
    variables: VariableFlags,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let source = PlanSource::parse(&args.plan)?;
    let app = context.open(Access::Read)?;
    let bounds = context.config.bounds();
    let document = match &source {
        PlanSource::Id(_) => {
            let (review, _) = plan_source::load_plan_for_reading(&app, &args.plan).await?;
            (*review.current().document).clone()
        }
        PlanSource::File(_) | PlanSource::Stdin => {
            let (name, text) = read_text(&source, &bounds)?;
            let path = match &source {
                PlanSource::File(path) => Some(path.as_path()),
                PlanSource::Stdin | PlanSource::Id(_) => None,
            };
            match plan_file::parse(path, &text, None, &bounds) {
                Ok(text) => text.into_document(),
                Err(error) => {
                    let all = if error.code == Code::Shape {
                        Document::find_shape_errors(&text, &bounds)
                    } else {
                        Vec::new()
                    };
                    return report_unreadable(context.printer, &name, error, all);
                }
            }
        }
    };
    let mut document = document;
    document.variables.extend(args.variables.read()?);
    app.start_servers(&document, Need::Look).await?;
    let CheckedDocument {
        plan,
        digest,
        findings,
    } = app.engine.trials().check_document(document).await?;
    let result = ValidationResult::new(plan.as_ref(), digest, findings);
    let exit = if result.ok { Exit::Done } else { Exit::Usage };
    if context.printer.json {
        context.printer.document(&result)?;
        return Ok(exit);
    }
    if !result.ok {
        return Err(Failure::usage("the plan is not valid").findings(result.findings));
    }
    context.printer.findings(&result.findings);
    let ValidationResult {
        digest,
        levels,
        critical_path,
        ..
    } = result;
    let levels: Vec<String> = levels.iter().map(|level| level.join(" ∥ ")).collect();
    context
        .printer
        .data(&format!("valid: {}", levels.join("  →  ")))?;
    context
        .printer
        .data(&format!("critical path: {}", critical_path.join(" → ")))?;
    context
        .printer
        .data(&format!("digest: {}", digest.unwrap_or_default()))?;
    Ok(Exit::Done)
}

/// Reports a text that is no plan, with everything that is wrong with its shape. For programs these
/// are findings too, so that they see one shape.
fn report_unreadable(
    printer: Printer,
    name: &str,
    error: ReadPlanError,
    all: Vec<ReadPlanError>,
) -> Result<Exit, Failure> {
    let several = all.len() > 1;
    let findings = || all.into_iter().map(ReadPlanError::into_finding).collect();
    if printer.json {
        let findings = match several {
            true => findings(),
            false => vec![error.into_finding()],
        };
        printer.document(&ValidationResult::new(None, None, findings))?;
        return Ok(Exit::Usage);
    }
    Err(match several {
        true => Failure::usage(format!("{name}: this is not a plan")).findings(findings()),
        false => unreadable_plan(name, &error),
    })
}
