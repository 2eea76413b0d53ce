//! `store adopt`: a store that came from elsewhere becomes the user's.
//!
//! What was agreed to in it was agreed to elsewhere: every approval that no run has used becomes
//! void, every run that has not ended is held until a person ends it, every token is revoked.
//! The store is signed after all that: who is interrupted adopts it once more.

use crate::command::review::revoke;
use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{YesNo, ask_yes_no};
use crate::terminal::counts::count_of;
use crate::terminal::printer::line;
use crate::workspace::app::{Access, App, CommandContext};
use crate::workspace::principal::{confirmation_hint, refuse_agents};
use planwright_adapters::sqlite::{Adopted, Belongings, SqliteStore};
use planwright_core::id::{PlanId, RunId};
use planwright_core::review::Review;
use planwright_core::run::Refusal;
use planwright_core::status::RunStatus;
use planwright_engine::{CommandError, RunCommand, Sweep, Swept, adoption_rule, with_causes};
use serde_json::{Value, json};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Do not ask for confirmation: what becomes void is shown all the same.
    #[arg(long, short = 'y')]
    yes: bool,
}

/// What in the store waits to act.
#[derive(Debug, Default)]
struct Pending {
    /// Plans with approvals that no run has used, and whose they are.
    approvals: Vec<(PlanId, Vec<String>)>,
    /// Runs that have not ended. Those of sub-plans go with the run that they are a part of.
    runs: Vec<(PlanId, RunId, RunStatus)>,
    /// Journals that cannot be read: nothing in them can act.
    unreadable: Vec<(String, String)>,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    refuse_agents("adopt a store")?;
    if !context.has_store() {
        let path = context.workspace.database.display();
        return Err(Failure::usage(format!("there is no store at {path}")));
    }
    let app = context.open(Access::Adopt)?;
    let Some(sqlite) = &app.sqlite else {
        return Err(Failure::usage("there is no store here"));
    };
    let Some(why) = sqlite.adopting().map(ToString::to_string) else {
        return print_already_own(&app);
    };
    let belongings = sqlite.belongings(app.now()).await?;
    let pending = find_pending(&app).await?;
    show(&app, &why, &belongings, &pending);
    confirm(context, args)?;
    let adopted = sqlite.settle_adopted(app.now()).await?;
    hold_runs(&app, &pending).await?;
    let swept = revoke::sweep_approvals(&app, &Sweep::on_adoption()).await?;
    sqlite.adopt(app.now()).await?;
    print_adopted(
        &app,
        sqlite,
        (&why, &belongings),
        &pending,
        (adopted, &swept),
    )?;
    Ok(Exit::Done)
}

async fn find_pending(app: &App) -> Result<Pending, Failure> {
    let mut pending = Pending::default();
    for info in app.engine.journals().plans().await? {
        let plan = info.status.plan;
        let (review, _) = match app.engine.journals().load_review(&plan).await {
            Ok(loaded) => loaded,
            Err(error) => {
                pending
                    .unreadable
                    .push((plan.to_string(), with_causes(&error)));
                continue;
            }
        };
        let given: Vec<String> = review
            .revocable(None, app.now())
            .map(|approval| format!("{} at {}", approval.by, approval.at))
            .collect();
        if !given.is_empty() {
            pending.approvals.push((plan.clone(), given));
        }
        find_runs(app, &review, &mut pending).await?;
    }
    Ok(pending)
}

async fn find_runs(app: &App, review: &Review, pending: &mut Pending) -> Result<(), Failure> {
    for info in app.engine.journals().runs(review.id()).await? {
        let planwright_core::journal::StreamName::Run(id) = info.stream else {
            continue;
        };
        match app.engine.runs().load_run(&id, review).await {
            Ok((run, _)) => {
                if !run.state().is_terminal() && run.start().parent.is_none() {
                    let found = (review.id().clone(), id, run.status());
                    pending.runs.push(found);
                }
            }
            Err(error) => {
                let found = (id.to_string(), with_causes(&error));
                pending.unreadable.push(found);
            }
        }
    }
    Ok(())
}

/// Says what the store is, and what becomes void.
fn show(app: &App, why: &str, belongings: &Belongings, pending: &Pending) {
    let printer = app.printer();
    let path = app.context.workspace.database.display().to_string();
    printer.talk(&format!("{}: {}", line(&path), line(why)));
    printer.talk(&format!(
        "  {}, {}; what they say happened cannot be proved",
        count_of(belongings.streams, "journal", "journals"),
        count_of(belongings.entries, "entry", "entries")
    ));
    for (plan, given) in &pending.approvals {
        let given = line(&given.join(", "));
        printer.talk(&format!("  plan {plan}: void: approved by {given}"));
    }
    for (plan, run, status) in &pending.runs {
        printer.talk(&format!("  {run} of plan {plan}: held: {status}"));
    }
    if belongings.tokens > 0 {
        let tokens = count_of(belongings.tokens, "token", "tokens");
        printer.talk(&format!("  {tokens}: revoked"));
    }
    if belongings.commands > 0 {
        let waiting = ("command that waits", "commands that wait");
        let commands = count_of(belongings.commands, waiting.0, waiting.1);
        printer.talk(&format!("  {commands} for a run: refused"));
    }
    for (place, problem) in &pending.unreadable {
        let words = format!("{place} cannot be read: {problem}");
        printer.warn(&line(&words));
    }
}

fn confirm(context: &CommandContext, args: &Args) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    if !context.printer.can_ask() {
        return Err(
            Failure::refused("adopting a store needs a confirmation").hint(confirmation_hint(
                "repeat the command at a terminal, or planwright store adopt --yes if you have read it",
            )),
        );
    }
    match ask_yes_no(context.printer, "Adopt this store?")? {
        YesNo::Yes => Ok(()),
        YesNo::No | YesNo::Unclear => Err(Failure::refused("not adopted")),
    }
}

/// Pauses every run in the name of a rule: it can only be ended from here on.
async fn hold_runs(app: &App, pending: &Pending) -> Result<(), Failure> {
    for (_, run, _) in &pending.runs {
        let by = adoption_rule();
        let paused = app
            .engine
            .runs()
            .command(run, RunCommand::Pause { by })
            .await;
        match paused {
            // One that is stopping starts nothing any more.
            Ok(()) | Err(CommandError::Refused(Refusal::CannotPause { .. })) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn print_already_own(app: &App) -> Result<Exit, Failure> {
    let printer = app.printer();
    let path = &app.context.workspace.database;
    if printer.json {
        printer.document(&json!({ "store": path, "adopted": false, "yours": true }))?;
    } else {
        printer.data(&format!(
            "{}  is yours already",
            line(&path.display().to_string())
        ))?;
    }
    Ok(Exit::Done)
}

fn print_adopted(
    app: &App,
    sqlite: &SqliteStore,
    (why, belongings): (&str, &Belongings),
    pending: &Pending,
    (adopted, swept): (Adopted, &Swept),
) -> Result<(), Failure> {
    let printer = app.printer();
    let Adopted {
        tokens_revoked,
        commands_refused,
    } = adopted;
    if printer.json {
        let runs: Vec<Value> = pending
            .runs
            .iter()
            .map(|(plan, run, _)| json!({ "planId": plan, "runId": run }))
            .collect();
        return printer.document(&json!({
            "store": sqlite.path(), "adopted": true, "yours": true, "reason": why,
            "streams": belongings.streams, "entries": belongings.entries,
            "approvalsRevoked": revoke::sweep_documents(swept).0, "runsHeld": runs,
            "tokensRevoked": tokens_revoked, "commandsRefused": commands_refused,
        }));
    }
    printer.data(&format!(
        "{}  adopted: {} to be approved again, {} held",
        line(&sqlite.path().display().to_string()),
        count_of(swept.plans.len(), "plan has", "plans have"),
        count_of(pending.runs.len(), "run is", "runs are")
    ))?;
    if let Some((plan, run, _)) = pending.runs.first() {
        printer.hint(&format!(
            "To see what {run} did: planwright show {plan}; to end it: planwright cancel {run}; \
             then, to run what is left: planwright resume {plan}"
        ));
    }
    Ok(())
}
