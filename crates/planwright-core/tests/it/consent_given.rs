//! What approvals come to when a run spends them: who agreed, to which tools, and with which choices.

use crate::run_golden::live;
use planwright_core::digest::Digest;
use planwright_core::plan::Document;
use planwright_core::policy::{LateChoice, Policy, PolicyDocument};
use planwright_core::principal::{Assurance, Principal, PrincipalKind};
use planwright_core::review::{Approval, Offer, Pin, Review, ReviewCommand};
use planwright_core::run::{Consent, Shown};
use planwright_core::time::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const LATER: Timestamp = Timestamp::from_millis(1_700_001_000_000);

fn ada() -> Principal {
    Principal::person("ada")
}

fn bob() -> Principal {
    Principal::person("bob")
}

fn rule() -> Principal {
    Principal {
        kind: PrincipalKind::Policy,
        name: "policy".into(),
    }
}

fn policy(value: Value) -> Arc<Policy> {
    let document: PolicyDocument = serde_json::from_value(value).unwrap();
    Arc::new(Policy::read(&document).unwrap())
}

fn digest() -> Digest {
    Digest::of_bytes(b"shown")
}

fn pins() -> BTreeMap<String, Pin> {
    let pin = Pin {
        digest: Digest::of_bytes(b"t.a"),
        definition: None,
    };
    [("t.a".to_owned(), pin)].into()
}

fn approve(by: Principal, policy: &Arc<Policy>, late: &[(&str, LateChoice)]) -> ReviewCommand {
    let late = late
        .iter()
        .map(|(step, choice)| ((*step).to_owned(), choice.clone()));
    let offer = Offer {
        policy: Arc::clone(policy),
        pins: pins(),
        late: late.collect(),
        ..Offer::default()
    };
    ReviewCommand::Approve {
        shown: Shown::Digest(digest()),
        digest: digest(),
        by,
        assurance: Assurance::Terminal,
        offer: Box::new(offer),
    }
}

fn approved(commands: &[ReviewCommand]) -> Review {
    let document: Document = serde_json::from_value(json!({"id": "plan-golden", "steps": [
        {"id": "a", "tool": "t.a"}, {"id": "b", "tool": "t.a"},
    ]}))
    .unwrap();
    let first = Review::propose_first(Arc::new(document), digest(), Principal::agent("planner"));
    live(&first, commands).1
}

fn consent(review: &Review, policy: &Policy) -> Consent {
    let spent: Vec<&Approval> = review.usable_approvals(&digest(), LATER).unwrap();
    Consent::of(&spent, review.current(), policy)
}

#[test]
fn a_run_carries_the_consent_of_all_who_had_to_agree() {
    let two = policy(json!({"approval": {"required": 2, "four_eyes": true,
        "step_expires_after": "5s"}, "same_call": 4}));
    let review = approved(&[approve(ada(), &two, &[]), approve(bob(), &two, &[])]);
    let consent = consent(&review, &two);
    assert_eq!(consent.approved_by.len(), 2);
    assert!(consent.is_a_persons());
    assert_eq!(consent.pins, pins());
    assert_eq!(consent.proposed_by, Some(Principal::agent("planner")));
    assert!(consent.step_expires_after.is_some());
    assert_eq!(consent.same_call, two.same_call);
    assert!(two.same_call.is_some());
    assert!(consent.late.is_empty() && consent.agreed.is_empty());
}

#[test]
fn the_author_is_named_only_where_four_eyes_are_wanted() {
    let plain = Arc::default();
    let review = approved(&[approve(ada(), &plain, &[])]);
    assert_eq!(consent(&review, &plain).proposed_by, None);
}

#[test]
fn where_too_few_people_agreed_the_consent_is_that_of_policy_alone() {
    let two = policy(json!({"approval": {"required": 2}}));
    let review = approved(&[approve(ada(), &two, &[]), approve(rule(), &two, &[])]);
    let given = consent(&review, &two);
    assert_eq!(given.approved_by, [rule()]);
    assert!(!given.is_a_persons());
    let one = Arc::default();
    let review = approved(&[approve(rule(), &one, &[])]);
    assert_eq!(consent(&review, &one).approved_by, [rule()]);
}

#[test]
fn the_choices_of_all_approvers_hold_each_once() {
    let two = policy(json!({"approval": {"required": 2}}));
    let any = ("a", LateChoice::Any);
    let ask = ("a", LateChoice::Ask);
    let review = approved(&[
        approve(ada(), &two, &[any.clone(), ("b", LateChoice::Ask)]),
        approve(bob(), &two, &[ask, ("b", LateChoice::Ask)]),
    ]);
    let given = consent(&review, &two);
    assert_eq!(given.late["a"].len(), 2);
    assert_eq!(given.late["b"], [LateChoice::Ask], "they chose the same");
    let chosen = |step: &str, choice: LateChoice| BTreeMap::from([(step.to_owned(), choice)]);
    let agreed = chosen("a", LateChoice::Any);
    assert_eq!(given.find_choice_not_agreed(&agreed), None);
    let wider = chosen("b", LateChoice::Any);
    let found = given.find_choice_not_agreed(&wider);
    assert_eq!(found.map(|(step, _)| step.as_str()), Some("b"));
    let unknown = chosen("c", LateChoice::Ask);
    assert!(given.find_choice_not_agreed(&unknown).is_some());
}

#[test]
fn who_was_shown_every_call_agrees_to_those_tools() {
    let policy = policy(json!({"same_call": 4}));
    let consent = Consent::to_shown_calls(ada(), pins(), &policy);
    assert_eq!(consent.approved_by, [ada()]);
    assert_eq!(consent.pins, pins());
    assert_eq!(
        (consent.same_call, policy.same_call.is_some()),
        (policy.same_call, true)
    );
    assert!(consent.is_a_persons_for("a"));
}

#[test]
fn a_sub_plan_runs_on_the_same_consent_with_choices_of_its_own() {
    let consent = Consent {
        approved_by: vec![rule()],
        pins: pins(),
        late: [("a".to_owned(), vec![LateChoice::Any])].into(),
        agreed: ["a".to_owned()].into(),
        same_call: Some(4),
        ..Consent::default()
    };
    assert!(consent.is_a_persons_for("a"), "agreed to before");
    assert!(!consent.is_a_persons_for("b"));
    let own = BTreeMap::from([("x".to_owned(), LateChoice::Ask)]);
    let child = consent.for_child(own);
    assert_eq!(child.approved_by, [rule()]);
    assert_eq!((child.pins, child.same_call), (pins(), Some(4)));
    assert_eq!(child.late, [("x".to_owned(), vec![LateChoice::Ask])].into());
    assert!(child.agreed.is_empty(), "its steps are others");
}
