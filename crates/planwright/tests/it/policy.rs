//! The operator's policy, seen from the command line.

use planwright_testing::steps::{call, echo, effect, step};
use planwright_testing::terminal::Terminal;
use planwright_testing::workbench::{Bench, Said};
use serde_json::{Value, json};
use std::time::Duration;

/// `a` returns a text, and `b` appends it to `effects.txt`.
fn late(bench: &Bench, text: &str) -> String {
    let mut write = call(
        "b",
        "local.append_file",
        json!({ "path": "effects.txt", "content": "${a}" }),
        &[],
    );
    write["critical"] = json!(false);
    bench.plan("p", json!([echo("a", text, &[]), write]))
}

fn policy(bench: &Bench, text: &str) {
    bench.configure(text);
}

fn as_agent(bench: &Bench, args: &[&str]) -> Said {
    let output = bench
        .command(args)
        .env("PLANWRIGHT_AGENT", "bot")
        .output()
        .unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn kinds(bench: &Bench, kind: &str) -> Vec<Value> {
    let said = bench.run(&["log", "p", "--plan", "--json"]).ends(0);
    let entries = said
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries.filter(|entry| entry["kind"] == kind).collect()
}

#[test]
fn what_policy_denies_is_neither_approved_nor_run_and_the_rule_is_named() {
    let bench = Bench::new();
    policy(
        &bench,
        "[[policy.rules]]\nname = 'no writing'\ntool = 'Append-File'\nthen = 'deny'\nreason = 'not here'\n",
    );
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["import", &plan]).ends(0);
    let digest = bench.digest("p");
    for args in [
        &["approve", "p", "--digest", &digest][..],
        &["run", "p", "--yes"],
        &["run", "p"],
    ] {
        let said = bench
            .run(args)
            .complains(3, "Policy denied: step `a`: no writing: not here");
        assert!(
            said.err.contains(
                "hint: To see which rule decided about each step: planwright policy explain"
            ),
            "{said:#?}"
        );
    }
    assert!(kinds(&bench, "plan_approved").is_empty());
    let explained = bench
        .run(&["policy", "explain", "p", "--json"])
        .ends(0)
        .json();
    assert_eq!(explained["verdict"], "deny");
    assert_eq!(explained["steps"][0]["rule"], "no writing");
    assert_eq!(explained["steps"][0]["verdict"], "deny");
    let shown = bench.run(&["show", "p"]).ends(0);
    assert!(
        shown
            .out
            .contains("policy says deny (no writing: not here)"),
        "{shown:#?}"
    );
}

#[test]
fn what_policy_denies_only_once_it_is_known_is_not_called() {
    let bench = Bench::new();
    policy(
        &bench,
        "[[policy.rules]]\nname = 'no evil'\ntool = 'append_file'\nif = \"args.content.contains('evil')\"\n\
         then = 'deny'\nreason = 'it is evil'\n",
    );
    let plan = late(&bench, "evil");
    let explained = bench
        .run(&["policy", "explain", &plan, "--json"])
        .ends(0)
        .json();
    assert_eq!(explained["steps"][1]["undecided"], json!(["no evil"]));
    assert_eq!(explained["steps"][1]["late"], json!(["content"]));
    assert_eq!(explained["steps"][1]["lateChoice"], "any");
    let result = bench.run(&["run", &plan, "--yes", "--json"]).json();
    assert_eq!(step(&result, "b")["error"]["code"], "policy_denied");
    assert_eq!(
        step(&result, "b")["error"]["message"],
        "Policy denied: no evil: it is evil"
    );
    assert!(!bench.path("effects.txt").exists());
    let plan = late(&bench, "good");
    bench.run(&["run", &plan, "--yes"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "good");
}

#[test]
fn rules_that_only_observe_or_warn_decide_nothing_and_are_reported() {
    let bench = Bench::new();
    policy(
        &bench,
        "[[policy.rules]]\nname = 'watched'\ntool = '*'\nthen = 'deny'\nmode = 'observe'\n\
         [[policy.rules]]\nname = 'soon'\ntool = 'append_file'\nthen = 'deny'\nmode = 'warn'\nreason = 'soon forbidden'\n",
    );
    let plan = bench.plan("p", json!([effect("a", &[])]));
    let explained = bench.run(&["policy", "explain", &plan]).ends(0);
    assert!(
        explained.out.contains("observe: rule watched would deny"),
        "{explained:#?}"
    );
    assert!(
        explained
            .out
            .contains("warn: rule soon would deny: soon forbidden"),
        "{explained:#?}"
    );
    let said = bench.run(&["run", &plan, "--yes"]).ends(0);
    assert!(
        said.err
            .contains("warning: step a: soon would deny: soon forbidden"),
        "{said:#?}"
    );
    assert_eq!(bench.read("effects.txt"), "a\n");
}

#[test]
fn what_policy_allows_runs_by_itself_and_is_recorded_as_policys() {
    let bench = Bench::new();
    policy(
        &bench,
        "[[policy.rules]]\nname = 'notes'\ntool = 'local.append_file'\nif = \"args.path == 'effects.txt'\"\nthen = 'allow'\n",
    );
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["run", &plan]).ends(0);
    assert_eq!(bench.read("effects.txt"), "a\n");
    let approved = &kinds(&bench, "plan_approved")[0];
    assert_eq!(approved["by"]["kind"], "policy");
    // A look-alike of the path, or another one, is not what was allowed.
    let other = bench.plan(
        "q",
        json!([call(
            "a",
            "append_file",
            json!({ "path": "Effects.txt", "content": "x" }),
            &[]
        )]),
    );
    bench
        .run(&["run", &other])
        .complains(3, "the plan is not approved");
}

#[test]
fn a_rule_that_cannot_be_decided_does_not_let_anything_through() {
    let bench = Bench::new();
    policy(
        &bench,
        "[[policy.rules]]\nname = 'broken'\ntool = 'append_file'\nif = \"args.nothing.size() > 1\"\nthen = 'deny'\n",
    );
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench
        .run(&["run", &plan, "--yes"])
        .complains(3, "its `if` cannot be decided");
    policy(
        &bench,
        "[[policy.rules]]\ntool = 'append_file'\nif = \"args.nothing.size() > 1\"\nthen = 'allow'\n",
    );
    bench
        .run(&["run", &plan])
        .complains(3, "the plan is not approved");
    assert!(!bench.path("effects.txt").exists());
}

#[test]
fn a_guarded_tool_needs_a_person_however_harmless_it_says_it_is() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([echo("a", 1, &[])]));
    bench.run(&["run", &plan]).ends(0);
    policy(
        &bench,
        "[policy]\nguarded_tools = ['demo.Echo']\n[[policy.rules]]\ntool = 'demo.echo'\nthen = 'allow'\n",
    );
    bench
        .run(&["run", "p"])
        .complains(3, "the plan is not approved");
    bench.run(&["run", "p", "--yes"]).ends(0);
}

#[test]
fn a_call_that_is_asked_about_again_is_shown_in_full_and_approved_by_its_own_digest() {
    let bench = Bench::new();
    let plan = late(&bench, "pay \u{202e}eve\u{200b}");
    let said = bench
        .run(&["run", &plan, "--yes", "--late", "b=ask"])
        .ends(4);
    assert!(
        said.out.contains("step b wants to call local.append_file"),
        "{said:#?}"
    );
    assert!(
        said.out.contains("pay \\u{202e}eve\\u{200b}"),
        "what hides is spelt out: {said:#?}"
    );
    let result = bench.run(&["resume", "p", "--json"]).ends(4).json();
    let asked = &step(&result, "b")["call"];
    assert_eq!(asked["args"]["content"], "pay \u{202e}eve\u{200b}");
    let digest = asked["digest"].as_str().unwrap();
    assert!(
        said.err
            .contains(&format!("planwright approve p --step b --digest {digest}")),
        "{said:#?}"
    );
    let of_plan = result["digest"].as_str().unwrap();
    bench
        .run(&["approve", "p", "--step", "b", "--digest", of_plan])
        .complains(3, "since it was shown");
    bench
        .run(&["approve", "p", "--step", "b", "--version", "1"])
        .complains(3, "since it was shown");
    let said = bench
        .run(&["approve", "p", "--step", "b"])
        .complains(2, "name what you reviewed");
    assert!(said.err.contains(digest), "{said:#?}");
    assert!(!bench.path("effects.txt").exists());
    bench
        .run(&["approve", "p", "--step", "b", "--digest", digest])
        .ends(0);
    bench.run(&["resume", "p"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "pay \u{202e}eve\u{200b}");
}

#[test]
fn a_call_that_was_shown_can_be_rejected() {
    let bench = Bench::new();
    let plan = late(&bench, "x");
    let result = bench
        .run(&["run", &plan, "--yes", "--late", "ask", "--json"])
        .ends(4)
        .json();
    let digest = step(&result, "b")["call"]["digest"].as_str().unwrap();
    bench
        .run(&[
            "reject", "p", "--step", "b", "--digest", digest, "--reason", "no",
        ])
        .ends(0);
    bench
        .run(&["approve", "p", "--step", "b", "--digest", digest])
        .complains(3, "");
    assert!(!bench.path("effects.txt").exists());
}

#[test]
fn a_constraint_of_the_approver_is_checked_on_what_is_sent() {
    for (text, written) in [("good", "good"), ("bad", "")] {
        let bench = Bench::new();
        let plan = late(&bench, text);
        bench.run(&["import", &plan]).ends(0);
        let digest = bench.digest("p");
        bench
            .run(&[
                "approve",
                "p",
                "--digest",
                &digest,
                "--late",
                "b=args.content == 'good'",
            ])
            .ends(0);
        let shown = bench.run(&["show", "p"]).ends(0);
        assert!(
            shown.out.contains("b: args.content == 'good'"),
            "{shown:#?}"
        );
        let result = bench.run(&["run", "p", "--json"]).json();
        assert_eq!(bench.read("effects.txt"), written);
        if written.is_empty() {
            assert_eq!(step(&result, "b")["error"]["code"], "constraint_violated");
        }
    }
}

#[test]
fn a_choice_that_means_nothing_is_refused() {
    let bench = Bench::new();
    let plan = late(&bench, "x");
    for (flag, words) in [
        ("a=any", "nothing to choose"),
        ("nobody=ask", "no step `nobody`"),
        ("b=((", "not a CEL predicate"),
        ("b=other == 1", "no argument of step `b`"),
        ("what?", "is not STEP=any"),
    ] {
        bench
            .run(&["run", &plan, "--yes", "--late", flag])
            .complains(2, words);
    }
    assert!(!bench.path("effects.txt").exists());
}

#[test]
fn every_call_of_a_loop_is_shown_and_approved_by_itself() {
    let bench = Bench::new();
    let mut each = call(
        "b",
        "append_file",
        json!({ "path": "effects.txt", "content": "${item}" }),
        &[],
    );
    each["forEach"] = json!("${a}");
    let plan = bench.plan("p", json!([echo("a", json!(["x", "y"]), &[]), each]));
    let said = bench
        .run(&["run", &plan, "--yes", "--late", "b=ask"])
        .ends(4);
    let digests: Vec<&str> = said
        .out
        .lines()
        .filter_map(|line| line.trim().strip_prefix("call digest "))
        .collect();
    assert_eq!(digests.len(), 2, "{said:#?}");
    bench
        .run(&["approve", "p", "--step", "b[0]", "--digest", digests[1]])
        .complains(3, "since it was shown");
    bench
        .run(&["approve", "p", "--step", "b[0]", "--digest", digests[0]])
        .ends(0);
    bench.run(&["resume", "p"]).ends(4);
    assert_eq!(bench.read("effects.txt"), "x");
    bench
        .run(&["approve", "p", "--step", "b[1]", "--digest", digests[1]])
        .ends(0);
    bench.run(&["resume", "p"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "xy");
}

#[test]
fn policy_can_want_every_late_call_to_be_seen() {
    let bench = Bench::new();
    policy(&bench, "[policy]\nlate_bound = 'ask'\n");
    let plan = late(&bench, "x");
    bench.run(&["run", &plan, "--yes"]).ends(4);
    assert!(!bench.path("effects.txt").exists());
}

#[test]
fn a_choice_that_an_older_approval_does_not_have_is_refused_and_not_dropped() {
    let bench = Bench::new();
    let plan = late(&bench, "x");
    bench.run(&["import", &plan]).ends(0);
    let digest = bench.digest("p");
    bench
        .run(&["approve", "p", "--digest", &digest, "--late", "b=any"])
        .ends(0);
    let narrow = ["run", "p", "--late", "b=ask", "--yes"];
    let said = bench
        .run(&narrow)
        .complains(3, "already approved without late b=ask");
    assert!(
        said.err.contains("planwright approve p --revoke"),
        "{said:#?}"
    );
    assert!(!bench.path("effects.txt").exists());
    // The hint does what it says.
    bench.run(&["approve", "p", "--revoke"]).ends(0);
    bench.run(&narrow).ends(4);
    assert!(!bench.path("effects.txt").exists());
    // The choice that was approved is no contradiction.
    bench.run(&["cancel", "p"]).ends(0);
    bench
        .run(&["approve", "p", "--digest", &digest, "--late", "b=any"])
        .ends(0);
    bench.run(&["run", "p", "--late", "b=any"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "x");
}

#[test]
fn a_late_call_that_cannot_be_repeated_is_seen_before_it_is_made() {
    let bench = Bench::new();
    let plan = late(&bench, "x");
    let mut terminal = Terminal::start(&bench, &["run", &plan]);
    terminal.wait_for("step b: you are asked again once its values are known");
    terminal.wait_for("Approve and run?");
    terminal.types("y\n");
    terminal.wait_for("step b wants to call local.append_file");
    terminal.wait_for("Approve step b? [y/N]");
    assert!(!bench.path("effects.txt").exists());
    terminal.types("y\n");
    assert_eq!(terminal.ends(), Some(0));
    assert_eq!(bench.read("effects.txt"), "x");
}

#[test]
fn an_agent_proposes_reads_runs_what_is_approved_and_never_approves() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    assert_eq!(as_agent(&bench, &["import", &plan]).code, 0);
    assert_eq!(
        kinds(&bench, "plan_proposed")[0]["by"],
        json!({ "kind": "agent", "name": "bot" })
    );
    let digest = bench.digest("p");
    as_agent(&bench, &["approve", "p", "--digest", &digest]).complains(3, "may not approve");
    as_agent(&bench, &["run", "p", "--yes"]).complains(3, "may not approve");
    as_agent(
        &bench,
        &["reject", "p", "--digest", &digest, "--reason", "x"],
    )
    .complains(3, "may not approve");
    as_agent(&bench, &["run", "p"]).complains(3, "not approved");
    assert!(kinds(&bench, "plan_approved").is_empty() && !bench.path("effects.txt").exists());
    bench.run(&["approve", "p", "--digest", &digest]).ends(0);
    assert_eq!(as_agent(&bench, &["run", "p"]).code, 0);
    assert_eq!(bench.read("effects.txt"), "a\n");
}

#[test]
fn an_agent_neither_approves_steps_nor_says_what_happened() {
    let bench = Bench::new();
    let mut gate = effect("gate", &[]);
    gate["approvalRequired"] = json!(true);
    let plan = bench.plan("p", json!([gate]));
    let result = bench.run(&["run", &plan, "--yes", "--json"]).ends(4).json();
    let digest = result["digest"].as_str().unwrap();
    as_agent(
        &bench,
        &["approve", "p", "--step", "gate", "--digest", digest],
    )
    .complains(3, "may not approve");
    as_agent(&bench, &["resolve", "p", "gate", "--happened"]).complains(3, "may not");
    assert_eq!(as_agent(&bench, &["cancel", "p"]).code, 0);
    assert_eq!(bench.status("p"), "cancelled");
}

#[test]
fn only_those_who_are_named_approve() {
    let bench = Bench::new();
    policy(&bench, "[roles]\napprover = ['person:somebody-else']\n");
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench
        .run(&["run", &plan, "--yes"])
        .complains(3, "may not approve");
    assert!(!bench.path("effects.txt").exists());
}

#[test]
fn whoever_proposed_does_not_approve_and_one_of_two_is_not_enough() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    policy(&bench, "[policy.approval]\nfour_eyes = true\n");
    bench
        .run(&["run", &plan, "--yes"])
        .complains(3, "has to approve it");
    policy(&bench, "[policy.approval]\nrequired = 2\n");
    let digest = bench.digest("p");
    let said = bench.run(&["approve", "p", "--digest", &digest]).ends(0);
    assert!(said.out.contains("1 of 2"), "{said:#?}");
    assert!(bench.run(&["show", "p"]).out.contains("approvals: 1 of 2"));
    bench
        .run(&["approve", "p", "--digest", &digest])
        .complains(3, "approved by you already");
    bench.run(&["run", "p"]).complains(3, "1 of 2 people");
    assert!(!bench.path("effects.txt").exists());
}

#[test]
fn an_approval_that_was_not_used_in_time_has_expired() {
    let bench = Bench::new();
    policy(&bench, "[policy.approval]\nexpires_after = '1s'\n");
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["import", &plan]).ends(0);
    bench
        .run(&["approve", "p", "--digest", &bench.digest("p")])
        .ends(0);
    std::thread::sleep(Duration::from_millis(1_050));
    bench.run(&["run", "p"]).complains(3, "expired");
    assert!(bench.run(&["show", "p"]).out.contains("expired at"));
    assert_eq!(
        bench.run(&["show", "p", "--json"]).json()["approvals"][0]["state"],
        "expired"
    );
    assert!(!bench.path("effects.txt").exists());
    bench.run(&["run", "p", "--yes"]).ends(0);
}

#[test]
fn an_approval_of_a_step_that_nobody_gave_in_time_fails_the_step() {
    let bench = Bench::new();
    policy(&bench, "[policy.approval]\nstep_expires_after = '1s'\n");
    let mut gate = effect("gate", &[]);
    gate["approvalRequired"] = json!(true);
    let plan = bench.plan("p", json!([gate]));
    let result = bench.run(&["run", &plan, "--yes", "--json"]).ends(4).json();
    std::thread::sleep(Duration::from_millis(1_050));
    let digest = result["digest"].as_str().unwrap();
    bench
        .run(&["approve", "p", "--step", "gate", "--digest", digest])
        .complains(3, "has expired");
    let result = bench.run(&["resume", "p", "--json"]).ends(1).json();
    assert_eq!(step(&result, "gate")["error"]["code"], "approval_expired");
    assert!(!bench.path("effects.txt").exists());
}

#[test]
fn another_policy_voids_an_approval_and_stops_a_run_from_going_on() {
    let bench = Bench::new();
    let mut gate = effect("gate", &[]);
    gate["approvalRequired"] = json!(true);
    let plan = bench.plan("p", json!([gate]));
    bench.run(&["import", &plan]).ends(0);
    let digest = bench.digest("p");
    bench.run(&["approve", "p", "--digest", &digest]).ends(0);
    policy(&bench, "[policy]\nsame_call = 9\n");
    assert_ne!(bench.digest("p"), digest);
    bench.run(&["run", "p"]).complains(3, "the policy changed");
    policy(&bench, "");
    bench.run(&["run", "p"]).ends(4);
    bench
        .run(&["approve", "p", "--step", "gate", "--digest", &digest])
        .ends(0);
    policy(&bench, "[policy]\nsame_call = 9\n");
    bench
        .run(&["resume", "p"])
        .complains(3, "the policy changed");
    assert!(!bench.path("effects.txt").exists());
    policy(&bench, "");
    bench.run(&["resume", "p"]).ends(0);
}

#[test]
fn the_operators_caps_cannot_be_switched_off() {
    let bench = Bench::new();
    policy(&bench, "[policy.caps]\n'append-file' = 1\n");
    let plan = bench.plan("p", json!([effect("a", &[]), effect("b", &["a"])]));
    let result = bench
        .run(&["run", &plan, "--yes", "--no-guards", "--json"])
        .ends(1)
        .json();
    assert_eq!(step(&result, "b")["error"]["code"], "guard_blocked");
    assert_eq!(bench.read("effects.txt"), "a\n");
}

#[test]
fn a_policy_is_checked_and_every_mistake_is_named() {
    let bench = Bench::new();
    let said = bench.run(&["policy", "check"]).ends(0);
    assert!(
        said.out.contains("0 rules, policy version default-1"),
        "{said:#?}"
    );
    bench.write(
        "good.toml",
        "[[policy.rules]]\ntool = 'x.*'\nthen = 'deny'\n",
    );
    let checked = bench
        .run(&["policy", "check", "good.toml", "--json"])
        .ends(0)
        .json();
    assert_eq!(
        (&checked["valid"], &checked["rules"]),
        (&json!(true), &json!(1))
    );
    bench.write(
        "planwright.toml",
        "[[policy.rules]]\nif = 'args.x =='\nthen = 'deny'\n[[policy.rules]]\ntool = ''\nthen = 'ask'\n",
    );
    let said = bench.run(&["policy", "check"]).complains(2, "rule 1");
    assert!(
        said.err.contains("rule 2: the tool pattern is empty"),
        "{said:#?}"
    );
    bench.run(&["list"]).complains(2, "rule 1");
    bench.write(
        "planwright.toml",
        "[[policy.rules]]\ntool = 'x'\nthen = 'forbid'\n",
    );
    bench.run(&["policy", "check"]).complains(2, "forbid");
    bench
        .run(&["policy", "check", "missing.toml"])
        .complains(2, "cannot read");
}

#[test]
fn a_path_rule_is_judged_where_the_path_leads() {
    let bench = Bench::new();
    policy(
        &bench,
        "[[policy.rules]]\nname = 'notes'\ntool = 'local.write_file'\nif = \"args.path.startsWith('notes/')\"\nthen = 'allow'\n",
    );
    let write = |id: &str, path: &str| {
        let step = call(
            "w",
            "local.write_file",
            json!({"path": path, "content": "x"}),
            &[],
        );
        bench.plan(id, json!([step]))
    };
    bench.run(&["run", &write("inside", "notes/a.txt")]).ends(0);
    for (id, path) in [
        ("out", "notes/../Makefile"),
        ("far", "notes/a/../../Makefile"),
    ] {
        bench
            .run(&["run", &write(id, path)])
            .complains(3, "not approved");
    }
    assert!(!bench.path("Makefile").exists());
    // A constraint of the plan holds for where the path leads as well.
    let mut step = call(
        "w",
        "local.write_file",
        json!({"path": "notes/../Makefile", "content": "x"}),
        &[],
    );
    step["constraints"] = json!(["args.path.startsWith('notes/')"]);
    let plan = bench.plan("bound", json!([step]));
    bench.run(&["run", &plan, "--yes"]).ends(1);
    assert!(!bench.path("Makefile").exists());
}

#[test]
fn an_edit_by_an_agent_does_not_make_it_a_second_pair_of_eyes() {
    let bench = Bench::new();
    policy(&bench, "[policy.approval]\nfour_eyes = true\n");
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["import", &plan]).ends(0);
    assert_eq!(
        as_agent(&bench, &["edit", "p", "--set", "title=Reworded"]).code,
        0
    );
    let digest = bench.digest("p");
    bench
        .run(&["approve", "p", "--digest", &digest])
        .complains(3, "another person has to approve it");
}

#[test]
fn a_version_alone_does_not_approve_the_plans_it_runs() {
    let bench = Bench::new();
    let child = bench.plan("child", json!([effect("inner", &[])]));
    let parent = bench.plan("p", json!([{ "id": "sub", "plan": { "id": "child" } }]));
    bench.run(&["import", &child, &parent]).ends(0);
    let by_version = || {
        bench
            .run(&["approve", "p", "--version", "1"])
            .complains(3, "approve by the digest that was shown");
    };
    // Swapped after it was shown; the version of the plan that runs it stays.
    bench.plan("child", json!([effect("other", &[])]));
    bench.run(&["import", "child.json"]).ends(0);
    by_version();
    // And swapped back, after the other one was shown.
    let looked_at = bench.digest("p");
    bench.plan("child", json!([effect("inner", &[])]));
    bench.run(&["import", "child.json"]).ends(0);
    by_version();
    bench
        .run(&["approve", "p", "--digest", &looked_at])
        .complains(3, &looked_at);
    bench
        .run(&["approve", "p", "--digest", &bench.digest("p")])
        .ends(0);
    bench.run(&["run", "p"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "inner\n");
}

#[test]
fn resume_does_not_go_on_wider_than_its_flags_say() {
    let bench = Bench::new();
    let mut write = call(
        "b",
        "local.append_file",
        json!({ "path": "effects.txt", "content": "${a}" }),
        &[],
    );
    write["approvalRequired"] = json!(true);
    bench.plan("p", json!([echo("a", "x", &[]), write]));
    bench
        .run(&["run", "p.json", "--yes", "--late", "b=any"])
        .ends(4);
    let run = bench.log("p")[0]["run"].clone();
    for args in [
        &["resume", "p", "--late", "b=ask"][..],
        &["resume", "p", "--late", "ask"],
    ] {
        bench
            .run(args)
            .complains(3, "already approved without late b=ask");
    }
    assert!(!bench.path("effects.txt").exists(), "{run}");
    bench.run(&["resume", "p", "--late", "b=any"]).ends(4);
}

#[test]
fn what_was_rejected_three_times_is_not_brought_back_by_a_program() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["import", &plan]).ends(0);
    for round in 1..=3 {
        let digest = bench.digest("p");
        bench
            .run(&["reject", "p", "--digest", &digest, "--reason", "no"])
            .ends(0);
        let path = format!("steps.a.args.path=e{round}.txt");
        let said = as_agent(&bench, &["edit", "p", "--set", &path]);
        if round < 3 {
            assert_eq!(said.code, 0, "{said:#?}");
        } else {
            said.complains(3, "a person has to change it or approve it");
        }
    }
    bench
        .run(&["edit", "p", "--set", "steps.a.args.path=mine.txt"])
        .ends(0);
    let details = bench.run(&["show", "p", "--json"]).ends(0).json();
    assert_eq!(details["status"], "proposed");
}
