//! Asking before running: who may say yes to a plan, and what they are shown.

use crate::exit::Failure;
use crate::terminal::dag;
use crate::terminal::diff;
use crate::terminal::late_bound::LateChoices;
use crate::terminal::printer::{BOLD, Printer, YELLOW, line};
use crate::workspace::app::{App, user};
use crate::workspace::principal::how_a_person_approves;
use planwright_core::id::StepId;
use planwright_core::plan::{Action, Plan, StepIx};
use planwright_core::policy::{JudgedPlan, Policy, Verdict};
use planwright_core::principal::{Assurance, PrincipalKind};
use planwright_core::review::{Review, ReviewRefusal, ReviewStage};
use planwright_core::run::Shown;
use planwright_core::tool::Catalog;
use planwright_engine::{Candidate, GivenApproval, Reapproval};
use std::collections::BTreeSet;
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
}

/// Makes sure that the plan, as it would run, is approved: already, by policy, or by the person at
/// the keyboard.
///
/// What is returned is recorded together with the start of the run; nothing means that there is an
/// approval to spend.
pub(crate) async fn obtain_approval(
    app: &App,
    question: &ApprovalQuestion<'_>,
) -> Result<Option<GivenApproval>, Failure> {
    let ApprovalQuestion {
        review,
        candidate,
        yes,
        late,
        typed,
    } = question;
    let given = |by, assurance, late| {
        let shown = Shown::Digest(candidate.digest);
        Ok(Some(GivenApproval {
            shown,
            by,
            assurance,
            late,
        }))
    };
    let id = review.id();
    if review.stage() == Some(ReviewStage::Rejected) {
        return Err(rejection_failure(review));
    }
    if review.stage() == Some(ReviewStage::Draft) {
        return Err(Failure::from(ReviewRefusal::Draft)
            .hint(format!("planwright propose {id} submits it for review")));
    }
    let judged = app.engine.plans().judge(&candidate.plan);
    if let Some(denied) = judged.denial() {
        return Err(denied.into());
    }
    let now = app.now();
    if review.usable_approvals(&candidate.digest, now).is_some() {
        return Ok(None);
    }
    let sent_back_too_often = review.stage() == Some(ReviewStage::NeedsReview);
    let chosen = late.choices_for(&judged);
    if !sent_back_too_often && judged.is_allowed() && chosen.is_empty() {
        return given(app.engine.policy().principal(), Assurance::Policy, chosen);
    }
    let by = user();
    let is_person = by.kind == PrincipalKind::Person;
    // The `--yes` of an agent is a request: the plan waits for a person.
    if *yes && is_person {
        print_policy_warnings(app.printer(), &judged);
        return given(by, Assurance::CommandLine, chosen);
    }
    if app.printer().can_ask() && is_person {
        let since = diff::load_changes_since_approval(app, review, candidate).await?;
        show_plan(app, review, (candidate, &judged), since.as_ref());
        let chosen = late.ask(
            app.printer(),
            (&candidate.plan, &judged),
            &app.engine.policy().late_bound,
        )?;
        return match ask_yes_no(app.printer(), "Approve and run?")? {
            YesNo::Yes => given(by, Assurance::Terminal, chosen),
            YesNo::No | YesNo::Unclear => Err(Failure::refused("not approved")),
        };
    }
    let approve = format!(
        "planwright approve {id}{typed} --digest {}",
        candidate.digest
    );
    let hint = if is_person {
        approve
    } else {
        how_a_person_approves(&approve)
    };
    if *yes {
        let why = format!(
            "the plan is not approved: {by} may not approve, so this is a request to a person"
        );
        return Err(Failure::refused(why).hint(hint));
    }
    if sent_back_too_often {
        let why = "the plan was rejected three times and needs a review by a person";
        return Err(Failure::refused(why).hint(hint));
    }
    // An approval that does not count any more says more than none.
    Err(
        match app
            .engine
            .runs()
            .void_approval(review, candidate.digest)
            .await
        {
            Some(void) => Failure::refused(format!("not approved: {void}")).hint(hint),
            None => {
                let why = "the plan is not approved, and some of its steps need an approval";
                Failure::refused(why).hint(hint)
            }
        },
    )
}

fn rejection_failure(review: &Review) -> Failure {
    let reason = review
        .rejections()
        .last()
        .map(|rejection| rejection.reason.as_str())
        .unwrap_or_default();
    Failure::refused(format!("the plan was rejected: {reason}"))
        .hint("edit the plan: the next version can be approved")
}

/// Prints the warnings of rules in mode `warn`: with `--yes` no prompt shows them.
fn print_policy_warnings(printer: Printer, judged: &JudgedPlan) {
    for (step, words) in judged.warnings() {
        printer.warn(&format!("step {}: {words}", step.step));
    }
}

/// The steps that were agreed to before, and are as they were.
pub(crate) type AgreedSteps<'a> = BTreeSet<&'a str>;

/// Formats the risks that an approver should know, one line each.
pub(crate) fn risk_lines(
    (plan, agreed): (&Plan, &AgreedSteps<'_>),
    catalog: &Catalog,
    judged: &JudgedPlan,
    policy: &Policy,
) -> Vec<String> {
    let mut risks = Vec::new();
    for ix in plan.indices() {
        let step = plan.step(ix);
        if step.skip || agreed.contains(plan.step_id(ix).as_str()) {
            continue;
        }
        let Some(Action::Tool { name, .. }) = step.action() else {
            continue;
        };
        let Ok(tool) = catalog.resolve(name) else {
            risks.push(format!(
                "step {}: `{}` is not known here",
                plan.step_id(ix),
                line(name)
            ));
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
        let late: Vec<String> = judged.steps[ix.index()]
            .late
            .iter()
            .map(|name| line(name))
            .collect();
        let late = if late.is_empty() {
            String::new()
        } else {
            format!(
                "; known only later: {} ({})",
                late.join(", "),
                policy.late_bound.describe()
            )
        };
        risks.push(format!(
            "step {} [{}] {}{late}",
            plan.step_id(ix),
            line(name),
            words.join(", ")
        ));
    }
    for (id, child) in plan.subplans().iter() {
        let judged = policy.judge_plan(&child.plan, catalog);
        let below = self::risk_lines((&child.plan, &AgreedSteps::new()), catalog, &judged, policy);
        risks.extend(below.into_iter().map(|risk| format!("{id}: {risk}")));
    }
    risks.extend(
        plan.document()
            .risks
            .iter()
            .map(|risk| format!("the author says: {}", line(risk))),
    );
    risks
}

/// What the policy says, where a rule said it: one line each.
pub(crate) fn verdict_lines(judged: &JudgedPlan, agreed: &AgreedSteps<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for step in judged
        .steps
        .iter()
        .filter(|step| !agreed.contains(step.step.as_str()))
    {
        let judgement = &step.judgement;
        let plain = judgement.rule.is_none() && judgement.undecided.is_empty();
        if !plain || judgement.verdict == Verdict::Deny {
            let later = if judgement.undecided.is_empty() {
                String::new()
            } else {
                format!(
                    "; decided at run time: {}",
                    line(&judgement.undecided.join(", "))
                )
            };
            let verdict = judgement.verdict.as_str();
            let because = line(&judgement.explain());
            lines.push(format!(
                "step {}: policy says {verdict} ({because}){later}",
                step.step
            ));
        }
        if let Some(undo) = step.undo.as_ref().filter(|undo| undo.rule.is_some()) {
            let verdict = undo.verdict.as_str();
            let because = line(&undo.explain());
            lines.push(format!(
                "step {}, undo: policy says {verdict} ({because})",
                step.step
            ));
        }
    }
    lines.extend(
        judged
            .warnings()
            .map(|(step, words)| format!("step {}: {}", step.step, line(&words))),
    );
    lines
}

/// Formats the plan's own constraints, which hold for every choice.
pub(crate) fn constraint_lines(plan: &Plan) -> Vec<String> {
    let of_step = |ix: StepIx| {
        let each = plan.step(ix).constraints.iter();
        each.map(move |source| format!("step {}: only if {}", plan.step_id(ix), line(source)))
    };
    plan.indices().flat_map(of_step).collect()
}

/// The plan with its risks, on stderr: it is what the person agrees to.
///
/// Where an edit voided an unused approval, only the change needs approval: unchanged steps are
/// named and not described.
fn show_plan(
    app: &App,
    review: &Review,
    (candidate, judged): (&Candidate, &JudgedPlan),
    since: Option<&Reapproval>,
) {
    let printer = app.printer();
    let document = candidate.plan.document();
    let title = document
        .title
        .as_deref()
        .map_or_else(|| review.id().to_string(), line);
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
    let agreed: AgreedSteps<'_> = since
        .iter()
        .flat_map(|since| &since.agreed)
        .map(StepId::as_str)
        .collect();
    if let Some(since) = since {
        diff::talk_changes(printer, since);
        printer.talk("");
    }
    if agreed.is_empty() {
        printer.talk(dag::render(&candidate.plan, None).trim_end());
    } else {
        printer.talk(&format!(
            "planwright show {} shows the whole plan",
            review.id()
        ));
    }
    for (id, child) in candidate.plan.all_subplans() {
        printer.talk(&format!("\nplan {id}, version {}:", child.version));
        printer.talk(dag::render(&child.plan, None).trim_end());
    }
    printer.talk("");
    let policy = app.engine.policy();
    let risks = risk_lines(
        (&candidate.plan, &agreed),
        &app.engine.catalog(),
        judged,
        policy,
    );
    for risk in risks.into_iter().chain(verdict_lines(judged, &agreed)) {
        printer.talk(&format!("{} {risk}", printer.err(YELLOW, "!")));
    }
    for constraint in constraint_lines(&candidate.plan) {
        printer.talk(&format!("  {constraint}"));
    }
    printer.findings(&candidate.findings);
    let given = review.given_approvals(&candidate.digest, app.now()).len();
    let required = policy.approval.required();
    if required > 1 {
        printer.talk(&format!("approvals: {given} of {required}"));
    }
    printer.talk(&format!("digest {}", candidate.digest));
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
