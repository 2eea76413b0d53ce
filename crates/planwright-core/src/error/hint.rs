//! Next steps as data.

use crate::id::{PlanId, RunId};
use crate::journal::StreamName;

/// A next step for the caller. It is data: each face writes the command, the route or the button
/// that takes the step, and leaves out steps that it has no words for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// Words that name no command and hold for every face.
    Text(String),
    /// List the plans.
    ListPlans,
    /// List everything in the store that is damaged; other plans are not affected.
    ListDamage,
    /// Check the store, which failed.
    CheckStore,
    /// Make space on the disk of the store.
    FreeSpace,
    /// Raise the limit of what a principal may bring into the store, or remove old plans.
    RaiseStoredBytes,
    /// Find the process that has the store to itself.
    FindStoreHolder,
    /// Check how the store is set up, because it cannot be opened.
    DiagnoseStore,
    /// Give the passphrase of the store.
    GivePassphrase,
    /// Look at the store that came from elsewhere, and adopt it.
    AdoptStore,
    /// Encrypt the store, or leave the passphrase out.
    EncryptStore,
    /// Look at the plan as it is after the change of another caller, and repeat the request.
    Repeat,
    /// Follow the run that another process executes.
    FollowRun,
    /// Restore the plan from the archive.
    Unarchive,
    /// List the open comments, and resolve them.
    ResolveComments,
    /// Edit the plan that exists, instead of creating it.
    EditPlan(PlanId),
    /// Compare with the version the edit was made to, and repeat the edit on the current one.
    CompareVersions {
        /// The version that was edited.
        based_on: u32,
    },
    /// List the versions of the plan.
    ListVersions,
    /// Propose the draft.
    Propose,
    /// Review the draft that no model wrote, then propose it.
    ReviewDraft,
    /// Add a step to the draft.
    AddStep,
    /// Approve again, because the approval was not used in time.
    RenewApproval,
    /// Approve again, because the approval was revoked.
    ReplaceRevokedApproval,
    /// Revoke the approval of this plan, then approve what is wanted.
    RevokeApproval(PlanId),
    /// Ask another approver.
    AskAnotherApprover,
    /// Approve on the page of the service, after using a passkey there.
    UsePasskey,
    /// Have a person decide, where no program can.
    AskPerson,
    /// End the run that a rule holds, and have what is left approved anew.
    EndHeldRun,
    /// Have a person resume the run, which a person paused.
    AskPersonToResume,
    /// Have an approver leave the step out.
    AskApproverToSkip,
    /// Approve what the plan does now.
    ApproveCurrent,
    /// Cancel the run, then approve what the plan does now.
    CancelAndApproveCurrent,
    /// Store the document as a plan of its own.
    ImportAsNewPlan,
    /// List the tools, and enable the ones that are missing.
    ListTools,
    /// Look up the rule that decided about each step.
    ExplainPolicy,
    /// Keep the plan without running it.
    KeepWithoutRunning,
    /// Trust this executor of the workspace.
    TrustExecutor {
        /// Name of the executor.
        executor: String,
    },
    /// Look up how models are given to steps.
    ListModels,
    /// Start a run of this plan.
    StartRun(PlanId),
    /// Resume or cancel the run of this plan.
    ResumeOrCancel(PlanId),
    /// Start a new run, or fork the old one to use its results.
    StartOrFork,
    /// Continue to undo this run.
    ContinueUndo(RunId),
    /// Resume this run.
    ResumeRun(RunId),
    /// End this run, whose journal is damaged.
    RepairRun(RunId),
    /// Bring this journal, which left the database for a sealed file, back.
    RestoreJournal(StreamName),
    /// End this run, whose journal is whole, in the usual way.
    EndRun(RunId),
    /// Write the criteria that have to hold after the plan ran.
    AddCriteria,
    /// Correct the prompts that replace the built-in ones.
    CorrectPrompts,
    /// Plan with all tools instead of those in the scope of the plan.
    PlanWithAllTools,
    /// Word the goal in another way, or write the plan without a model.
    RewordGoal,
    /// Configure a model.
    ConfigureModel,
    /// Choose a model that exists.
    ChooseModel {
        /// The model the caller named.
        name: String,
        /// The models that are configured.
        known: Vec<String>,
    },
    /// Check which models answer.
    CheckModels,
    /// List the tokens.
    ListTokens,
    /// Create a new token for the same name.
    CreateToken,
}
