//! One plan over five servers, killed again and again, resumed to its end: nothing is lost, and no
//! effect happens twice.

use crate::calls::git;
use planwright_testing::peers::Project;
use planwright_testing::steps::call;
use planwright_testing::steps::value;
use planwright_testing::wait::wait_until;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Whether a moment has come, as far as it can be seen from outside.
type HasCome = fn(&Project) -> bool;

/// When one of these moments has come, the process is killed.
const KILLS: [(&str, HasCome); 4] = [
    ("the first piece of work has begun", |project| {
        !project.effects().is_empty()
    }),
    ("the second piece of work has begun", |project| {
        project.effects().len() >= 2
    }),
    ("the first commit is there", |project| {
        project.bench.path("files/.git/refs/heads/master").exists()
    }),
    ("the second lane is remembered", |project| {
        project.bench.read("memory.jsonl").contains("lane 1")
    }),
];

/// Three lanes over the servers: some calls can be repeated, some must not be.
fn plan(project: &Project) -> Value {
    let repository = project.file("files");
    let lane = |n: usize| {
        let read = format!("time{n}");
        let write = format!("write{n}");
        let work = format!("work{n}");
        let add = format!("add{n}");
        let commit = format!("commit{n}");
        let remember = format!("remember{n}");
        let file = format!("note{n}.txt");
        [
            call(
                &read,
                "time.convert_time",
                json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" }),
                &[],
            ),
            call(
                &work,
                "workshop.work",
                json!({ "name": work, "steps": 2, "milliseconds": 150 }),
                &[],
            ),
            call(
                &write,
                "filesystem.write_file",
                json!({
                "path": project.file(&format!("files/{file}")),
                "content": format!("${{{work}.result}} at ${{{read}.time_difference}}") }),
                &[],
            ),
            call(
                &add,
                "git.git_add",
                json!({ "repo_path": repository, "files": [file] }),
                &[&write],
            ),
            call(
                &commit,
                "git.git_commit",
                json!({ "repo_path": repository, "message": format!("lane {n}") }),
                &[&add],
            ),
            call(
                &remember,
                "memory.create_entities",
                json!({ "entities": [
                    { "name": format!("lane {n}"), "entityType": "lane", "observations": [format!("${{{work}.result}}")] }
                ]}),
                &[&commit],
            ),
        ]
    };
    // One lane after the other in git: its index is one file.
    let mut steps: Vec<Value> = (0..3).flat_map(lane).collect();
    for n in 1..3 {
        let add = steps
            .iter_mut()
            .find(|step| step["id"] == format!("add{n}"))
            .unwrap();
        add["dependsOn"]
            .as_array_mut()
            .unwrap()
            .push(json!(format!("commit{}", n - 1)));
    }
    steps.push(call(
        "log",
        "git.git_log",
        json!({ "repo_path": repository }),
        &["commit2"],
    ));
    steps.push(call(
        "graph",
        "memory.read_graph",
        json!({}),
        &["remember0", "remember1", "remember2"],
    ));
    json!({ "id": "lanes", "title": "Three lanes", "steps": steps })
}

#[test]
fn a_plan_over_five_servers_survives_kills_with_every_effect_once() {
    let project = Project::with(&["time", "filesystem", "workshop", "git", "memory"]);
    git(&project, &["init", "--quiet", "--initial-branch", "master"]);
    git(&project, &["config", "user.name", "Tester"]);
    git(&project, &["config", "user.email", "tester@example.org"]);
    let plan = project.bench.document(plan(&project));
    let mut args: &[&str] = &["run", &plan, "--yes"];
    for (moment, has_come) in KILLS {
        // It may have to ask first what became of the calls that the last kill interrupted.
        while !killed_when(&project, args, moment, has_come) {
            settle(&project);
            args = &["resume", "lanes"];
        }
        args = &["resume", "lanes"];
    }
    let mut result = project.run(&["resume", "lanes", "--json"]);
    while result.code == 4 {
        settle(&project);
        result = project.run(&["resume", "lanes", "--json"]);
    }
    let result = result.ends(0).json();
    for step in result["steps"].as_array().unwrap() {
        assert_eq!(step["status"], "completed", "{step:#}");
    }

    let mut effects: BTreeMap<String, usize> = BTreeMap::new();
    for line in project.effects() {
        *effects.entry(line).or_default() += 1;
    }
    let once: BTreeMap<String, usize> = (0..3).map(|n| (format!("work{n}"), 1)).collect();
    assert_eq!(effects, once, "every unsafe effect happens once");
    let subjects = git(&project, &["log", "--format=%s", "--reverse"]);
    assert_eq!(
        subjects.lines().collect::<Vec<_>>(),
        ["lane 0", "lane 1", "lane 2"]
    );
    for n in 0..3 {
        assert_eq!(
            project.bench.read(&format!("files/note{n}.txt")),
            format!("work{n} is done at +9.0h")
        );
    }
    let graph = value(&result, "graph");
    assert_eq!(graph["entities"].as_array().unwrap().len(), 3, "{graph:#}");
    for entity in graph["entities"].as_array().unwrap() {
        assert!(
            entity["observations"][0]
                .as_str()
                .unwrap()
                .ends_with("is done"),
            "{entity}"
        );
    }
    project.run(&["verify"]).ends(0);
    project.run(&["replay", "lanes", "--offline"]).ends(0);
    project.leaves_no_server_behind();
}

/// Executes until the moment has come, then kills. Says no if a person has to be asked first.
fn killed_when(project: &Project, args: &[&str], moment: &str, has_come: HasCome) -> bool {
    let mut running = project.start(args);
    let mut came = false;
    wait_until(moment, || {
        came = project.has_servers() && has_come(project);
        came || running.is_over()
    });
    if came {
        running.kill();
    } else {
        running.wait().ends(4);
    }
    project.leaves_no_server_behind();
    came
}

/// What a person does about calls with an unknown outcome: looks at the world, and says what
/// happened.
fn settle(project: &Project) {
    let mut unknown: BTreeMap<String, bool> = BTreeMap::new();
    for entry in project.log("lanes") {
        let step = entry["step"].as_str().unwrap_or_default().to_owned();
        match entry["kind"].as_str().unwrap() {
            "outcome_lost" => drop(unknown.insert(step, true)),
            "outcome_resolved" => drop(unknown.insert(step, false)),
            _ => {}
        }
    }
    for (step, _) in unknown.into_iter().filter(|(_, open)| *open) {
        let (happened, value) = look(project, &step);
        if happened {
            project
                .run(&[
                    "resolve",
                    "lanes",
                    &step,
                    "--happened",
                    "--value",
                    &value.to_string(),
                ])
                .ends(0);
        } else {
            project
                .run(&["resolve", "lanes", &step, "--run-again"])
                .ends(0);
        }
    }
}

/// Whether the effect of a step is there, and what the tool would have answered.
fn look(project: &Project, step: &str) -> (bool, Value) {
    let (kind, n) = step.split_at(step.len() - 1);
    match kind {
        "work" => {
            let done = project.effects().iter().any(|line| line == step);
            (done, json!({ "result": format!("{step} is done") }))
        }
        "commit" => {
            let log = git(project, &["log", "--all", "--format=%s"]);
            (
                log.lines().any(|line| line == format!("lane {n}")),
                json!("committed"),
            )
        }
        "remember" => {
            let kept = project
                .bench
                .read("memory.jsonl")
                .contains(&format!("\"lane {n}\""));
            (kept, json!({ "entities": [] }))
        }
        other => panic!("{other} is not unsafe"),
    }
}
