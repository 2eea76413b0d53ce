//! The one question about a plan: what it would do, and what the person says to it.

use crate::config::always::{self, AlwaysEntry};
use crate::exit::Failure;
use crate::terminal::approval_prompt::{YesNo, ask_yes_no, read_answer};
use crate::terminal::briefing_screen::{screen_options, talk_lines};
use crate::terminal::diff;
use crate::terminal::late_bound::LateChoices;
use crate::terminal::printer::{DIM, Printer};
use crate::terminal::requested_run::requested_line;
use crate::workspace::app::{App, user};
use planwright_core::briefing::{Briefing, render_briefing};
use planwright_core::id::StepId;
use planwright_core::policy::{AlwaysRule, JudgedPlan, LateChoice};
use planwright_core::review::Review;
use planwright_core::text::reveal_hidden;
use planwright_engine::{Candidate, Reapproval};
use std::collections::{BTreeMap, BTreeSet};

/// What a person decides about a plan.
#[derive(Debug, PartialEq)]
pub(crate) enum Decision {
    /// Yes, with these choices for arguments that are only known later.
    Approve { late: BTreeMap<String, LateChoice> },
    /// No, because.
    Reject { reason: String },
    /// The plan is to be changed first.
    Edit,
    /// No clear answer: nothing is decided.
    Leave,
}

/// A plan that a person is asked about.
#[derive(Debug)]
pub(crate) struct ApprovalScreen<'a> {
    pub(crate) review: &'a Review,
    pub(crate) candidate: &'a Candidate,
    pub(crate) judged: &'a JudgedPlan,
    /// `--late`.
    pub(crate) late: &'a LateChoices,
    pub(crate) can_edit: bool,
    pub(crate) prompt: &'static str,
}

impl ApprovalScreen<'_> {
    /// Shows the plan and asks until there is an answer.
    pub(crate) async fn ask(&self, app: &App) -> Result<Decision, Failure> {
        let printer = app.printer();
        let since = diff::load_changes_since_approval(app, self.review, self.candidate).await?;
        let briefings = app.engine.briefings();
        let briefing = briefings.brief(self.review, self.candidate, &user()).await;
        self.show(app, &briefing, since.as_ref());
        let careful = app.engine.plans().careful_choices(self.candidate);
        let mut late = self.late.choices_for(self.judged);
        for (step, choice) in careful {
            late.entry(step).or_insert(choice);
        }
        talk_late_choices(printer, &late);
        let has_values_to_see = late.values().any(|choice| *choice != LateChoice::Ask);
        let rules = self
            .judged
            .narrowest_rules(&self.candidate.plan, &app.engine.catalog());
        let keys = self.keys(has_values_to_see, !rules.is_empty());
        printer.talk(&printer.err(DIM, &keys));
        loop {
            let answer = read_answer(printer, self.prompt)?;
            match Answer::read(&answer) {
                Answer::Yes => return Ok(Decision::Approve { late }),
                Answer::SeeLateValues if has_values_to_see => {
                    for choice in late.values_mut() {
                        *choice = LateChoice::Ask;
                    }
                    return Ok(Decision::Approve { late });
                }
                Answer::Edit if self.can_edit => return Ok(Decision::Edit),
                Answer::Always if !rules.is_empty() => {
                    if allow_for_good(app, rules.clone())? {
                        return Ok(Decision::Approve { late });
                    }
                }
                Answer::Details => {
                    let options = screen_options(true, BTreeSet::new());
                    talk_lines(printer, &render_briefing(&briefing, &options));
                    printer.talk(&printer.err(DIM, &keys));
                }
                Answer::No(Some(reason)) => return Ok(Decision::Reject { reason }),
                Answer::No(None)
                | Answer::SeeLateValues
                | Answer::Always
                | Answer::Edit
                | Answer::Unclear => return Ok(Decision::Leave),
            }
        }
    }

    /// The plan with its effects, on stderr: it is what the person agrees to.
    ///
    /// Where an edit voided an unused approval, only the change needs approval: unchanged steps are
    /// named and not described.
    fn show(&self, app: &App, briefing: &Briefing, since: Option<&Reapproval>) {
        let printer = app.printer();
        let agreed: BTreeSet<String> = since
            .iter()
            .flat_map(|since| &since.agreed)
            .map(StepId::to_string)
            .collect();
        let is_shown_whole = agreed.is_empty();
        let options = screen_options(false, agreed);
        talk_lines(printer, &render_briefing(briefing, &options));
        printer.talk("");
        if let Some(since) = since {
            diff::talk_changes(printer, since);
        }
        for text in diff::lost_safeguard_lines(self.review, since) {
            printer.talk(&text);
        }
        if !is_shown_whole {
            let id = self.review.id();
            printer.talk(&format!("To see the whole plan: planwright show {id}"));
        }
        printer.findings(&self.candidate.findings);
        let required = app.engine.policy().approval.required();
        if required > 1 {
            let digest = &self.candidate.digest;
            let given = self.review.given_approvals(digest, app.now()).len();
            printer.talk(&format!("approvals: {given} of {required}"));
        }
        if let Some(requested) = requested_line(self.review, app.now()) {
            printer.talk(&requested);
        }
        printer.talk(&printer.err(DIM, &format!("digest {}", self.candidate.digest)));
    }

    fn keys(&self, has_values_to_see: bool, has_rules: bool) -> String {
        let mut keys = vec!["[y] approve"];
        if has_values_to_see {
            keys.push("[s] ask again for each late value");
        }
        if has_rules {
            keys.push("[a] always allow…");
        }
        if self.can_edit {
            keys.push("[e] edit");
        }
        keys.extend(["[d] details", "[n because…] no"]);
        fill_lines(&keys, screen_options(false, BTreeSet::new()).width)
    }
}

/// Sets words side by side in as few lines as the screen takes. No word is broken.
fn fill_lines(words: &[&str], width: usize) -> String {
    let mut text = String::new();
    let mut used = 0;
    for word in words {
        let length = word.chars().count();
        if used > 0 && used + 2 + length > width {
            text.push('\n');
            used = 0;
        } else if used > 0 {
            text.push_str("  ");
            used += 2;
        }
        text.push_str(word);
        used += length;
    }
    text
}

/// Shows the exact lines, and writes them to the person's own file if they say so. Returns whether
/// they did.
fn allow_for_good(app: &App, rules: Vec<AlwaysRule>) -> Result<bool, Failure> {
    let printer = app.printer();
    let entries = always::entries_for(rules, &app.context.workspace.root)?;
    for text in entries.iter().flat_map(AlwaysEntry::lines) {
        printer.talk(&reveal_hidden(&text));
    }
    let Some(path) = always::file_path() else {
        printer.talk("there is no directory for your configuration: set HOME");
        return Ok(false);
    };
    let question = format!("Approve, and add these lines to {}?", path.display());
    if ask_yes_no(printer, &question)? != YesNo::Yes {
        return Ok(false);
    }
    let names: Vec<String> = entries.iter().map(|entry| entry.name.clone()).collect();
    always::add_entries(entries)?;
    printer.talk(&format!(
        "To list them: planwright policy list; to remove them: planwright policy remove {}",
        names.join(" ")
    ));
    Ok(true)
}

/// Says what holds for arguments that are only known later.
fn talk_late_choices(printer: Printer, late: &BTreeMap<String, LateChoice>) {
    for (step, choice) in late {
        printer.talk(&format!("step {step}: {}", choice.consequence()));
    }
}

/// One line that the person typed.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    SeeLateValues,
    Always,
    Edit,
    Details,
    No(Option<String>),
    Unclear,
}

impl Answer {
    /// Only a clear yes is a yes.
    fn read(line: &str) -> Self {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let reason = rest
            .trim()
            .trim_start_matches("because")
            .trim_start_matches([',', ':']);
        let reason = Some(reason.trim()).filter(|reason| !reason.is_empty());
        match (word.to_ascii_lowercase().as_str(), rest.is_empty()) {
            ("y" | "yes", true) => Self::Yes,
            ("s", true) => Self::SeeLateValues,
            ("a", true) => Self::Always,
            ("e", true) => Self::Edit,
            ("d", true) => Self::Details,
            ("n" | "no" | "n," | "no,", _) => Self::No(reason.map(str::to_owned)),
            _ => Self::Unclear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes_and_a_reason_is_kept() {
        for (line, answer) in [
            ("y\n", Answer::Yes),
            ("YES", Answer::Yes),
            ("yes please", Answer::Unclear),
            ("yep", Answer::Unclear),
            ("", Answer::Unclear),
            ("d", Answer::Details),
            ("n", Answer::No(None)),
            ("no, because", Answer::No(None)),
            (
                "n because the path is wrong",
                Answer::No(Some("the path is wrong".into())),
            ),
            ("no, use a copy", Answer::No(Some("use a copy".into()))),
        ] {
            assert_eq!(Answer::read(line), answer, "{line:?}");
        }
    }
}
