//! Which orders to a run a principal may give under the roles and rules of a policy.

use crate::plans::plan;
use crate::run_world::{History, person};
use planwright_core::digest::Digest;
use planwright_core::policy::{Permission, Policy, PolicyDocument, RolesTable};
use planwright_core::principal::{Assurance, Principal, PrincipalKind};
use planwright_core::run::{Command, Refusal, Resolution, Shown};
use serde_json::{Value, json};
use std::sync::Arc;

fn rule() -> Principal {
    Principal {
        kind: PrincipalKind::Policy,
        name: "policy".into(),
    }
}

fn is(name: &str) -> Principal {
    Principal::person(name)
}

/// One person for each role.
fn roles() -> Policy {
    let holder = |name: &str| Some(vec![format!("person:{name}")]);
    let roles = RolesTable {
        viewer: holder("vera"),
        author: holder("anna"),
        operator: holder("otto"),
        approver: holder("paul"),
        admin: holder("root"),
    };
    let document = PolicyDocument {
        roles: Some(roles),
        ..PolicyDocument::default()
    };
    Policy::read(&document).unwrap()
}

fn policy(value: Value) -> Policy {
    let document: PolicyDocument = serde_json::from_value(value).unwrap();
    Policy::read(&document).unwrap()
}

/// What `b` does comes after `a`; an executor works on `c`.
fn history() -> History {
    let document = json!({"id": "p", "steps": [
        {"id": "a", "tool": "w.write", "approvalRequired": true},
        {"id": "b", "tool": "w.other", "dependsOn": ["a"]},
        {"id": "c", "agent": {"instruction": "do it"}},
    ]});
    History::begin(&Arc::new(plan(document)), true)
}

fn approve(step: &str, by: Principal, assurance: Assurance) -> Command {
    Command::Approve {
        step: step.into(),
        by,
        assurance,
        shown: Shown::Version(1),
    }
}

fn leave_out(step: &str, by: Principal) -> Command {
    Command::LeaveOut {
        step: step.into(),
        by,
        reason: String::new(),
    }
}

#[test]
fn orders_are_for_those_whose_role_includes_them() {
    let history = history();
    let policy = roles();
    type Order = fn(Principal) -> Command;
    let orders: [(Permission, Order); 8] = [
        (Permission::Approve, |by| {
            approve("a", by, Assurance::Terminal)
        }),
        (Permission::Approve, |by| Command::Deny {
            step: "a".into(),
            by,
            shown: Shown::Version(1),
            reason: "no".into(),
        }),
        (Permission::Approve, |by| Command::Undo {
            run: "run_undo".parse().unwrap(),
            digest: Digest::ZERO,
            by,
            assurance: Assurance::Terminal,
        }),
        (Permission::Resolve, |by| Command::Resolve {
            step: "a".into(),
            by,
            resolution: Resolution::DidNotHappen,
        }),
        (Permission::Run, |by| Command::Pause { by }),
        (Permission::Run, |by| Command::Resume { by }),
        (Permission::Cancel, |by| Command::Cancel { by }),
        (Permission::Cancel, |by| Command::GiveUp {
            by,
            reason: "enough".into(),
        }),
    ];
    let may = |action: Permission| -> &[&str] {
        match action {
            Permission::Approve => &["paul", "root"],
            Permission::Cancel => &["anna", "otto", "paul", "root"],
            _ => &["otto", "root"],
        }
    };
    for (action, order) in orders {
        for name in ["vera", "anna", "otto", "paul", "root"] {
            let given = policy.permit_command(&history.run, &order(is(name)));
            let expected = match (may(action).contains(&name), action) {
                (true, _) => Ok(()),
                (false, Permission::Approve) => Err(Refusal::MayNotApprove(is(name))),
                (false, _) => Err(Refusal::MayNot {
                    by: is(name),
                    action,
                }),
            };
            assert_eq!(given, expected, "{name}: {:?}", order(is(name)));
        }
    }
}

#[test]
fn what_the_engine_does_by_itself_needs_no_role() {
    let history = history();
    for command in [Command::Tick, Command::Settle, Command::Recover] {
        assert_eq!(roles().permit_command(&history.run, &command), Ok(()));
    }
}

#[test]
fn a_rule_may_hold_a_run_and_never_lets_it_go_on() {
    let history = history();
    let pause = Command::Pause { by: rule() };
    let resume = Command::Resume { by: rule() };
    assert_eq!(roles().permit_command(&history.run, &pause), Ok(()));
    assert!(roles().permit_command(&history.run, &resume).is_err());
}

#[test]
fn who_may_not_approve_leaves_out_only_what_no_other_step_waits_for() {
    let history = history();
    let given =
        |step: &str, name: &str| roles().permit_command(&history.run, &leave_out(step, is(name)));
    assert_eq!(given("b", "otto"), Ok(()));
    let refused = Refusal::MayNotSkip {
        step: "a".into(),
        by: is("otto"),
    };
    assert_eq!(given("a", "otto"), Err(refused));
    assert_eq!(given("a", "root"), Ok(()));
    assert!(given("b", "paul").is_err(), "approving is not settling");
}

#[test]
fn tools_that_need_a_passkey_are_approved_with_one() {
    let history = history();
    let policy = policy(json!({"rules": [
        {"tool": "w.write", "then": "ask", "assurance": "passkey"},
    ]}));
    let given = |step: &str, assurance| {
        policy.permit_command(&history.run, &approve(step, person(), assurance))
    };
    let refused = Err(Refusal::Passkey("w.write".into()));
    assert_eq!(given("a", Assurance::Token), refused);
    assert_eq!(given("a", Assurance::Passkey), Ok(()));
    assert_eq!(given("b", Assurance::Token), Ok(()), "another tool");
    assert_eq!(
        given("c", Assurance::Token),
        refused,
        "an executor may call every tool of the plan"
    );
    assert_eq!(given("z", Assurance::Token), Ok(()), "the run refuses it");
    let tools = |names: &[&str]| policy.check_approver_of_tools(Assurance::Token, names);
    assert_eq!(tools(&["w.other"]), Ok(()));
    assert_eq!(tools(&["w.other", "w.write"]), refused);
}

#[test]
fn what_is_agreed_to_in_person_is_not_agreed_to_through_a_host() {
    let history = history();
    let policy = policy(json!({"approval": {"in_person": ["w.write"]}}));
    let given = |step: &str, assurance| {
        policy.permit_command(&history.run, &approve(step, person(), assurance))
    };
    let refused = Err(Refusal::InPerson("w.write".into()));
    assert_eq!(given("a", Assurance::HostMediated), refused);
    assert_eq!(given("a", Assurance::Terminal), Ok(()));
    assert_eq!(given("b", Assurance::HostMediated), Ok(()));
}
