//! Approvals that count no more: taken back with `approve --revoke`, or lost with a token.

use crate::exit::Failure;
use crate::terminal::printer::line;
use crate::workspace::app::{App, user};
use crate::workspace::plan_source::load_plan;
use crate::workspace::projections::update_plan_files;
use planwright_core::id::PlanId;
use planwright_core::principal::Principal;
use planwright_engine::{Sweep, Swept};
use serde_json::{Value, json};

/// The flags of an approval that is given: none of them is said together with one that is taken
/// back.
pub(crate) const GIVEN: [&str; 6] = ["version", "digest", "step", "late", "var", "vars"];

/// Whose approval is taken back, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct RevocationFlags {
    /// With `--revoke`: the person whose approval is revoked; needs the role admin. Default: you.
    #[arg(long, value_name = "NAME", requires = "revoke", conflicts_with_all = GIVEN)]
    of: Option<String>,
    /// With `--revoke`: why. It is kept with the plan.
    #[arg(long, value_name = "TEXT", requires = "revoke", conflicts_with_all = GIVEN)]
    reason: Option<String>,
}

/// Takes an approval of a plan back.
pub(crate) async fn revoke_approval(
    app: &App,
    id: &PlanId,
    flags: &RevocationFlags,
) -> Result<(), Failure> {
    load_plan(app, id).await?;
    let by = user();
    let printer = app.printer();
    let of = flags
        .of
        .as_ref()
        .map_or_else(|| by.clone(), Principal::person);
    let reason = flags
        .reason
        .clone()
        .filter(|reason| !reason.trim().is_empty());
    let review = app
        .engine
        .plans()
        .revoke_approval(id, &of, &by, reason)
        .await?;
    update_plan_files(app, &review).await;
    let version = review.current().number;
    let status = review.state().status();
    if printer.json {
        return printer
            .document(&json!({ "id": id, "version": version, "status": status, "revoked": of }));
    }
    let whose = line(&of.to_string());
    printer.data(&format!(
        "{id}  version {version}  {status}  the approval of {whose} was revoked"
    ))?;
    printer.hint(&format!(
        "planwright approve {id} --version {version} approves it again"
    ));
    Ok(())
}

/// Revokes what was lost with a token, and brings the files of those plans up to date.
pub(crate) async fn sweep_approvals(app: &App, sweep: &Sweep) -> Result<Swept, Failure> {
    let swept = app.engine.plans().sweep_approvals(sweep).await?;
    for review in &swept.plans {
        update_plan_files(app, review).await;
    }
    for (plan, error) in &swept.failed {
        app.printer().warn(&format!(
            "the approvals of plan {plan} could not be looked at: {}",
            line(error)
        ));
    }
    Ok(swept)
}

/// The plans and runs for other programs.
pub(crate) fn sweep_documents(swept: &Swept) -> (Value, Value) {
    let plans = swept
        .plans
        .iter()
        .map(|review| json!(review.id()))
        .collect();
    let runs = swept
        .running
        .iter()
        .map(|(plan, run)| json!({ "planId": plan, "runId": run }))
        .collect();
    (plans, runs)
}

/// The plans and runs for people.
pub(crate) fn print_sweep(app: &App, swept: &Swept) {
    let printer = app.printer();
    for review in &swept.plans {
        printer.talk(&format!("{}: the approval was revoked", review.id()));
        printer.hint(&format!(
            "planwright show {}, then approve it again",
            review.id()
        ));
    }
    for (plan, run) in &swept.running {
        printer.talk(&format!("{plan}: {run} was approved before and continues"));
        printer.hint(&format!("To stop it: planwright cancel {run}"));
    }
}
