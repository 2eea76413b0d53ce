//! Findings that need to know the tools.

use crate::plans::{catalog, check, plan, with_code};
use planwright_core::plan::{Code, Finding, Severity, StepIx};
use planwright_core::tool::{Catalog, EffectClass};
use serde_json::{Value, json};

/// The findings of one code, each as its pointer and message.
fn found(value: Value, code: Code) -> Vec<Finding> {
    let validated = check(value, &catalog());
    with_code(&validated.findings, code)
        .into_iter()
        .cloned()
        .collect()
}

fn pointers(findings: &[Finding]) -> Vec<&str> {
    findings
        .iter()
        .map(|finding| finding.pointer.as_str())
        .collect()
}

#[test]
fn a_sound_plan_has_no_findings() {
    let validated = check(
        json!({"id": "p", "variables": {"path": "/a"}, "steps": [
            {"id": "read", "tool": "read_file", "args": {"path": "${path}"}, "result": "text"},
            {"id": "write", "tool": "fs.write_file", "args": {"path": "/b", "content": "${text}"}},
        ]}),
        &catalog(),
    );
    assert_eq!(validated.findings, []);
    assert!(validated.is_sound());
}

#[test]
fn an_unknown_tool_comes_with_the_nearest_names() {
    let findings = found(
        json!([{"tool": "raed_file", "args": {}}]),
        Code::UnknownTool,
    );
    assert_eq!(findings[0].pointer, "/steps/0/tool");
    assert!(
        findings[0]
            .suggestion
            .as_ref()
            .unwrap()
            .contains("`read_file`"),
        "{findings:?}"
    );
}

#[test]
fn a_code_that_an_unsafe_call_is_never_made_again_for_is_a_warning() {
    let steps = json!([{"id": "a", "tool": "fs.read_file", "args": {"path": "/a"},
        "retry": {"max": 1, "on": ["tool_unavailable", "output_too_large", "tool_error", "timeout"]}}]);
    let findings = found(steps.clone(), Code::UnsafeRetry);
    assert_eq!(
        pointers(&findings),
        ["/steps/0/retry/on/1", "/steps/0/retry/on/3"]
    );
    assert!(
        findings[0].message.contains("`fs.read_file` is unsafe"),
        "{findings:?}"
    );
    assert!(check(steps.clone(), &catalog()).is_sound());
    for class in [EffectClass::Safe, EffectClass::Keyed] {
        let mut tool = crate::plans::tool("fs", "read_file", json!({"type": "object"}), None);
        tool.class = class;
        let validated = check(steps.clone(), &Catalog::new([tool]));
        assert_eq!(validated.findings, [], "{class:?}");
    }
}

#[test]
fn an_unknown_tool_of_an_optional_step_is_a_warning() {
    let validated = check(json!([{"tool": "nope", "optional": true}]), &catalog());
    assert_eq!(validated.findings[0].code, Code::OptionalToolMissing);
    assert_eq!(validated.findings[0].severity, Severity::Warning);
    assert!(validated.is_sound());
}

#[test]
fn an_ambiguous_name_lists_the_candidates() {
    let findings = found(json!([{"tool": "search"}]), Code::AmbiguousTool);
    assert_eq!(
        findings[0].suggestion.as_deref(),
        Some("write fs.search or web.search")
    );
    assert!(found(json!([{"tool": "web.search"}]), Code::AmbiguousTool).is_empty());
}

#[test]
fn every_argument_that_does_not_fit_is_its_own_finding() {
    let args = json!({"path": "relative", "mode": "x", "tags": ["a", 2]});
    let findings = found(
        json!([{"tool": "write_file", "args": args}]),
        Code::InvalidArgs,
    );
    let mut at = pointers(&findings);
    at.sort_unstable();
    assert_eq!(
        at,
        [
            "/steps/0/args",
            "/steps/0/args/mode",
            "/steps/0/args/path",
            "/steps/0/args/tags/1"
        ]
    );
    assert!(findings.iter().any(|finding| {
        finding
            .message
            .contains("\"content\" is a required property")
    }));
}

#[test]
fn a_mistyped_argument_is_suggested() {
    let findings = found(
        json!([{"tool": "read_file", "args": {"path": "a", "pth": 1}}]),
        Code::InvalidArgs,
    );
    assert_eq!(
        findings[0].suggestion.as_deref(),
        Some("did you mean `path`?")
    );
}

#[test]
fn references_hide_only_what_they_replace() {
    let step = |args: Value| json!({"variables": {"v": 1}, "steps": [{"id": "a", "tool": "write_file", "args": args}]});
    let ok = json!({"path": "${v}", "content": "x ${v}", "mode": "${v}", "tags": "${v}"});
    assert_eq!(found(step(ok), Code::InvalidArgs), []);
    let text_for_integer = json!({"path": "/${v}", "content": "", "mode": "0${v}"});
    assert_eq!(
        pointers(&found(step(text_for_integer), Code::InvalidArgs)),
        ["/steps/0/args/mode"]
    );
    let literal_beside = json!({"path": "${v}", "content": 5, "tags": ["${v}", 5]});
    let findings = found(step(literal_beside), Code::InvalidArgs);
    assert_eq!(
        pointers(&findings),
        ["/steps/0/args/content", "/steps/0/args/tags/1"]
    );
    let too_many = json!({"path": "${v}", "content": "", "tags": ["${v}", "a", "b", "c"]});
    assert_eq!(
        pointers(&found(step(too_many), Code::InvalidArgs)),
        ["/steps/0/args/tags"]
    );
    assert_eq!(
        pointers(&found(step(json!({"path": "${v}"})), Code::InvalidArgs)),
        ["/steps/0/args"]
    );
}

#[test]
fn references_are_typed_by_the_output_schema_of_their_producer() {
    let plan = |content: &str, mode: &str| {
        json!([
            {"id": "s", "tool": "stat", "args": {"path": "x"}},
            {"id": "w", "tool": "write_file", "args": {"path": "/x", "content": content, "mode": mode}},
        ])
    };
    assert_eq!(found(plan("${s.name}", "${s.size}"), Code::InvalidArgs), []);
    assert_eq!(
        found(plan("${s.lines[0]}", "${s.other}"), Code::InvalidArgs),
        []
    );
    let findings = found(plan("${s.size}", "${s.name}"), Code::InvalidArgs);
    assert_eq!(
        pointers(&findings),
        ["/steps/1/args/content", "/steps/1/args/mode"]
    );
    assert_eq!(
        findings[0].message,
        "`${s.size}` is of type integer, but the tool takes string here"
    );
}

#[test]
fn a_tool_outside_the_scope_is_an_error() {
    let plan = |scope: Value| json!({"toolsRequired": scope, "steps": [{"tool": "fs.read_file", "args": {"path": "a"}}]});
    assert_eq!(found(plan(json!(["fs.read_file"])), Code::OutOfScope), []);
    assert_eq!(found(plan(json!(["read_file"])), Code::OutOfScope), []);
    // Every spelling of a name, its server and a pattern hold it, as they do when it is called.
    for entry in ["mcp__fs__read_file", "fs", "fs.*", "read_*"] {
        assert_eq!(found(plan(json!([entry])), Code::OutOfScope), [], "{entry}");
        assert_eq!(
            found(plan(json!([entry])), Code::UnknownTool),
            [],
            "{entry}"
        );
    }
    assert_eq!(
        found(plan(json!(["fs.stat"])), Code::OutOfScope)[0].pointer,
        "/steps/0/tool"
    );
    assert_eq!(
        found(plan(json!(["read_file", "nope"])), Code::UnknownTool)[0].pointer,
        "/toolsRequired/1"
    );
}

#[test]
fn preflight_names_every_missing_tool_once() {
    let plan = plan(
        json!({"toolsRequired": ["y", "fs.stat", "o", "x"], "steps": [
            {"tool": "x"}, {"tool": "x"}, {"tool": "fs.stat"}, {"tool": "o", "optional": true},
        ]}),
    );
    assert_eq!(plan.missing_tools(&catalog()), ["x", "y"]);
}

#[test]
fn an_unused_result_is_a_warning_but_not_at_the_end() {
    let findings = found(
        json!([{"id": "a", "tool": "web.search", "result": "x"}, {"id": "b", "tool": "web.search", "dependsOn": ["a"], "result": "y"}]),
        Code::UnusedResult,
    );
    assert_eq!(pointers(&findings), ["/steps/0/result"]);
}

#[test]
fn expressions_are_read_and_their_names_checked() {
    let step = |extra: Value| {
        let mut step = json!({"id": "a", "tool": "web.search", "args": {"q": "x"}});
        step.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        json!({"variables": {"v": 1}, "steps": [step]})
    };
    for good in [
        json!({"when": "v > 1"}),
        json!({"expect": "size(result) > 0 && type(result) == string"}),
        json!({"constraints": ["q.startsWith('x')", "args.q == 'x'"]}),
        json!({"when": "[1, 2].all(i, i > v)"}),
    ] {
        assert_eq!(check(step(good.clone()), &catalog()).findings, [], "{good}");
    }
    let bad = check(
        step(json!({"when": "v >", "expect": "(((", "constraints": ["", "nope == 1"]})),
        &catalog(),
    );
    assert_eq!(with_code(&bad.findings, Code::BadExpression).len(), 3);
    assert_eq!(
        with_code(&bad.findings, Code::UnresolvedName)[0].pointer,
        "/steps/0/constraints/1"
    );
    assert!(bad.plan.is_none());
    let never = found(step(json!({"when": "1 > 2"})), Code::NeverRuns);
    assert_eq!(never[0].severity, Severity::Warning);
    assert_eq!(
        found(
            step(json!({"when": "x".repeat(3_000)})),
            Code::BadExpression
        )
        .len(),
        1
    );
}

#[test]
fn variables_must_fit_the_inputs_and_missing_ones_are_named() {
    let inputs = json!({"type": "object", "required": ["n", "m", "d"], "properties": {
        "n": {"type": "integer"}, "m": {"$ref": "#/$defs/word"}, "d": {"type": "string", "default": "x"}},
        "$defs": {"word": {"type": "string"}}});
    let validated = check(
        json!({"inputs": inputs, "variables": {"n": "one"}, "steps": []}),
        &catalog(),
    );
    let mismatch = with_code(&validated.findings, Code::VariableMismatch);
    assert_eq!(mismatch[0].pointer, "/variables/n");
    assert_eq!(with_code(&validated.findings, Code::InputMissing).len(), 1);
    assert_eq!(validated.plan.unwrap().missing_inputs(), ["m"]);
    assert_eq!(
        found(
            json!({"inputs": {"type": "nonsense"}, "steps": []}),
            Code::BadSchema
        )
        .len(),
        1
    );
}

#[test]
fn numbers_out_of_range_are_refused() {
    for step in [
        json!({"tool": "t", "timeoutSeconds": -1}),
        json!({"tool": "t", "timeoutSeconds": 0}),
        json!({"tool": "t", "timeoutSeconds": 1e300}),
        json!({"tool": "t", "retry": {"jitter": 2}}),
        json!({"tool": "t", "retry": {"backoff": -1}}),
        json!({"tool": "t", "retry": {"factor": -1}}),
        json!({"tool": "t", "retry": {"max": 5000}}),
        json!({"tool": "t", "forEach": [1], "maxParallel": 0}),
    ] {
        assert_eq!(found(json!([step]), Code::BadNumber).len(), 1, "{step}");
    }
    assert_eq!(
        found(
            json!({"limits": {"maxConcurrency": 0}, "steps": []}),
            Code::BadNumber
        )
        .len(),
        1
    );
}

#[test]
fn limits_that_make_no_sense_are_warned_about() {
    let plan = json!({"limits": {"budget": {"calls": 0, "perTool": {"read_fil": 1, "fs.read_file": 1}}},
        "steps": [{"tool": "read_file", "args": {"path": "a"}}]});
    let findings = found(plan, Code::PointlessLimit);
    assert_eq!(
        pointers(&findings),
        ["/limits/budget/calls", "/limits/budget/perTool/read_fil"]
    );
}

#[test]
fn names_that_hide_others_are_warned_about_and_bad_ones_refused() {
    let hidden = json!({"variables": {"v": 1}, "steps": [
        {"id": "a", "tool": "t", "result": "v"}, {"id": "b", "tool": "t", "result": "a"}]});
    assert_eq!(
        pointers(&found(hidden, Code::HiddenName)),
        ["/steps/0/result", "/steps/1/result"]
    );
    for name in ["a.b", "", "steps", "secret", "x y", "${x}"] {
        assert_eq!(
            found(json!([{"tool": "t", "result": name}]), Code::BadName).len(),
            1,
            "{name:?}"
        );
    }
}

#[test]
fn what_cannot_be_executed_is_listed() {
    let plan = plan(json!([
        {"think": "x"}, {"agent": "x"}, {"input": {"type": "object"}}, {"plan": "x"},
        {"tool": "t", "when": "true", "forEach": [1], "expect": "true", "constraints": ["true"], "args": {"i": "${item}"}},
        {"tool": "t"},
        {"input": {"type": "object"}, "expect": "true", "constraints": ["true"]},
    ]));
    let names: Vec<&str> = plan
        .unsupported_features()
        .iter()
        .map(|(_, name)| *name)
        .collect();
    assert_eq!(names, ["expect of an input", "constraints of an input"]);
    assert_eq!(plan.unsupported_features()[1].0, StepIx::new(6));
}

#[test]
fn a_finding_is_readable_by_programs() {
    let findings = found(json!([{"id": "a", "tool": "nope"}]), Code::UnknownTool);
    assert_eq!(
        serde_json::to_value(&findings[0]).unwrap(),
        json!({"code": "E0120", "severity": "error", "step": "a", "pointer": "/steps/0/tool",
            "message": "no server has a tool `nope`"})
    );
}

#[test]
fn structure_and_tools_are_reported_together() {
    let validated = check(
        json!([{"id": "a", "tool": "nope", "dependsOn": ["b"]}]),
        &Catalog::default(),
    );
    let codes: Vec<Code> = validated
        .findings
        .iter()
        .map(|finding| finding.code)
        .collect();
    assert_eq!(codes, [Code::UnknownDependency, Code::UnknownTool]);
    assert!(validated.plan.is_none());
}

#[test]
fn a_remote_schema_is_never_fetched() {
    let remote = Catalog::new([crate::plans::tool(
        "s",
        "t",
        json!({"$ref": "http://127.0.0.1:9/schema"}),
        None,
    )]);
    let validated = check(json!([{"tool": "t"}]), &remote);
    assert_eq!(validated.findings[0].code, Code::UncheckedArgs);
}

#[test]
fn a_reference_does_not_decide_a_condition_of_the_schema() {
    let schema = json!({"type": "object", "properties": {"kind": {"type": "string"}},
        "if": {"properties": {"kind": {"const": "a"}}}, "then": {"required": ["x"]}, "else": {"required": ["y"]}});
    let catalog = Catalog::new([crate::plans::tool("s", "t", schema, None)]);
    let findings = |kind: &str| {
        let plan = json!({"variables": {"v": 1}, "steps": [{"tool": "t", "args": {"kind": kind}}]});
        check(plan, &catalog).findings
    };
    assert_eq!(findings("${v}"), []);
    assert_eq!(findings("a")[0].code, Code::InvalidArgs);
}
