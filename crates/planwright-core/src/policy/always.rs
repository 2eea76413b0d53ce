//! The narrowest rule that would have let a step run without a question.

use crate::plan::{KnownValues, Plan, StepIx};
use crate::policy::{JudgedPlan, Verdict};
use crate::tool::{Catalog, KnownTool};
use serde_json::Value;

/// A rule that a person may add to their own policy: calls of this tool, if this holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlwaysRule {
    /// Full name of the tool.
    pub tool: String,
    /// CEL over `args`; absent means every call of the tool.
    pub condition: Option<String>,
}

impl JudgedPlan {
    /// The rules that would let every step run that is asked about, where there is a useful one. A
    /// step that hands on work or a secret, or that the plan itself wants to be asked about, has
    /// none.
    pub fn narrowest_rules(&self, plan: &Plan, catalog: &Catalog) -> Vec<AlwaysRule> {
        let mut rules = Vec::new();
        for (step, ix) in self.steps.iter().zip(plan.indices()) {
            if step.judgement.verdict == Verdict::Ask
                && let Some(rule) = narrowest_rule(plan, ix, catalog)
                && !rules.contains(&rule)
            {
                rules.push(rule);
            }
        }
        rules
    }
}

fn narrowest_rule(plan: &Plan, ix: StepIx, catalog: &Catalog) -> Option<AlwaysRule> {
    let step = plan.step(ix);
    if step.approval_required || step.for_each.is_some() || step.receives_secrets() {
        return None;
    }
    let tool = catalog.resolve(step.tool.as_deref()?).ok()?;
    if !tool.trusted {
        return None;
    }
    let values = KnownValues::of(plan);
    let args = values.args(ix);
    let late = values.late_parts(ix);
    let known = |name: &str| {
        let at = format!("/{name}");
        let is_late = late.iter().any(|part| part.pointer.starts_with(&at));
        args.get(name).and_then(Value::as_str).filter(|_| !is_late)
    };
    let condition = match local_name(tool) {
        Some("write_file" | "append_file") => Some(path_condition(known("path")?)),
        Some("run_command") if late.is_empty() => Some(format!("args == {args}")),
        Some("run_command") => return None,
        Some("http_get") => Some(host_condition(known("url")?)?),
        Some(_) | None => None,
    };
    Some(AlwaysRule {
        tool: tool.name.to_string(),
        condition,
    })
}

/// The name of a tool whose arguments are understood.
fn local_name(tool: &KnownTool) -> Option<&str> {
    (tool.name.server == "local").then_some(tool.name.tool.as_str())
}

/// The folder of the file, or the file itself where its folder holds what other programs execute.
fn path_condition(path: &str) -> String {
    let is_plain = |folder: &&str| {
        !folder
            .split('/')
            .any(|part| part.starts_with('.') || part.is_empty())
    };
    match path
        .rsplit_once('/')
        .map(|(folder, _)| folder)
        .filter(is_plain)
    {
        Some(folder) => format!("args.path.startsWith({})", quote(&format!("{folder}/"))),
        None => format!("args.path == {}", quote(path)),
    }
}

/// Requests to the same host; nothing if it is not plain which one that is.
fn host_condition(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-:".contains(c);
    if host.is_empty() || !host.chars().all(is_plain) {
        return None;
    }
    Some(format!(
        "args.url.startsWith({})",
        quote(&format!("{scheme}://{host}/"))
    ))
}

/// A text as CEL writes it, which is how JSON writes it.
fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_allowed_with_its_folder_unless_that_is_executed_by_others() {
        assert_eq!(
            path_condition("notes/a.txt"),
            r#"args.path.startsWith("notes/")"#
        );
        assert_eq!(path_condition("a.txt"), r#"args.path == "a.txt""#);
        for path in [
            ".git/hooks/pre-commit",
            "notes/../Makefile",
            "/etc/passwd",
            "a//b",
        ] {
            assert_eq!(
                path_condition(path),
                format!("args.path == {}", quote(path))
            );
        }
    }

    #[test]
    fn a_request_is_allowed_with_its_host_if_that_is_plain() {
        assert_eq!(
            host_condition("https://a.example:8443/x?y").as_deref(),
            Some(r#"args.url.startsWith("https://a.example:8443/")"#)
        );
        for url in [
            "a.example/x",
            "https://good@evil/x",
            "https:///x",
            "https://p\u{430}/",
        ] {
            assert_eq!(host_condition(url), None, "{url}");
        }
    }
}
