//! The words that documents use, as schemas with a name: programs of others make types of them.
//!
//! The lists are those of the core, so that no word can be missing here.

use planwright_core::adjust::Assessment;
use planwright_core::plan::Code;
use planwright_core::policy::{Mode, Role, Verdict};
use planwright_core::principal::PrincipalKind;
use planwright_core::status::{PlanStatus, RunStatus, StepStatus};
use planwright_core::tool::EffectClass;
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Declares the shape of a text that is one of these words.
macro_rules! words {
    ($(#[doc = $doc:literal] $Shape:ident as $name:literal = $words:expr;)+) => {$(
        #[doc = $doc]
        #[derive(Debug)]
        pub struct $Shape;

        impl PartialSchema for $Shape {
            fn schema() -> RefOr<Schema> {
                one_of_words($doc, $words)
            }
        }

        impl ToSchema for $Shape {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }
        }
    )+};
}

/// A text that is one of these words.
pub fn one_of_words<'a>(
    description: &str,
    words: impl IntoIterator<Item = &'a str>,
) -> RefOr<Schema> {
    let words: Vec<&str> = words.into_iter().collect();
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description.trim()))
        .enum_values(Some(words))
        .into()
}

words! {
    /// Where a plan stands.
    PlanStatusShape as "PlanStatus" = PlanStatus::ALL.iter().map(|status| status.as_str());
    /// Where a plan in a list stands; `unreadable` if its journal cannot be read.
    ListedStatusShape as "ListedPlanStatus" =
        PlanStatus::ALL.iter().map(|status| status.as_str()).chain(["unreadable"]);
    /// Where a run stands.
    RunStatusShape as "RunStatus" = RunStatus::ALL.iter().map(|status| status.as_str());
    /// Where a run stands; `dry_run` if nothing was called.
    RunResultStatusShape as "RunResultStatus" =
        RunStatus::ALL.iter().map(|status| status.as_str()).chain(["dry_run"]);
    /// Where a step stands.
    StepStatusShape as "StepStatus" = StepStatus::ALL.iter().map(|status| status.as_str());
    /// Where a step stands; `dry_run` if nothing was called.
    StepResultStatusShape as "StepResultStatus" =
        StepStatus::ALL.iter().map(|status| status.as_str()).chain(["dry_run"]);
    /// What the policy says about a call.
    VerdictShape as "Verdict" = Verdict::ALL.iter().map(|verdict| verdict.as_str());
    /// The weight of a rule.
    RuleModeShape as "RuleMode" = Mode::ALL.iter().map(|mode| mode.as_str());
    /// What may be done with a call whose outcome is unknown: called again, called again with the same key, or not.
    EffectClassShape as "EffectClass" = EffectClass::ALL.iter().map(|class| class.as_str());
    /// What acts: a human being, a program with a model, a program, or a rule of the operator.
    PrincipalKindShape as "PrincipalKind" = PrincipalKind::ALL.iter().map(|kind| kind.as_str());
    /// What a token is trusted with.
    RoleShape as "Role" = Role::ALL.iter().map(|role| role.as_str());
    /// What came of looking at a run before its end.
    AssessmentShape as "Assessment" = Assessment::ALL.iter().map(|assessment| assessment.as_str());
    /// The kind of a finding; docs/errors has a page for each.
    FindingCodeShape as "FindingCode" = Code::ALL.iter().map(|code| code.as_str());
    /// What is waited for: the approval of a plan, the approval of a call, an answer, or what became of a call.
    WaitingForShape as "WaitingFor" = ["plan", "step", "input", "outcome"];
    /// How much harm a step, or a plan, can do.
    RiskShape as "Risk" = ["low", "medium", "high"];
    /// Whether a plan with the finding runs.
    SeverityShape as "Severity" = ["error", "warning"];
    /// How much a line of a server's log matters, as the server says.
    LogLevelShape as "LogLevel" =
        ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
}
