//! The spellings that are accepted besides the canonical one, and the keys that are not part of a
//! plan.

/// Other names of a canonical key. snake_case of every canonical key is accepted besides these.
pub(super) type Aliases = &'static [(&'static str, &'static str)];

pub(super) const PLAN: Aliases = &[
    ("description", "goal"),
    ("objective", "goal"),
    ("name", "title"),
];

pub(super) const STEP: Aliases = &[
    ("index", "id"),
    ("description", "title"),
    ("action", "title"),
    ("name", "title"),
    ("arguments", "args"),
    ("toolInput", "args"),
    ("dependencies", "dependsOn"),
    ("resultVariable", "result"),
    ("foreach", "forEach"),
    ("timeout", "timeoutSeconds"),
    ("requiresApproval", "approvalRequired"),
];

pub(super) const UNDO: Aliases = &[("arguments", "args")];

pub(super) const RETRY: Aliases = &[("maxRetries", "max"), ("backoffSeconds", "backoff")];

pub(super) const NONE: Aliases = &[];

/// Keys for the life of a plan, printed beside it. It is the journal's to say, so a document that
/// brings it along is read without it.
pub(super) const PLAN_RUNTIME: &[&str] = &[
    "version",
    "status",
    "state",
    "digest",
    "runs",
    "findings",
    "createdAt",
    "updatedAt",
    "taskId",
    "traceId",
    "executionSession",
    "executionStartedAt",
    "executionEndedAt",
    "resultSummary",
    "planning",
    "models",
];

/// Keys for the life of a step, printed beside it.
pub(super) const STEP_RUNTIME: &[&str] = &[
    "order",
    "status",
    "state",
    "attempts",
    "durationMs",
    "value",
    "error",
    "startedAt",
    "endedAt",
];
