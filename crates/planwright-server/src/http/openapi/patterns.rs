//! How names are written, as far as a pattern can say it.

use planwright_core::status::PlanStatus;
use planwright_engine::WaitKind;

/// Of plans and runs.
pub(super) const ID: &str = "^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?$";

/// Of comments.
const COMMENT: &str = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$";

/// Of passkeys, in the URL-safe form of Base64.
const PASSKEY: &str = "^[A-Za-z0-9_-]{2,1364}$";

/// Of steps in paths: an element of a loop is `step[0]`, a step of a sub-plan is `step:inner`.
const STEP: &str = "^[A-Za-z0-9_][A-Za-z0-9_:\\[\\]-]{0,255}$";

const DIGEST: &str = "^sha256:[0-9a-f]{64}$";

/// The state of a plan, as `ETag` and `If-Match` have it.
pub(super) const ETAG: &str = "^\"v[0-9]{1,10}-[0-9]{1,19}\"$";

/// A place in a list, as `nextCursor` and `Link` have it.
pub(super) const CURSOR: &str = "^[A-Za-z0-9_-]{1,256}$";

/// The pattern of a text under this name.
pub(super) fn of_property(name: &str) -> Option<&'static str> {
    match name {
        "planId" | "runId" | "run" => Some(ID),
        "digest" | "question" => Some(DIGEST),
        _ => None,
    }
}

/// The pattern of a parameter in a path, and what it names.
pub(super) fn of_path_parameter(name: &str) -> Option<(&'static str, &'static str)> {
    match name {
        "id" => Some((ID, "The plan.")),
        "run" => Some((ID, "The run.")),
        "step" => Some((STEP, "The step.")),
        "comment" => Some((COMMENT, "The comment.")),
        "passkey" => Some((PASSKEY, "The passkey.")),
        "digest" => Some((DIGEST, "The digest of the value.")),
        _ => None,
    }
}

/// The words of a parameter that takes several of them, separated by commas.
pub(super) fn words_of_query(name: &str) -> Option<Vec<&'static str>> {
    match name {
        "status" => Some(
            PlanStatus::ALL
                .iter()
                .map(|status| status.as_str())
                .collect(),
        ),
        "kind" => Some(WaitKind::ALL.iter().map(|kind| kind.as_str()).collect()),
        _ => None,
    }
}
