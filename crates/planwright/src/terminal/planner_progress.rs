//! What people see of a planner: how it goes, what it cost, why there is no plan.

use crate::exit::Failure;
use crate::terminal::counts::count_of;
use crate::terminal::no_model;
use crate::terminal::printer::{Printer, line};
use crate::terminal::spinner::Spinner;
use crate::workspace::app::{App, CommandContext};
use crate::workspace::servers::ListedServer;
use planwright_adapters::mcp::{ServerState, ServerStatus};
use planwright_core::model::{Cost, ModelRole, TokenUsage};
use planwright_core::planning::{ContextText, PROMPTS};
use planwright_core::review::PlanningRecord;
use planwright_core::text::nearest_names;
use planwright_engine::port::Model as _;
use planwright_engine::{
    CreateError, FailedPlanning, PlannerEvent, PlannerOptions, PlannerSink, Redaction,
};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Characters of the arguments with which a planner looked around.
const MAX_SHOWN_ARGS: usize = 120;
/// Bytes of one file that is given as context.
const MAX_CONTEXT: u64 = 256 << 10;

/// How a planner is asked, on the command line.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PlannerFlags {
    /// The model that writes the plan; default: the planner of `[models]`.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The most steps; default: 20, fewer for small models.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=50))]
    max_steps: Option<u16>,
    /// How often an answer that is no valid plan is sent back.
    #[arg(long, value_name = "N", default_value_t = PlannerOptions::DEFAULT_ROUNDS)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=i64::from(PlannerOptions::MAX_ROUNDS)))]
    rounds: u32,
    /// Plan with the tools of this server only. Can be given more than once.
    #[arg(long = "server", value_name = "NAME")]
    servers: Vec<String>,
    /// A file the planner should know. Can be given more than once.
    #[arg(long, value_name = "FILE")]
    context: Vec<PathBuf>,
    /// Do not tell the planner which files the workspace has.
    #[arg(long)]
    no_snapshot: bool,
    /// Do not let the planner look around with tools that only read.
    #[arg(long)]
    no_explore: bool,
}

impl PlannerFlags {
    /// The options these flags mean. Files are read here.
    pub(crate) fn options(&self) -> Result<PlannerOptions, Failure> {
        let mut context = Vec::new();
        for path in &self.context {
            let name = path.display().to_string();
            let mut bytes = Vec::new();
            let read = File::open(path)
                .and_then(|file| file.take(MAX_CONTEXT + 1).read_to_end(&mut bytes));
            read.map_err(|error| Failure::usage(format!("cannot read {}: {error}", line(&name))))?;
            if bytes.len() as u64 > MAX_CONTEXT {
                let most = MAX_CONTEXT / 1024;
                return Err(Failure::usage(format!(
                    "{} is larger than {most} KiB",
                    line(&name)
                )));
            }
            context.push(ContextText {
                name,
                text: String::from_utf8_lossy(&bytes).into_owned(),
            });
        }
        Ok(PlannerOptions {
            model: self.model.clone(),
            rounds: self.rounds,
            max_steps: self.max_steps.map(usize::from),
            servers: self.servers.clone(),
            context,
            snapshot: !self.no_snapshot,
            explore: !self.no_explore,
            ..PlannerOptions::default()
        })
    }

    /// Refuses what could not be asked, before a store is made or a server started for it.
    pub(crate) fn check_model(&self, context: &CommandContext) -> Result<(), Failure> {
        let models = context.models(&Redaction::default())?;
        let resolved = models.resolve(ModelRole::Planner, self.model.as_deref());
        let failed = |cause| FailedPlanning {
            cause: Some(cause),
            ..FailedPlanning::default()
        };
        resolved
            .map(drop)
            .map_err(|cause| CreateError::Failed(Box::new(failed(cause))).into())
    }

    /// Starts the servers whose tools the planner is told about: those that were named, else all
    /// that are ready.
    pub(crate) async fn start_servers(&self, app: &App) -> Result<(), Failure> {
        warn_of_misspelt_prompts(app);
        let mut wanted = BTreeSet::new();
        for name in self
            .servers
            .iter()
            .filter(|name| !["local", "demo"].contains(&name.as_str()))
        {
            let Some(server) = app.roster.find(name) else {
                return Err(
                    Failure::usage(format!("there is no server `{}`", line(name)))
                        .hint("To list them: planwright servers list"),
                );
            };
            if let Some((reason, hint)) = ListedServer::obstacle(server) {
                return Err(Failure {
                    hint,
                    ..Failure::refused(reason)
                });
            }
            wanted.insert(server.name.clone());
        }
        if self.servers.is_empty() {
            wanted.extend(app.roster.ready().map(|spec| spec.name.clone()));
            for server in app.roster.untrusted_servers() {
                let name = line(&server.name);
                app.printer().warn(&format!(
                    "the server `{name}` is not trusted, so nothing is planned with its tools (planwright trust)"
                ));
            }
        }
        for ServerStatus { name, state } in app.connect(&wanted).await? {
            if let ServerState::Failed { reason, .. } = state {
                app.printer().warn(&format!(
                    "the server `{name}` could not be started: {reason}"
                ));
            }
        }
        Ok(())
    }
}

/// A prompt under a name that nothing asks for is not used, and its author thinks it is.
fn warn_of_misspelt_prompts(app: &App) {
    let known = || PROMPTS.iter().map(|form| form.name.to_owned());
    for name in app
        .engine
        .planner()
        .prompt_names()
        .into_iter()
        .filter(|name| !known().any(|known| known == *name))
    {
        if let Some(meant) = nearest_names(name, known()).first() {
            let name = line(name);
            app.printer().warn(&format!(
                "there is no prompt `{name}`, so {name}.md is not used: did you mean {meant}.md?"
            ));
        }
    }
}

/// Shows how it goes until it is dropped: a line that is drawn over itself, or nothing but what
/// went wrong.
pub(crate) struct PlanningDisplay {
    _spinner: Spinner,
}

/// What was heard so far.
#[derive(Debug, Default)]
struct PlanningProgress {
    round: u32,
    of: u32,
    model: String,
    bytes: usize,
}

impl PlanningDisplay {
    /// Lets these options tell what happens.
    pub(crate) fn begin(printer: Printer, options: &mut PlannerOptions) -> Self {
        let spinner = Spinner::begin(printer, "");
        let shown = spinner.bar().cloned();
        let heard = Arc::new(Mutex::new(PlanningProgress::default()));
        options.told = PlannerSink::new(move |event| {
            let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(text) = heard.note(event) {
                match &shown {
                    Some(bar) => bar.suspend(|| printer.warn(&text)),
                    None => printer.warn(&text),
                }
            }
            if let Some(bar) = &shown {
                bar.set_message(heard.text());
            }
        });
        Self { _spinner: spinner }
    }
}

impl PlanningProgress {
    /// Returns what is worth a line of its own.
    fn note(&mut self, event: PlannerEvent) -> Option<String> {
        match event {
            PlannerEvent::Asked { round, of, model } => {
                *self = Self {
                    round,
                    of,
                    model,
                    bytes: 0,
                }
            }
            PlannerEvent::Heard { bytes } => self.bytes += bytes,
            PlannerEvent::Looked { tool, args } => {
                let args: String = args.to_string().chars().take(MAX_SHOWN_ARGS).collect();
                return Some(format!("looked: {} {}", line(&tool), line(&args)));
            }
            PlannerEvent::Answered { used } => {
                self.bytes =
                    usize::try_from(used.usage.output.saturating_mul(4)).unwrap_or_default();
            }
            PlannerEvent::SentBack { round, faults } => {
                let first = faults.first().map(String::as_str).unwrap_or_default();
                let more = faults.len().saturating_sub(1);
                let more = if more > 0 {
                    format!(" (and {more} more)")
                } else {
                    String::new()
                };
                return Some(format!("round {round} gave no valid plan: {first}{more}"));
            }
        }
        None
    }

    fn text(&self) -> String {
        let round = if self.round > 1 {
            format!(", round {} of {}", self.round, self.of)
        } else {
            String::new()
        };
        format!(
            "{} is planning{round}: {} tokens",
            line(&self.model),
            self.bytes / 4
        )
    }
}

/// Runs the work until it is done or Ctrl-C cancels it.
pub(crate) async fn run_until_interrupted<T>(
    cancelled: CancellationToken,
    work: impl Future<Output = Result<T, CreateError>>,
) -> Result<T, Failure> {
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return Ok(done?),
        interrupt = tokio::signal::ctrl_c() => {
            // Without signals nothing can interrupt it.
            if interrupt.is_err() {
                return Ok(work.await?);
            }
        }
    }
    cancelled.cancel();
    Ok(work.await?)
}

/// What it took to write a plan, in one line.
pub(crate) fn format_planning(planning: &PlanningRecord) -> String {
    let Some(model) = &planning.model else {
        return "fallback: put together without a model, for a person to finish".to_owned();
    };
    let rounds = if planning.rounds == 1 {
        "1 round".to_owned()
    } else {
        format!("{} rounds", planning.rounds)
    };
    let looked = planning.explored.as_ref().map(|explored| {
        format!(
            " after {} ({})",
            count_of(explored.calls, "look", "looks"),
            explored.session
        )
    });
    format!(
        "planned by {} in {rounds}{}: {}",
        line(model),
        looked.unwrap_or_default(),
        format_usage(planning.usage(), planning.cost())
    )
}

/// Tokens and money, in a few words.
pub(crate) fn format_usage(usage: TokenUsage, cost: Option<Cost>) -> String {
    let about = if usage.estimated { "about " } else { "" };
    let cost = cost.map_or_else(|| "no price known".to_owned(), |cost| cost.to_string());
    format!(
        "{about}{} tokens in, {} out, {cost}",
        usage.input, usage.output
    )
}

impl From<CreateError> for Failure {
    fn from(error: CreateError) -> Self {
        let failure = Self::from_classified(&error);
        match &error {
            CreateError::Cancelled(planning) => Self {
                message: describe_interruption(planning),
                ..failure
            },
            CreateError::Failed(failed) => planning_failure(failure, failed),
            _ => failure,
        }
    }
}

/// Formats an interruption together with what it has cost already.
fn describe_interruption(planning: &PlanningRecord) -> String {
    if planning.used.is_empty() {
        return "interrupted".to_owned();
    }
    format!(
        "interrupted; {}",
        format_usage(planning.usage(), planning.cost())
    )
}

/// Adds to the failure what the rounds came to and cost, and the way without a model.
fn planning_failure(failure: Failure, failed: &FailedPlanning) -> Failure {
    let rounds = failed.rounds.len();
    let mut message = match &failed.cause {
        Some(cause) => cause.to_string(),
        None => {
            let model = failed.planning.model.as_deref().unwrap_or("the model");
            let last = failed
                .rounds
                .last()
                .and_then(|lines| lines.first())
                .map(String::as_str)
                .unwrap_or_default();
            format!("`{model}` gave no valid plan in {rounds} rounds: {last}")
        }
    };
    if !failed.planning.used.is_empty() {
        message = format!(
            "{message} ({})",
            format_usage(failed.planning.usage(), failed.planning.cost())
        );
    }
    let advice = failed
        .cause
        .as_ref()
        .and_then(no_model::model_hint)
        .into_iter();
    let without = "To create a draft without a model: planwright create GOAL --fallback".to_owned();
    let hints: Vec<String> = advice.chain([without]).collect();
    Failure { message, ..failure }.hint(hints.join("; "))
}
