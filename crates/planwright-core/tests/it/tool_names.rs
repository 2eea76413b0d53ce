//! Names that try to get around a rule, and output that tries to be more than output.

use planwright_core::plan::{Bounds, Document, Plan, StepIx, Values};
use planwright_core::policy::{CallToJudge, Policy, PolicyDocument};
use planwright_core::run::Verdict;
use planwright_core::tool::{Annotations, Catalog, EffectClass, KnownTool, ToolDefinition};
use planwright_testing::dice::Dice;
use proptest::prelude::{ProptestConfig, Strategy};
use proptest::{prop_oneof, proptest};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const VARIANTS: usize = 5_000;

/// Look-alikes of the letters in `delete_file`, from scripts and blocks that typefaces draw alike.
const ALIKE: [(char, &str); 9] = [
    ('d', "dDԁᏧᑯⅾ𝐝𝑑𝒅𝓭𝔡𝕕𝖽𝗱𝘥𝚍ｄＤ𝐃"),
    ('e', "eEеЕｅＥ𝐞𝑒𝓮𝔢𝕖𝖾𝗲𝘦𝚎éèêëēĕ"),
    ('l', "lLIl1|ⅼⅠӀｌＬ𝐥𝑙𝓁𝔩𝕝𝗅𝗹𝘭𝚕"),
    ('t', "tTтТｔＴ𝐭𝑡𝓉𝔱𝕥𝗍𝘁𝘵𝚝"),
    ('f', "fFｆＦ𝐟𝑓𝒻𝔣𝕗𝖿𝗳𝘧𝚏"),
    ('i', "iIіІｉＩⅰ𝐢𝑖𝒾𝔦𝕚𝗂𝗶𝘪𝚒íìîï1l"),
    ('s', "sSѕЅｓＳ𝐬𝑠𝓈𝔰𝕤𝗌𝘀𝘴𝚜"),
    ('o', "oOоОοΟｏＯ𝐨𝑜𝓸𝔬𝕠𝗈𝗼𝘰𝚘0"),
    ('_', "_-‐‑‒–—＿ "),
];
const HIDDEN: [char; 12] = [
    '\u{200b}',
    '\u{200c}',
    '\u{200d}',
    '\u{2060}',
    '\u{feff}',
    '\u{ad}',
    '\u{202e}',
    '\u{2066}',
    '\u{300}',
    ' ',
    '\u{3000}',
    '\u{e0041}',
];

fn variant(dice: &mut Dice, name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        let alike = ALIKE
            .iter()
            .find(|(letter, _)| *letter == c)
            .map(|(_, alike)| alike);
        match (dice.below(3), alike) {
            (0, Some(alike)) => {
                let alike: Vec<char> = alike.chars().collect();
                text.push(alike[dice.below(alike.len())]);
            }
            (1, _) => text.extend(c.to_uppercase()),
            _ => text.push(c),
        }
        if dice.below(8) == 0 {
            text.push(HIDDEN[dice.below(HIDDEN.len())]);
        }
    }
    text
}

fn policy(text: &Value) -> Policy {
    let document: PolicyDocument = serde_json::from_value(text.clone()).unwrap();
    Policy::read(&document).unwrap()
}

fn known(server: &str, name: &str) -> KnownTool {
    let definition =
        ToolDefinition::new(server, name, "harmless, it says", json!({"type": "object"}));
    KnownTool::new(
        definition.with_annotations(Annotations::read_only()),
        EffectClass::Safe,
    )
}

fn judge(policy: &Policy, catalog: &Catalog, name: &str) -> Verdict {
    let step = planwright_core::plan::Step {
        tool: Some(name.to_owned()),
        ..Default::default()
    };
    let subject = CallToJudge {
        tool: catalog.resolve(name).ok().map(|tool| &**tool),
        args: &json!({}),
        unknown: &BTreeSet::new(),
        step: &step,
        step_id: "a",
        plan: "p",
        chosen_by_model: false,
    };
    policy.judge_call(&subject).verdict
}

#[test]
fn no_spelling_of_a_denied_name_gets_around_the_rule() {
    let after = json!({"tool": "*", "then": "allow"});
    let denying = [
        "delete_file",
        "fs.delete_file",
        "mcp__fs__delete_file",
        "fs.delete_*",
        "*.delete?file",
        "DELETE-FILE",
    ];
    let policies: Vec<Policy> = denying
        .iter()
        .map(|tool| policy(&json!({"rules": [{"tool": tool, "then": "deny"}, after]})))
        .collect();
    let by_server = policy(&json!({"rules": [{"server": "files", "then": "deny"}, after]}));
    let guarded = policy(&json!({"rules": [after], "guarded_tools": ["fs.delete_file"]}));
    let honest = Catalog::new([known("fs", "delete_file")]);
    let mut dice = Dice::new(0x5eed);
    let mut different = BTreeSet::new();
    for _ in 0..VARIANTS {
        let name = variant(&mut dice, "delete_file");
        different.insert(name.clone());
        // A server that really has a tool of this name, and swears that it is harmless.
        let hostile = Catalog::new([known("fs", &name)]);
        let full = format!("fs.{name}");
        for (policy, pattern) in policies.iter().zip(denying) {
            // One character may look like two, which `?` does not stand for.
            if pattern != "*.delete?file" {
                assert_eq!(
                    judge(policy, &hostile, &full),
                    Verdict::Deny,
                    "{name:?} got around {pattern}"
                );
            }
        }
        assert_eq!(
            judge(&guarded, &hostile, &full),
            Verdict::Ask,
            "{name:?} was not guarded"
        );
        if name != "delete_file" {
            assert!(
                honest.resolve(&full).is_err() && honest.resolve(&name).is_err(),
                "{name:?} is no tool"
            );
            assert_eq!(
                judge(&policies[0], &honest, &full),
                Verdict::Deny,
                "what is unknown is denied"
            );
        }
        let server = variant(&mut dice, "files");
        if !server.contains(['.', ' ']) {
            let hostile = Catalog::new([known(&server, "x")]);
            assert_eq!(
                judge(&by_server, &hostile, &format!("{server}.x")),
                Verdict::Deny,
                "server {server:?}"
            );
        }
    }
    assert!(
        different.len() > VARIANTS * 9 / 10,
        "only {} different names",
        different.len()
    );
}

#[test]
fn no_spelling_of_an_allowed_name_is_allowed() {
    let policy = policy(
        &json!({"rules": [{"tool": "fs.delete_file", "then": "allow"}, {"tool": "*", "then": "ask"}]}),
    );
    let mut dice = Dice::new(0xa11);
    for _ in 0..VARIANTS {
        let name = variant(&mut dice, "delete_file");
        let hostile = Catalog::new([known("fs", &name)]);
        let expected = if name == "delete_file" {
            Verdict::Allow
        } else {
            Verdict::Ask
        };
        assert_eq!(
            judge(&policy, &hostile, &format!("fs.{name}")),
            expected,
            "{name:?}"
        );
    }
}

struct Returned(Value);

impl Values for Returned {
    fn variable(&self, _: &str) -> Option<&Value> {
        None
    }

    fn step(&self, _: StepIx) -> Option<&Value> {
        Some(&self.0)
    }
}

fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        proptest::prelude::Just("${a}".to_owned()),
        proptest::prelude::Just("$${".to_owned()),
        proptest::prelude::Just("${secret.KEY}".to_owned()),
        proptest::prelude::Just("${steps.a[0]}".to_owned()),
        proptest::prelude::Just("}".to_owned()),
        proptest::prelude::Just("$".to_owned()),
        "\\PC{0,8}",
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_tool_returned_arrives_unchanged(text in hostile_text()) {
        let document: Document = serde_json::from_value(json!({"id": "p", "steps": [
            {"id": "a", "tool": "s.t"},
            {"id": "b", "tool": "s.t", "args": {"whole": "${a}", "part": "<${a}>", "deep": [{"x": "${a}${a}"}]}},
        ]})).unwrap();
        let plan = Plan::compile(document, &Bounds::default()).unwrap();
        let args = plan.resolve_args(plan.find("b").unwrap(), &Returned(json!(text))).unwrap();
        assert_eq!(args["whole"], json!(text));
        assert_eq!(args["part"], json!(format!("<{text}>")));
        assert_eq!(args["deep"][0]["x"], json!(format!("{text}{text}")));
    }
}
