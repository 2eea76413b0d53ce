//! `log`: the journal of a run, as it is or as it grows.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::{DIM, Printer, line};
use crate::workspace::app::{Access, App, CommandContext};
use crate::workspace::plan_source::load_plan_for_reading;
use crate::workspace::run_selector::select_run_for_reading;
use planwright_api::LogLine;
use planwright_core::digest::Digest;
use planwright_core::journal::{Head, Record, StreamName, check_chain};
use planwright_core::tool::EffectClass;
use planwright_engine::port::{StoreError, is_last_page};
use serde_json::{Map, Value};
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A plan, or a run.
    #[arg(value_name = "ID")]
    plan: String,
    /// The run; default: the latest.
    #[arg(long, conflicts_with = "plan_journal")]
    run: Option<String>,
    /// The plan's own journal: versions, decisions, runs.
    #[arg(long = "plan", id = "plan_journal")]
    plan_journal: bool,
    /// Follow until the run ends.
    #[arg(long, short)]
    follow: bool,
}

/// Records read at a time.
const PAGE: usize = 1000;
/// The longest wait between two looks, in case a change goes unnoticed.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let journals = app.engine.journals();
    let (stream, mut trail) = if args.plan_journal {
        let (review, _) = load_plan_for_reading(&app, &args.plan).await?;
        (StreamName::Plan(review.id().clone()), None)
    } else {
        let target = select_run_for_reading(&app, &args.plan, args.run.as_deref()).await?;
        let trail = journals.follow_calls(&target.run, target.review);
        (StreamName::Run(target.run), Some(trail))
    };
    tell_sealed(&app, &stream).await?;
    let mut changes = args.follow.then(|| journals.changes());
    let mut head = Head {
        seq: 0,
        hash: Digest::ZERO,
    };
    loop {
        let page = journals.read(&stream, head.seq, PAGE).await?;
        head = check_chain(head, &stream, &page)
            .map_err(|error| StoreError::chain(&stream, &error))?;
        let mut ended = false;
        for record in &page {
            let sent = match &mut trail {
                Some(trail) => trail.arguments_of(record).await,
                None => None,
            };
            ended |= print_entry(context.printer, &stream, record, sent)?;
        }
        if !is_last_page(&page, PAGE) {
            continue;
        }
        match &mut changes {
            Some(changes) if !ended => {
                // Woken or not: the next look decides.
                drop(tokio::time::timeout(PATIENCE, changes.changed()).await);
            }
            Some(_) | None => return Ok(Exit::Done),
        }
    }
}

/// Says where a journal is that left the database.
pub(crate) async fn tell_sealed(app: &App, stream: &StreamName) -> Result<(), Failure> {
    let sealed = app.engine.maintenance().sealed_journal(stream).await?;
    if let (Some(sealed), Some(store)) = (sealed, &app.sqlite) {
        let path = store.sealed_directory().join(&sealed.file);
        app.printer().talk(&format!(
            "the journal of {stream} is sealed: {}",
            line(&path.display().to_string())
        ));
    }
    Ok(())
}

/// Prints one entry. Returns whether the stream ends with it.
fn print_entry(
    printer: Printer,
    stream: &StreamName,
    record: &Record,
    sent: Option<Value>,
) -> Result<bool, Failure> {
    let entry = LogLine::new(stream, record).map_err(|error| {
        Failure::new(
            Exit::Store,
            format!("entry {} of {stream} cannot be read: {error}", record.seq),
        )
    })?;
    let entry = entry.with_args(sent);
    if printer.json {
        let text = serde_json::to_string(&entry);
        printer.data(&text.map_err(|error| Failure::new(Exit::Store, error.to_string()))?)?;
    } else {
        let at = printer.out(DIM, &entry.at);
        let kind = line(&entry.kind);
        let body = format_fields(&entry.fields);
        printer.data(&format!("{:>5}  {at}  {kind:20}  {body}", entry.seq))?;
    }
    Ok(matches!(
        entry.kind.as_str(),
        "run_completed" | "run_failed" | "run_cancelled" | "plan_deleted"
    ))
}

/// Returns the word that people are shown for a class of effects.
fn name_class(word: &str) -> String {
    let known = EffectClass::ALL.into_iter();
    let shown = known
        .filter(|class| class.as_str() == word)
        .map(EffectClass::as_shown)
        .next();
    line(shown.unwrap_or(word))
}

/// What belongs to an event, short enough for a line.
fn format_fields(fields: &Map<String, Value>) -> String {
    const MAX: usize = 100;
    let words: Vec<String> = fields
        .iter()
        .map(|(key, value)| {
            let text = match value {
                Value::String(text) if key == "class" => name_class(text),
                Value::String(text) => text
                    .parse::<Digest>()
                    .map_or_else(|_| line(text), |digest| digest.short()),
                Value::Object(by) if key == "by" => {
                    let part =
                        |name: &str| by.get(name).and_then(Value::as_str).unwrap_or_default();
                    line(&format!("{} {}", part("kind"), part("name")))
                }
                other => line(&other.to_string()),
            };
            let short: String = text.chars().take(MAX).collect();
            let cut = if short.len() < text.len() { "…" } else { "" };
            format!("{key}={short}{cut}")
        })
        .collect();
    words.join(" ")
}
