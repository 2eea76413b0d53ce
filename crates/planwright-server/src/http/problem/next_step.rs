//! Next steps in the words of the API.

use planwright_core::error::Hint;

/// Formats the next step for a client, if there is one that a client can take.
pub(super) fn format_next_step(hint: &Hint) -> Option<String> {
    let words = match hint {
        Hint::Text(text) => return Some(text.clone()),
        Hint::EditPlan(plan) => {
            return Some(format!("PATCH /plan/{plan} makes a new version of it"));
        }
        Hint::ChooseModel { known, .. } if known.is_empty() => return None,
        Hint::ChooseModel { known, .. } => return Some(format!("there are {}", known.join(", "))),
        Hint::ListDamage => {
            "Other plans are not affected. To see everything that is damaged: planwright verify"
        }
        Hint::Repeat => "look at it again and repeat the request",
        Hint::RenewApproval => {
            "look at the plan again and approve it again: an approval has to be used in time"
        }
        Hint::ReplaceRevokedApproval => {
            "a person with the role of approver has to look at the plan and approve it again"
        }
        Hint::RevokeApproval(plan) => {
            return Some(format!(
                "revoke that approval with POST /plan/{plan}/revoke-approval, then approve the plan with `late`"
            ));
        }
        Hint::EndHeldRun => "cancel the run; what is left is a new run, which is approved anew",
        Hint::AskPersonToResume => "a person has to POST the resume with their own token",
        Hint::AskApproverToSkip => {
            "a person with the role of approver has to skip it with their own token"
        }
        Hint::AskAnotherApprover => "another person has to approve it too",
        Hint::ApproveCurrent | Hint::CancelAndApproveCurrent => {
            "look at the plan again and approve what it does now"
        }
        Hint::ListTools => "GET /tools lists what there is",
        Hint::ExplainPolicy => {
            "the plan's `policy` says which rule decided about each step, and why"
        }
        Hint::UsePasskey => {
            "sign in to the page, use your passkey there (Settings makes the first one), and approve again within 15 minutes"
        }
        Hint::PlanWithAllTools => "`anyTool` plans with all tools",
        Hint::RewordGoal => "say the goal in other words, or post a plan with steps",
        Hint::ConfigureModel => {
            "the operator names one under [models] in planwright.toml; planwright models shows what is there"
        }
        Hint::RaiseStoredBytes => {
            "the operator raises [limits] stored_megabytes_per_principal in planwright.toml, or has old plans removed ([retention] remove_after)"
        }
        // The detail says enough to a client, or the step is the operator's.
        Hint::ListPlans
        | Hint::AskPerson
        | Hint::CheckStore
        | Hint::FreeSpace
        | Hint::FindStoreHolder
        | Hint::DiagnoseStore
        | Hint::GivePassphrase
        | Hint::EncryptStore
        | Hint::AdoptStore
        | Hint::FollowRun
        | Hint::Unarchive
        | Hint::ResolveComments
        | Hint::CompareVersions { .. }
        | Hint::ListVersions
        | Hint::Propose
        | Hint::ReviewDraft
        | Hint::AddStep
        | Hint::ImportAsNewPlan
        | Hint::KeepWithoutRunning
        | Hint::TrustExecutor { .. }
        | Hint::ListModels
        | Hint::StartRun(_)
        | Hint::ResumeOrCancel(_)
        | Hint::StartOrFork
        | Hint::ContinueUndo(_)
        | Hint::ResumeRun(_)
        | Hint::RepairRun(_)
        | Hint::RestoreJournal(_)
        | Hint::EndRun(_)
        | Hint::AddCriteria
        | Hint::CorrectPrompts
        | Hint::CheckModels
        | Hint::ListTokens
        | Hint::CreateToken => return None,
    };
    Some(words.to_owned())
}
