//! `token`: made, listed, replaced, taken back.

use planwright_testing::workbench::Bench;
use serde_json::Value;

fn create(bench: &Bench, role: &str, kind: &str, name: &str) -> Value {
    bench
        .run(&[
            "token", "create", "--role", role, "--kind", kind, "--name", name, "--json",
        ])
        .ends(0)
        .json()
}

#[test]
fn a_token_is_shown_once_and_listed_without_itself() {
    let bench = Bench::new();
    let made = create(&bench, "approver", "person", "Ada");
    let fields: Vec<&String> = made.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["id", "token"]);
    let id = made["id"].as_str().unwrap();
    let token = made["token"].as_str().unwrap();
    assert!(id.starts_with("tok-") && id.len() == 12, "{id}");
    assert!(token.starts_with("pwt_") && token.len() == 47, "{token}");
    let listed = bench.run(&["token", "list", "--json"]).ends(0);
    assert!(!listed.out.contains(token));
    let line = &listed.json()[0];
    assert_eq!(
        (&line["id"], &line["role"], &line["valid"]),
        (&made["id"], &"approver".into(), &true.into())
    );
    assert!(
        bench
            .run(&["token", "list"])
            .ends(0)
            .out
            .contains("person Ada")
    );
}

#[test]
fn without_json_the_token_alone_is_on_stdout() {
    let bench = Bench::new();
    let said = bench
        .run(&[
            "token", "create", "--role", "viewer", "--kind", "agent", "--name", "bot",
        ])
        .ends(0);
    assert!(
        said.out.starts_with("pwt_") && said.out.lines().count() == 1,
        "{said:?}"
    );
    assert!(
        said.err.contains("agent bot") && said.err.contains("hint:"),
        "{said:?}"
    );
}

#[test]
fn no_agent_and_no_service_is_made_an_approver_and_no_agent_an_admin() {
    let bench = Bench::new();
    for (role, kind, words) in [
        ("approver", "agent", "an agent never approves"),
        ("approver", "service", "a service never approves"),
        ("admin", "agent", "an agent never administers"),
    ] {
        bench
            .run(&[
                "token", "create", "--role", role, "--kind", kind, "--name", "x",
            ])
            .complains(3, words);
    }
    create(&bench, "admin", "service", "ci");
    bench
        .run(&[
            "token", "create", "--role", "boss", "--kind", "person", "--name", "x",
        ])
        .ends(2);
}

#[test]
fn only_those_who_administer_give_and_take_access() {
    let bench = Bench::new();
    let made = create(&bench, "viewer", "person", "Ada");
    let mut command = bench.command(&[
        "token", "create", "--role", "viewer", "--kind", "person", "--name", "x",
    ]);
    let output = command.env("PLANWRIGHT_AGENT", "bot").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    bench.configure("[roles]\nadmin = ['person:nobody here']\n");
    bench
        .run(&[
            "token", "create", "--role", "viewer", "--kind", "person", "--name", "x",
        ])
        .complains(3, "may not give or take access");
    bench
        .run(&["token", "revoke", made["id"].as_str().unwrap()])
        .complains(3, "may not give or take access");
}

#[test]
fn a_token_is_replaced_and_taken_back() {
    let bench = Bench::new();
    let said = bench.run(&[
        "token",
        "create",
        "--role",
        "author",
        "--kind",
        "agent",
        "--name",
        "bot",
        "--expires",
        "30d",
        "--json",
    ]);
    let made = said.ends(0).json();
    assert!(made["expiresAt"].is_string());
    let id = made["id"].as_str().unwrap();
    let fresh = bench.run(&["token", "rotate", id, "--json"]).ends(0).json();
    assert_ne!(fresh["token"], made["token"]);
    bench
        .run(&["token", "rotate", id])
        .complains(3, "no longer valid");
    let fresh_id = fresh["id"].as_str().unwrap();
    assert_eq!(
        bench
            .run(&["token", "revoke", fresh_id, "--json"])
            .ends(0)
            .json()["revoked"],
        true
    );
    assert_eq!(
        bench
            .run(&["token", "revoke", fresh_id, "--json"])
            .ends(0)
            .json()["revoked"],
        false
    );
    let valid: Vec<bool> = bench
        .run(&["token", "list", "--json"])
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token["valid"] == true)
        .collect();
    assert_eq!(valid, [false, false]);
    bench
        .run(&["token", "revoke", "tok-nothing"])
        .complains(2, "there is no token");
}

#[test]
fn a_person_is_invited_by_a_link_and_signed_out_by_name() {
    let bench = Bench::new();
    let invite = |role: &str, name: &str, more: &[&str]| {
        let mut command = vec!["token", "invite", "--role", role, "--name", name];
        command.extend(more);
        bench.run(&command)
    };
    let said = invite("approver", "Bob", &["--url", "https://plans.example.org/"]).ends(0);
    assert!(
        said.out
            .starts_with("https://plans.example.org/#sign-in=pwi_"),
        "{said:?}"
    );
    assert!(
        said.err.contains("Bob") && said.err.contains("once"),
        "{said:?}"
    );
    let made = invite("viewer", "Eve", &["--json"]).ends(0).json();
    assert!(made["expiresAt"].is_string(), "{made}");
    invite("viewer", "Eve", &["--expires", "31d"]).ends(2);
    let ended = bench.run(&["token", "sign-out", "Bob", "--json"]).ends(0);
    assert_eq!(ended.json()["ended"], 1);
    let ended = bench.run(&["token", "sign-out", "Bob"]).ends(0);
    assert!(ended.out.contains("0 ended"), "{ended:?}");
}
