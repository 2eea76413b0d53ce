//! The stable codes of findings, and the page that explains each.

use super::Severity;
use serde::{Serialize, Serializer};
use std::fmt;

/// The kind of a finding. The text of a code never changes its meaning; a code that is no longer
/// used is not used again for something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// `E0100`: the text is not JSON.
    Syntax,
    /// `E0101`: the document does not have the shape of a plan.
    Shape,
    /// `E0102`: an id has characters it must not have.
    BadId,
    /// `E0103`: two steps have the same id.
    DuplicateId,
    /// `E0104`: a dependency does not exist.
    UnknownDependency,
    /// `E0105`: a step depends on itself.
    SelfDependency,
    /// `E0106`: steps depend on each other in a circle.
    Cycle,
    /// `E0107`: the plan is larger than allowed.
    TooLarge,
    /// `E0108`: a reference cannot be read.
    MalformedReference,
    /// `E0109`: a step has no action.
    NoAction,
    /// `E0110`: a step has several actions.
    SeveralActions,
    /// `E0111`: a number is out of range.
    BadNumber,
    /// `E0112`: two steps that may run at once have the same result name.
    ResultClash,
    /// `E0113`: a result name cannot be used in a reference.
    BadName,
    /// `E0114`: an expression cannot be read.
    BadExpression,
    /// `E0120`: no server has the tool.
    UnknownTool,
    /// `E0121`: several servers have a tool of this name.
    AmbiguousTool,
    /// `E0122`: arguments do not fit the input schema of their tool.
    InvalidArgs,
    /// `E0123`: a reference refers to nothing.
    UnresolvedName,
    /// `E0124`: a tool is not in the plan's scope.
    OutOfScope,
    /// `E0125`: a JSON Schema cannot be used.
    BadSchema,
    /// `E0126`: a variable does not fit the plan's inputs.
    VariableMismatch,
    /// `E0127`: a reference asks for a part that its value does not have.
    UnknownField,
    /// `E0128`: `forEach` runs over something that is no list.
    NotAList,
    /// `E0130`: a secret stands where none may.
    MisplacedSecret,
    /// `E0140`: a sub-plan does not exist.
    UnknownPlan,
    /// `E0141`: plans run each other without end.
    PlanCycle,
    /// `E0142`: a sub-plan cannot run.
    SubplanInvalid,
    /// `E0143`: inputs do not fit their schema.
    InvalidInputs,
    /// `W0150`: the tool of an optional step is not available.
    OptionalToolMissing,
    /// `W0151`: a result name is never used.
    UnusedResult,
    /// `W0152`: a condition is always false.
    NeverRuns,
    /// `W0153`: a name hides another.
    HiddenName,
    /// `W0154`: the plan has no steps.
    NoSteps,
    /// `W0155`: an input has no value yet.
    InputMissing,
    /// `W0156`: a limit makes no sense for this plan.
    PointlessLimit,
    /// `W0157`: no executor can work on a step.
    MissingExecutor,
    /// `W0158`: an unsafe call is not made again for this code.
    UnsafeRetry,
    /// `W0159`: a reference asks for a part that is not declared.
    UndeclaredField,
    /// `W0160`: text looks like a reference in another notation.
    ForeignReference,
    /// `W0161`: the arguments of a tool cannot be checked.
    UncheckedArgs,
}

struct Entry {
    text: &'static str,
    title: &'static str,
    explanation: &'static str,
}

impl Code {
    /// All codes, in the order of their numbers.
    pub const ALL: [Self; 41] = [
        Self::Syntax,
        Self::Shape,
        Self::BadId,
        Self::DuplicateId,
        Self::UnknownDependency,
        Self::SelfDependency,
        Self::Cycle,
        Self::TooLarge,
        Self::MalformedReference,
        Self::NoAction,
        Self::SeveralActions,
        Self::BadNumber,
        Self::ResultClash,
        Self::BadName,
        Self::BadExpression,
        Self::UnknownTool,
        Self::AmbiguousTool,
        Self::InvalidArgs,
        Self::UnresolvedName,
        Self::OutOfScope,
        Self::BadSchema,
        Self::VariableMismatch,
        Self::UnknownField,
        Self::NotAList,
        Self::MisplacedSecret,
        Self::UnknownPlan,
        Self::PlanCycle,
        Self::SubplanInvalid,
        Self::InvalidInputs,
        Self::OptionalToolMissing,
        Self::UnusedResult,
        Self::NeverRuns,
        Self::HiddenName,
        Self::NoSteps,
        Self::InputMissing,
        Self::PointlessLimit,
        Self::MissingExecutor,
        Self::UnsafeRetry,
        Self::UndeclaredField,
        Self::ForeignReference,
        Self::UncheckedArgs,
    ];

    /// The stable text, such as `E0106`.
    pub fn as_str(self) -> &'static str {
        self.entry().text
    }

    /// Returns the title of the code's page.
    pub fn title(self) -> &'static str {
        self.entry().title
    }

    /// Returns the reason for the finding and the remedy.
    pub fn explanation(self) -> &'static str {
        self.entry().explanation
    }

    /// The severity every finding of this code has.
    pub fn severity(self) -> Severity {
        if self.as_str().starts_with('W') {
            Severity::Warning
        } else {
            Severity::Error
        }
    }

    /// Returns whether a plan with this finding cannot be kept at all. The other errors may go away
    /// by themselves, when a server comes up or a variable is given, so such a plan is kept and
    /// only refuses to run.
    pub fn blocks_import(self) -> bool {
        match self {
            Self::Syntax
            | Self::Shape
            | Self::BadId
            | Self::DuplicateId
            | Self::UnknownDependency
            | Self::SelfDependency
            | Self::Cycle
            | Self::TooLarge
            | Self::MalformedReference
            | Self::NoAction
            | Self::SeveralActions
            | Self::BadNumber
            | Self::ResultClash
            | Self::BadName
            | Self::BadExpression => true,
            Self::UnknownTool
            | Self::AmbiguousTool
            | Self::InvalidArgs
            | Self::UnresolvedName
            | Self::OutOfScope
            | Self::BadSchema
            | Self::VariableMismatch
            | Self::UnknownField
            | Self::NotAList
            | Self::MisplacedSecret
            | Self::UnknownPlan
            | Self::PlanCycle
            | Self::SubplanInvalid
            | Self::InvalidInputs
            | Self::OptionalToolMissing
            | Self::UnusedResult
            | Self::NeverRuns
            | Self::HiddenName
            | Self::NoSteps
            | Self::InputMissing
            | Self::PointlessLimit
            | Self::MissingExecutor
            | Self::UnsafeRetry
            | Self::UndeclaredField
            | Self::ForeignReference
            | Self::UncheckedArgs => false,
        }
    }

    fn entry(self) -> Entry {
        let (text, title, explanation) = match self {
            Self::Syntax => (
                "E0100",
                "the text is not JSON that can be read",
                "The file is not JSON, or it is JSON that different programs read differently: a key given twice, an \
                 integer beyond ±2^53, text that is not UTF-8. The message names the line and the column. Comments \
                 (`//` and `/* */`) are allowed.",
            ),
            Self::Shape => (
                "E0101",
                "the document does not have the shape of a plan",
                "A key is unknown, is given under two spellings, or its value has the wrong type. Unknown keys are \
                 refused because a mistyped option would otherwise be ignored in silence. `planwright schema` prints \
                 the JSON Schema of a plan.",
            ),
            Self::BadId => (
                "E0102",
                "an id has characters it must not have",
                "Ids become file names, URL segments and parts of references. A plan id starts with a letter or a \
                 digit and has at most 64 letters, digits, `.`, `_` and `-`; a step id has no dot. The names of folders \
                 that are kept beside the plans (`archive`, `artifacts`, `logs`, `prompts`, `templates`) and names \
                 that begin with `planwright.db` are taken.",
            ),
            Self::DuplicateId => (
                "E0103",
                "two steps have the same id",
                "Dependencies, references and the journal name steps by id, so each id belongs to one step.",
            ),
            Self::UnknownDependency => (
                "E0104",
                "a step depends on a step that does not exist",
                "`dependsOn` lists ids of steps of the same plan. Result names do not work there.",
            ),
            Self::SelfDependency => (
                "E0105",
                "a step depends on itself",
                "A step cannot wait for its own end, and cannot use its own value in its arguments.",
            ),
            Self::Cycle => (
                "E0106",
                "steps depend on each other in a circle",
                "None of the steps of a cycle could ever start. The message prints the whole cycle; each step in it \
                 must complete before the next. References make edges too: `${a}` in step b makes b wait for a.",
            ),
            Self::TooLarge => (
                "E0107",
                "the plan is larger than allowed",
                "Documents, steps, edges, nesting and texts are bounded, so that no plan can exhaust the machine. \
                 Plans from the network and from models have tighter bounds than plans of the operator. Split the \
                 plan, or keep large data in files that the tools read.",
            ),
            Self::MalformedReference => (
                "E0108",
                "a reference cannot be read",
                "A reference is `${name}`, `${name.field}`, `${name.list[0][\"odd key\"]}`, `${steps.id}` or \
                 `${secret.NAME}`. Text that is meant to have a `${` in it writes `$${`.",
            ),
            Self::NoAction => (
                "E0109",
                "a step has nothing to do",
                "Every step has exactly one action: `tool`, `think`, `agent`, `input` or `plan`.",
            ),
            Self::SeveralActions => (
                "E0110",
                "a step has several actions",
                "Every step has exactly one action: `tool`, `think`, `agent`, `input` or `plan`. Two actions are two \
                 steps, one depending on the other.",
            ),
            Self::BadNumber => (
                "E0111",
                "a number is out of range",
                "Times are finite and not negative, factors are at least 0, `jitter` is between 0 and 1, and counts \
                 of what may run at once are at least 1.",
            ),
            Self::ResultClash => (
                "E0112",
                "two steps that may run at once have the same result name",
                "Which value a later step sees would depend on which of them ends last. Give them different names, \
                 or make one depend on the other: then later steps see the value of the last one before them.",
            ),
            Self::BadName => (
                "E0113",
                "a result name cannot be used in a reference",
                "A result name has letters, digits, `_` and `-`, and is not `steps` or `secret`, which mean \
                 something else in a reference.",
            ),
            Self::BadExpression => (
                "E0114",
                "an expression cannot be read",
                "`when`, `expect` and `constraints` are CEL expressions: at most 2 KiB of text, 200 operators, 32 \
                 levels of brackets and 40 levels of operators within each other.",
            ),
            Self::UnknownTool => (
                "E0120",
                "no server has this tool",
                "The tool is not in the catalog: its server is not configured, did not start, or calls it something \
                 else. `planwright tools` lists what is there. A step marked `optional` is skipped instead.",
            ),
            Self::AmbiguousTool => (
                "E0121",
                "several servers have a tool of this name",
                "Write `server.tool` to say which one is meant.",
            ),
            Self::InvalidArgs => (
                "E0122",
                "arguments do not fit the tool's input schema",
                "The call would be refused by its server, so it is refused before anything runs. Parts that are \
                 references are checked where the tool that produces the value says what it returns.",
            ),
            Self::UnresolvedName => (
                "E0123",
                "a reference to nothing",
                "No variable, input, result or step has this name. Variables that are only known when the plan runs \
                 are given at that time or declared in `inputs`. Text that is meant to have a `${` in it writes \
                 `$${`.",
            ),
            Self::OutOfScope => (
                "E0124",
                "a tool is not in the plan's scope",
                "`toolsRequired` is what the plan may use. A step's tool must be listed there, by its full or its \
                 bare name. Leave `toolsRequired` out to have it derived from the steps.",
            ),
            Self::BadSchema => (
                "E0125",
                "a JSON Schema cannot be used",
                "A schema is malformed, too large, or refers to another document. References to other documents are \
                 never fetched.",
            ),
            Self::VariableMismatch => (
                "E0126",
                "a variable does not fit the plan's inputs",
                "`inputs` is the JSON Schema of the parameters, and a value given for one of them does not match it.",
            ),
            Self::UnknownField => (
                "E0127",
                "a reference asks for a part that its value does not have",
                "The tool, the question or the `think` step that makes the value declares its parts, and this is none of \
                 them; or the value is a list, a number, true or false. Take one of the parts that the suggestion names, \
                 the whole value, or `forEach` for a list.",
            ),
            Self::NotAList => (
                "E0128",
                "`forEach` runs over something that is no list",
                "A step with `forEach` runs once for each element of a list. The value is written down and is none, or the \
                 step, the question or the variable it comes from says that it is something else. Take the part of it that \
                 is a list, as `${step.rows}`.",
            ),
            Self::MisplacedSecret => (
                "E0130",
                "a secret where none may stand",
                "`${secret.NAME}` stands in the arguments of a tool (`args`, also those of `undo`) and nowhere else: \
                 prompts, messages, conditions, lists and the inputs of other plans are stored and shown. A secret is a \
                 text without parts, and its name has at most 64 ASCII letters, digits, `_` and `-`.",
            ),
            Self::UnknownPlan => (
                "E0140",
                "a sub-plan is not there",
                "A step runs another plan by its id. Import that plan, or save it as a template, before this one runs.",
            ),
            Self::PlanCycle => (
                "E0141",
                "plans run each other without end",
                "A plan must not run itself, directly or through others, and plans nest at most 8 deep. The finding \
                 prints the circle.",
            ),
            Self::SubplanInvalid => (
                "E0142",
                "a sub-plan cannot run",
                "The plan that a step runs has errors of its own. `planwright validate` with its id lists them.",
            ),
            Self::InvalidInputs => (
                "E0143",
                "inputs do not fit",
                "What is given to a template or a sub-plan must fit the JSON Schema in its `inputs`. Inputs with \
                 references are checked when they are known, before the sub-plan starts.",
            ),
            Self::OptionalToolMissing => (
                "W0150",
                "the tool of an optional step is not available",
                "The step will be skipped.",
            ),
            Self::UnusedResult => (
                "W0151",
                "a result name is never used",
                "No later step refers to it. The value can be seen in the run all the same.",
            ),
            Self::NeverRuns => (
                "W0152",
                "a condition is always false",
                "`when` has no variable in it and is false, so the step would always be skipped.",
            ),
            Self::HiddenName => (
                "W0153",
                "a name hides another",
                "In `${name}`, variables come before results and results before step ids. `${steps.id}` always means \
                 the step.",
            ),
            Self::NoSteps => ("W0154", "the plan has no steps", "It completes at once."),
            Self::InputMissing => (
                "W0155",
                "an input has no value yet",
                "The plan is a template: `inputs` requires a value that neither `variables` nor a default gives. Give \
                 it when the plan is run.",
            ),
            Self::PointlessLimit => (
                "W0156",
                "a limit makes no sense for this plan",
                "A budget of zero lets nothing run, and a budget for a tool that no step uses is probably mistyped.",
            ),
            Self::MissingExecutor => (
                "W0157",
                "no executor can work on a step",
                "A `think` or `agent` step needs a model, or an executor that the operator configured, and there is none. \
                 The plan can be reviewed and approved; it runs once there is one. See `planwright explain agents`.",
            ),
            Self::UnsafeRetry => (
                "W0158",
                "an unsafe call is not made again for this code",
                "`retry.on` names a code that says that the call was made, or may have been, and the tool is `unsafe`: \
                 making the call again could do its work twice. It is made again only if it is known that it had no effect. \
                 See `planwright explain control-flow`.",
            ),
            Self::UndeclaredField => (
                "W0159",
                "a reference asks for a part that is not declared",
                "The tool says which parts its value has, and this is not among them, though it does not rule out others; \
                 or earlier results of the tool did not have it; or the value is text, which has parts, or is a list, only \
                 if the text is JSON. If the part is not there when the plan runs, the step fails.",
            ),
            Self::ForeignReference => (
                "W0160",
                "text looks like a reference in another notation",
                "`{{s1}}`, `<s1.output>` and `$s1.output` are text here, and are sent as they are written. A reference is \
                 written `${s1}`, or `${s1.field}` for a part.",
            ),
            Self::UncheckedArgs => (
                "W0161",
                "the arguments of a tool cannot be checked",
                "The input schema that the server gives for the tool cannot be used, so that its arguments are not checked \
                 before the call: the server checks them, and the call may fail.",
            ),
        };
        Entry {
            text,
            title,
            explanation,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The page of `docs/errors/` for a code, in Markdown.
pub fn error_page(code: Code) -> String {
    let consequence = match (code.severity(), code.blocks_import()) {
        (Severity::Warning, _) => "A warning: the plan runs all the same.",
        (Severity::Error, true) => "An error: the plan is not accepted.",
        (Severity::Error, false) => {
            "An error: the plan is kept, but does not run until it is resolved."
        }
    };
    format!(
        "# {code}: {}\n\n{}\n\n{consequence}\n",
        code.title(),
        code.explanation()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_has_its_own_text() {
        let texts: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(texts.len(), Code::ALL.len());
    }

    #[test]
    fn no_warning_blocks_an_import() {
        for code in Code::ALL {
            assert!(
                !(code.severity() == Severity::Warning && code.blocks_import()),
                "{code}"
            );
        }
    }
}
