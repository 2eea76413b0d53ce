//! `validate`: everything that is wrong with a plan, at once.

use crate::exit::{Exit, Failure};
use crate::workspace::app::{Access, CommandContext};
use crate::workspace::plan_file;
use crate::workspace::plan_source::{self, PlanSource, read_text, unreadable_plan};
use crate::workspace::servers::Need;
use crate::workspace::variables::VariableFlags;
use planwright_api::ValidationResult;
use planwright_core::plan::{ValidationReport, validate_with};

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
                // What cannot be read as a plan is a finding too, so that programs see one shape.
                Err(error) if context.printer.json => {
                    let result = ValidationResult::new(None, None, vec![error.into_finding()]);
                    context.printer.document(&result)?;
                    return Ok(Exit::Usage);
                }
                Err(error) => return Err(unreadable_plan(&name, &error)),
            }
        }
    };
    let mut document = document;
    document.variables.extend(args.variables.read()?);
    app.start_servers(&document, Need::Look).await?;
    let catalog = app.engine.catalog();
    let plans = app.engine.plans().known_plans(&document).await?;
    let ValidationReport { plan, mut findings } =
        validate_with(document, &catalog, &plans, &bounds);
    findings.extend(
        plan.iter()
            .flat_map(|plan| app.engine.plans().missing_executor_findings(plan)),
    );
    let digest = plan
        .as_ref()
        .map(|plan| plan.digest(&catalog, app.engine.policy_version()));
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
