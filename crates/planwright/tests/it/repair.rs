//! A run whose journal is damaged can be ended, and many unknown outcomes are settled at once.

use planwright_testing::steps::{call, sleep};
use planwright_testing::workbench::Bench;
use serde_json::json;

const RECORDED: &[u8] = b"THE-RECORDED-VALUE";

/// A run that was killed, and whose journal was changed on the disk since. Returns its id.
fn damaged_run(bench: &Bench) -> String {
    bench.write("notes.txt", "THE-RECORDED-VALUE");
    let plan = bench.plan(
        "p",
        json!([
            call(
                "read",
                "local.read_file",
                json!({ "path": "notes.txt" }),
                &[]
            ),
            sleep("wait", 4_000, &["read"]),
        ]),
    );
    let running = bench.start(&["run", &plan, "--yes"]);
    bench.wait_for("p", "attempt_started", "wait");
    running.kill();
    let shown = bench.run(&["show", "p", "--json"]).ends(0).json();
    let run = shown["runs"][0]["id"].as_str().unwrap().to_owned();
    let mut changed = 0;
    for name in [".plans/planwright.db", ".plans/planwright.db-wal"] {
        let path = bench.path(name);
        let mut bytes = std::fs::read(&path).unwrap_or_default();
        while let Some(at) = bytes
            .windows(RECORDED.len())
            .position(|window| window == RECORDED)
        {
            bytes[at] = b'X';
            changed += 1;
        }
        std::fs::write(&path, bytes).unwrap();
    }
    assert!(changed > 0, "the value is somewhere in the store");
    run
}

#[test]
fn a_damaged_run_is_ended_and_its_plan_is_of_use_again() {
    let bench = Bench::new();
    let run = damaged_run(&bench);
    bench.run(&["verify"]).ends(5);
    let said = bench.run(&["resume", "p"]).ends(5);
    assert!(
        said.err.contains(&format!("planwright repair {run}")),
        "{said:#?}"
    );
    bench.run(&["delete", "p", "--yes"]).ends(3);

    let said = bench.run(&["repair", &run]).ends(5);
    assert!(said.out.contains("is damaged"), "{said:#?}");
    assert!(said.err.contains("--accept-loss"), "{said:#?}");
    bench.run(&["repair", &run, "--accept-loss"]).ends(3);
    bench.run(&["verify"]).ends(5);

    let repaired = ["repair", &run, "--accept-loss", "--yes", "--json"];
    let repaired = bench.run(&repaired).ends(0).json();
    assert_eq!(repaired["ended"], true);
    assert_eq!(bench.status("p"), "proposed");
    for command in [&["show", "p"][..], &["list"], &["stats"], &["doctor"]] {
        bench.run(command).ends(0);
    }
    let verified = bench.run(&["verify", "--json"]).ends(0).json();
    let written_off = verified["writtenOff"].as_array().unwrap();
    assert_eq!(written_off.len(), 1);
    assert!(written_off[0]["place"].as_str().unwrap().contains(&run));
    bench.run(&["run", "p", "--yes"]).ends(0);
    bench.run(&["delete", "p", "--yes"]).ends(0);
}

#[test]
fn a_quarantined_run_leaves_what_can_be_read_in_a_file() {
    let bench = Bench::new();
    let run = damaged_run(&bench);
    bench
        .run(&["repair", &run, "--quarantine", "--yes"])
        .ends(0);
    let left = bench.read(&format!(".plans/quarantine/{run}.jsonl"));
    let first: serde_json::Value = serde_json::from_str(left.lines().next().unwrap()).unwrap();
    assert_eq!(first["seq"], 1);
    bench.run(&["verify"]).ends(0);
    bench.run(&["archive", "p"]).ends(3);
    bench.run(&["run", "p", "--yes"]).ends(0);
    bench.run(&["archive", "p"]).ends(0);
}

#[test]
fn a_whole_run_is_not_repaired() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([sleep("wait", 1, &[])]));
    let result = bench.run(&["run", &plan, "--yes", "--json"]).ends(0).json();
    let run = result["runId"].as_str().unwrap();
    let repair = ["repair", run, "--accept-loss", "--yes"];
    bench.run(&repair).complains(3, "is not damaged");
    let unknown = ["repair", "run_aaaaaaaaaaaa", "--accept-loss"];
    bench.run(&unknown).complains(2, "");
}

#[test]
fn all_unknown_outcomes_of_a_run_are_resolved_at_once() {
    let bench = Bench::new();
    bench.configure("[tools.\"demo.sleep\"]\nclass = \"unsafe\"\n");
    let mut pay = sleep("pay", 4_000, &[]);
    pay["forEach"] = json!([1, 2, 3]);
    let plan = bench.plan("p", json!([pay]));
    let running = bench.start(&["run", &plan, "--yes"]);
    bench.wait_for("p", "attempt_started", "pay[0]");
    running.kill();
    bench.run(&["resume", "p"]).ends(4);
    let all = ["resolve", "p", "--all", "--happened", "--json"];
    let resolved = bench.run(&all).ends(0).json();
    assert!(!resolved["steps"].as_array().unwrap().is_empty());
    bench.run(&all).ends(3);
    bench.run(&["resolve", "p", "--happened"]).ends(2);
}
