//! Watching a plan from another process.

use planwright_testing::steps::{echo, sleep};
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

fn events(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_run_that_is_over_is_told_from_the_beginning() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([echo("a", 1, &[]), echo("b", 2, &["a"])]));
    bench.run(&["run", &plan, "--yes"]).ends(0);
    let told = events(&bench.run(&["watch", "p", "--json"]).ends(0).out);
    let numbers: Vec<_> = told
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=told.len() as u64).collect::<Vec<_>>());
    assert_eq!(told[0]["event"], "plan.created");
    assert_eq!(told.last().unwrap()["event"], "run.completed");
    let later = events(
        &bench
            .run(&["watch", "p", "--json", "--after", "5"])
            .ends(0)
            .out,
    );
    assert_eq!(later, told[5..]);
    let text = bench.run(&["watch", "p"]).ends(0).out;
    assert!(text.contains("step `b` completed"), "{text}");
    bench
        .run(&["watch", "absent"])
        .complains(2, "there is no plan `absent`");
}

#[test]
fn what_another_process_does_is_told_as_it_happens() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([sleep("a", 300, &[]), echo("b", 2, &["a"])]));
    bench.run(&["import", &plan]).ends(0);
    let watching = bench.start(&["watch", "p", "--json"]);
    bench.run(&["run", "p", "--yes"]).ends(0);
    let told = events(&watching.wait().ends(0).out);
    assert_eq!(told.last().unwrap()["event"], "run.completed");
    assert!(told.iter().any(|event| event["step"]["state"] == "running"));
}
