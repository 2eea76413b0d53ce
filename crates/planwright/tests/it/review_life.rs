//! Talking about plans, sending them back, giving runs up, putting plans away, and the figures over
//! all of it.

use planwright_testing::steps::{echo, effect, sleep};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

fn proposed(bench: &Bench) {
    let plan = bench.plan("p", json!([effect("a", &[]), effect("b", &["a"])]));
    bench.run(&["import", &plan]).ends(0);
}

fn comment(bench: &Bench, args: &[&str]) -> Value {
    let all: Vec<&str> = ["comment", "p"]
        .iter()
        .chain(args)
        .copied()
        .chain(["--json"])
        .collect();
    bench.run(&all).ends(0).json()
}

#[test]
fn comments_are_threads_about_the_plan_or_a_step() {
    let bench = Bench::new();
    proposed(&bench);
    let thread = comment(&bench, &["is \u{1b}[31mthis safe?", "--step", "a"]);
    assert_eq!(
        (&thread["step"], &thread["state"]),
        (&json!("a"), &json!("open"))
    );
    let id = thread["id"].as_str().unwrap();
    assert!(id.starts_with("c-") && id.len() == 10, "{id}");
    let answered = comment(&bench, &["yes", "--reply-to", id]);
    assert_eq!(answered["comments"].as_array().unwrap().len(), 2);
    comment(&bench, &["about everything"]);

    let said = bench.run(&["comments", "p"]).ends(0);
    assert!(
        said.out.contains("on step `a`") && said.out.contains("on the plan"),
        "{said:#?}"
    );
    assert!(
        !said.out.contains('\u{1b}'),
        "what a person wrote does not reach the terminal as it is"
    );
    let shown = bench.run(&["show", "p"]).ends(0).out;
    assert!(shown.contains("2 threads of comments, 2 open"), "{shown}");

    assert_eq!(comment(&bench, &["--resolve", id])["state"], "resolved");
    assert_eq!(
        bench
            .run(&["comments", "p", "--open", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    bench
        .run(&["comment", "p", "--resolve", id])
        .complains(3, "the thread is resolved already");
    assert_eq!(comment(&bench, &["--reopen", id])["state"], "open");

    // A version without the step keeps the comment, and says so.
    let plan = bench.plan("p", json!([effect("b", &[])]));
    bench.run(&["import", &plan]).ends(0);
    let threads = bench.run(&["comments", "p", "--json"]).ends(0).json();
    assert_eq!(
        (&threads[0]["outdated"], &threads[1]["outdated"]),
        (&json!(true), &json!(false))
    );

    bench
        .run(&["comment", "p", ""])
        .complains(2, "must not be empty");
    bench
        .run(&["comment", "p", "x", "--step", "nope"])
        .complains(2, "the plan has no step `nope`");
    bench
        .run(&["comment", "p", "x", "--reply-to", "c-nope"])
        .complains(2, "there is no comment `c-nope`");
    bench
        .run(&["comment", "q", "x"])
        .complains(2, "there is no plan `q`");
    bench.run(&["verify"]).ends(0);
}

#[test]
fn a_long_comment_comes_from_stdin_and_has_a_limit() {
    use std::io::Write as _;
    use std::process::Stdio;
    let bench = Bench::new();
    proposed(&bench);
    for (bytes, code) in [(65_536, 0), (65_537, 2)] {
        let mut command = bench.command(&["comment", "p", "-"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all("x".repeat(bytes).as_bytes())
            .unwrap();
        let said = planwright_testing::workbench::said(child.wait_with_output().unwrap());
        assert_eq!(said.code, code, "{said:#?}");
    }
}

#[test]
fn open_comments_block_an_approval_where_the_policy_says_so() {
    let bench = Bench::new();
    bench.configure("[policy.approval]\nopen_comments = \"block\"\n");
    proposed(&bench);
    let id = comment(&bench, &["wait"])["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let digest = bench.digest("p");
    let approve = ["approve", "p", "--digest", &digest];
    let said = bench
        .run(&approve)
        .complains(3, "1 comment is left to discuss");
    assert!(
        said.err.contains(&id) && said.err.contains("hint:"),
        "{said:#?}"
    );
    comment(&bench, &["--resolve", &id]);
    bench.run(&approve).ends(0);
}

#[test]
fn an_agent_comments_but_settles_only_what_it_began() {
    let bench = Bench::new();
    proposed(&bench);
    let id = comment(&bench, &["mine"])["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let as_agent = |args: &[&str]| {
        planwright_testing::workbench::said(
            bench
                .command(args)
                .env("PLANWRIGHT_AGENT", "bot")
                .output()
                .unwrap(),
        )
    };
    as_agent(&["comment", "p", "a question"]).ends(0);
    as_agent(&["comment", "p", "--resolve", &id]).complains(3, "may not resolve this thread");
    as_agent(&["request-changes", "p", "--version", "1", "--reason", "x"])
        .complains(3, "may not approve");
}

#[test]
fn changes_are_asked_for_by_what_was_shown_and_count_for_no_round() {
    let bench = Bench::new();
    for version in 1..=4 {
        let plan = bench.plan("p", json!([effect(&format!("s{version}"), &[])]));
        bench.run(&["import", &plan]).ends(0);
        let stale = (version + 7).to_string();
        let version = version.to_string();
        bench
            .run(&["request-changes", "p", "--reason", "x"])
            .complains(2, "name what you reviewed");
        bench
            .run(&["request-changes", "p", "--version", &stale, "--reason", "x"])
            .complains(3, "the plan changed since it was shown");
        bench
            .run(&[
                "request-changes",
                "p",
                "--version",
                &version,
                "--reason",
                " ",
            ])
            .complains(2, "--reason");
        let said = bench.run(&[
            "request-changes",
            "p",
            "--version",
            &version,
            "--reason",
            "name it",
            "--json",
        ]);
        assert_eq!(said.ends(0).json()["status"], "changes_requested");
        assert_eq!(bench.status("p"), "changes_requested");
        bench
            .run(&["run", "p", "--yes"])
            .complains(3, "changes were requested");
    }
    let shown = bench.run(&["show", "p"]).ends(0).out;
    assert_eq!(shown.matches("changes requested").count(), 4, "{shown}");
}

#[test]
fn a_stalled_run_is_failed_cancelled_or_resumed() {
    for (command, status) in [
        (&["fail", "p", "--reason", "the host is gone"][..], "failed"),
        (&["cancel", "p"], "cancelled"),
        (&["resume", "p"], "completed"),
    ] {
        let bench = Bench::new();
        bench.configure("[plans]\nstalled_after = \"1s\"\n");
        let plan = bench.plan("p", json!([sleep("a", 3000, &[]), echo("b", 1, &["a"])]));
        let running = bench.start(&["run", &plan]);
        bench.wait_for("p", "attempt_started", "a");
        running.kill();
        wait_until("the run to be stalled", || bench.status("p") == "stalled");
        assert!(
            bench
                .log("p")
                .iter()
                .any(|entry| entry["kind"] == "run_stalled"),
            "it is in the journal"
        );
        let list = bench.run(&["list"]).ends(0);
        assert!(list.out.contains("stalled"), "{list:#?}");
        let shown = bench.run(&["show", "p"]).ends(0);
        for way in [
            "planwright resume p",
            "planwright fail p",
            "planwright cancel p",
        ] {
            assert!(shown.err.contains(way), "{way}: {shown:#?}");
        }
        let said = bench.run(command);
        assert_eq!(said.code, 0, "{said:#?}");
        assert_eq!(bench.status("p"), status);
        bench.run(&["verify"]).ends(0);
    }
}

#[test]
fn a_run_that_goes_on_is_not_failed_under_it() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([sleep("a", 60_000, &[])]));
    let running = bench.start(&["run", &plan]);
    bench.wait_for("p", "attempt_started", "a");
    bench.run(&["fail", "p"]).complains(3, "cancel it instead");
    running.kill();
    bench
        .run(&["fail", "q"])
        .complains(2, "there is no plan `q`");
}

#[test]
fn an_approval_that_is_not_used_in_time_expires_with_a_notice() {
    let bench = Bench::new();
    bench.configure("[policy.approval]\nexpires_after = \"1s\"\n");
    proposed(&bench);
    let digest = bench.digest("p");
    bench.run(&["approve", "p", "--digest", &digest]).ends(0);
    let mut noticed = String::new();
    wait_until("the approval to expire", || {
        noticed = bench.run(&["list"]).ends(0).err;
        noticed.contains("the approval of plan `p` expired")
    });
    assert!(noticed.contains("hint: planwright show p"), "{noticed}");
    let shown = bench.run(&["show", "p", "--json"]).ends(0).json();
    assert_eq!(
        (&shown["status"], &shown["approvals"][0]["state"]),
        (&json!("proposed"), &json!("expired"))
    );
    bench
        .run(&["run", "p"])
        .complains(3, "the approval expired at");
}

#[test]
fn archived_plans_are_kept_and_left_out_of_lists() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([echo("a", 1, &[])]));
    bench.run(&["import", &plan]).ends(0);
    bench
        .run(&["archive", "p"])
        .complains(3, "only a finished plan can be archived");
    bench.run(&["run", "p"]).ends(0);
    assert_eq!(
        bench
            .run(&["archive", "--older-than", "1h", "--json"])
            .json()["archived"],
        json!([])
    );
    assert_eq!(
        bench.run(&["archive", "p", "--json"]).ends(0).json()["archived"],
        json!(["p"])
    );
    assert_eq!(bench.run(&["list", "--json"]).json(), json!([]));
    assert_eq!(
        bench.run(&["list", "--archived", "--json"]).json()[0]["id"],
        "p"
    );
    assert!(bench.path(".plans/archive/p/plan.json").is_file());
    assert!(!bench.path(".plans/p").exists());
    bench
        .run(&["run", "p"])
        .complains(3, "the plan is archived");
    assert_eq!(
        bench.run(&["unarchive", "p", "--json"]).ends(0).json()["status"],
        "completed"
    );
    bench.run(&["unarchive", "p"]).complains(3, "not archived");
    assert!(bench.path(".plans/p/plan.json").is_file());
    assert!(!bench.path(".plans/archive/p").exists());
    bench.run(&["archive", "p", "--older-than", "1h"]).ends(2);
    bench.run(&["archive", "--older-than", "soon"]).ends(2);
    bench.run(&["verify"]).ends(0);
}

#[test]
fn the_figures_count_calls_decisions_and_what_is_missing() {
    let bench = Bench::new();
    let empty = bench.run(&["stats", "--json"]).ends(0).json();
    assert_eq!((&empty["plans"], &empty["tools"]), (&json!({}), &json!([])));
    let plan = bench.plan("good", json!([echo("a", 1, &[]), echo("b", 2, &["a"])]));
    bench.run(&["run", &plan]).ends(0);
    bench.run(&["run", &plan]).ends(0);
    let plan = bench.plan("sent", json!([effect("a", &[])]));
    bench.run(&["import", &plan]).ends(0);
    bench
        .run(&["reject", "sent", "--version", "1", "--reason", "no"])
        .ends(0);
    let plan = bench.plan(
        "wanting",
        json!([{ "id": "a", "tool": "telepathy", "args": {} }]),
    );
    bench.run(&["import", &plan]).ends(0);

    let stats = bench.run(&["stats", "--json"]).ends(0).json();
    assert_eq!(
        stats["plans"],
        json!({ "completed": 1, "rejected": 1, "proposed": 1 })
    );
    assert_eq!(stats["runs"], json!({ "completed": 2 }));
    let tool = &stats["tools"][0];
    assert_eq!(
        (&tool["tool"], &tool["calls"], &tool["failureRate"]),
        (&json!("demo.echo"), &json!(4), &json!(0.0))
    );
    assert!(tool["p95Ms"].as_u64() >= tool["p50Ms"].as_u64());
    assert_eq!(
        (
            &stats["approvals"]["rejections"],
            &stats["approvals"]["byPolicy"]
        ),
        (&json!(1), &json!(2))
    );
    assert_eq!(
        stats["prediction"]["runs"], 1,
        "the second run was predicted from the first"
    );
    assert_eq!(
        stats["toolGaps"],
        json!([{ "tool": "telepathy", "plans": 1 }])
    );
    let said = bench.run(&["stats", "--since", "1h"]).ends(0).out;
    assert!(
        said.contains("demo.echo") && said.contains("telepathy"),
        "{said}"
    );
}

#[test]
fn required_tools_are_looked_for_at_approval_and_again_at_the_run() {
    let bench = Bench::new();
    let document = json!({
        "id": "p",
        "toolsRequired": ["demo.echo", "zz.nope", "aa.nope"],
        "steps": [{ "id": "a", "tool": "demo.echo", "args": { "value": 1 } }],
    });
    let plan = bench.document(document);
    bench.run(&["import", &plan]).ends(0);
    let words = "error: Required tools not available: aa.nope, zz.nope\n";
    let approved = bench.run(&["approve", "p", "--version", "1"]);
    assert!(
        approved.code != 0 && approved.err.contains(words),
        "{approved:#?}"
    );
    let run = bench.run(&["run", "p", "--yes"]);
    assert!(run.code != 0 && run.err.contains(words), "{run:#?}");
}
