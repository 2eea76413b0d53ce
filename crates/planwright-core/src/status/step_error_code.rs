//! Why a step failed, as a word that plans and other programs can name.

use crate::id::StepId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// The prefix of [`StepErrorCode::DependencyFailed`].
const DEPENDENCY_FAILED: &str = "dependency_failed:";

/// Declares the codes that this program gives itself, each with its word.
macro_rules! step_error_codes {
    ($($(#[$of_variant:meta])* $Variant:ident = $word:literal,)+) => {
        /// A stable word for why a step failed. It is journaled, shown, and named by `retry.on`.
        ///
        /// Read one with `from`: a known word becomes its variant, all others are `Other`.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum StepErrorCode {
            $($(#[$of_variant])* $Variant,)+
            /// A step that this one depends on will never succeed. Holds the whole word,
            /// `dependency_failed:<step>`.
            DependencyFailed(String),
            /// The word of a tool or of a newer version.
            Other(String),
        }

        impl StepErrorCode {
            /// The codes without data.
            const KNOWN: &[Self] = &[$(Self::$Variant),+];

            /// Returns the word that is journaled and shown.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$Variant => $word,)+
                    Self::DependencyFailed(word) | Self::Other(word) => word,
                }
            }
        }
    };
}

step_error_codes! {
    /// No person approved the step in time.
    ApprovalExpired = "approval_expired",
    /// A stored value is not what was stored.
    ArtifactDamaged = "artifact_damaged",
    /// The run of its sub-plan waits for a person.
    AwaitingPlan = "awaiting_plan",
    /// A model's answer does not have the form that was asked for.
    BadAnswer = "bad_answer",
    /// The prompt of an agent step cannot be used.
    BadPrompt = "bad_prompt",
    /// A tool asked something that cannot be shown to a person.
    BadQuestion = "bad_question",
    /// The run ended before the step did.
    Cancelled = "cancelled",
    /// A command ended with an error.
    CommandFailed = "command_failed",
    /// The step's `when` could not be decided.
    ConditionFailed = "condition_failed",
    /// The arguments break the step's `constraints`.
    ConstraintViolated = "constraint_violated",
    /// A person said no.
    Denied = "denied",
    /// A person said that a call of unknown outcome had no effect.
    DidNotHappen = "did_not_happen",
    /// An executor ended without a result.
    ExecutorFailed = "executor_failed",
    /// An executor could not be started.
    ExecutorNotStarted = "executor_not_started",
    /// The result is not what the step's `expect` asks for.
    ExpectFailed = "expect_failed",
    /// A guard stopped the call.
    GuardBlocked = "guard_blocked",
    /// The tool is guarded, and the call is part of no approved plan.
    GuardedTool = "guarded_tool",
    /// The process ended during the attempt too often.
    Interrupted = "interrupted",
    /// The arguments do not fit the tool.
    InvalidArgs = "invalid_args",
    /// The inputs do not fit the sub-plan.
    InvalidInputs = "invalid_inputs",
    /// The tool's answer cannot be read, or is not what the tool promises.
    InvalidOutput = "invalid_output",
    /// The tool's schema cannot be used.
    InvalidSchema = "invalid_schema",
    /// The model refused.
    ModelRefused = "model_refused",
    /// The model did not answer in time.
    ModelTimeout = "model_timeout",
    /// The model cannot be reached.
    ModelUnavailable = "model_unavailable",
    /// The model's answer cannot be read.
    ModelUnreadable = "model_unreadable",
    /// A person has to agree to the call, and none can be asked.
    NeedsPerson = "needs_person",
    /// The step does not say what to do.
    NoAction = "no_action",
    /// The model gave no answer.
    NoAnswer = "no_answer",
    /// There is no such executor.
    NoExecutor = "no_executor",
    /// No model is configured for the step.
    NoModel = "no_model",
    /// There is no key for the model.
    NoModelKey = "no_model_key",
    /// The value to loop over is no list.
    NotAList = "not_a_list",
    /// An agent said that it was done, and called nothing.
    NothingDone = "nothing_done",
    /// The call cannot be shown to a person.
    NotShown = "not_shown",
    /// The connection broke during the call.
    OutcomeLost = "outcome_lost",
    /// The call may or may not have happened.
    OutcomeUnknown = "outcome_unknown",
    /// The tool is outside the plan's scope.
    OutOfScope = "out_of_scope",
    /// The tool's answer is larger than is read.
    OutputTooLarge = "output_too_large",
    /// The run of the sub-plan did not complete.
    PlanFailed = "plan_failed",
    /// The sub-plan cannot be run.
    PlanUnavailable = "plan_unavailable",
    /// Policy forbids the call.
    PolicyDenied = "policy_denied",
    /// The secret may not be sent to this tool.
    SecretNotAllowed = "secret_not_allowed",
    /// The secret has no value.
    SecretUnavailable = "secret_unavailable",
    /// The step was left out.
    Skipped = "skipped",
    /// The step or its run is over.
    Stopped = "stopped",
    /// The attempt took too long.
    Timeout = "timeout",
    /// An executor wants more calls than it may make.
    TooManyCalls = "too_many_calls",
    /// The list to loop over is too long.
    TooManyElements = "too_many_elements",
    /// A tool asked a person too often.
    TooManyQuestions = "too_many_questions",
    /// An executor took more turns than it may.
    TooManyTurns = "too_many_turns",
    /// The tool is not the one that was approved.
    ToolChanged = "tool_changed",
    /// The tool said that it failed.
    ToolError = "tool_error",
    /// There is no such tool, or its server is gone.
    ToolUnavailable = "tool_unavailable",
    /// A reference has no value.
    UnresolvedReference = "unresolved_reference",
    /// The value could not be stored.
    ValueNotStored = "value_not_stored",
    /// The value nests too deep.
    ValueTooDeep = "value_too_deep",
    /// The value is too large.
    ValueTooLarge = "value_too_large",
}

impl StepErrorCode {
    /// Returns the code of a step that cannot run because of this one.
    pub fn dependency_failed(step: &StepId) -> Self {
        Self::DependencyFailed(format!("{DEPENDENCY_FAILED}{step}"))
    }
}

impl From<String> for StepErrorCode {
    fn from(word: String) -> Self {
        if let Some(known) = Self::KNOWN.iter().find(|known| known.as_str() == word) {
            return known.clone();
        }
        if word.starts_with(DEPENDENCY_FAILED) {
            Self::DependencyFailed(word)
        } else {
            Self::Other(word)
        }
    }
}

impl From<&str> for StepErrorCode {
    fn from(word: &str) -> Self {
        Self::from(word.to_owned())
    }
}

impl FromStr for StepErrorCode {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(Self::from(word))
    }
}

impl fmt::Display for StepErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for StepErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for StepErrorCode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_written_and_read_back_as_itself() {
        let step: StepId = "fetch".parse().unwrap();
        let named = [StepErrorCode::dependency_failed(&step), "http_503".into()];
        for code in StepErrorCode::KNOWN.iter().chain(&named) {
            let written = serde_json::to_string(code).unwrap();
            assert_eq!(written, format!("\"{code}\""));
            assert_eq!(
                serde_json::from_str::<StepErrorCode>(&written).unwrap(),
                *code
            );
        }
    }

    #[test]
    fn the_word_of_a_tool_is_kept_as_it_is() {
        let code = StepErrorCode::from("http_503");
        assert_eq!(code, StepErrorCode::Other("http_503".to_owned()));
    }
}
