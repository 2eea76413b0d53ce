//! `edit`: changes a plan: by single changes, by a file, or in an editor. Every change is a new
//! version.

use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{YesNo, ask_yes_no};
use crate::terminal::diff;
use crate::terminal::editor::{Sheet, read_edited};
use crate::terminal::plan_status::load_status_line;
use crate::terminal::printer::line;
use crate::workspace::app::{App, CommandContext, user};
use crate::workspace::plan_source::{load_plan, parse_id};
use crate::workspace::projections::{render_markdown, update_plan_files};
use crate::workspace::servers::Need;
use clap::ValueEnum;
use planwright_api::EditedPlan;
use planwright_core::json::parse_strict;
use planwright_core::plan::{Bounds, Document, Edit, EditError, PlanDiff, Step};
use planwright_core::review::{Review, ReviewRefusal, ReviewStage, Version};
use planwright_engine::Editing;
use serde_json::{Map, Value};
use std::io::Read as _;
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    #[default]
    Md,
    Json,
}

/// Single changes are made in the order of this list.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "Without a change, the plan is opened in $VISUAL or $EDITOR.")]
pub(crate) struct Args {
    #[arg(value_name = "ID")]
    plan: String,
    /// Put a value at a path: `steps.fetch.args.path=notes.txt`, `title=…`,
    /// `limits.maxConcurrency=2`. The value is JSON if it reads as JSON and fits, else text. A step
    /// goes by its id, or its position.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Remove the value at a path.
    #[arg(long, value_name = "PATH")]
    unset: Vec<String>,
    /// Skip a step when the plan runs.
    #[arg(long, value_name = "STEP")]
    skip: Vec<String>,
    /// Stop skipping a step.
    #[arg(long, value_name = "STEP")]
    unskip: Vec<String>,
    /// Add a step: JSON, a file with it, or `-` for stdin. At the end, unless a place is named.
    #[arg(long, value_name = "FILE|JSON")]
    add: Option<String>,
    /// Move a step to the place that is named.
    #[arg(long = "move", value_name = "STEP", conflicts_with = "add")]
    relocate: Option<String>,
    /// Before this step.
    #[arg(long, value_name = "STEP", conflicts_with_all = ["after", "to"])]
    before: Option<String>,
    /// After this step.
    #[arg(long, value_name = "STEP", conflicts_with = "to")]
    after: Option<String>,
    /// To this position, counted from 1.
    #[arg(long, value_name = "N")]
    to: Option<usize>,
    /// Remove a step that no other step needs.
    #[arg(long, value_name = "STEP")]
    remove: Vec<String>,
    /// Take the plan from this file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["set", "unset", "skip", "unskip", "add", "relocate", "remove"])]
    file: Option<PathBuf>,
    /// What the editor shows.
    #[arg(long = "as", value_enum, default_value = "md", value_name = "FORM")]
    form: Form,
    /// Why. It is kept with the version.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The version the change is meant for. If the plan has moved on since, nothing is stored.
    #[arg(long, value_name = "VERSION")]
    base: Option<u32>,
    /// Show what would change, and store nothing.
    #[arg(long)]
    dry_run: bool,
    /// Store the edit without confirmation.
    #[arg(long, short = 'y')]
    yes: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    args.check_place()?;
    let id = parse_id(&args.plan)?;
    let app = context.open_existing()?;
    let (review, _) = load_plan(&app, &id).await?;
    let base = check_base_version(&review, args.base)?;
    let bounds = context.config.bounds();
    if let Some(path) = &args.file {
        let file = read_edited(path, &bounds)?;
        // What the file says about its version counts as much as what the command says.
        self::check_base_version(&review, file.version())?;
        file.print_notices(app.printer());
        return store_changes(&app, &review, file.document, args).await;
    }
    if args.has_changes() {
        let document = args.apply_changes(&base.document, &bounds)?;
        return store_changes(&app, &review, document, args).await;
    }
    edit_in_editor(&app, &review, &bounds, args).await
}

/// The version the change is meant for, which has to be the current one.
pub(crate) fn check_base_version(review: &Review, named: Option<u32>) -> Result<&Version, Failure> {
    let current = review.current();
    match named {
        Some(based_on) if based_on != current.number => Err(ReviewRefusal::Conflict {
            based_on,
            current: current.number,
        }
        .into()),
        Some(_) | None => Ok(current),
    }
}

impl Args {
    fn has_changes(&self) -> bool {
        let lists = [
            &self.set,
            &self.unset,
            &self.skip,
            &self.unskip,
            &self.remove,
        ];
        lists.iter().any(|list| !list.is_empty()) || self.add.is_some() || self.relocate.is_some()
    }

    fn check_place(&self) -> Result<(), Failure> {
        let places = self.before.is_some() || self.after.is_some() || self.to.is_some();
        match (places, self.add.is_some() || self.relocate.is_some()) {
            (true, false) => Err(Failure::usage(
                "--before, --after and --to say where --move or --add puts a step",
            )),
            (false, _) if self.relocate.is_some() => Err(Failure::usage(
                "--move needs a place: --before STEP, --after STEP or --to N",
            )),
            (true | false, _) => Ok(()),
        }
    }

    /// The document with all changes made.
    fn apply_changes(&self, document: &Document, bounds: &Bounds) -> Result<Document, Failure> {
        let mut document = document.clone();
        for assignment in &self.set {
            document = apply_assignment(&document, assignment, bounds)?;
        }
        document
            .with_edits(&self.collect_edits(bounds)?, bounds)
            .map_err(edit_failure)
    }

    fn collect_edits(&self, bounds: &Bounds) -> Result<Vec<Edit>, Failure> {
        let before = &self.before;
        let after = &self.after;
        let to = self.to;
        let place = || (before.clone(), after.clone(), to);
        let mut edits: Vec<Edit> = self
            .unset
            .iter()
            .map(|path| Edit::Unset { path: path.clone() })
            .collect();
        edits.extend(
            self.skip
                .iter()
                .map(|step| Edit::Skip { step: step.clone() }),
        );
        edits.extend(
            self.unskip
                .iter()
                .map(|step| Edit::Unskip { step: step.clone() }),
        );
        if let Some(text) = &self.add {
            let (before, after, to) = place();
            edits.push(Edit::Add {
                step: Box::new(read_step(text, bounds)?),
                before,
                after,
                to,
            });
        }
        if let Some(step) = &self.relocate {
            let (before, after, to) = place();
            edits.push(Edit::Move {
                step: step.clone(),
                before,
                after,
                to,
            });
        }
        if !self.remove.is_empty() {
            edits.push(Edit::Remove {
                steps: self.remove.clone(),
            });
        }
        Ok(edits)
    }
}

/// Sets one value. What reads as JSON is JSON, unless only a text fits there.
fn apply_assignment(
    document: &Document,
    assignment: &str,
    bounds: &Bounds,
) -> Result<Document, Failure> {
    let Some((path, text)) = assignment
        .split_once('=')
        .filter(|(path, _)| !path.is_empty())
    else {
        return Err(Failure::usage(format!(
            "`--set {}` is not PATH=VALUE",
            line(assignment)
        )));
    };
    let put = |value: Value| {
        document.with_edits(
            &[Edit::Set {
                path: path.to_owned(),
                value,
            }],
            bounds,
        )
    };
    let as_text = || put(Value::String(text.to_owned()));
    match parse_strict(text.as_bytes()) {
        Err(_) => as_text(),
        Ok(value) => match put(value) {
            Err(error @ EditError::CannotHold { .. }) => as_text().or(Err(error)),
            done => done,
        },
    }
    .map_err(edit_failure)
}

fn edit_failure(error: EditError) -> Failure {
    planwright_engine::ReviewError::from(error).into()
}

/// A step, from the command line, a file or stdin.
fn read_step(text: &str, bounds: &Bounds) -> Result<Step, Failure> {
    let limit = bounds.max_document_bytes as u64 + 1;
    let mut bytes = Vec::new();
    let (name, read) = match text {
        "-" => (
            "stdin".to_owned(),
            std::io::stdin().lock().take(limit).read_to_end(&mut bytes),
        ),
        json if json.trim_start().starts_with('{') => {
            bytes.extend_from_slice(json.as_bytes());
            ("--add".to_owned(), Ok(0))
        }
        path => {
            let read =
                std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
            (line(path), read)
        }
    };
    read.map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    if bytes.len() as u64 >= limit {
        return Err(Failure::usage(format!(
            "{name}: a step has at most {} bytes",
            limit - 1
        )));
    }
    let value = parse_strict(&bytes)
        .map_err(|error| Failure::usage(format!("{name} is not a step: {error}")))?;
    Step::read(value, bounds).map_err(|error| {
        let failure = Failure::usage(format!("{name} is not a step: {error}"));
        match error.suggestion {
            Some(suggestion) => failure.hint(suggestion),
            None => failure,
        }
    })
}

/// Opens the plan in an editor, stores what it became, and returns it.
pub(crate) async fn edit_plan(app: &App, review: &Review) -> Result<Review, Failure> {
    let args = Args {
        plan: review.id().to_string(),
        ..Args::default()
    };
    edit_in_editor(app, review, &app.context.config.bounds(), &args).await?;
    let (edited, _) = load_plan(app, review.id()).await?;
    Ok(edited)
}

async fn edit_in_editor(
    app: &App,
    review: &Review,
    bounds: &Bounds,
    args: &Args,
) -> Result<Exit, Failure> {
    let current = review.current();
    let (ending, text) = match args.form {
        Form::Md => {
            let page = render_markdown(&app.engine, review, current).await;
            (
                "md",
                page.map_err(|problem| Failure::new(Exit::Store, problem))?,
            )
        }
        Form::Json => {
            let json = serde_json::to_string_pretty(&*current.document);
            (
                "json",
                json.map_err(|error| Failure::new(Exit::Store, error.to_string()))? + "\n",
            )
        }
    };
    let name = format!("{}-v{}", review.id(), current.number);
    let sheet = Sheet::write(&app.context.workspace.plans, &name, ending, &text)?;
    sheet.edit()?;
    let go_on = |failure: Failure| {
        let path = crate::workspace::variables::quote_word(&sheet.path.to_string_lossy());
        let how = format!(
            "To continue with it: planwright edit {} --base {} --file {path}",
            review.id(),
            current.number
        );
        sheet.with_kept_path(failure).hint(how)
    };
    let file = read_edited(&sheet.path, bounds).map_err(go_on)?;
    file.print_notices(app.printer());
    let done = store_changes(app, review, file.document, args)
        .await
        .map_err(go_on)?;
    sheet.discard();
    Ok(done)
}

/// Shows the change, asks for confirmation at a terminal, and stores it.
async fn store_changes(
    app: &App,
    review: &Review,
    mut document: Document,
    args: &Args,
) -> Result<Exit, Failure> {
    let printer = app.printer();
    document.id.get_or_insert_with(|| review.id().clone());
    let diff = PlanDiff::between(&review.current().document, &document);
    if !printer.json {
        diff::talk_diff(printer, &diff);
    }
    app.start_servers(&document, Need::Look).await?;
    let checked = app.engine.plans().compile(document.clone()).await?;
    // Findings that better tools or plans can resolve do not prevent storing, but the person sees
    // them before confirming.
    printer.findings(&checked.findings);
    if args.dry_run {
        if printer.json {
            let id = review.id().clone();
            let from = review.current().number;
            printer.document(&planwright_api::DiffResult::new(id, from, None, diff))?;
        }
        printer.talk("dry run: nothing was stored");
        return Ok(Exit::Done);
    }
    let asked =
        !args.has_changes() && !args.yes && !diff.is_empty() && printer.can_ask() && !printer.json;
    let next = review.current().number + 1;
    if asked && ask_yes_no(printer, &format!("Store this as version {next}?"))? != YesNo::Yes {
        return Err(Failure::refused("not stored"));
    }
    let editing = Editing {
        based_on: args.base.unwrap_or_else(|| review.current().number),
        by: user(),
        reason: args
            .reason
            .clone()
            .filter(|reason| !reason.trim().is_empty()),
    };
    let (edited, _) = app
        .engine
        .plans()
        .edit(review.id(), document, &editing)
        .await?;
    report_stored_version(app, review, &edited, diff).await?;
    Ok(Exit::Done)
}

/// Says what became of a plan that was edited, and what has to be agreed to again.
pub(crate) async fn report_stored_version(
    app: &App,
    before: &Review,
    after: &Review,
    diff: PlanDiff,
) -> Result<(), Failure> {
    let printer = app.printer();
    let id = after.id();
    let version = after.current().number;
    let changed = version != before.current().number;
    if changed {
        update_plan_files(app, after).await;
    }
    let digest = app
        .engine
        .plans()
        .candidate(after, &Map::new())
        .await?
        .digest;
    let status = load_status_line(app, after).await?.status;
    if printer.json {
        let id = id.clone();
        return printer.document(&EditedPlan {
            id,
            version,
            status: status.to_string(),
            digest,
            changed,
            diff,
        });
    }
    printer.data(&format!("{id}  version {version}  {status}  {digest}"))?;
    if !changed {
        printer.talk("nothing changed");
        return Ok(());
    }
    match after.stage() {
        Some(ReviewStage::Approved) => {
            printer.talk("only texts changed: the approval is still valid");
        }
        Some(ReviewStage::Draft) => {
            printer.hint(&format!("To submit it for review: planwright propose {id}"));
        }
        Some(ReviewStage::Proposed) if after.approval_before_edit(app.now()).is_some() => {
            printer.talk("the approved content changed: approve the change");
            printer.hint(&format!("planwright approve {id} --digest {digest}"));
        }
        Some(
            ReviewStage::Proposed
            | ReviewStage::Rejected
            | ReviewStage::NeedsReview
            | ReviewStage::ChangesRequested
            | ReviewStage::Expired,
        )
        | None => {}
    }
    Ok(())
}
