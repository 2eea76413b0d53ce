//! Looking at a run before it ends, as the command line asks for it, and agreeing to what that
//! changes.

use crate::exit::Failure;
use crate::terminal::approval_prompt::{YesNo, ask_yes_no};
use crate::terminal::diff;
use crate::terminal::late_bound::LateFlags;
use crate::terminal::printer::{BOLD, Printer, line};
use crate::workspace::app::{App, user};
use crate::workspace::servers::Need;
use clap::Args;
use planwright_core::plan::Limits;
use planwright_core::policy::LateChoice;
use planwright_core::principal::{Assurance, PrincipalKind};
use planwright_core::run::{CriterionCheck, Reflection, ReflectionWish, Run, Shown};
use planwright_engine::{Continuation, GivenApproval, Reapproval};
use std::collections::BTreeMap;

/// Flags that let a model reflect on the run, and their bounds.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ReflectFlags {
    /// Have a model look at the run before it ends. What it would change is shown and asked about.
    #[arg(long)]
    reflect: bool,
    /// If a step finally fails, have a model replan the remaining work. The new plan is shown and
    /// asked about.
    #[arg(long)]
    replan: bool,
    /// Maximum number of reflections, over all runs of the work. Default: the plan's value, or 3.
    #[arg(long, value_name = "N", requires = "reflect", value_parser = clap::value_parser!(u32).range(1..=100))]
    max_cycles: Option<u32>,
    /// Maximum number of replans. Default: the plan's value, or 1.
    #[arg(long, value_name = "N", requires = "replan", value_parser = clap::value_parser!(u32).range(1..=100))]
    max_replans: Option<u32>,
    /// Maximum number of tokens, over all runs of the work. No model is asked beyond it.
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// Approve every adjustment in advance, as the person at the keyboard.
    #[arg(long)]
    yes_adjustments: bool,
}

impl ReflectFlags {
    /// Reads the bounds of the reflection, if one is wanted. Refuses a run whose model cannot be
    /// asked.
    pub(crate) fn read(&self, app: &App, limits: &Limits) -> Result<Option<Reflection>, Failure> {
        let models = app.engine.model();
        let wish = ReflectionWish {
            reflect: self.reflect,
            replan: self.replan,
            max_cycles: self.max_cycles,
            max_replans: self.max_replans,
            max_tokens: self.max_tokens,
        };
        for role in wish.roles() {
            models
                .resolve(role, None)
                .map_err(|error| Failure::from(&error))?;
        }
        Ok(wish.bounds(limits))
    }
}

/// The decision about the work of an adjusted run.
#[derive(Debug)]
pub(crate) enum AdjustmentDecision {
    /// With this approval; with none, there is one, or policy gives it.
    Continue {
        approval: Option<GivenApproval>,
        /// What the approval that is spent must say of arguments that are only known later.
        late: BTreeMap<String, LateChoice>,
        steps: usize,
    },
    /// An approval is needed first.
    Wait,
}

/// Shows what an adjustment changes, and asks for an approval of the change.
pub(crate) async fn confirm_adjustment(
    app: &App,
    run: &Run,
    flags: &ReflectFlags,
    late: &LateFlags,
) -> Result<AdjustmentDecision, Failure> {
    let (review, _) = app.engine.plans().load_review(run.plan().id()).await?;
    app.start_servers(&review.current().document, Need::Use)
        .await?;
    let Some(continuation) = app.engine.runs().continuation(run.id()).await? else {
        return Ok(AdjustmentDecision::Wait);
    };
    let printer = app.printer();
    print_adjustment(printer, run, &continuation);
    let candidate = &continuation.candidate;
    let go_on = |approval, late| {
        Ok(AdjustmentDecision::Continue {
            approval,
            late,
            steps: candidate.plan.len(),
        })
    };
    let late = late
        .read()?
        .choices_for(&app.engine.plans().judge(&candidate.plan));
    if continuation
        .review
        .usable_approvals(&candidate.digest, app.now())
        .is_some()
    {
        return go_on(None, late);
    }
    if continuation.by_policy {
        printer.talk("approved by policy: every new, changed or repeated step only reads");
        // What was chosen for the other steps goes on with them.
        return go_on(None, BTreeMap::new());
    }
    let given = |assurance| {
        let shown = Shown::Digest(candidate.digest);
        let late = late.clone();
        Some(GivenApproval {
            shown,
            by: user(),
            assurance,
            late,
        })
    };
    if flags.yes_adjustments {
        return go_on(given(Assurance::CommandLine), late.clone());
    }
    if !printer.can_ask() || printer.json || user().kind != PrincipalKind::Person {
        return Ok(AdjustmentDecision::Wait);
    }
    let answer = tokio::task::spawn_blocking(move || {
        ask_yes_no(printer, "Approve the change and continue?")
    })
    .await;
    match answer.map_err(|error| Failure::refused(format!("cannot ask: {error}")))?? {
        YesNo::Yes => go_on(given(Assurance::Terminal), late.clone()),
        YesNo::No | YesNo::Unclear => Ok(AdjustmentDecision::Wait),
    }
}

fn print_adjustment(printer: Printer, run: &Run, continuation: &Continuation) {
    for text in reflection_lines(run) {
        printer.talk(&text);
    }
    let Continuation {
        since,
        diff,
        agreed,
        again,
        ..
    } = continuation;
    let since = Reapproval {
        since: *since,
        diff: diff.clone(),
        agreed: agreed.clone(),
        again: again.clone(),
    };
    printer.talk(&printer.err(BOLD, "what would change:"));
    diff::talk_changes(printer, &since);
    printer.talk(&format!("digest {}", continuation.candidate.digest));
}

/// Formats the reflection on a run, one line each.
pub(crate) fn reflection_lines(run: &Run) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(looked) = run.reflection().looked_at() {
        let word = looked.assessment.as_str().replace('_', " ");
        lines.push(format!(
            "reflection {}: {word}: {}",
            looked.cycle,
            line(&looked.reasoning)
        ));
    }
    if let Some(reason) = run.reflection().why_given_up() {
        lines.push(format!("given up: {}", line(reason)));
    }
    if let Some(continues) = run
        .start()
        .reflection
        .as_ref()
        .and_then(|reflection| reflection.continues.as_ref())
    {
        lines.push(format!("continues {continues}"));
    }
    lines
}

/// Formats the checks of the success criteria, one line each.
pub(crate) fn criterion_lines(checks: &[CriterionCheck]) -> Vec<String> {
    let each = checks.iter().map(|check| {
        let sign = match check.holds {
            Some(true) => "✓",
            Some(false) => "✗",
            None => "?",
        };
        let evidence = if check.evidence.is_empty() {
            String::new()
        } else {
            format!("  ({})", line(&check.evidence))
        };
        format!("{sign} {}{evidence}", line(&check.criterion))
    });
    each.collect()
}
