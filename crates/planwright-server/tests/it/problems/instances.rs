//! One instance of every error that a route can end with.

use planwright_core::digest::Digest;
use planwright_core::error::{ClassifiedError as _, ErrorClass};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{Head, StreamName};
use planwright_core::model::ModelRole;
use planwright_core::plan::{Code, EditError, Finding, ResolveError};
use planwright_core::planning::FillPromptError;
use planwright_core::policy::{Permission, PolicyDenial};
use planwright_core::principal::Principal;
use planwright_core::review::{self, CommentRefusal};
use planwright_core::run::{self, Parent, PlanUndoError, Shown};
use planwright_core::status::{PlanStatus, RunStatus, StepStatus};
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    AcquireError, AppendError, ArtifactError, ModelError, OwnerId, StoreError,
};
use planwright_engine::{
    CheckCriteriaError, CommandError, CreateError, Difference, FailedPlanning, LoadError,
    MissingExecutor, ReviewError, StartRunError, UndoRunError,
};
use planwright_server::http::Problem;

/// An error by name, and the problem it becomes.
pub(super) struct Instance {
    pub(super) name: String,
    pub(super) class: ErrorClass,
    pub(super) problem: Problem,
}

/// Lists each expression with the problem it becomes.
macro_rules! instances {
    ($($error:expr),* $(,)?) => {
        vec![$({
            let error = $error;
            Instance {
                name: name(stringify!($error)),
                class: error.class(),
                problem: error.into(),
            }
        }),*]
    };
}

/// Writes an expression on one line.
fn name(expression: &str) -> String {
    expression.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn all() -> Vec<Instance> {
    let mut all = store();
    all.extend(runs());
    all.extend(reviews());
    all.extend(comments());
    all.extend(plans());
    all.extend(starts());
    all.extend(commands());
    all.extend(planning());
    all.extend(models());
    all
}

fn plan() -> PlanId {
    "p".parse().unwrap()
}

fn run_id() -> RunId {
    "run_1".parse().unwrap()
}

fn stream() -> StreamName {
    StreamName::Plan(plan())
}

fn step() -> String {
    "a".to_owned()
}

fn ann() -> Principal {
    Principal::person("ann")
}

fn bob() -> Principal {
    Principal::person("bob")
}

fn at() -> Timestamp {
    Timestamp::from_millis(0)
}

fn head() -> Head {
    Head {
        seq: 0,
        hash: Digest::ZERO,
    }
}

fn conflict() -> AppendError {
    AppendError::Conflict {
        stream: stream(),
        expected: head(),
        found: head(),
    }
}

fn finding() -> Finding {
    Finding::new(Code::UnknownTool, "/steps/0/tool", "there is no such tool")
}

fn store() -> Vec<Instance> {
    let reason = || "gap".to_owned();
    instances![
        StoreError::Damaged {
            stream: stream(),
            reason: reason()
        },
        StoreError::Failed("disk full".to_owned()),
        StoreError::Busy("another process holds its lock".to_owned()),
        StoreError::Full,
        StoreError::ReadOnly,
        StoreError::NotAdopted("it is a copy".to_owned()),
        StoreError::Lost("its disk failed".to_owned()),
        ArtifactError::Full,
        ArtifactError::Missing(Digest::ZERO),
        ArtifactError::Changed(Digest::ZERO),
        ArtifactError::Io("disk full".to_owned()),
        LoadError::NoSuchPlan(plan()),
        LoadError::NoSuchRun(run_id()),
        LoadError::Store(StoreError::Failed("disk full".to_owned())),
        LoadError::Store(StoreError::Damaged {
            stream: stream(),
            reason: reason()
        }),
        LoadError::Damaged {
            stream: stream(),
            reason: reason()
        },
        LoadError::Plan(vec![finding()]),
        conflict(),
        AppendError::Fenced {
            run: run_id(),
            ours: 1,
            found: 2
        },
        AppendError::Duplicate {
            stream: stream(),
            key: "k".to_owned()
        },
        AppendError::Store(StoreError::Failed("disk full".to_owned())),
        AcquireError::Held {
            run: run_id(),
            owner: OwnerId("one".to_owned()),
            expires_at: at(),
        },
        AcquireError::NoSuchRun(run_id()),
        AcquireError::Store(StoreError::Failed("disk full".to_owned())),
    ]
}

fn runs() -> Vec<Instance> {
    let status = RunStatus::Executing;
    let state = StepStatus::Running;
    instances![
        run::Refusal::RunEnded { status },
        run::Refusal::NotExecuting,
        run::Refusal::NotPaused,
        run::Refusal::CannotPause { status },
        run::Refusal::InFlight { calls: 1 },
        run::Refusal::UnknownStep(step()),
        run::Refusal::NothingToApprove {
            step: step(),
            state
        },
        run::Refusal::NothingToResolve {
            step: step(),
            state
        },
        run::Refusal::NothingToAnswer {
            step: step(),
            state
        },
        run::Refusal::OtherQuestion { step: step() },
        run::Refusal::BadInput {
            step: step(),
            findings: vec!["too short".to_owned()]
        },
        run::Refusal::MayNotAnswer(ann()),
        run::Refusal::MayNotSkip {
            step: step(),
            by: ann()
        },
        run::Refusal::PausedByPerson {
            paused_by: ann(),
            by: bob()
        },
        run::Refusal::CannotStart {
            step: step(),
            state
        },
        run::Refusal::CannotSkip {
            step: step(),
            state
        },
        run::Refusal::NotInFlight {
            step: step(),
            attempt: 1
        },
        run::Refusal::Stale {
            shown: Shown::Version(1),
            current: Shown::Version(2)
        },
        run::Refusal::NotEnded { status },
        run::Refusal::NothingToUndo,
        run::Refusal::AlreadyUndone { run: run_id() },
        run::Refusal::MayNotApprove(ann()),
        run::Refusal::MayNot {
            by: ann(),
            action: Permission::Approve
        },
        run::Refusal::FourEyes(ann()),
        run::Refusal::InPerson("w.write".to_owned()),
        run::Refusal::NothingToReflectOn { status },
        run::Refusal::ApprovalExpired {
            step: step(),
            at: at()
        },
    ]
}

fn reviews() -> Vec<Instance> {
    instances![
        review::ReviewRefusal::Exists(plan()),
        review::ReviewRefusal::Deleted,
        review::ReviewRefusal::NothingToDecide("approved"),
        review::ReviewRefusal::Rejected,
        review::ReviewRefusal::NotApproved,
        review::ReviewRefusal::Changed {
            approved: Digest::ZERO,
            current: Digest::ZERO
        },
        review::ReviewRefusal::Expired { at: at() },
        review::ReviewRefusal::Revoked {
            of: ann(),
            by: bob()
        },
        review::ReviewRefusal::MayNotRevoke {
            of: ann(),
            by: bob()
        },
        review::ReviewRefusal::NothingToRevoke(ann()),
        review::ReviewRefusal::NotEnough {
            given: 1,
            required: 2
        },
        review::ReviewRefusal::FourEyes(ann()),
        review::ReviewRefusal::InPerson("w.write".to_owned()),
        review::ReviewRefusal::NeedsPerson,
        review::ReviewRefusal::DigestNeeded,
        review::ReviewRefusal::ApprovedWider {
            plan: plan(),
            step: step(),
            choice: "ask".to_owned()
        },
        review::ReviewRefusal::PolicyAsks(step()),
        review::ReviewRefusal::SafeguardLost("one is gone".to_owned()),
        review::ReviewRefusal::Conflict {
            based_on: 1,
            current: 2
        },
        review::ReviewRefusal::Draft,
        review::ReviewRefusal::NotADraft(PlanStatus::Approved),
        review::ReviewRefusal::NoSteps,
        review::ReviewRefusal::Fallback,
        review::ReviewRefusal::NoSuchVersion(9),
        review::ReviewRefusal::TooManyVersions(9),
        review::ReviewRefusal::ReasonTooLong(9),
        review::ReviewRefusal::Executing,
        review::ReviewRefusal::ChangesRequested,
        review::ReviewRefusal::PlanExpired,
        review::ReviewRefusal::Archived,
        review::ReviewRefusal::NotArchived,
        review::ReviewRefusal::NotOver(PlanStatus::Approved),
        review::ReviewRefusal::OpenThreads {
            count: 1,
            first: "c_1".parse().unwrap()
        },
        review::ReviewRefusal::Comment(CommentRefusal::Empty),
        review::ReviewRefusal::Decision(run::Refusal::UnknownStep(step())),
    ]
}

fn comments() -> Vec<Instance> {
    instances![
        CommentRefusal::Empty,
        CommentRefusal::TooLong { bytes: 9 },
        CommentRefusal::TooMany,
        CommentRefusal::NoSuchComment("c_1".to_owned()),
        CommentRefusal::NoSuchStep(step()),
        CommentRefusal::ReplyWithStep,
        CommentRefusal::Already("resolved"),
        CommentRefusal::MayNotResolve(ann()),
        CommentRefusal::Duplicate("c_1".parse().unwrap()),
    ]
}

fn plans() -> Vec<Instance> {
    instances![
        ReviewError::Load(LoadError::NoSuchPlan(plan())),
        ReviewError::Refused(review::ReviewRefusal::Deleted),
        ReviewError::Invalid(vec![finding()]),
        ReviewError::Edit(EditError::FixedId),
        ReviewError::Edit(EditError::BadPath {
            path: "x".to_owned(),
            reason: "it ends"
        }),
        ReviewError::OtherPlan {
            plan: plan(),
            found: "q".parse().unwrap()
        },
        ReviewError::MissingTools(vec!["t".to_owned()]),
        ReviewError::Denied(PolicyDenial {
            step: step(),
            because: "rule 1".to_owned()
        }),
        ReviewError::BadChoice("no such argument".to_owned()),
        ReviewError::StoredTooMuch {
            by: ann(),
            limit: 10 << 30
        },
        ReviewError::Artifact(ArtifactError::Missing(Digest::ZERO)),
        ReviewError::Append(conflict()),
    ]
}

fn starts() -> Vec<Instance> {
    let difference = || Difference("a tool".to_owned());
    let parent = Parent {
        run: run_id(),
        step: "a".parse().unwrap(),
        index: None,
        call: None,
        outside: false,
    };
    let no_model = ModelError::NotConfigured {
        role: ModelRole::Executor,
    };
    instances![
        StartRunError::Load(LoadError::NoSuchPlan(plan())),
        StartRunError::Invalid(vec![finding()]),
        StartRunError::MissingTools(vec!["t".to_owned()]),
        StartRunError::Unsupported(vec!["loops".to_owned()]),
        StartRunError::MissingExecutor(MissingExecutor::NoModel {
            step: step(),
            role: ModelRole::Executor,
        }),
        StartRunError::MissingExecutor(MissingExecutor::Model {
            step: step(),
            source: no_model,
        }),
        StartRunError::MissingExecutor(MissingExecutor::NoExecutor {
            step: step(),
            executor: "e".to_owned(),
        }),
        StartRunError::Refused(review::ReviewRefusal::NotApproved),
        StartRunError::Edited { run: 1, current: 2 },
        StartRunError::ToolsChanged {
            approved: Digest::ZERO,
            current: Digest::ZERO,
            difference: difference(),
        },
        StartRunError::Changed {
            approved: Digest::ZERO,
            current: Digest::ZERO,
            difference: difference(),
        },
        StartRunError::Denied(PolicyDenial {
            step: step(),
            because: "rule 1".to_owned()
        }),
        StartRunError::BadChoice("no such argument".to_owned()),
        StartRunError::Artifact(ArtifactError::Changed(Digest::ZERO)),
        StartRunError::NothingToResume(plan()),
        StartRunError::AlreadyExecuting {
            plan: plan(),
            run: run_id()
        },
        StartRunError::Ended {
            run: run_id(),
            status: RunStatus::Completed
        },
        StartRunError::BeingUndone {
            plan: plan(),
            run: run_id()
        },
        StartRunError::ChildRun {
            run: run_id(),
            parent
        },
        StartRunError::UnknownStep(step()),
        StartRunError::Stopping,
        StartRunError::Acquire(AcquireError::NoSuchRun(run_id())),
        StartRunError::Append(conflict()),
    ]
}

fn commands() -> Vec<Instance> {
    instances![
        CommandError::Load(LoadError::NoSuchRun(run_id())),
        CommandError::Refused(run::Refusal::NotPaused),
        CommandError::RefusedElsewhere("the run is not paused".to_owned()),
        CommandError::NoAnswer(run_id()),
        CommandError::Acquire(AcquireError::NoSuchRun(run_id())),
        CommandError::Append(conflict()),
        CommandError::Artifact(ArtifactError::Missing(Digest::ZERO)),
        UndoRunError::Load(LoadError::NoSuchRun(run_id())),
        UndoRunError::Refused(run::Refusal::NothingToUndo),
        UndoRunError::NotApproved,
        UndoRunError::Plan(PlanUndoError::Unresolved {
            step: "a".parse().unwrap(),
            source: ResolveError::TooLarge {
                reference: "x".to_owned(),
                limit: 1
            },
        }),
        UndoRunError::Value("it is gone".to_owned()),
        UndoRunError::Start(StartRunError::Stopping),
        CheckCriteriaError::Load(LoadError::NoSuchRun(run_id())),
        CheckCriteriaError::NoCriteria,
        CheckCriteriaError::Refused(run::Refusal::NotEnded {
            status: RunStatus::Executing
        }),
        CheckCriteriaError::Append(conflict()),
    ]
}

fn planning() -> Vec<Instance> {
    let given_up = FailedPlanning {
        rounds: vec![vec!["no steps".to_owned()]],
        ..FailedPlanning::default()
    };
    let no_model = FailedPlanning {
        cause: Some(ModelError::NotConfigured {
            role: ModelRole::Planner,
        }),
        ..FailedPlanning::default()
    };
    let prompt = FillPromptError::UnknownPlace {
        prompt: "plan".to_owned(),
        place: "x".to_owned(),
        known: vec!["goal".to_owned()],
    };
    instances![
        CreateError::NoGoal,
        CreateError::GoalTooLong { found: 9, limit: 8 },
        CreateError::Prompt(prompt),
        CreateError::Failed(Box::new(given_up)),
        CreateError::Failed(Box::new(no_model)),
        CreateError::Cancelled(Box::default()),
        CreateError::NoSuchStep(step()),
        CreateError::NothingInScope(plan()),
        CreateError::Executing(plan()),
        CreateError::OutcomeUnknown(step()),
        CreateError::Review(ReviewError::Refused(review::ReviewRefusal::Deleted)),
    ]
}

fn models() -> Vec<Instance> {
    let model = || "m".to_owned();
    let message = || "no".to_owned();
    instances![
        ModelError::NotConfigured {
            role: ModelRole::Chat
        },
        ModelError::Unknown {
            name: model(),
            known: Vec::new()
        },
        ModelError::Unknown {
            name: model(),
            known: vec!["n".to_owned()]
        },
        ModelError::NoKey {
            model: model(),
            hint: "set KEY".to_owned()
        },
        ModelError::Refused {
            model: model(),
            status: 401,
            message: message()
        },
        ModelError::Unavailable {
            model: model(),
            message: message()
        },
        ModelError::TimedOut {
            model: model(),
            seconds: 9
        },
        ModelError::Unreadable {
            model: model(),
            message: message()
        },
        ModelError::Cancelled,
    ]
}
