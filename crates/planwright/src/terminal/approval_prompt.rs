//! Asking before running: who may say yes to a plan, and what they are shown.

use crate::exit::Failure;
use crate::terminal::approval_screen::{ApprovalScreen, Decision};
use crate::terminal::diff;
use crate::terminal::late_bound::LateChoices;
use crate::terminal::printer::{BOLD, Printer};
use crate::workspace::app::{App, user};
use crate::workspace::principal::how_a_person_approves;
use crate::workspace::projections::update_plan_files;
use planwright_core::policy::{JudgedPlan, LateChoice};
use planwright_core::principal::{Assurance, Principal, PrincipalKind};
use planwright_core::review::{Review, ReviewRefusal, ReviewStage};
use planwright_core::run::Shown;
use planwright_engine::{Candidate, GivenApproval};
use std::collections::BTreeMap;
use std::io::{self, BufRead as _, Write as _};

/// An approval that a run needs before it starts.
#[derive(Debug)]
pub(crate) struct ApprovalQuestion<'a> {
    pub(crate) review: &'a Review,
    pub(crate) candidate: &'a Candidate,
    /// `--yes`.
    pub(crate) yes: bool,
    /// `--late`.
    pub(crate) late: LateChoices,
    /// The variables as they would be typed again, for hints.
    pub(crate) typed: String,
    /// True if the caller can go on with another version of the plan.
    pub(crate) can_edit: bool,
}

/// What became of the question.
#[derive(Debug)]
pub(crate) enum Approved {
    /// There is an approval to spend, if it is as narrow as this.
    Before { late: BTreeMap<String, LateChoice> },
    /// To be recorded together with the start of the run.
    Now(GivenApproval),
    /// The person wants to change the plan first.
    AfterEdit,
}

/// Makes sure that the plan, as it would run, is approved: already, by policy, or by the person at
/// the keyboard.
pub(crate) async fn obtain_approval(
    app: &App,
    question: &ApprovalQuestion<'_>,
) -> Result<Approved, Failure> {
    let ApprovalQuestion {
        review,
        candidate,
        yes,
        late,
        ..
    } = question;
    check_approvable(review)?;
    let judged = app.engine.plans().judge(&candidate.plan);
    if let Some(denied) = judged.denial() {
        return Err(denied.into());
    }
    let chosen = late.choices_for(&judged);
    if review
        .usable_approvals(&candidate.digest, app.now())
        .is_some()
    {
        return Ok(Approved::Before { late: chosen });
    }
    let sent_back_too_often = review.stage() == Some(ReviewStage::NeedsReview);
    let lost = review.lost_safeguards();
    let is_for_policy = !sent_back_too_often && lost.is_none();
    if is_for_policy && judged.is_allowed() && chosen.is_empty() {
        let by = app.engine.policy().principal();
        return Ok(given(candidate, by, Assurance::Policy, chosen));
    }
    let by = user();
    let is_person = by.kind == PrincipalKind::Person;
    // The `--yes` of an agent is a request: the plan waits for a person.
    if *yes && is_person {
        print_policy_warnings(app.printer(), &judged);
        for text in diff::lost_safeguard_lines(review, None) {
            app.printer().talk(&text);
        }
        return Ok(given(candidate, by, Assurance::CommandLine, chosen));
    }
    if app.printer().can_ask() && is_person {
        return ask_person(app, question, judged, by).await;
    }
    Err(explain_missing_approval(app, question, &by, sent_back_too_often).await)
}

fn given(
    candidate: &Candidate,
    by: Principal,
    assurance: Assurance,
    late: BTreeMap<String, LateChoice>,
) -> Approved {
    Approved::Now(GivenApproval {
        shown: Shown::Digest(candidate.digest),
        by,
        assurance,
        late,
    })
}

/// Refuses what cannot be approved as it is.
fn check_approvable(review: &Review) -> Result<(), Failure> {
    match review.stage() {
        Some(ReviewStage::Rejected) => Err(rejection_failure(review)),
        Some(ReviewStage::Draft) => {
            let how = format!(
                "To submit it for review: planwright propose {}",
                review.id()
            );
            Err(Failure::from(ReviewRefusal::Draft).hint(how))
        }
        Some(_) | None => Ok(()),
    }
}

async fn ask_person(
    app: &App,
    question: &ApprovalQuestion<'_>,
    judged: JudgedPlan,
    by: Principal,
) -> Result<Approved, Failure> {
    let screen = ApprovalScreen {
        review: question.review,
        candidate: question.candidate,
        judged: &judged,
        late: &question.late,
        can_edit: question.can_edit,
        prompt: "Approve and run?",
    };
    match screen.ask(app).await? {
        Decision::Approve { late } => Ok(given(question.candidate, by, Assurance::Terminal, late)),
        Decision::Edit => Ok(Approved::AfterEdit),
        Decision::Reject { reason } => {
            let rejected = reject_plan(app, question.review, question.candidate, &reason).await?;
            Err(rejection_failure(&rejected))
        }
        Decision::Leave => Err(Failure::refused("not approved; nothing was called")),
    }
}

/// Sends the plan back with the person's reason.
pub(crate) async fn reject_plan(
    app: &App,
    review: &Review,
    candidate: &Candidate,
    reason: &str,
) -> Result<Review, Failure> {
    let shown = Shown::Digest(candidate.digest);
    let plans = app.engine.plans();
    let rejected = plans.reject(review.id(), shown, &user(), reason).await?;
    update_plan_files(app, &rejected).await;
    Ok(rejected)
}

/// Says why the plan does not run, and how a person approves it.
async fn explain_missing_approval(
    app: &App,
    question: &ApprovalQuestion<'_>,
    by: &Principal,
    sent_back_too_often: bool,
) -> Failure {
    let ApprovalQuestion {
        review,
        candidate,
        yes,
        typed,
        ..
    } = question;
    let id = review.id();
    let approve = format!(
        "planwright approve {id}{typed} --digest {}",
        candidate.digest
    );
    let hint = if by.kind == PrincipalKind::Person {
        approve
    } else {
        how_a_person_approves(&approve)
    };
    if *yes {
        let why = format!(
            "the plan is not approved: {by} may not approve, so this is a request to a person"
        );
        return Failure::refused(why).hint(hint).digest(candidate.digest);
    }
    if sent_back_too_often {
        let why = "the plan was rejected three times and needs a review by a person";
        return Failure::refused(why).hint(hint).digest(candidate.digest);
    }
    // An approval that does not count any more says more than none.
    let runs = app.engine.runs();
    let void = runs.void_approval(review, candidate.digest).await;
    let why = match (void, review.lost_safeguards()) {
        (Some(void), _) => format!("not approved: {void}"),
        (None, Some(lost)) => {
            format!("the plan is not approved: {lost}, so a person has to approve it")
        }
        (None, None) => {
            "the plan is not approved, and some of its steps need an approval".to_owned()
        }
    };
    Failure::refused(why).hint(hint).digest(candidate.digest)
}

fn rejection_failure(review: &Review) -> Failure {
    let reason = review
        .rejections()
        .last()
        .map(|rejection| rejection.reason.as_str())
        .unwrap_or_default();
    Failure::refused(format!("the plan was rejected: {reason}")).hint(format!(
        "To make the next version, which can be approved: planwright edit {}",
        review.id()
    ))
}

/// Prints the warnings of rules in mode `warn`: with `--yes` no prompt shows them.
fn print_policy_warnings(printer: Printer, judged: &JudgedPlan) {
    for (step, words) in judged.warnings() {
        printer.warn(&format!("step {}: {words}", step.step));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum YesNo {
    Yes,
    No,
    Unclear,
}

/// Asks on the terminal. Only a clear yes is a yes.
pub(crate) fn ask_yes_no(printer: Printer, question: &str) -> Result<YesNo, Failure> {
    let answer = read_answer(printer, &format!("{question} [y/N]"))?;
    Ok(match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => YesNo::Yes,
        "n" | "no" => YesNo::No,
        _ => YesNo::Unclear,
    })
}

/// Puts a question on the terminal and reads one line.
pub(crate) fn read_answer(printer: Printer, question: &str) -> Result<String, Failure> {
    let mut err = io::stderr().lock();
    let asked = write!(err, "{} ", printer.err(BOLD, question)).and_then(|()| err.flush());
    let failed = |error: io::Error| Failure::refused(format!("cannot ask: {error}"));
    asked.map_err(failed)?;
    drop(err);
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    Ok(answer)
}
