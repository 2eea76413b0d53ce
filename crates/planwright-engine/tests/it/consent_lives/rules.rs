//! What the operator may have decided in these lives, twice: as policies that are read, and by
//! heart.

use planwright_core::policy::{Policy, PolicyDocument, Verdict};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};

/// The tools of this world. What they are called with is `to`, `of`, `value` and `fail`.
pub(super) const TOOLS: [&str; 4] = ["r.read", "r.look", "w.write", "w.erase"];

pub(super) fn only_reads(tool: &str) -> bool {
    tool.starts_with("r.")
}

/// Two people have to agree, neither of them the author, and calls are agreed to within seconds.
pub(super) const STRICT: usize = 2;

pub(super) fn policies() -> &'static [Arc<Policy>] {
    static READ: OnceLock<Vec<Arc<Policy>>> = OnceLock::new();
    READ.get_or_init(|| {
        let texts = [
            json!({}),
            json!({"rules": [{"tool": "w.write", "if": "args.to == 'evil'", "then": "deny"},
                             {"tool": "w.write", "if": "args.to == 'ok'", "then": "allow"},
                             {"tool": "r.look", "if": "args.of == 'evil'", "then": "ask"}],
                   "approval": {"expires_after": "10s"}, "adjust": "auto"}),
            json!({"approval": {"four_eyes": true, "required": 2, "step_expires_after": "5s"},
                   "late_bound": "ask", "adjust": "auto"}),
            json!({"guarded_tools": ["Look"], "approval": {"uses": 2, "expires_after": "20s"}, "adjust": "auto"}),
            json!({"mode": "warn", "rules": [{"tool": "*", "then": "deny"}], "adjust": "auto"}),
            json!({"rules": [{"tool": "w.erase", "then": "deny"},
                             {"tool": "w.*", "then": "allow", "mode": "observe"}]}),
            json!({"rules": [{"tool": "w.write", "then": "allow"}], "adjust": "auto"}),
            json!({"approval": {"required": 2}, "adjust": "auto"}),
        ];
        let read = |text: &Value| {
            let document: PolicyDocument = serde_json::from_value(text.clone()).unwrap();
            Arc::new(Policy::read(&document).unwrap())
        };
        texts.iter().map(read).collect()
    })
}

/// What the policy of this number says about a call, on all its arguments, or `late` on those that
/// are written down.
pub(super) fn says(policy: usize, tool: &str, args: &Value, late: bool) -> Verdict {
    let text = |key: &str| args[key].as_str().filter(|_| !late);
    match (policy, tool) {
        (1, "w.write") if late => Verdict::Ask,
        (1, "w.write") => match text("to") {
            Some("ok") => Verdict::Allow,
            // What a rule that forbids cannot look at is forbidden.
            Some("evil") | None => Verdict::Deny,
            Some(_) => Verdict::Ask,
        },
        (1, "r.look") if text("of").is_none_or(|of| of == "evil") => Verdict::Ask,
        (3, "r.look") => Verdict::Ask,
        (5, "w.erase") => Verdict::Deny,
        (6, "w.write") => Verdict::Allow,
        _ if only_reads(tool) => Verdict::Allow,
        _ => Verdict::Ask,
    }
}

pub(super) fn people_needed(policy: usize) -> usize {
    if matches!(policy, STRICT | 7) { 2 } else { 1 }
}

/// How long an approval of a plan lasts, in milliseconds.
pub(super) fn lasts(policy: usize) -> Option<u64> {
    match policy {
        1 => Some(10_000),
        3 => Some(20_000),
        _ => None,
    }
}

pub(super) fn uses(policy: usize) -> u32 {
    if policy == 3 { 2 } else { 1 }
}

/// Whether policy may agree to changes that only read.
pub(super) fn agrees_to_changes(policy: usize) -> bool {
    !matches!(policy, 0 | 5)
}

/// The choice of a person about calls that were not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Any,
    Ask,
    /// Anything but `evil`, in what the step calls `to` or `of`.
    NotEvil,
}

impl Choice {
    /// Whether arguments keep to it.
    pub(super) fn is_kept(self, args: &Value, key: &str) -> bool {
        self != Self::NotEvil || args.get(key).is_some_and(|value| value != "evil")
    }
}
