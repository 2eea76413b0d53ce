//! Plans with inputs: kept, listed, filled in.

use planwright_testing::steps::{echo, step};
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

fn greet() -> Value {
    json!({
        "id": "draft", "title": "Greet",
        "inputs": { "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string", "description": "who" }, "times": { "type": "integer", "default": 2 },
        } },
        "steps": [{ "id": "say", "tool": "demo.echo", "args": { "value": { "to": "${name}", "times": "${times}" } } }],
    })
}

#[test]
fn a_template_is_saved_listed_shown_and_used() {
    let bench = Bench::new();
    let file = bench.document(greet());
    let saved = bench
        .run(&["template", "save", &file, "--name", "greet", "--json"])
        .ends(0)
        .json();
    assert_eq!(
        (saved["id"].as_str(), saved["version"].as_u64()),
        (Some("greet"), Some(1))
    );
    let plain = bench.plan("plain", json!([echo("a", 1, &[])]));
    bench.run(&["import", &plain]).ends(0);
    let listed = bench.run(&["template", "list", "--json"]).ends(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["inputs"][0]["name"], "name");
    assert_eq!(listed[0]["inputs"][1]["default"], 2);
    let shown = bench.run(&["template", "show", "greet"]).ends(0).out;
    assert!(
        shown.contains("required") && shown.contains("default 2") && shown.contains("who"),
        "{shown}"
    );

    let made = bench
        .run(&[
            "template", "use", "greet", "--input", "name=Ada", "--id", "ada", "--json",
        ])
        .ends(0)
        .json();
    assert_eq!(
        (made["id"].as_str(), made["status"].as_str()),
        (Some("ada"), Some("proposed"))
    );
    let plan = bench.run(&["show", "ada", "--json"]).json();
    assert_eq!(plan["variables"], json!({ "name": "Ada", "times": 2 }));
    assert_eq!(
        plan["context"]["template"],
        json!({ "id": "greet", "version": 1 })
    );
    assert!(plan.get("inputs").is_none(), "it is a plan, not a template");
    let result = bench.run(&["run", "ada", "--json"]).ends(0).json();
    assert_eq!(
        step(&result, "say")["value"],
        json!({ "to": "Ada", "times": 2 })
    );
}

#[test]
fn the_same_inputs_make_the_same_plan_and_a_file_can_bring_them() {
    let bench = Bench::new();
    let file = bench.document(greet());
    bench
        .run(&["template", "save", &file, "--name", "greet"])
        .ends(0);
    bench.write("inputs.json", r#"{"name": "Ada", "times": 9}"#);
    let with = |args: &[&str]| {
        let all = [
            &[
                "template",
                "use",
                "greet",
                "--inputs",
                "inputs.json",
                "--json",
            ],
            args,
        ]
        .concat();
        bench.run(&all).ends(0).json()["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let one = with(&[]);
    let two = with(&["--input", "times=9"]);
    assert_eq!(one, two);
    assert_ne!(
        one,
        with(&["--input", "times=1"]),
        "--input wins over the file"
    );
}

#[test]
fn inputs_that_do_not_fit_are_reported_all_at_once_and_nothing_is_stored() {
    let bench = Bench::new();
    let file = bench.document(greet());
    bench
        .run(&["template", "save", &file, "--name", "greet"])
        .ends(0);
    let said = bench.run(&[
        "template",
        "use",
        "greet",
        "--input",
        "times=often",
        "--input",
        "nmae=Ada",
    ]);
    let said = said.complains(2, "does not take these inputs");
    assert_eq!(said.err.matches("E0143").count(), 3, "{said:#?}");
    assert_eq!(
        bench
            .run(&["list", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    bench
        .run(&["template", "use", "nothing"])
        .complains(2, "there is no plan `nothing`");
    bench
        .run(&["template", "use", "greet", "--input", "name"])
        .complains(2, "NAME=VALUE");
}

#[test]
fn a_template_replaces_templates_only() {
    let bench = Bench::new();
    let file = bench.document(greet());
    let plain = bench.plan("plain", json!([echo("a", 1, &[])]));
    bench
        .run(&["template", "save", &plain, "--name", "x"])
        .complains(2, "no `inputs`");
    bench.run(&["import", &plain]).ends(0);
    bench
        .run(&["template", "save", &file, "--name", "plain"])
        .complains(3, "without inputs");
    bench
        .run(&["template", "save", &file, "--name", "greet"])
        .ends(0);
    bench
        .run(&[
            "template", "use", "greet", "--input", "name=x", "--id", "greet",
        ])
        .complains(3, "is a template");
    let mut changed = greet();
    changed["title"] = json!("Greet better");
    bench.document(changed);
    let again = bench
        .run(&["template", "save", &file, "--name", "greet", "--json"])
        .ends(0)
        .json();
    assert_eq!(again["version"], 2);
    bench
        .run(&["template", "save", "greet", "--name", "copy"])
        .ends(0);
    bench
        .run(&["template", "show", "plain"])
        .complains(2, "no `inputs`");
}

#[test]
fn a_template_runs_as_it_is_with_variables_and_defaults() {
    let bench = Bench::new();
    let file = bench.document(greet());
    bench
        .run(&["template", "save", &file, "--name", "greet"])
        .ends(0);
    let result = bench
        .run(&["run", "greet", "--var", "name=Ada", "--json"])
        .ends(0)
        .json();
    assert_eq!(
        step(&result, "say")["value"],
        json!({ "to": "Ada", "times": 2 })
    );
}
