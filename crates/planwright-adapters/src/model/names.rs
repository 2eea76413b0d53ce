//! Names of tools on the wire. Providers take letters, digits, `_` and `-`, and at most 64 of them;
//! our names have dots.

use planwright_core::digest::Digest;
use planwright_core::model::OfferedTool;
use planwright_engine::PlanTool;
use serde_json::json;
use std::collections::BTreeMap;

const MAX_CHARS: usize = 64;

/// The names of the offered tools in one question.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// From the name on the wire to ours.
    ours: BTreeMap<String, String>,
}

impl Names {
    pub(super) fn of(tools: &[OfferedTool]) -> Self {
        Self {
            ours: tools
                .iter()
                .map(|tool| (wire(&tool.name), tool.name.clone()))
                .collect(),
        }
    }

    /// Our name of a tool; what the model wrote if it was offered no such tool.
    pub(super) fn ours(&self, written: &str) -> String {
        // Earlier releases offered the plan tools under the name of their server.
        let earlier = || self.ours.get(written.strip_prefix("planwright__")?);
        self.ours
            .get(written)
            .or_else(earlier)
            .cloned()
            .unwrap_or_else(|| written.to_owned())
    }
}

/// The name on the wire. It is the same in every question, since earlier ones are repeated in later
/// ones.
///
/// The plan tools go by their own names: no server can have theirs, and every other name has `__`.
pub(super) fn wire(name: &str) -> String {
    if let Some(tool) = PlanTool::from_name(name) {
        return tool.as_str().to_owned();
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let dotted = name.replacen('.', "__", 1);
    let written: String = dotted
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect();
    if written.len() <= MAX_CHARS && written == dotted {
        return written;
    }
    // What lost characters gets some of its digest, so that two such names stay two.
    let digest = Digest::of_json(&json!(name)).short();
    let kept = MAX_CHARS.saturating_sub(digest.len() + 1);
    format!("{}_{digest}", &written[..written.len().min(kept)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> OfferedTool {
        OfferedTool {
            name: name.to_owned(),
            description: String::new(),
            schema: json!({}),
        }
    }

    #[test]
    fn names_fit_the_wire_and_come_back() {
        let long = format!("server.{}", "x".repeat(100));
        let odd = [
            "demo.echo",
            "git.a.b",
            "git.a/b",
            "schön.wort",
            "planwright.plan_create",
            long.as_str(),
        ];
        let names = Names::of(&odd.map(tool));
        for name in odd {
            let wire = wire(name);
            let plain = wire
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
            assert!(wire.len() <= MAX_CHARS && plain, "{wire}");
            assert_eq!(names.ours(&wire), name);
            assert_eq!(names.ours(name), name);
        }
        assert_eq!(wire("demo.echo"), "demo__echo");
        assert_eq!(wire("planwright.plan_create"), "plan_create");
        assert_eq!(wire("other.plan_create"), "other__plan_create");
        assert_eq!(names.ours("rm -rf"), "rm -rf");
    }
}
