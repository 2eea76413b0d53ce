//! Next steps as commands of this program.

use crate::terminal::no_model::CONFIGURE_MODEL;
use crate::terminal::printer::line;
use crate::workspace::principal::how_a_person_approves;
use crate::workspace::variables::quote_word;
use planwright_core::error::Hint;
use planwright_core::journal::StreamName;
use planwright_core::text::nearest_names;

/// Formats the command that takes the step, if there is one.
pub(crate) fn format_next_step(hint: &Hint) -> Option<String> {
    Some(match hint {
        Hint::Text(text) => text.clone(),
        Hint::EditPlan(_) => return None,
        Hint::CompareVersions { based_on } => format!(
            "To see what changed: planwright diff ID {based_on}; then repeat the edit on the current version"
        ),
        Hint::TrustExecutor { executor } => format!(
            "To list the executors: planwright executors; to review and trust `{}`: planwright trust",
            line(executor)
        ),
        Hint::RevokeApproval(plan) => format!(
            "To revoke that approval: planwright approve {plan} --revoke; then repeat the command"
        ),
        Hint::StartRun(plan) => format!("To start one: planwright run {plan}"),
        Hint::ResumeOrCancel(plan) => {
            format!("To continue: planwright resume {plan}; to stop it: planwright cancel {plan}")
        }
        Hint::ContinueUndo(run) => format!("To continue: planwright undo {run}"),
        Hint::ResumeRun(run) => format!("planwright resume {run}"),
        Hint::RepairRun(run) => {
            format!(
                "Other plans are not affected. To see what can be done: planwright repair {run}"
            )
        }
        Hint::RestoreJournal(StreamName::Run(run)) => {
            format!("planwright store restore-run {run} brings it back")
        }
        Hint::RestoreJournal(StreamName::Plan(plan)) => {
            format!("planwright store restore-run {plan} brings it back")
        }
        Hint::EndRun(run) => format!("To end it: planwright cancel {run}"),
        Hint::ChooseModel { name, known } => choose_model(name, known),
        Hint::AskPerson => how_a_person_approves("planwright approve ID --digest DIGEST"),
        Hint::AskPersonToResume => how_a_person_approves("planwright resume ID"),
        fixed => return fixed_words(fixed).map(str::to_owned),
    })
}

/// Puts a plan where a command of a hint says `ID`.
pub(crate) fn name_plan(hint: &str, plan: &str) -> String {
    const ENDS: [char; 4] = [';', ',', ':', '.'];
    let mut in_command = false;
    let words = hint.split(' ').map(|word| {
        let bare = word.trim_end_matches(ENDS);
        let named = match in_command && bare == "ID" {
            true => format!("{}{}", quote_word(plan), &word[bare.len()..]),
            false => word.to_owned(),
        };
        in_command = (in_command || bare == "planwright") && bare.len() == word.len();
        named
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the words of steps that need no data.
fn fixed_words(hint: &Hint) -> Option<&'static str> {
    Some(match hint {
        Hint::AskApproverToSkip => "a person with the approver role has to skip it",
        Hint::UsePasskey => {
            "sign in to the page of planwright serve and approve it there with your passkey"
        }
        Hint::ListPlans => "To see all plans: planwright list",
        Hint::ListDamage => {
            "Other plans are not affected. To see everything that is damaged: planwright verify"
        }
        Hint::CheckStore => "To see everything that is damaged: planwright verify",
        Hint::FreeSpace => {
            "free disk space, then run planwright resume ID; no acknowledged data is lost"
        }
        Hint::RaiseStoredBytes => {
            "raise [limits] stored_megabytes_per_principal in planwright.toml, or have old plans removed: [retention] remove_after"
        }
        Hint::FindStoreHolder => "To see which process holds the lock: planwright doctor",
        Hint::DiagnoseStore => "To check the store: planwright doctor",
        Hint::GivePassphrase => {
            "--passphrase-file PATH, --passphrase-fd N, or [store] passphrase_file in planwright.toml"
        }
        Hint::EncryptStore => {
            "To encrypt it: planwright store encrypt; otherwise omit the passphrase"
        }
        Hint::AdoptStore => "To review and adopt it: planwright store adopt",
        Hint::Repeat => "check the plan again, then repeat the command",
        Hint::FollowRun => "To watch its progress: planwright log ID --follow",
        Hint::Unarchive => "planwright unarchive ID restores it",
        Hint::ResolveComments => {
            "To list them: planwright comments ID. To resolve one: planwright comment ID --resolve COMMENT"
        }
        Hint::ListVersions => "To list them: planwright versions ID",
        Hint::Propose => "To submit it for review: planwright propose ID",
        Hint::ReviewDraft => {
            "review it with planwright show ID, then submit it with planwright propose ID"
        }
        Hint::AddStep => "planwright edit ID --add '{\"tool\": …}' adds one",
        Hint::RenewApproval => {
            "review the plan and approve it again: the approval was not used in time"
        }
        Hint::ReplaceRevokedApproval => {
            "review the plan and approve it again: planwright approve ID --digest DIGEST"
        }
        Hint::AskAnotherApprover => {
            "another approver is needed: planwright approve ID --digest DIGEST"
        }
        Hint::ApproveCurrent => {
            "To review the plan as it is now: planwright show ID; to approve it: planwright approve ID --digest DIGEST"
        }
        Hint::CancelAndApproveCurrent => {
            "cancel the run with planwright cancel ID, then review the plan with planwright show ID and approve it"
        }
        Hint::ImportAsNewPlan => "To store it as a separate plan: planwright import",
        Hint::ListTools => "To see the tools, and how to enable the others: planwright tools",
        Hint::ExplainPolicy => {
            "To see which rule decided about each step: planwright policy explain ID"
        }
        Hint::KeepWithoutRunning => {
            "such a plan can be imported, validated and exported, but not run yet"
        }
        Hint::ListModels => "see `planwright models` and `planwright explain agents`",
        Hint::StartOrFork => {
            "To start a new run: planwright run ID. To reuse its results: planwright fork ID --from STEP"
        }
        Hint::AddCriteria => "`successCriteria` of a plan lists what has to hold after it ran",
        Hint::CorrectPrompts => {
            "prompts are replaced by files in .plans/prompts: see planwright explain planning"
        }
        Hint::PlanWithAllTools => {
            "To plan with all tools, pass --any-tool. To list them: planwright tools"
        }
        Hint::RewordGoal => "To create a draft without a model: planwright create GOAL --fallback",
        Hint::ConfigureModel => CONFIGURE_MODEL,
        Hint::CheckModels => "To see which models answer: planwright models check",
        Hint::EndHeldRun => {
            "To cancel it: planwright cancel RUN. Then planwright resume PLAN asks and runs the remaining steps"
        }
        Hint::ListTokens => "To list the tokens: planwright token list",
        Hint::CreateToken => "To create a new one for the same name: planwright token create",
        Hint::Text(_)
        | Hint::EditPlan(_)
        | Hint::CompareVersions { .. }
        | Hint::TrustExecutor { .. }
        | Hint::RevokeApproval(_)
        | Hint::StartRun(_)
        | Hint::ResumeOrCancel(_)
        | Hint::ContinueUndo(_)
        | Hint::ResumeRun(_)
        | Hint::RepairRun(_)
        | Hint::RestoreJournal(_)
        | Hint::EndRun(_)
        | Hint::AskPerson
        | Hint::AskPersonToResume
        | Hint::ChooseModel { .. } => return None,
    })
}

/// Lists the configured models that resemble the name, or all of them.
fn choose_model(name: &str, known: &[String]) -> String {
    let close = nearest_names(name, known.iter().cloned());
    let shown = if close.is_empty() { known } else { &close };
    if shown.is_empty() {
        return CONFIGURE_MODEL.to_owned();
    }
    format!(
        "Configured: {}. To list all: planwright models",
        shown.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_is_named_in_commands_and_nowhere_else() {
        let hint = "planwright show ID, or planwright edit ID --set PATH=VALUE; an ID is no IDEA";
        assert_eq!(
            name_plan(hint, "tea"),
            "planwright show tea, or planwright edit tea --set PATH=VALUE; an ID is no IDEA"
        );
        assert_eq!(
            name_plan("planwright run ID", "a b"),
            "planwright run 'a b'"
        );
    }
}
