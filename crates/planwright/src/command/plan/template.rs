//! `template`: plans with inputs, kept to be used again.

use super::import::propose_document;
use crate::exit::{Exit, Failure};
use crate::terminal::dag;
use crate::terminal::printer::{BOLD, line};
use crate::workspace::app::{Access, App, CommandContext};
use crate::workspace::plan_source::{
    PlanSource, check_storable, load_plan, load_plan_for_reading, parse_id, read_document,
};
use crate::workspace::servers::Need;
use crate::workspace::variables::{read_assignments, read_object};
use planwright_api::{TemplateInput, TemplateLine};
use planwright_core::id::PlanId;
use planwright_core::plan::{Document, FromTemplate};
use planwright_core::review::ReviewState;
use planwright_engine::LoadError;
use serde_json::Map;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: TemplateCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TemplateCommand {
    /// Keep a plan with `inputs` under a name.
    Save {
        /// A file, `-` for stdin, or a plan id.
        #[arg(value_name = "FILE|ID")]
        plan: String,
        /// The name, which is the id of the template.
        #[arg(long)]
        name: String,
    },
    /// List the templates.
    List,
    /// Show a template and its inputs.
    Show {
        /// Its name, or enough of its beginning.
        name: String,
    },
    /// Make a plan from a template.
    Use(UseArgs),
}

#[derive(Debug, clap::Args)]
struct UseArgs {
    name: String,
    /// An input. The value is JSON if it reads as JSON, else text.
    #[arg(long = "input", value_name = "NAME=VALUE")]
    input: Vec<String>,
    /// A JSON file with an object of inputs. `--input` wins over it.
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
    /// The id of the plan; made from its content when absent.
    #[arg(long)]
    id: Option<String>,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    match &args.command {
        TemplateCommand::Save { plan, name } => save_template(context, plan, name).await,
        TemplateCommand::List => list_templates(context).await,
        TemplateCommand::Show { name } => show_template(context, name).await,
        TemplateCommand::Use(args) => use_template(context, args).await,
    }
}

async fn save_template(context: &CommandContext, plan: &str, name: &str) -> Result<Exit, Failure> {
    let name = parse_id(name)?;
    let source = PlanSource::parse(plan)?;
    let (app, document) = match &source {
        PlanSource::Id(id) => {
            let app = context.open_existing()?;
            let (review, _) = load_plan(&app, id).await?;
            (app, (*review.current().document).clone())
        }
        PlanSource::File(_) | PlanSource::Stdin => {
            let document = read_document(&source, &context.config.bounds())?;
            require_inputs(&document)?;
            check_storable(context, plan, &document)?;
            (context.open(Access::Write)?, document)
        }
    };
    require_inputs(&document)?;
    refuse_other_plan(&app, &name).await?;
    propose_document(
        &app,
        Document {
            id: Some(name),
            ..document
        },
    )
    .await
}

fn require_inputs(document: &Document) -> Result<(), Failure> {
    if document.is_template() {
        return Ok(());
    }
    Err(
        Failure::usage("the plan has no `inputs`, so there is nothing to fill in")
            .hint("describe its parameters as a JSON Schema in `inputs`"),
    )
}

/// Refuses to replace a plan with a template.
async fn refuse_other_plan(app: &App, name: &PlanId) -> Result<(), Failure> {
    match app.engine.plans().load_review(name).await {
        Ok((review, _))
            if review.state() != ReviewState::Deleted
                && !review.current().document.is_template() =>
        {
            Err(
                Failure::refused(format!("`{name}` is a plan without inputs"))
                    .hint("choose another --name"),
            )
        }
        Ok(_) | Err(LoadError::NoSuchPlan(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn list_templates(context: &CommandContext) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let mut lines = Vec::new();
    for info in app.engine.journals().plans().await? {
        // One damaged plan does not hide the others.
        let review = match app.engine.plans().load_review(&info.status.plan).await {
            Ok((review, _)) => review,
            Err(error) => {
                app.printer()
                    .warn(&format!("{}: {error}", info.status.plan));
                continue;
            }
        };
        if review.state() != ReviewState::Deleted && review.current().document.is_template() {
            lines.push(TemplateLine::new(&review));
        }
    }
    lines.sort_by(|a, b| a.id.cmp(&b.id));
    if app.printer().json {
        app.printer().document(&lines)?;
        return Ok(Exit::Done);
    }
    for template in &lines {
        let inputs: Vec<String> = template.inputs.iter().map(format_input).collect();
        let id = &template.id;
        let version = template.version;
        let title = line(&template.title);
        app.printer().data(&format!(
            "{id:24}  v{version:<3} {}  {title}",
            inputs.join(" ")
        ))?;
    }
    if lines.is_empty() {
        app.printer().talk("no templates yet");
        app.printer()
            .hint("planwright template save FILE --name NAME keeps a plan with `inputs`");
    }
    Ok(Exit::Done)
}

fn format_input(input: &TemplateInput) -> String {
    let name = line(&input.name);
    if input.required {
        name
    } else {
        format!("[{name}]")
    }
}

async fn show_template(context: &CommandContext, name: &str) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let (review, _) = load_plan_for_reading(&app, name).await?;
    require_inputs(&review.current().document)?;
    let template = TemplateLine::new(&review);
    let printer = app.printer();
    if printer.json {
        printer.document(&template)?;
        return Ok(Exit::Done);
    }
    let title = if template.title.is_empty() {
        template.id.clone()
    } else {
        line(&template.title)
    };
    printer.data(&printer.out(BOLD, &title))?;
    printer.data(&format!("{}  version {}", template.id, template.version))?;
    for input in &template.inputs {
        let kind = input.type_name.as_deref().map(line).unwrap_or_default();
        let rest = match &input.default {
            Some(default) => format!("default {}", line(&default.to_string())),
            None if input.required => "required".to_owned(),
            None => "optional".to_owned(),
        };
        let about = input.description.as_deref().map(line).unwrap_or_default();
        printer.data(&format!(
            "  {:16}  {kind:8}  {rest}  {about}",
            line(&input.name)
        ))?;
    }
    app.start_servers(&review.current().document, Need::Look)
        .await?;
    let candidate = app.engine.plans().candidate(&review, &Map::new()).await?;
    printer.data("")?;
    printer.data(dag::render(&candidate.plan, None).trim_end())?;
    printer.hint(&format!(
        "To make a plan: planwright template use {} --input NAME=VALUE",
        template.id
    ));
    Ok(Exit::Done)
}

async fn use_template(context: &CommandContext, args: &UseArgs) -> Result<Exit, Failure> {
    let mut given = read_object(args.inputs.as_deref())?;
    read_assignments("--input", &args.input, &mut given)?;
    let id = args.id.as_deref().map(parse_id).transpose()?;
    let app = context.open_existing()?;
    let (review, _) = load_plan(&app, &parse_id(&args.name)?).await?;
    let template = &review.current().document;
    let version = review.current().number;
    require_inputs(template)?;
    let origin = FromTemplate {
        id: review.id().clone(),
        version,
    };
    let mut document = template.fill(origin, &given).map_err(|findings| {
        Failure::usage(format!(
            "template `{}` does not take these inputs",
            review.id()
        ))
        .findings(findings)
    })?;
    if let Some(id) = &id {
        refuse_template(&app, id).await?;
    }
    document.id = id;
    propose_document(&app, document).await
}

/// A plan made from a template must not replace one.
async fn refuse_template(app: &App, id: &PlanId) -> Result<(), Failure> {
    match app.engine.plans().load_review(id).await {
        Ok((review, _))
            if review.state() != ReviewState::Deleted
                && review.current().document.is_template() =>
        {
            Err(Failure::refused(format!("`{id}` is a template")).hint("choose another --id"))
        }
        Ok(_) | Err(LoadError::NoSuchPlan(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
