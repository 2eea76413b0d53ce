//! `[retention]`, `store compact`, `store export` and `store restore-run`, with the real program.

use planwright_testing::workbench::Bench;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Everything that is over is archived, sealed and removed as soon as it is a second old.
const AT_ONCE: &str = "[retention]\narchive_after = '1s'\nseal_after = '1s'\n";

fn run_plan(bench: &Bench, id: &str) -> String {
    let plan = bench.plan(
        id,
        json!([
            { "id": "one", "tool": "demo.echo", "args": { "value": format!("canary {id}") }, "result": "first" },
            { "id": "two", "tool": "demo.echo", "args": { "value": "${first}" } },
        ]),
    );
    bench.run(&["run", &plan, "--yes"]).ends(0);
    let log = bench.run(&["log", id, "--json"]).ends(0);
    let first: Value = serde_json::from_str(log.out.lines().next().unwrap()).unwrap();
    let stream = first["stream"].as_str().unwrap();
    stream.strip_prefix("run/").unwrap().to_owned()
}

/// Spans are whole seconds, so what is due is a little more than one second old.
fn let_a_second_pass() {
    std::thread::sleep(std::time::Duration::from_millis(1_200));
}

fn compact(bench: &Bench) -> Value {
    bench.run(&["store", "compact", "--json"]).ends(0).json()
}

fn sealed_files(bench: &Bench) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(bench.path(".plans/planwright.db-sealed")) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn replayed(bench: &Bench, run: &str) -> Value {
    bench
        .run(&["replay", run, "--offline", "--json"])
        .ends(0)
        .json()
}

/// What `verify` says, without where journals are.
fn verified(bench: &Bench) -> Value {
    let mut said = bench.run(&["verify", "--json"]).ends(0).json();
    said.as_object_mut().unwrap().remove("sealed");
    said
}

#[test]
fn a_run_is_sealed_read_as_before_and_restored() {
    let bench = Bench::new();
    let run = run_plan(&bench, "first");
    let before = (
        replayed(&bench, &run),
        verified(&bench),
        bench.run(&["log", &run]).out,
    );
    bench.write("planwright.toml", AT_ONCE);
    let_a_second_pass();
    let dry = bench
        .run(&["store", "compact", "--dry-run", "--json"])
        .ends(0)
        .json();
    assert_eq!(dry["sealed"], json!([format!("run/{run}")]));
    assert!(sealed_files(&bench).is_empty(), "a dry run changes nothing");
    assert!(bench.path(".plans/first/plan.md").exists());
    let_a_second_pass();
    compact(&bench);
    let_a_second_pass();
    // The plan was archived with the first pass, and is sealed with the second.
    compact(&bench);
    assert_eq!(sealed_files(&bench).len(), 2, "the run and its plan");
    assert!(!bench.path(".plans/first").exists());
    assert!(!bench.path(".plans/archive/first").exists());
    bench.write("planwright.toml", "");

    assert_eq!(replayed(&bench, &run), before.0);
    let mut after = verified(&bench);
    // The plan has one more entry: that it was archived.
    assert_eq!(
        after["entries"],
        json!(before.1["entries"].as_u64().unwrap() + 1)
    );
    after["entries"] = before.1["entries"].clone();
    assert_eq!(after, before.1);
    let log = bench.run(&["log", &run]).ends(0);
    assert_eq!(log.out, before.2);
    assert!(log.err.contains("is sealed"), "{log:?}");
    let shown = bench.run(&["show", "first"]).ends(0);
    assert!(
        shown.err.contains("the journal of plan/first is sealed"),
        "{shown:?}"
    );
    let said = bench.run(&["verify"]).ends(0);
    assert!(said.out.contains("2 of them are sealed"), "{said:?}");
    bench.run(&["unarchive", "first"]).complains(3, "is sealed");
    for file in sealed_files(&bench) {
        let file = file.display().to_string();
        bench.run(&["verify", "--file", &file]).ends(0);
    }
    let restored = bench.run(&["store", "restore-run", &run, "--json"]).ends(0);
    assert_eq!(restored.json()["restored"], json!([format!("run/{run}")]));
    bench
        .run(&["store", "restore-run", &run])
        .complains(3, "is not sealed");
    bench.run(&["store", "restore-run", "--all"]).ends(0);
    assert!(sealed_files(&bench).is_empty());
    assert!(bench.path(".plans/archive/first/plan.md").exists());
    bench.run(&["unarchive", "first"]).ends(0);
    assert_eq!(replayed(&bench, &run), before.0);
    bench.run(&["store", "check"]).ends(0);
}

#[test]
fn a_changed_sealed_file_is_named_by_verify() {
    let bench = Bench::new();
    let run = run_plan(&bench, "first");
    bench.write("planwright.toml", "[retention]\nseal_after = '1s'\n");
    let_a_second_pass();
    compact(&bench);
    let file = sealed_files(&bench).remove(0);
    let bytes = std::fs::read(&file).unwrap();
    let mut changed = bytes.clone();
    let at = changed.len() / 2;
    changed[at] ^= 1;
    std::fs::write(&file, &changed).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let said = bench.run(&["verify"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.out.contains(name), "{said:?}");
    bench
        .run(&["verify", "--file", file.to_str().unwrap()])
        .complains(5, name);
    bench
        .run(&["store", "restore-run", &run])
        .complains(5, name);
    std::fs::remove_file(&file).unwrap();
    let said = bench.run(&["verify"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.out.contains("missing"), "{said:?}");
    bench
        .run(&["verify", "--file", file.to_str().unwrap()])
        .complains(2, "there is no file");
    std::fs::write(&file, &bytes).unwrap();
    bench.run(&["verify"]).ends(0);
}

#[test]
fn a_run_is_exported_and_brought_into_another_store() {
    let bench = Bench::new();
    let run = run_plan(&bench, "first");
    let before = replayed(&bench, &run);
    let said = bench
        .run(&["store", "export", &run, "-o", "taken.jsonl", "--json"])
        .ends(0)
        .json();
    assert_eq!(said["stream"], json!(format!("run/{run}")));
    bench
        .run(&["store", "export", "first", "--plan", "-o", "plan.jsonl"])
        .ends(0);
    bench
        .run(&["store", "export", &run, "-o", "taken.jsonl"])
        .complains(3, "already exists");
    bench
        .run(&["store", "export", "nothing", "-o", "no.jsonl"])
        .complains(2, "nothing");
    assert!(!bench.path("no.jsonl").exists());
    bench
        .run(&["store", "restore-run", "taken.jsonl"])
        .complains(3, "already");
    bench
        .run(&["store", "restore-run", "nowhere"])
        .complains(2, "no run, no plan and no file");

    let other = Bench::new();
    let file = |name: &str| bench.path(name).display().to_string();
    run_plan(&other, "else");
    other
        .run(&["store", "restore-run", &file("taken.jsonl")])
        .complains(3, "is not in this store");
    let mut agent = other.command(&["store", "restore-run", &file("plan.jsonl")]);
    let refused = agent.env("PLANWRIGHT_AGENT", "helper").output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    other
        .run(&["store", "restore-run", &file("plan.jsonl")])
        .ends(0);
    other
        .run(&["store", "restore-run", &file("taken.jsonl")])
        .ends(0);
    assert_eq!(replayed(&other, &run), before);
    other.run(&["verify"]).ends(0);
    other.run(&["show", "first"]).ends(0);
    other.write("broken.jsonl", "{}\n");
    other
        .run(&["store", "restore-run", "broken.jsonl"])
        .complains(5, "no sealed journal");
}

#[test]
fn consent_and_work_in_progress_do_not_travel_in_files() {
    let bench = Bench::new();
    bench.plan(
        "asked",
        json!([{ "id": "one", "tool": "demo.echo", "args": { "value": 1 } }]),
    );
    bench.run(&["import", "asked.json"]).ends(0);
    bench.run(&["approve", "asked", "--version", "1"]).ends(0);
    bench
        .run(&["store", "export", "asked", "--plan", "-o", "asked.jsonl"])
        .ends(0);
    let run = wait_for_input(&bench);
    bench
        .run(&["store", "export", &run, "-o", "waits.jsonl"])
        .ends(0);
    let other = Bench::new();
    run_plan(&other, "else");
    for (file, words) in [
        ("asked.jsonl", "cannot bring consent"),
        ("waits.jsonl", "had not ended"),
    ] {
        let file = bench.path(file).display().to_string();
        other
            .run(&["store", "restore-run", &file])
            .complains(3, words);
    }
    other.run(&["verify"]).ends(0);
}

/// A run that waits for a person.
fn wait_for_input(bench: &Bench) -> String {
    let schema = json!({ "type": "object", "properties": { "count": { "type": "integer" } } });
    let input = json!({ "message": "How many?", "schema": schema });
    bench.plan("waits", json!([{ "id": "ask", "input": input }]));
    bench.run(&["run", "waits.json", "--yes"]).ends(4);
    let log = bench.run(&["log", "waits", "--json"]).ends(0);
    let first: Value = serde_json::from_str(log.out.lines().next().unwrap()).unwrap();
    let stream = first["stream"].as_str().unwrap();
    stream.strip_prefix("run/").unwrap().to_owned()
}

fn size_of(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size_of(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(|entry| size(entry.unwrap())).sum()
}

#[test]
fn the_folder_of_plans_stays_small() {
    let bench = Bench::new();
    bench.configure("[retention]\narchive_after = '1s'\nseal_after = '1s'\nremove_after = '1s'\n");
    let mut sizes = Vec::new();
    for number in 0..24 {
        run_plan(&bench, &format!("plan-{number}"));
        if number % 8 == 7 {
            for _ in 0..3 {
                let_a_second_pass();
                compact(&bench);
            }
            sizes.push(size_of(&bench.path(".plans")));
        }
    }
    assert!(sizes[2] < sizes[0] * 3 / 2, "{sizes:?}");
    let left = bench.run(&["list", "--archived", "--json"]).ends(0).json();
    assert_eq!(left.as_array().map_or(0, Vec::len), 0, "{left}");
    bench.run(&["verify"]).ends(0);
}

#[test]
fn a_run_that_waits_is_not_sealed() {
    let bench = Bench::new();
    wait_for_input(&bench);
    bench.write("planwright.toml", AT_ONCE);
    let_a_second_pass();
    assert_eq!(compact(&bench)["sealed"], json!([]));
    bench.run(&["verify"]).ends(0);
}

#[test]
fn settings_and_places_that_make_no_sense_are_refused() {
    let bench = Bench::new();
    bench
        .run(&["store", "compact"])
        .complains(2, "there is no store");
    bench
        .run(&["store", "export", "x"])
        .complains(2, "there is no store");
    bench
        .run(&["store", "restore-run", "x"])
        .complains(2, "there is no store");
    assert!(!bench.path(".plans").exists());
    bench.write("planwright.toml", "[retention]\nseal_after = 'soon'\n");
    bench.run(&["list"]).complains(2, "planwright.toml, line 2");
}
