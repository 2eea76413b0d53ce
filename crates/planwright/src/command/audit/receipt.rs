//! `receipt`: a signed document of a run, which can be verified without the store.

use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::{DIM, GREEN, Printer, line};
use crate::trust::{KeyUse, read_store_key};
use crate::workspace::app::{Access, App, CommandContext, user};
use crate::workspace::run_selector::{RunTarget, select_run_for_reading};
use planwright_adapters::files::atomic_write;
use planwright_adapters::signing::{
    OpenEnvelopeError, PublicKey, SigningKey, open_envelope, seal_envelope,
};
use planwright_api::{
    LogLine, ReceiptApproval, ReceiptCall, ReceiptHead, ReceiptOutcome, ReceiptPlan, ReceiptRun,
    ReceiptStatement,
};
use planwright_core::journal::{Head, Record, StreamName, check_chain};
use planwright_core::review::Review;
use planwright_core::run::Run;
use planwright_engine::port::{StoreError, is_last_page};
use planwright_engine::with_causes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::io::Read as _;
use std::path::{Path, PathBuf};

const PAYLOAD_TYPE: &str = "application/vnd.planwright.receipt+json";
const FORMAT: u32 = 1;
/// Entries read at a time.
const PAGE: usize = 1000;
/// A run with more calls has no receipt: a document is held in memory.
const MAX_CALLS: usize = 100_000;
const MAX_BYTES: u64 = 256 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run that has ended, or a plan: then its latest run.
    #[arg(value_name = "RUN", required_unless_present = "verify")]
    run: Option<String>,
    /// The file to write, which must not be there yet; default: standard output.
    #[arg(long, short, value_name = "FILE", conflicts_with = "verify")]
    out: Option<PathBuf>,
    /// Verify this receipt instead. No store is needed.
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    verify: Option<PathBuf>,
    /// With `--verify`: the public key that must have signed it (ed25519:…).
    #[arg(long, value_name = "PUBKEY", requires = "verify")]
    key: Option<PublicKey>,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    match (&args.verify, &args.run) {
        (Some(file), _) => verify(context, file, args.key.as_ref()),
        (None, Some(run)) => issue(context, run, args.out.as_deref()).await,
        (None, None) => Err(Failure::usage("a run or --verify FILE is needed")),
    }
}

async fn issue(context: &CommandContext, run: &str, out: Option<&Path>) -> Result<Exit, Failure> {
    let key = signing_key(context)?;
    let app = context.open(Access::Read)?;
    refuse_foreign(&app)?;
    if let Some(path) = out
        && std::fs::symlink_metadata(path).is_ok()
    {
        let path = line(&path.display().to_string());
        return Err(
            Failure::refused(format!("{path} already exists")).hint("name another file with --out")
        );
    }
    let target = select_run_for_reading(&app, run, None).await?;
    let statement = describe(&app, &target).await?;
    let payload = serde_json::to_vec(&statement)
        .map_err(|error| Failure::new(Exit::Store, error.to_string()))?;
    let receipt = seal_envelope(&key, PAYLOAD_TYPE, &payload);
    let printer = context.printer;
    let Some(path) = out else {
        printer.data(&receipt)?;
        return Ok(Exit::Done);
    };
    atomic_write(path, format!("{receipt}\n").as_bytes())
        .map_err(|error| Failure::new(Exit::Store, with_causes(&error)))?;
    let name = line(&path.display().to_string());
    if printer.json {
        printer.document(&json!({
            "path": path, "runId": statement.run.id, "planId": statement.plan.id,
            "key": key.public().to_string(), "calls": statement.calls.len(),
        }))?;
    } else {
        printer.data(&format!(
            "{name}: {} of {}, signed with {}",
            count_of(statement.calls.len(), "call", "calls"),
            statement.run.id,
            key.public()
        ))?;
        printer.hint(&format!(
            "To check it anywhere: planwright receipt --verify {name}"
        ));
    }
    Ok(Exit::Done)
}

/// The user's key.
pub(super) fn signing_key(context: &CommandContext) -> Result<SigningKey, Failure> {
    let read = read_store_key(&context.config, &context.workspace.root, KeyUse::Read)?;
    read.ok_or_else(|| {
        Failure::refused("you have no key to sign with: it is made with your first plan")
    })
}

/// What came from elsewhere is not vouched for.
pub(super) fn refuse_foreign(app: &App) -> Result<(), Failure> {
    match app.sqlite.as_ref().and_then(|store| store.foreign()) {
        None => Ok(()),
        Some(why) => Err(Failure::from(StoreError::NotAdopted(why.to_string()))),
    }
}

async fn describe(app: &App, target: &RunTarget) -> Result<ReceiptStatement, Failure> {
    let RunTarget { review, run } = target;
    let (run, _) = app.engine.runs().load_run(run, review).await?;
    if !run.state().is_terminal() {
        return Err(Failure::refused(format!(
            "{} has not ended ({}): a receipt is of what happened",
            run.id(),
            run.status()
        ))
        .hint(format!(
            "To see what it waits for: planwright show {}",
            run.plan().id()
        )));
    }
    let plan_head = app.engine.journals().load_review(review.id()).await?.1;
    let mut trail = Trail::default();
    let run_head = trail.follow(app, target).await?;
    let mut approvals = plan_approvals(review, &run);
    approvals.extend(trail.approvals);
    let head = |stream: StreamName, head: Head| ReceiptHead {
        stream: stream.to_string(),
        seq: head.seq,
        hash: head.hash,
    };
    Ok(ReceiptStatement {
        planwright: "receipt".to_owned(),
        format: FORMAT,
        issued_at: app.now(),
        issued_by: user(),
        plan: ReceiptPlan {
            id: review.id().to_string(),
            version: run.start().version,
            digest: run.start().digest,
            document: serde_json::to_value(&**run.plan().document())
                .map_err(|error| Failure::new(Exit::Store, error.to_string()))?,
        },
        approvals,
        run: ReceiptRun {
            id: run.id().to_string(),
            started_at: run.start().at,
            started_by: run.start().by.clone(),
            status: run.status().to_string(),
            ended_at: trail.ended_at,
            variables: run.start().variables.clone(),
        },
        calls: trail.calls,
        heads: vec![
            head(StreamName::Plan(review.id().clone()), plan_head),
            head(StreamName::Run(run.id().clone()), run_head),
        ],
    })
}

/// The approvals that the run used.
fn plan_approvals(review: &Review, run: &Run) -> Vec<ReceiptApproval> {
    let used = review
        .approvals()
        .iter()
        .filter(|approval| approval.spent_by.contains(run.id()));
    used.map(|approval| ReceiptApproval {
        by: approval.by.clone(),
        at: approval.at,
        version: Some(approval.version),
        digest: Some(approval.digest),
        assurance: Some(approval.assurance),
        step: None,
    })
    .collect()
}

/// What the journal of the run says about its calls.
#[derive(Default)]
struct Trail {
    calls: Vec<ReceiptCall>,
    approvals: Vec<ReceiptApproval>,
    ended_at: Option<planwright_core::time::Timestamp>,
}

impl Trail {
    /// Reads the journal to its end, and returns where that is.
    async fn follow(&mut self, app: &App, target: &RunTarget) -> Result<Head, Failure> {
        let journals = app.engine.journals();
        let stream = StreamName::Run(target.run.clone());
        let mut sent = journals.follow_calls(&target.run, target.review.clone());
        let mut head = Head::EMPTY;
        loop {
            let page = journals.read(&stream, head.seq, PAGE).await?;
            head = check_chain(head, &stream, &page)
                .map_err(|error| StoreError::chain(&stream, &error))?;
            for record in &page {
                let args = sent.arguments_of(record).await;
                self.take(&stream, record, args)?;
            }
            if is_last_page(&page, PAGE) {
                return Ok(head);
            }
        }
    }

    fn take(
        &mut self,
        stream: &StreamName,
        record: &Record,
        args: Option<Value>,
    ) -> Result<(), Failure> {
        let unreadable = |error: serde_json::Error| {
            Failure::new(
                Exit::Store,
                format!("entry {} of {stream} cannot be read: {error}", record.seq),
            )
        };
        let LogLine {
            kind, mut fields, ..
        } = LogLine::new(stream, record).map_err(unreadable)?;
        match kind.as_str() {
            "attempt_started" => {
                if self.calls.len() >= MAX_CALLS {
                    return Err(Failure::refused(format!(
                        "the run made more than {MAX_CALLS} calls: no receipt is that long"
                    ))
                    .hint("To write its whole journal: planwright store export"));
                }
                self.calls.push(ReceiptCall {
                    step: field(&mut fields, "step").map_err(unreadable)?,
                    attempt: field(&mut fields, "attempt").map_err(unreadable)?,
                    tool: field(&mut fields, "tool").map_err(unreadable)?,
                    call: field(&mut fields, "call").map_err(unreadable)?,
                    at: record.at,
                    args,
                    outcome: None,
                });
            }
            "attempt_succeeded"
            | "attempt_failed"
            | "attempt_cancelled"
            | "attempt_interrupted"
            | "outcome_lost"
            | "outcome_resolved" => {
                let step: String = field(&mut fields, "step").map_err(unreadable)?;
                let attempt: Option<u64> = field(&mut fields, "attempt").ok();
                let is_meant = |call: &&mut ReceiptCall| {
                    call.step == step && attempt.is_none_or(|attempt| call.attempt == attempt)
                };
                if let Some(call) = self.calls.iter_mut().rev().find(is_meant) {
                    call.outcome = Some(ReceiptOutcome {
                        kind,
                        at: record.at,
                        fields,
                    });
                }
            }
            "approval_granted" => self.approvals.push(ReceiptApproval {
                by: field(&mut fields, "by").map_err(unreadable)?,
                at: record.at,
                version: None,
                digest: None,
                assurance: field(&mut fields, "assurance").ok(),
                step: field(&mut fields, "step").ok(),
            }),
            "run_completed" | "run_failed" | "run_cancelled" | "run_given_up" | "run_adjusted" => {
                self.ended_at = Some(record.at);
            }
            _ => {}
        }
        Ok(())
    }
}

fn field<T: DeserializeOwned>(
    fields: &mut Map<String, Value>,
    name: &str,
) -> Result<T, serde_json::Error> {
    serde_json::from_value(fields.remove(name).unwrap_or_default())
}

fn verify(
    context: &CommandContext,
    file: &Path,
    wanted: Option<&PublicKey>,
) -> Result<Exit, Failure> {
    let name = line(&file.display().to_string());
    let text = read_signed(file)?;
    let refused = |error: OpenEnvelopeError| Failure::new(Exit::Store, format!("{name}: {error}"));
    let (payload, key) = open_envelope(&text, PAYLOAD_TYPE, wanted).map_err(refused)?;
    let statement: ReceiptStatement = serde_json::from_slice(&payload)
        .map_err(|error| Failure::new(Exit::Store, format!("{name}: {error}")))?;
    if statement.format != FORMAT {
        let found = statement.format;
        return Err(Failure::usage(format!(
            "{name}: format {found} is not known here"
        )));
    }
    let own = signing_key(context).ok().map(|key| key.public());
    print_verified(
        context.printer,
        (&statement, &payload),
        key,
        own == Some(key),
    )?;
    if wanted.is_none() && own != Some(key) {
        context.printer.hint(&format!(
            "anyone can make a key: ask the sender for theirs, then add --key {key}"
        ));
    }
    Ok(Exit::Done)
}

/// Reads a signed document, which has a limit.
pub(super) fn read_signed(file: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| {
        let name = line(&file.display().to_string());
        Failure::usage(format!("cannot read {name}: {error}"))
    };
    let mut text = Vec::new();
    let opened = std::fs::File::open(file).map_err(failed)?;
    opened
        .take(MAX_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(failed)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(failed(std::io::Error::other("it is too large")));
    }
    Ok(text)
}

fn print_verified(
    printer: Printer,
    (statement, payload): (&ReceiptStatement, &[u8]),
    key: PublicKey,
    is_own: bool,
) -> Result<(), Failure> {
    if printer.json {
        let receipt: Value = serde_json::from_slice(payload)
            .map_err(|error| Failure::new(Exit::Store, error.to_string()))?;
        return printer.document(&json!({
            "ok": true, "key": key.to_string(), "yours": is_own, "receipt": receipt,
        }));
    }
    let ReceiptStatement {
        plan,
        run,
        approvals,
        calls,
        heads,
        issued_at,
        issued_by,
        ..
    } = statement;
    let whose = if is_own { " (yours)" } else { "" };
    let sign = printer.out(GREEN, "●");
    printer.data(&format!(
        "{sign} signed with {key}{whose} by {} at {issued_at}",
        line(&issued_by.to_string())
    ))?;
    printer.data(&format!(
        "plan {} version {}  {}",
        line(&plan.id),
        plan.version,
        plan.digest
    ))?;
    for approval in approvals {
        let step = approval
            .step
            .as_deref()
            .map(|step| format!("step {}  ", line(step)));
        let by = line(&approval.by.to_string());
        let text = format!(
            "{}approved by {by} at {}",
            step.unwrap_or_default(),
            approval.at
        );
        printer.data(&format!("  {text}"))?;
    }
    printer.data(&format!(
        "run {}  {}  started by {} at {}",
        line(&run.id),
        line(&run.status),
        line(&run.started_by.to_string()),
        run.started_at
    ))?;
    for call in calls {
        let args = call.args.as_ref().map_or_else(
            || "arguments not known any more".to_owned(),
            Value::to_string,
        );
        let outcome = call
            .outcome
            .as_ref()
            .map_or("no answer", |outcome| &outcome.kind);
        printer.data(&format!(
            "  {}  {}  {}  {}",
            line(&call.step),
            line(&call.tool),
            line(outcome),
            printer.out(DIM, &line(&args))
        ))?;
    }
    for ReceiptHead { stream, seq, hash } in heads {
        let text = format!("{} ends at {seq}  {hash}", line(stream));
        printer.data(&printer.out(DIM, &text))?;
    }
    Ok(())
}
