//! Asking before running: who may say yes to a plan, and what they are shown.

use crate::dag;
use crate::exit::Failure;
use crate::printer::{BOLD, Printer, YELLOW, line};
use crate::wire_up::{App, user};
use planwright_core::plan::{Action, Plan, StepIx};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::{Review, ReviewState};
use planwright_core::run::Shown;
use planwright_core::tool::Catalog;
use planwright_engine::{Candidate, GivenApproval};
use serde_json::Value;
use std::io::{self, BufRead as _, Write as _};

/// What a run needs consent for.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    pub(crate) review: &'a Review,
    pub(crate) candidate: &'a Candidate,
    /// `--yes`.
    pub(crate) yes: bool,
    /// The variables as they would be typed again, for hints.
    pub(crate) typed: String,
}

/// Makes sure that the plan, as it would run, is approved: already, by policy, or by the person at the keyboard.
///
/// What is returned is recorded together with the start of the run; nothing means that there is an approval to spend.
pub(crate) fn consent(app: &App, question: &Question<'_>) -> Result<Option<GivenApproval>, Failure> {
    let Question { review, candidate, yes, typed } = question;
    let given = |by, assurance| {
        let shown = Shown::Digest(candidate.digest);
        Ok(Some(GivenApproval { shown, by, assurance }))
    };
    let id = review.id();
    if review.state() == ReviewState::Rejected {
        return Err(rejected(review));
    }
    if review.usable_approval(&candidate.digest).is_some() {
        return Ok(None);
    }
    let sent_back_too_often = review.state() == ReviewState::NeedsReview;
    if !sent_back_too_often && is_read_only(&candidate.plan, &app.engine.catalog()) {
        return given(Principal::read_only_policy(), Assurance::Policy);
    }
    if *yes {
        return given(user(), Assurance::CommandLine);
    }
    if app.printer().can_ask() {
        show(app.printer(), review, candidate, &app.engine.catalog());
        return match ask(app.printer(), "Approve and run?")? {
            Answer::Yes => given(user(), Assurance::Terminal),
            Answer::No | Answer::Neither => Err(Failure::refused("not approved")),
        };
    }
    let why = if sent_back_too_often {
        "the plan was rejected three times and needs a person's review"
    } else {
        "the plan is not approved, and not everything in it is read-only"
    };
    Err(Failure::refused(why).hint(format!(
        "planwright approve {id}{typed} --digest {}, or repeat the command with --yes",
        candidate.digest
    )))
}

fn rejected(review: &Review) -> Failure {
    let reason = review.rejections().last().map(|rejection| rejection.reason.as_str()).unwrap_or_default();
    Failure::refused(format!("the plan was rejected: {reason}"))
        .hint("change the plan and import it again: the next version can be approved")
}

/// Whether every step calls a tool that only reads, and none asks for a person.
fn is_read_only(plan: &Plan, catalog: &Catalog) -> bool {
    plan.document().steps.iter().all(|step| match step.action() {
        Some(Action::Tool { name, .. }) => {
            !step.approval_required && catalog.resolve(name).is_ok_and(|tool| tool.is_read_only())
        }
        Some(Action::Plan(child)) => {
            !step.approval_required
                && plan.subplans().get(&child.id).is_some_and(|child| is_read_only(&child.plan, catalog))
        }
        Some(Action::Think(_) | Action::Agent(_) | Action::Input(_)) | None => false,
    })
}

/// What somebody should know before saying yes, one line each.
pub(crate) fn risks(plan: &Plan, catalog: &Catalog) -> Vec<String> {
    let mut risks = Vec::new();
    for ix in plan.indices() {
        let step = plan.step(ix);
        let Some(Action::Tool { name, .. }) = step.action() else { continue };
        let Ok(tool) = catalog.resolve(name) else {
            risks.push(format!("step {}: `{}` is not known here", plan.step_id(ix), line(name)));
            continue;
        };
        if tool.is_read_only() {
            continue;
        }
        let mut words = Vec::new();
        words.push(if tool.definition.annotations.is_destructive() {
            "may destroy"
        } else {
            "changes things"
        });
        if step.undo.is_none() {
            words.push("cannot be undone");
        }
        let late = late_bound(plan, ix);
        let late =
            if late.is_empty() { String::new() } else { format!("; known only later: {}", late.join(", ")) };
        risks.push(format!("step {} [{}] {}{late}", plan.step_id(ix), line(name), words.join(", ")));
    }
    for (id, child) in plan.subplans().iter() {
        risks.extend(self::risks(&child.plan, catalog).into_iter().map(|risk| format!("{id}: {risk}")));
    }
    risks.extend(plan.document().risks.iter().map(|risk| format!("the author says: {}", line(risk))));
    risks
}

/// The arguments whose value depends on what another step returns.
fn late_bound(plan: &Plan, ix: StepIx) -> Vec<String> {
    if plan.referenced_steps(ix).is_empty() {
        return Vec::new();
    }
    let refers = |value: &Value| value.to_string().contains("${");
    plan.step(ix).args.iter().filter(|(_, value)| refers(value)).map(|(name, _)| line(name)).collect()
}

/// The plan with its risks, on stderr: it is what the person agrees to.
pub(crate) fn show(printer: Printer, review: &Review, candidate: &Candidate, catalog: &Catalog) {
    let document = candidate.plan.document();
    let title = document.title.as_deref().map_or_else(|| review.id().to_string(), line);
    printer.talk(&format!(
        "{}  ({}, version {})",
        printer.err(BOLD, &title),
        review.id(),
        review.current().number
    ));
    if let Some(goal) = &document.goal {
        printer.talk(&line(goal));
    }
    printer.talk("");
    printer.talk(dag::render(&candidate.plan, None).trim_end());
    for (id, child) in candidate.plan.all_subplans() {
        printer.talk(&format!("\nplan {id}, version {}:", child.version));
        printer.talk(dag::render(&child.plan, None).trim_end());
    }
    printer.talk("");
    for risk in risks(&candidate.plan, catalog) {
        printer.talk(&format!("{} {risk}", printer.err(YELLOW, "!")));
    }
    printer.findings(&candidate.findings);
    printer.talk(&format!("digest {}", candidate.digest));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
    Neither,
}

/// Asks on the terminal. Only a clear yes is a yes.
pub(crate) fn ask(printer: Printer, question: &str) -> Result<Answer, Failure> {
    let mut err = io::stderr().lock();
    let asked =
        write!(err, "{} ", printer.err(BOLD, &format!("{question} [y/N]"))).and_then(|()| err.flush());
    let failed = |error: io::Error| Failure::refused(format!("cannot ask: {error}"));
    asked.map_err(failed)?;
    drop(err);
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    Ok(match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Answer::Yes,
        "n" | "no" => Answer::No,
        _ => Answer::Neither,
    })
}
