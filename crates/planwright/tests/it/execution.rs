//! How plans run, by the order in their journals.

use planwright_testing::steps::{call, echo, effect, keys, sleep, step};
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

fn millis(value: &Value) -> u64 {
    value["durationMs"].as_u64().unwrap()
}

/// The beginnings and ends of steps, in the order of the journal: `+step`, `-step`.
fn story(bench: &Bench, plan: &str) -> Vec<String> {
    let told = bench.log(plan).into_iter().filter_map(|entry| {
        let sign = match entry["kind"].as_str().unwrap() {
            "attempt_started" => '+',
            "attempt_succeeded" | "attempt_failed" => '-',
            _ => return None,
        };
        Some(format!("{sign}{}", entry["step"].as_str().unwrap()))
    });
    told.collect()
}

fn place(story: &[String], moment: &str) -> usize {
    let found = story.iter().position(|told| told == moment);
    found.unwrap_or_else(|| panic!("{moment} is not in {story:?}"))
}

#[test]
fn a_diamond_runs_its_sides_at_once_and_its_ends_alone() {
    let bench = Bench::new();
    let steps = json!([
        sleep("1", 200, &[]),
        sleep("2", 200, &["1"]),
        sleep("3", 200, &["1"]),
        sleep("4", 200, &["2", "3"])
    ]);
    let plan = bench.plan("p", steps);
    bench.run(&["run", &plan]).ends(0);
    let mut story = story(&bench, "p");
    // Which of the sides is first is not said.
    story[2..4].sort();
    story[4..6].sort();
    assert_eq!(story, ["+1", "-1", "+2", "+3", "-2", "-3", "+4", "-4"]);
}

#[test]
fn lanes_do_not_wait_for_each_other() {
    let bench = Bench::new();
    let mut steps = Vec::new();
    for (lane, times) in [[600, 100, 100], [100, 600, 100], [100, 100, 600]]
        .iter()
        .enumerate()
    {
        for (place, ms) in times.iter().enumerate() {
            let before = format!("l{lane}s{}", place.wrapping_sub(1));
            let after = if place == 0 {
                vec![]
            } else {
                vec![before.as_str()]
            };
            steps.push(sleep(&format!("l{lane}s{place}"), *ms, &after));
        }
    }
    let plan = bench.plan("p", json!(steps));
    bench.run(&["run", &plan, "--max-concurrency", "3"]).ends(0);
    // Where levels waited for each other, nothing of the second would begin before the first lane's
    // long step is over, and nothing of the third before the second lane's.
    let story = story(&bench, "p");
    let over = place(&story, "-l0s0");
    for early in ["+l1s1", "+l2s1", "+l2s2"] {
        assert!(place(&story, early) < over, "{early}: {story:?}");
    }
}

/// The most calls that were in flight at once, from the journal.
fn most_in_flight(bench: &Bench, plan: &str) -> usize {
    let mut now = 0_usize;
    let mut most = 0;
    for entry in bench.log(plan) {
        match entry["kind"].as_str().unwrap() {
            "attempt_started" => now += 1,
            "attempt_succeeded" | "attempt_failed" => now -= 1,
            _ => {}
        }
        most = most.max(now);
    }
    most
}

#[test]
fn never_more_steps_are_in_flight_than_the_limit() {
    let bench = Bench::new();
    let steps: Vec<Value> = (0..10).map(|n| sleep(&format!("s{n}"), 30, &[])).collect();
    let plan = bench.plan("p", json!(steps));
    bench.run(&["run", &plan]).ends(0);
    assert_eq!(most_in_flight(&bench, "p"), 4, "the default");
    bench.run(&["run", &plan, "--max-concurrency", "2"]).ends(0);
    assert_eq!(most_in_flight(&bench, "p"), 2);
}

#[test]
fn with_one_slot_steps_run_in_plan_order() {
    let bench = Bench::new();
    let steps: Vec<Value> = (0..6).map(|n| echo(&format!("s{n}"), n, &[])).collect();
    let plan = bench.plan("p", json!(steps));
    bench.run(&["run", &plan, "--max-concurrency", "1"]).ends(0);
    let started: Vec<String> = bench
        .log("p")
        .iter()
        .filter(|entry| entry["kind"] == "attempt_started")
        .map(|entry| entry["step"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(started, ["s0", "s1", "s2", "s3", "s4", "s5"]);
}

#[test]
fn a_failure_that_is_not_critical_blocks_only_what_depends_on_it() {
    let bench = Bench::new();
    let mut failing = call("3", "demo.fail", json!({ "retryable": false }), &[]);
    failing["critical"] = json!(false);
    let plan = bench.plan(
        "p",
        json!([
            echo("1", 1, &[]),
            echo("2", 2, &[]),
            failing,
            echo("4", 4, &["1"]),
            echo("5", 5, &["3"])
        ]),
    );
    let result = bench.run(&["run", &plan, "--json"]).ends(0).json();
    assert_eq!(result["status"], "completed");
    assert_eq!(step(&result, "4")["status"], "completed");
    assert_eq!(step(&result, "5")["status"], "blocked");
    assert_eq!(step(&result, "5")["error"]["code"], "dependency_failed:3");
}

#[test]
fn a_plan_that_goes_on_after_failures_does_not_end_as_if_there_were_none() {
    let bench = Bench::new();
    let failing = call("bad", "demo.fail", json!({ "retryable": false }), &[]);
    let steps = json!([failing, echo("good", 1, &[]), echo("late", 2, &["bad"])]);
    let plan =
        bench.document(json!({ "id": "p", "limits": { "onFailure": "continue" }, "steps": steps }));
    let result = bench.run(&["run", &plan, "--json"]).ends(1).json();
    assert_eq!(result["status"], "completed_with_failures");
    assert_eq!(result["success"], false);
    assert_eq!(step(&result, "good")["status"], "completed");
    assert_eq!(step(&result, "late")["status"], "blocked");
    let said = bench.run(&["show", "p"]).ends(0).out;
    assert!(
        said.contains("p  version 1  completed_with_failures"),
        "{said}"
    );
    let list = bench.run(&["list", "--json"]).ends(0).json();
    assert_eq!(list[0]["status"], "completed_with_failures");
    bench.run(&["verify"]).ends(0);

    // The step whose failure does not matter does not matter here either.
    let mut minor = call("bad", "demo.fail", json!({ "retryable": false }), &[]);
    minor["critical"] = json!(false);
    let plan = bench.document(json!({
        "id": "q", "limits": { "onFailure": "continue" }, "steps": [minor, echo("good", 1, &[])]
    }));
    let result = bench.run(&["run", &plan, "--json"]).ends(0).json();
    assert_eq!(result["status"], "completed");
}

#[test]
fn after_a_critical_failure_nothing_starts_and_what_is_in_flight_finishes() {
    let bench = Bench::new();
    let failing = call("bad", "demo.fail", json!({ "retryable": false }), &[]);
    let plan = bench.plan(
        "p",
        json!([
            failing,
            sleep("slow", 300, &[]),
            echo("later", 1, &["slow"])
        ]),
    );
    let result = bench.run(&["run", &plan, "--json"]).ends(1).json();
    assert_eq!(result["status"], "failed");
    assert_eq!(step(&result, "slow")["status"], "completed");
    assert_eq!(step(&result, "later")["status"], "cancelled");
    assert!(
        step(&result, "later")["error"]["message"].is_string(),
        "it says why: {result:#}"
    );
}

#[test]
fn a_retry_of_three_is_at_most_four_calls_with_growing_pauses() {
    let bench = Bench::new();
    let mut failing = call("a", "demo.fail", json!({}), &[]);
    failing["retry"] = json!({ "max": 3, "backoff": 0.05, "factor": 3.0 });
    let plan = bench.plan("p", json!([failing]));
    let result = bench.run(&["run", &plan, "--json"]).ends(1).json();
    assert_eq!(step(&result, "a")["attempts"], 4);
    let took = millis(&result);
    assert!(took >= 50 + 150 + 450, "{took} ms");
    let mut hopeless = call("a", "demo.fail", json!({ "retryable": false }), &[]);
    hopeless["retry"] = json!({ "max": 3, "backoff": 0.01 });
    let plan = bench.plan("q", json!([hopeless]));
    let result = bench.run(&["run", &plan, "--json"]).ends(1).json();
    assert_eq!(step(&result, "a")["attempts"], 1);
    let mut second_time_lucky = call("a", "demo.fail", json!({ "times": 1 }), &[]);
    second_time_lucky["retry"] = json!({ "max": 3, "backoff": 0.01 });
    let plan = bench.plan("r", json!([second_time_lucky]));
    let result = bench.run(&["run", &plan, "--json"]).ends(0).json();
    assert_eq!(step(&result, "a")["attempts"], 2);
}

#[test]
fn a_timeout_fails_the_step_long_before_the_tool_would_answer() {
    let bench = Bench::new();
    let mut slow = sleep("a", 60_000, &[]);
    slow["timeoutSeconds"] = json!(0.05);
    let plan = bench.plan("p", json!([slow]));
    let result = bench.run(&["run", &plan, "--json"]).ends(1).json();
    assert_eq!(step(&result, "a")["error"]["code"], "timeout");
    assert!(millis(&result) < 5_000);
}

#[test]
fn a_call_without_a_time_limit_of_its_own_has_that_of_the_configuration() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([sleep("a", 60_000, &[])]));
    let said = bench.run(&["run", &plan, "--dry-run"]).ends(0).out;
    assert!(said.contains("a call may take 600 s"), "{said}");
    bench.configure("[limits]\ncall_timeout_seconds = 1\n");
    let said = bench.run(&["run", &plan, "--dry-run"]).ends(0).out;
    assert!(said.contains("a call may take 1 s"), "{said}");
    let result = bench.run(&["run", &plan, "--json"]).ends(1).json();
    assert_eq!(step(&result, "a")["error"]["code"], "timeout");
    let message = step(&result, "a")["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("within 1 s, the time limit of calls whose step names none"),
        "{message}"
    );
    for wrong in ["0", "86401"] {
        bench.write(
            "planwright.toml",
            &format!("[limits]\ncall_timeout_seconds = {wrong}\n"),
        );
        let refused = bench.run(&["run", &plan]).ends(2);
        assert!(
            refused.err.contains("call_timeout_seconds"),
            "{}",
            refused.err
        );
    }
}

#[test]
fn values_keep_their_type_through_references() {
    let bench = Bench::new();
    let whole = json!({ "content": "x", "other": 1, "text": "123", "list": [{ "k": true }], "raw": "${not a reference" });
    let plan = bench.plan(
        "p",
        json!([
            echo("a", json!({ "content": "x", "other": 1, "text": "123", "list": [{ "k": true }], "raw": "$${not a reference" }), &[]),
            echo("b", "${a}", &[]),
            echo("c", "${a.other}", &[]),
            echo("d", "${a.list[0].k} and ${a.text}", &[]),
        ]),
    );
    let result = bench.run(&["run", &plan, "--json"]).ends(0).json();
    assert_eq!(step(&result, "b")["value"], whole);
    assert_eq!(step(&result, "c")["value"], 1);
    assert_eq!(step(&result, "d")["value"], "true and 123");
}

#[test]
fn a_path_that_a_result_does_not_have_fails_the_step_without_a_call() {
    let bench = Bench::new();
    let mut write = effect("b", &[]);
    write["args"]["content"] = json!("${a.missing}");
    let plan = bench.plan("p", json!([echo("a", json!({ "present": 1 }), &[]), write]));
    let result = bench.run(&["run", &plan, "--json", "--yes"]).ends(1).json();
    let error = step(&result, "b")["error"]["message"].as_str().unwrap();
    assert!(
        error.contains("missing") && error.contains("present"),
        "{error}"
    );
    assert!(!bench.path("effects.txt").exists());
}

#[test]
fn a_budget_blocks_the_call_that_would_exceed_it_and_can_be_switched_off() {
    let bench = Bench::new();
    let steps = json!([effect("a", &[]), effect("b", &["a"]), effect("c", &["b"])]);
    let plan = bench
        .document(json!({ "id": "p", "limits": { "budget": { "calls": 2 } }, "steps": steps }));
    let result = bench.run(&["run", &plan, "--json", "--yes"]).ends(1).json();
    let error = step(&result, "c")["error"]["message"].as_str().unwrap();
    assert!(error.starts_with("Guard blocked: "), "{error}");
    assert_eq!(step(&result, "c")["attempts"], 0);
    assert_eq!(bench.read("effects.txt"), "a\nb\n");
    bench.run(&["run", &plan, "--yes", "--no-guards"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "a\nb\na\nb\nc\n");
}

#[test]
fn five_megabytes_survive_byte_for_byte() {
    let bench = Bench::new();
    let text: String = (0..5 << 20)
        .map(|n: u32| char::from(b' ' + u8::try_from(n % 95).unwrap()))
        .collect();
    bench.write("large.txt", &text);
    let plan = bench.plan(
        "p",
        json!([
            call(
                "read",
                "read_file",
                json!({ "path": "large.txt", "maxBytes": 10 << 20 }),
                &[]
            ),
            call(
                "write",
                "write_file",
                json!({ "path": "copy.txt", "content": "${read}" }),
                &[]
            ),
        ]),
    );
    let result = bench.run(&["run", &plan, "--json", "--yes"]).ends(0).json();
    assert_eq!(step(&result, "read")["value"].as_str().unwrap(), text);
    assert!(bench.read("copy.txt") == text, "the copy differs");
    bench.run(&["verify"]).ends(0);
}

#[test]
fn a_plan_without_steps_completes_at_once() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([]));
    let result = bench.run(&["run", &plan, "--json"]).ends(0).json();
    assert_eq!(
        (&result["status"], &result["steps"]),
        (&json!("completed"), &json!([]))
    );
}

#[test]
fn a_step_that_nobody_can_work_on_is_a_clear_refusal() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([{ "id": "a", "think": { "prompt": "why?" } }]));
    bench.run(&["import", &plan]).ends(0);
    bench
        .run(&["run", "p", "--yes"])
        .complains(3, "needs a model for the executor and none is configured");
}

#[test]
fn progress_is_lines_on_stderr_and_nothing_with_json() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([echo("a", 1, &[])]));
    let said = bench.run(&["run", &plan]).ends(0);
    assert!(said.err.contains("▸ a Step a [demo.echo]"), "{said:#?}");
    assert!(said.err.contains("● a Step a"));
    assert!(said.out.contains("p completed: 1 of 1 steps"));
    let said = bench.run(&["run", &plan, "--json"]).ends(0);
    assert_eq!(said.err, "");
    assert!(keys(&said.json()).contains(&"runId"));
}

/// The most memory that a chain of so many reads of a large file needs, in MiB.
fn peak_memory_of_reads(count: usize) -> u64 {
    let bench = Bench::new();
    bench.write("large.txt", &"x".repeat(3 << 20));
    let ids: Vec<String> = (0..count).map(|number| format!("s{number}")).collect();
    let steps = ids.iter().enumerate().map(|(number, id)| {
        let after: Vec<&str> = number
            .checked_sub(1)
            .map(|before| ids[before].as_str())
            .into_iter()
            .collect();
        let args = json!({ "path": "large.txt", "maxBytes": 4 << 20 });
        call(id, "local.read_file", args, &after)
    });
    let plan = bench.plan("p", steps.collect());
    let mut running = bench.start(&["run", &plan, "--yes"]);
    let mut peak = 0;
    while !running.is_over() {
        peak = running.peak_memory().unwrap_or(peak);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(bench.status("p"), "completed");
    peak
}

#[test]
fn values_that_nothing_refers_to_do_not_stay_in_memory() {
    let few = peak_memory_of_reads(4);
    let many = peak_memory_of_reads(44);
    assert!(few > 0, "the memory was never seen");
    assert!(many < few + 60, "{few} MiB for 4 reads, {many} MiB for 44");
}

#[test]
fn a_plan_gives_back_its_outputs() {
    let bench = Bench::new();
    let plan = bench.document(json!({
        "id": "sum", "outputs": { "total": "${add.total}", "text": "in all ${add.total}", "lost": "${add.nope}" },
        "steps": [{ "id": "add", "tool": "demo.echo", "args": { "value": { "total": 42 } } }],
    }));
    let shown = bench.run(&["run", &plan, "--dry-run"]).ends(0).out;
    assert!(shown.contains("Gives back:"), "{shown}");
    let result = bench.run(&["run", &plan, "--json"]).ends(0).json();
    assert_eq!(
        result["outputs"],
        json!({ "total": 42, "text": "in all 42" })
    );
    let problem = result["outputProblems"][0].as_str().unwrap();
    assert!(
        problem.contains("`lost`") && problem.contains("total"),
        "{problem}"
    );
    let said = bench.run(&["run", "sum", "--yes"]).ends(0);
    assert!(said.out.contains("total: 42"), "{said:#?}");
    assert!(said.err.contains("`lost`"), "{said:#?}");
}
