//! `verify`: that nothing which was recorded is lost or changed.

use super::heads::{check_against, export_heads};
use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::{DIM, GREEN, RED, line};
use crate::workspace::app::{Access, App, CommandContext};
use crate::workspace::plan_source::load_plan_for_reading;
use planwright_adapters::files::Projection;
use planwright_adapters::postgres::PostgresStore;
use planwright_adapters::signing::PublicKey;
use planwright_adapters::sqlite::{ReadSealedError, SealedFile, SqliteStore};
use planwright_core::id::PlanId;
use planwright_core::journal::StreamName;
use planwright_core::review::{Review, ReviewEvent};
use planwright_core::run::{Resolution, RunEvent, StoredValue};
use planwright_core::time::Timestamp;
use planwright_engine::port::StoreError;
use planwright_engine::with_causes;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this plan and its runs.
    #[arg(value_name = "ID")]
    plan: Option<String>,
    /// A sealed or exported file, which needs no store unless it is encrypted.
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    file: Option<PathBuf>,
    /// Write where every journal stands, signed, to this file. Keep it elsewhere.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plan", "file", "against"])]
    export_heads: Option<PathBuf>,
    /// Compare with a file that `--export-heads` wrote: notice a store that was rolled back or
    /// written anew since.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plan", "file"])]
    against: Option<PathBuf>,
    /// With `--against`: the public key that must have signed the file; default: yours.
    #[arg(long, value_name = "PUBKEY", requires = "against")]
    key: Option<PublicKey>,
}

/// What `verify --json` prints.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Verification {
    pub(crate) ok: bool,
    pub(crate) streams: usize,
    pub(crate) entries: u64,
    pub(crate) findings: Vec<Damage>,
    /// The journals that are in sealed files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) sealed: Vec<SealedLine>,
    /// Damage that a person has accepted: it is named, and is no finding any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) written_off: Vec<Damage>,
    /// The journals whose heads were exported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exported_heads: Option<usize>,
    /// When the heads were exported that it was compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) against: Option<Timestamp>,
}

/// A journal that is in a sealed file.
#[derive(Debug, Serialize)]
pub(crate) struct SealedLine {
    pub(crate) stream: String,
    pub(crate) file: String,
}

/// One thing that is not as it was recorded.
#[derive(Debug, Serialize)]
pub(crate) struct Damage {
    /// The stream, the file or the artifact.
    pub(crate) place: String,
    pub(crate) message: String,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    if let Some(file) = &args.file {
        return verify_file(context, file);
    }
    let app = context.open(Access::Read)?;
    let mut verification = Verification::default();
    if let Some(sqlite) = &app.sqlite {
        let only = match &args.plan {
            Some(plan) => Some(load_plan_for_reading(&app, plan).await?.0.id().clone()),
            None => None,
        };
        verification.check(&app, sqlite, only.as_ref()).await?;
    } else if let Some(postgres) = &app.postgres {
        let only = match &args.plan {
            Some(plan) => Some(load_plan_for_reading(&app, plan).await?.0.id().clone()),
            None => None,
        };
        let streams = postgres.streams().await;
        verification
            .check_streams(&app, streams, only.as_ref())
            .await;
        if only.is_none() {
            verification.check_rows(postgres).await;
        }
    } else if let Some(plan) = &args.plan {
        load_plan_for_reading(&app, plan).await?;
    }
    if let Some(file) = &args.against {
        let compared = (file.as_path(), args.key.as_ref());
        verification.against = Some(check_against(&mut verification, &app, compared).await?);
    }
    verification.ok = verification.findings.is_empty();
    if let (Some(file), true) = (&args.export_heads, verification.ok) {
        let streams = match (&app.sqlite, &app.postgres) {
            (Some(sqlite), _) => sqlite.streams().await?,
            (None, Some(postgres)) => postgres.streams().await?,
            (None, None) => Vec::new(),
        };
        if let Some(store) = &app.whole {
            verification.exported_heads = Some(export_heads(&app, &**store, streams, file).await?);
        }
    }
    let printer = context.printer;
    let Verification {
        ok,
        streams,
        entries,
        findings,
        written_off,
        sealed,
        exported_heads,
        against,
    } = &verification;
    if printer.json {
        printer.document(&verification)?;
    } else {
        for Damage { place, message } in findings {
            printer.data(&format!(
                "{} {}: {}",
                printer.out(RED, "✗"),
                line(place),
                line(message)
            ))?;
        }
        for Damage { place, message } in written_off {
            let text = format!("{}: written off: {}", line(place), line(message));
            printer.data(&printer.out(DIM, &text))?;
        }
        if !sealed.is_empty() {
            let directory = app.sqlite.as_ref().map(|store| store.sealed_directory());
            let directory = directory.map(|path| path.display().to_string());
            let text = format!(
                "{} of them are sealed, in {}",
                sealed.len(),
                line(&directory.unwrap_or_default())
            );
            printer.data(&printer.out(DIM, &text))?;
        }
        if *ok {
            let sign = printer.out(GREEN, "●");
            printer.data(&format!(
                "{sign} {}, {}: nothing is lost or changed",
                count_of(streams, "stream", "streams"),
                count_of(entries, "entry", "entries")
            ))?;
            if let Some(at) = against {
                printer.data(&format!("every head of {at} is there as it was"))?;
            }
            if let (Some(count), Some(file)) = (exported_heads, &args.export_heads) {
                let file = line(&file.display().to_string());
                printer.data(&format!("{count} heads were written to {file}"))?;
                printer.hint(&format!(
                    "keep it elsewhere; planwright verify --against {file} compares with it"
                ));
            }
        }
    }
    if *ok {
        return Ok(Exit::Done);
    }
    let count = findings.len();
    Err(Failure::new(
        Exit::Store,
        format!("the store is damaged: {count} finding(s)"),
    ))
}

/// Checks a file by itself: what it says of its content, and the chain of its entries. Those of an
/// encrypted file are opened with the key of the store in this workspace, if that is theirs.
fn verify_file(context: &CommandContext, file: &Path) -> Result<Exit, Failure> {
    let mut checked = SealedFile::check(file);
    let is_encrypted = checked.as_ref().is_ok_and(SealedFile::is_encrypted);
    if is_encrypted && context.has_store() {
        let app = context.open(Access::Read)?;
        if let Some(store) = &app.sqlite {
            checked = store.read_sealed_file(file, |_| {});
        }
    }
    let name = line(&file.display().to_string());
    match checked {
        Ok(sealed) => {
            let stream = sealed.stream().to_string();
            let entries = sealed.entries();
            if context.printer.json {
                context.printer.document(&json!({
                    "ok": true, "file": file, "stream": stream, "entries": entries,
                    "encrypted": is_encrypted,
                }))?;
            } else {
                let entries = count_of(entries, "entry", "entries");
                context.printer.data(&format!(
                    "{name}: {entries} of {stream}: nothing is lost or changed"
                ))?;
            }
            Ok(Exit::Done)
        }
        Err(ReadSealedError::Missing) => Err(Failure::usage(format!("there is no file {name}"))),
        Err(error) => Err(Failure::new(Exit::Store, format!("{name}: {error}"))),
    }
}

impl Verification {
    pub(crate) fn note(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.findings.push(Damage {
            place: place.into(),
            message: message.into(),
        });
    }

    pub(crate) async fn check(
        &mut self,
        app: &App,
        sqlite: &SqliteStore,
        only: Option<&PlanId>,
    ) -> Result<(), Failure> {
        match sqlite.integrity().await {
            Ok(problems) => problems
                .into_iter()
                .for_each(|problem| self.note("database", problem)),
            Err(error) => self.note("database", error.to_string()),
        }
        match sqlite.damage().await {
            Ok(losses) => {
                for loss in losses {
                    let message = format!(
                        "entries up to {} were acknowledged, the last one present is {}",
                        loss.promised, loss.present
                    );
                    self.note(loss.stream, message);
                }
            }
            Err(error) => self.note("database", error.to_string()),
        }
        self.check_sealed(sqlite).await;
        self.check_streams(app, sqlite.streams().await, only).await;
        Ok(())
    }

    /// Checks the chain of every journal, what follows from it, and the large values it names.
    async fn check_streams(
        &mut self,
        app: &App,
        streams: Result<Vec<StreamName>, StoreError>,
        only: Option<&PlanId>,
    ) {
        let streams = match streams {
            Ok(streams) => streams,
            Err(error) => {
                self.note("database", error.to_string());
                return;
            }
        };
        for stream in streams {
            self.check_stream(app, &stream, only).await;
        }
        let written_off = &self.written_off;
        self.findings
            .retain(|found| written_off.iter().all(|known| known.place != found.place));
    }

    /// Every row beside the journals opens: labels, commands, tokens, offers.
    async fn check_rows(&mut self, postgres: &PostgresStore) {
        match postgres.odd_rows().await {
            Ok(problems) => problems
                .into_iter()
                .for_each(|problem| self.note("database", problem)),
            Err(error) => self.note("database", error.to_string()),
        }
    }

    /// Every sealed file is there, whole, and the one that was written.
    async fn check_sealed(&mut self, sqlite: &SqliteStore) {
        match sqlite.check_sealed_files().await {
            Ok((_, problems)) => {
                for (path, problem) in problems {
                    self.note(path.display().to_string(), problem);
                }
            }
            Err(error) => self.note("database", error.to_string()),
        }
        match sqlite.sealed_streams().await {
            Ok(sealed) => {
                let lines = sealed.into_iter().map(|(stream, file)| SealedLine {
                    stream: stream.to_string(),
                    file,
                });
                self.sealed.extend(lines);
            }
            Err(error) => self.note("database", error.to_string()),
        }
    }

    fn note_written_off(&mut self, review: &Review) {
        let written_off = review.written_off().iter().map(|run| Damage {
            place: StreamName::Run(run.opened.run.clone()).to_string(),
            message: format!("{} accepted at {}: {}", run.by, run.at, run.loss),
        });
        self.written_off.extend(written_off);
    }

    async fn check_stream(&mut self, app: &App, stream: &StreamName, only: Option<&PlanId>) {
        let journals = app.engine.journals();
        let folded = match stream {
            StreamName::Plan(id) if only.is_none_or(|only| only == id) => {
                let folded = journals.load_review(id).await;
                if let Ok((review, _)) = &folded {
                    self.check_context(app, stream).await;
                    self.note_written_off(review);
                }
                self.check_session(app, id).await;
                folded.map(|(_, head)| head.seq)
            }
            StreamName::Plan(_) => return,
            StreamName::Run(id) => match journals.plan_of_run(id).await {
                Ok(plan) if only.is_some_and(|only| *only != plan) => return,
                Ok(plan) => match journals.load_review(&plan).await {
                    Ok((review, _)) => {
                        let folded = app
                            .engine
                            .runs()
                            .load_run(id, &review)
                            .await
                            .map(|(_, head)| head.seq);
                        if folded.is_ok() {
                            self.check_artifacts(app, stream).await;
                        }
                        folded
                    }
                    Err(error) => Err(error),
                },
                Err(error) => Err(error),
            },
        };
        self.streams += 1;
        match folded {
            Ok(entries) => self.entries += entries,
            Err(error) => self.note(stream.to_string(), with_causes(&error)),
        }
    }

    /// What is too large for the versions of a plan is there and unchanged.
    async fn check_context(&mut self, app: &App, stream: &StreamName) {
        let mut stored = BTreeMap::new();
        let journals = app.engine.journals();
        let read = journals.read_entries::<ReviewEvent>(stream, |_, entry| {
            if let ReviewEvent::PlanProposed { document, .. } = entry.event {
                let parts = document.context.stored.iter();
                stored
                    .extend(parts.map(|(name, part)| (part.digest, (name.clone(), part.clone()))));
            }
            Ok(())
        });
        if let Err(error) = read.await {
            self.note(stream.to_string(), with_causes(&error));
        }
        for (name, artifact) in stored.values() {
            if let Err(error) = app.artifacts().get(artifact).await {
                self.note(
                    stream.to_string(),
                    format!("`{name}` of its context: {error}"),
                );
            }
        }
    }

    /// Every large value that the run refers to is there and unchanged.
    async fn check_artifacts(&mut self, app: &App, stream: &StreamName) {
        let mut artifacts = Vec::new();
        let journals = app.engine.journals();
        let read = journals.read_entries::<RunEvent>(stream, |_, entry| {
            match entry.event {
                RunEvent::AttemptSucceeded {
                    value: StoredValue::Artifact(artifact),
                    ..
                }
                | RunEvent::ResultReused {
                    value: StoredValue::Artifact(artifact),
                    ..
                }
                | RunEvent::LoopOpened {
                    items: StoredValue::Artifact(artifact),
                    ..
                }
                | RunEvent::LoopClosed {
                    value: StoredValue::Artifact(artifact),
                    ..
                }
                | RunEvent::OutcomeResolved {
                    resolution:
                        Resolution::Happened {
                            value: StoredValue::Artifact(artifact),
                        },
                    ..
                } => artifacts.push(artifact),
                RunEvent::ApprovalRequested {
                    call: Some(asked), ..
                } => {
                    if let StoredValue::Artifact(artifact) = asked.args {
                        artifacts.push(artifact);
                    }
                }
                RunEvent::RunStarted {
                    consent: Some(consent),
                    ..
                } => {
                    artifacts.extend(consent.pins.into_values().filter_map(|pin| pin.definition));
                }
                _ => {}
            }
            Ok(())
        });
        if let Err(error) = read.await {
            self.note(stream.to_string(), with_causes(&error));
        }
        for artifact in artifacts {
            if let Err(error) = app.artifacts().get(&artifact).await {
                self.note(stream.to_string(), error.to_string());
            }
        }
    }

    /// The last line of the exported session must be in the journal: if it is not, the journal lost
    /// its tail.
    async fn check_session(&mut self, app: &App, plan: &PlanId) {
        let plans = &app.context.workspace.plans;
        let places = [
            Projection::of(plans, plan),
            Projection::of_archived(plans, plan),
        ];
        let paths = places
            .into_iter()
            .flatten()
            .map(|place| place.path(Projection::SESSION));
        let Some(path) = paths.into_iter().find(|path| path.is_file()) else {
            return;
        };
        let Ok(file) = std::fs::File::open(&path) else {
            return;
        };
        let Some(Ok(last)) = BufReader::new(file).lines().last() else {
            return;
        };
        let place = path
            .strip_prefix(&app.context.workspace.root)
            .unwrap_or(&path)
            .display()
            .to_string();
        let parsed = serde_json::from_str::<Value>(&last).ok();
        let field = |name: &str| parsed.as_ref().and_then(|line| line.get(name));
        let stream = field("stream")
            .and_then(Value::as_str)
            .and_then(|name| name.parse::<StreamName>().ok());
        let head = (
            stream,
            field("seq").and_then(Value::as_u64),
            field("hash").and_then(Value::as_str),
        );
        let (Some(stream), Some(seq @ 1..), Some(hash)) = head else {
            self.note(
                place,
                "its last line is not an entry: the file was cut or changed",
            );
            return;
        };
        // What a person accepted as lost is named with the run.
        let name = stream.to_string();
        if self.written_off.iter().any(|known| known.place == name) {
            return;
        }
        let found = app.engine.journals().read(&stream, seq - 1, 1).await;
        let same = found.is_ok_and(|page| {
            page.first()
                .is_some_and(|record| record.hash.to_string() == hash)
        });
        if !same {
            self.note(
                place,
                format!("entry {seq} of {stream} was exported, but the journal does not have it"),
            );
        }
    }
}
