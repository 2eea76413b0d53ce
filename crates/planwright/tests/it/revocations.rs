//! `approve --revoke`: an approval is taken back before it is used.

use planwright_testing::steps::effect;
use planwright_testing::workbench::{Bench, said};
use serde_json::json;

fn approved(bench: &Bench) -> String {
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["import", &plan]).ends(0);
    let digest = bench.digest("p");
    bench.run(&["approve", "p", "--digest", &digest]).ends(0);
    digest
}

#[test]
fn an_approval_that_was_taken_back_starts_nothing_until_it_is_given_again() {
    let bench = Bench::new();
    let digest = approved(&bench);
    let done = bench
        .run(&["approve", "p", "--revoke", "--reason", "the wrong file"])
        .ends(0);
    assert!(
        done.out.contains("proposed") && done.err.contains("hint: planwright approve p"),
        "{done:?}"
    );
    bench
        .run(&["run", "p"])
        .complains(3, "revoked the approval before it was used");
    assert_eq!(
        (
            bench.read("effects.txt").as_str(),
            bench.status("p").as_str()
        ),
        ("", "proposed")
    );
    let shown = bench.run(&["show", "p", "--json"]).json();
    assert_eq!(shown["approvals"][0]["state"], "revoked");
    assert!(
        bench.read(".plans/p/plan.md").contains("proposed"),
        "the files follow"
    );
    bench
        .run(&["approve", "p", "--revoke"])
        .complains(3, "no unused approval of this plan");
    bench.run(&["approve", "p", "--digest", &digest]).ends(0);
    bench.run(&["run", "p"]).ends(0);
    bench
        .run(&["approve", "p", "--revoke"])
        .complains(3, "no unused approval");
    let told = bench.run(&["watch", "p", "--json"]);
    assert!(
        told.out.contains("plan.approval_revoked") && told.out.contains("the wrong file"),
        "{told:?}"
    );
}

#[test]
fn others_take_back_only_as_admins_and_agents_never() {
    let bench = Bench::new();
    approved(&bench);
    let mut agent = bench.command(&["approve", "p", "--revoke"]);
    said(agent.env("PLANWRIGHT_AGENT", "bot").output().unwrap())
        .complains(3, "agent bot has no unused approval");
    let me = bench.run(&["show", "p", "--json"]).json()["approvals"][0]["by"]["name"].clone();
    let me = me.as_str().unwrap();
    let mut agent = bench.command(&["approve", "p", "--revoke", "--of", me]);
    said(agent.env("PLANWRIGHT_AGENT", "bot").output().unwrap())
        .complains(3, "agent bot may not revoke");
    bench
        .run(&["approve", "p", "--revoke", "--of", "bob"])
        .complains(3, "person bob has no unused approval");
    let done = bench
        .run(&["approve", "p", "--revoke", "--of", me, "--json"])
        .ends(0)
        .json();
    assert_eq!(
        (&done["status"], &done["revoked"]["name"]),
        (&json!("proposed"), &json!(me))
    );
}

#[test]
fn taking_back_and_giving_are_not_said_in_one_breath() {
    let bench = Bench::new();
    approved(&bench);
    for flags in [
        &["--version", "1"][..],
        &["--step", "a"],
        &["--var", "x=1"],
        &["--late", "any"],
    ] {
        let args = [&["approve", "p", "--revoke"], flags].concat();
        bench.run(&args).ends(2);
    }
    bench
        .run(&["approve", "p", "--version", "1", "--reason", "x"])
        .ends(2);
    assert_eq!(bench.status("p"), "approved");
    bench
        .run(&["approve", "nosuch", "--revoke"])
        .complains(2, "no plan `nosuch`");
}
