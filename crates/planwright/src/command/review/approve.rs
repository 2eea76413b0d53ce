//! `approve`: agrees to a plan, or to one step of its run, as it was shown.

use crate::command::review::revoke::{self, GIVEN, RevocationFlags};
use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::reject_plan;
use crate::terminal::approval_screen::{ApprovalScreen, Decision};
use crate::terminal::diff;
use crate::terminal::late_bound::{LateChoices, LateFlags};
use crate::workspace::app::{App, CommandContext, user};
use crate::workspace::plan_source::{load_plan, parse_id};
use crate::workspace::projections::update_plan_files;
use crate::workspace::run_selector::{StepTarget, resume_command, select_step};
use crate::workspace::servers::Need;
use crate::workspace::variables::{VariableFlags, quote_word};
use planwright_core::digest::Digest;
use planwright_core::journal::Head;
use planwright_core::policy::JudgedPlan;
use planwright_core::principal::{Assurance, PrincipalKind};
use planwright_core::review::Review;
use planwright_core::run::{Run, RunState, Shown, StepState};
use planwright_core::status::{PlanStatus, RunStatus, StepStatus};
use planwright_engine::{Candidate, GivenApproval, RunCommand, ShownPlan};
use serde_json::json;

/// Flags that name the reviewed version or digest.
#[derive(Debug, clap::Args)]
pub(crate) struct ShownFlags {
    /// The version that was shown.
    #[arg(long, value_name = "N", conflicts_with = "digest")]
    version: Option<u32>,
    /// The digest that was shown.
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A plan; with `--step` also a run.
    #[arg(value_name = "ID")]
    plan: String,
    #[command(flatten)]
    shown: ShownFlags,
    /// Revoke your approval of the plan, if no run has used it yet.
    #[arg(long, conflicts_with_all = GIVEN)]
    revoke: bool,
    #[command(flatten)]
    revocation: RevocationFlags,
    /// Approve this step of the run, instead of the plan; `step/step` for a step of a sub-plan.
    #[arg(long)]
    step: Option<String>,
    #[command(flatten)]
    late: LateFlags,
    #[command(flatten)]
    variables: VariableFlags,
}

impl ShownFlags {
    /// Returns whether neither a version nor a digest is named.
    pub(crate) fn is_empty(&self) -> bool {
        self.version.is_none() && self.digest.is_none()
    }

    /// Returns whether the digest that is named, if one is, is this one.
    fn is_digest(&self, current: &Digest) -> bool {
        let named = self.digest.as_ref();
        named.is_none_or(|named| named.parse::<Digest>() == Ok(*current))
    }

    /// Reads the reviewed version or digest, or fails with the flag to add.
    pub(crate) fn read(
        &self,
        command: &str,
        target: &str,
        current: (u32, Digest),
    ) -> Result<Shown, Failure> {
        match (self.version, &self.digest) {
            (Some(version), _) => Ok(Shown::Version(version)),
            (None, Some(digest)) => digest.parse().map(Shown::Digest).map_err(|error| {
                Failure::usage(format!("--digest: {error}"))
                    .hint(format!("the current one is {}", current.1))
            }),
            (None, None) => {
                let (version, digest) = current;
                Err(Failure::usage("name what you reviewed: --version N or --digest DIGEST").hint(format!(
                    "planwright {command} {target} --digest {digest} (the current version is {version}: review it first)"
                )))
            }
        }
    }
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open_existing()?;
    if args.revoke {
        revoke::revoke_approval(&app, &parse_id(&args.plan)?, &args.revocation).await?;
        return Ok(Exit::Done);
    }
    match &args.step {
        Some(step) => approve_step(&app, step, args).await?,
        None => {
            let (review, head) = load_plan(&app, &parse_id(&args.plan)?).await?;
            approve_plan(&app, review, head, args).await?;
        }
    }
    Ok(Exit::Done)
}

async fn approve_plan(app: &App, review: Review, head: Head, args: &Args) -> Result<(), Failure> {
    let variables = args.variables.read()?;
    let document = &review.current().document;
    app.start_servers(document, Need::Decide).await?;
    let mut candidate = app.engine.plans().candidate(&review, &variables).await?;
    // The digest may be that of the tools as they are, and not as they were last seen.
    if !args.shown.is_digest(&candidate.digest) && app.start_remembered(document).await? {
        candidate = app.engine.plans().candidate(&review, &variables).await?;
    }
    let digest = candidate.digest;
    let judged = app.engine.plans().judge(&candidate.plan);
    let late = args.late.read()?;
    let by = user();
    let is_asked = args.shown.is_empty()
        && app.printer().can_ask()
        && !app.printer().json
        && by.kind == PrincipalKind::Person;
    let given = if is_asked {
        match ask_approval(app, &review, (&candidate, &judged), &late).await? {
            Some(given) => given,
            None => return Ok(()),
        }
    } else {
        let current = (review.current().number, digest);
        let shown = args.shown.read("approve", review.id().as_str(), current)?;
        talk_changes(app, &review, &candidate).await?;
        GivenApproval {
            shown,
            by,
            assurance: Assurance::CommandLine,
            late: late.choices_for(&judged),
        }
    };
    let shown_plan = ShownPlan {
        review,
        head,
        candidate,
        judged,
    };
    let review = app
        .engine
        .plans()
        .approve_shown_plan(shown_plan, &variables, &given)
        .await?;
    let id = review.id();
    let (count, required) = count_approvals(app, &review, &digest);
    update_plan_files(app, &review).await;
    if app.printer().json {
        let version = review.current().number;
        return app.printer().document(&json!({
            "id": id, "version": version, "status": review.state().status(), "digest": digest,
            "approvals": count, "required": required,
        }));
    }
    let word = if count < required {
        format!("{count} of {required} approvals")
    } else {
        PlanStatus::Approved.to_string()
    };
    app.printer().data(&format!(
        "{id}  version {}  {word}  {digest}",
        review.current().number
    ))?;
    if count < required {
        app.printer().hint("another approver is needed");
        return Ok(());
    }
    if review.startable_run(app.now()).is_some() {
        app.printer().talk(
            "the run that was requested starts by itself where `planwright mcp` or `planwright serve` \
             runs in this workspace; without one:",
        );
    }
    let next = next_after_approval(app, &review).await?;
    app.printer()
        .hint(&format!("{next}{}", args.variables.as_typed()));
    Ok(())
}

/// The command that uses an approval: it continues the run whose adjustment was approved, else it
/// starts one.
async fn next_after_approval(app: &App, review: &Review) -> Result<String, Failure> {
    let id = review.id();
    if let Some(opened) = review.runs().last() {
        let (run, _) = app.engine.runs().load_run(&opened.run, review).await?;
        if matches!(run.state(), RunState::Adjusted { .. })
            && app.engine.runs().continuation(run.id()).await?.is_some()
        {
            return Ok(format!("planwright resume {id}"));
        }
    }
    Ok(format!("planwright run {id}"))
}

/// Shows the plan and asks the person at the terminal. Nothing means that they sent it back.
async fn ask_approval(
    app: &App,
    review: &Review,
    (candidate, judged): (&Candidate, &JudgedPlan),
    late: &LateChoices,
) -> Result<Option<GivenApproval>, Failure> {
    let screen = ApprovalScreen {
        review,
        candidate,
        judged,
        late,
        can_edit: false,
        prompt: "Approve?",
    };
    match screen.ask(app).await? {
        Decision::Approve { late } => Ok(Some(GivenApproval {
            shown: Shown::Digest(candidate.digest),
            by: user(),
            assurance: Assurance::Terminal,
            late,
        })),
        Decision::Reject { reason } => {
            let rejected = reject_plan(app, review, candidate, &reason).await?;
            let status = rejected.state().status();
            app.printer().data(&format!(
                "{}  version {}  {status}",
                rejected.id(),
                rejected.current().number
            ))?;
            Ok(None)
        }
        Decision::Edit | Decision::Leave => Err(Failure::refused("not approved")),
    }
}

async fn talk_changes(app: &App, review: &Review, candidate: &Candidate) -> Result<(), Failure> {
    let since = diff::load_changes_since_approval(app, review, candidate).await?;
    let printer = app.printer();
    if printer.json {
        return Ok(());
    }
    if let Some(since) = &since {
        diff::talk_changes(printer, since);
    }
    for text in diff::lost_safeguard_lines(review, since.as_ref()) {
        printer.talk(&text);
    }
    Ok(())
}

async fn approve_step(app: &App, step: &str, args: &Args) -> Result<(), Failure> {
    let target = select_step(app, &args.plan, step).await?;
    let shown = args.shown.read(
        "approve",
        &step_words(&args.plan, step),
        step_version_and_digest(&target),
    )?;
    let command = RunCommand::Approve {
        step: target.step.clone(),
        by: user(),
        assurance: Assurance::CommandLine,
        shown: shown.into(),
    };
    app.engine.runs().command(target.run.id(), command).await?;
    report_decision(app, &target, StepStatus::Approved.as_str()).await
}

/// Returns the given and the required number of approvals.
fn count_approvals(app: &App, review: &Review, digest: &Digest) -> (usize, usize) {
    let given = review.given_approvals(digest, app.now()).len();
    (given, app.engine.policy().approval.required() as usize)
}

/// The words that name a step of a plan or a run on the command line.
pub(crate) fn step_words(plan: &str, step: &str) -> String {
    format!("{} --step {}", quote_word(plan), quote_word(step))
}

/// Returns the version and the digest that a decision about a step has to name: the digest of the
/// concrete call if one waits, else that of the run.
pub(crate) fn step_version_and_digest(target: &StepTarget) -> (u32, Digest) {
    let run = &target.run;
    let asked = run.find(&target.step).and_then(|ix| match run.step(ix) {
        StepState::AwaitingApproval { call, .. } => call.as_ref().map(|asked| asked.digest),
        _ => None,
    });
    (
        run.start().version,
        asked.unwrap_or_else(|| run.start().digest),
    )
}

/// Reports the decision about a step, the status of its run, and the command that continues a run
/// without a process.
pub(crate) async fn report_decision(
    app: &App,
    target: &StepTarget,
    decision: &str,
) -> Result<(), Failure> {
    let StepTarget { review, run, step } = target;
    let id = review.id();
    let (run, _) = app.engine.runs().load_run(run.id(), review).await?;
    let status = run.status();
    if app.printer().json {
        return app.printer().document(&json!({
            "planId": id, "runId": run.id(), "step": step, "decision": decision, "status": status,
        }));
    }
    let subject = format!("{id}  step {step}  {decision}");
    report_standing(app, &subject, run).await
}

/// Prints what was decided with where its run stands, and the command that continues a run without
/// a process.
pub(crate) async fn report_standing(app: &App, decided: &str, run: Run) -> Result<(), Failure> {
    let status = run.status();
    let how = resume_command(app, run).await?;
    let standing = match (&how, status) {
        // The journal says so until a process goes on with it.
        (Some(_), RunStatus::Executing) => "no process executes the run".to_owned(),
        _ => format!("the run is {status}"),
    };
    app.printer().data(&format!("{decided}  ({standing})"))?;
    if let Some(how) = how {
        app.printer().hint(&how);
    }
    Ok(())
}
