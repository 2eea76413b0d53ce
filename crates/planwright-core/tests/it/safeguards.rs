//! What narrows a plan is never dropped: steps that are written anew keep it, a version that has
//! less of it says so, and only a person may agree to that.

use crate::plans::{document, plan};
use planwright_core::adjust::{Adjustable, Adjustment, StepProgress};
use planwright_core::digest::Digest;
use planwright_core::journal::{Cause, Entry};
use planwright_core::plan::{Bounds, Document, LossKind, PlanDiff, SafeguardLoss, Step};
use planwright_core::planning::{merge_remaining, merge_steps, merge_whole};
use planwright_core::policy::{Policy, PolicyDocument};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::{
    Offer, Review, ReviewCommand, ReviewEvent, ReviewRefusal, ReviewStage, Revision,
};
use planwright_core::run::Shown;
use planwright_core::time::Timestamp;
use planwright_testing::dice::Dice;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A step with everything that can narrow one.
fn guarded() -> Value {
    json!({
        "id": "deploy", "tool": "files.write", "args": {"path": "a"}, "dependsOn": ["check"],
        "approvalRequired": true,
        "constraints": ["args.path.startsWith('a')"],
        "undo": {"tool": "files.delete", "args": {"path": "a"}},
        "retry": {"max": 1, "backoff": 5.0},
        "timeoutSeconds": 20.0,
        "expect": "result == 'done'",
        "when": "check == 'ok'",
        "capability": "deploy", "capabilityLabel": "Deploys",
        "labels": ["production"],
    })
}

fn guarded_plan() -> Document {
    document(json!({
        "id": "p", "goal": "g",
        "limits": {"budget": {"calls": 10, "perTool": {"files.write": 2}}, "maxConcurrency": 1},
        "toolsRequired": ["files.write", "files.delete", "web.ping"],
        "steps": [
            {"id": "check", "tool": "web.ping", "expect": "result == 'ok'"},
            guarded(),
            {"id": "tell", "tool": "web.ping", "dependsOn": ["deploy"]},
        ],
    }))
}

fn find<'a>(document: &'a Document, id: &str) -> &'a Step {
    let mut steps = document.steps.iter();
    steps
        .find(|step| step.id.as_ref().is_some_and(|found| found.as_str() == id))
        .unwrap()
}

/// The fields that the step shares with the guarded one, besides its call.
fn narrowing(step: &Step) -> Map<String, Value> {
    let mut fields = match serde_json::to_value(step).unwrap() {
        Value::Object(fields) => fields,
        other => panic!("{other}"),
    };
    for words in ["id", "title", "tool", "args", "dependsOn"] {
        fields.remove(words);
    }
    fields
}

fn step(value: Value) -> Step {
    serde_json::from_value(value).unwrap()
}

fn bare_answer() -> Document {
    document(json!({"title": "T", "steps": [
        {"id": "check", "tool": "web.ping"},
        {"id": "deploy", "title": "Anew", "tool": "web.ping", "args": {"path": "b"}},
    ]}))
}

#[test]
fn steps_that_a_planner_writes_again_keep_what_narrowed_them() {
    let old = guarded_plan();
    let chosen = vec!["deploy".parse().unwrap()];
    let of_steps = merge_steps(&old, &chosen, bare_answer()).unwrap();
    let whole = merge_whole(&old, bare_answer());
    let rest = merge_remaining(&old, &BTreeSet::new(), bare_answer());
    for merged in [of_steps, whole, rest] {
        let anew = find(&merged, "deploy");
        assert_eq!(anew.tool.as_deref(), Some("web.ping"));
        assert_eq!(narrowing(anew), narrowing(&step(guarded())));
        assert!(find(&merged, "check").expect.is_some());
        assert_eq!(merged.limits, old.limits);
        assert_eq!(merged.tools_required, old.tools_required);
    }
}

#[test]
fn a_step_that_is_written_again_still_waits_for_the_check_before_it() {
    let old = guarded_plan();
    let chosen = vec!["deploy".parse().unwrap()];
    let merged = merge_steps(&old, &chosen, bare_answer()).unwrap();
    assert_eq!(
        find(&merged, "deploy").depends_on,
        ["check".parse().unwrap()]
    );
    assert_eq!(PlanDiff::between(&old, &merged).safeguards, []);
}

fn adjusted(adjustment: Value) -> Document {
    let adjustment: Adjustment = serde_json::from_value(adjustment).unwrap();
    let state: Adjustable = guarded_plan()
        .steps
        .iter()
        .map(|step| (step.id.clone().unwrap(), StepProgress::Open))
        .collect();
    guarded_plan()
        .apply_adjustments(&[adjustment], &state, &Bounds::default())
        .unwrap()
}

#[test]
fn replacing_or_modifying_a_step_keeps_what_narrowed_it() {
    for adjustment in [
        json!({"type": "replace", "step": "deploy", "new": {"tool": "web.ping", "args": {"path": "b"}}}),
        json!({"type": "modify", "step": "deploy", "args": {"path": "b"}}),
    ] {
        let after = adjusted(adjustment.clone());
        assert_eq!(
            narrowing(find(&after, "deploy")),
            narrowing(&step(guarded())),
            "{adjustment}"
        );
        assert_eq!(PlanDiff::between(&guarded_plan(), &after).safeguards, []);
    }
}

#[test]
fn where_both_name_something_the_stricter_holds() {
    let after = adjusted(json!({"type": "replace", "step": "deploy", "new": {
        "tool": "files.write", "args": {"path": "b"},
        "approvalRequired": false, "optional": true, "critical": false,
        "constraints": ["args.path.size() < 9"], "labels": ["quick"],
        "retry": {"max": 9}, "timeoutSeconds": 5.0, "expect": "true", "when": "true",
        "undo": {"tool": "web.ping"}, "capability": "read",
    }}));
    let now = find(&after, "deploy");
    assert!(now.approval_required && !now.optional && now.is_critical());
    assert_eq!(now.timeout_seconds, Some(5.0), "the shorter time");
    assert_eq!(now.retry.as_ref().unwrap().max, 1, "fewer attempts");
    assert_eq!(now.constraints.len(), 2, "all constraints");
    assert_eq!(now.labels, ["production", "quick"]);
    // Neither is stricter: what people have seen stays.
    assert_eq!(now.expect.as_deref(), Some("result == 'done'"));
    assert_eq!(now.when.as_deref(), Some("check == 'ok'"));
    assert_eq!(now.capability.as_deref(), Some("deploy"));
    assert_eq!(now.undo.as_ref().unwrap().tool, "files.delete");
    assert_eq!(PlanDiff::between(&guarded_plan(), &after).safeguards, []);
}

#[test]
fn another_call_may_say_itself_how_it_is_taken_back_and_that_is_named() {
    let after = adjusted(json!({"type": "replace", "step": "deploy",
        "new": {"tool": "web.ping", "undo": {"tool": "web.ping"}}}));
    let lost = PlanDiff::between(&guarded_plan(), &after).safeguards;
    let [SafeguardLoss { path, kind, .. }] = &lost[..] else {
        panic!("{lost:?}")
    };
    assert_eq!((path.as_str(), *kind), ("undo", LossKind::Replaced));
}

/// Changes the plan as JSON.
fn changed(change: impl FnOnce(&mut Value)) -> Document {
    let mut plan = serde_json::to_value(guarded_plan()).unwrap();
    change(&mut plan);
    document(plan)
}

fn losses(after: &Document) -> Vec<String> {
    let diff = PlanDiff::between(&guarded_plan(), after);
    diff.safeguards.iter().map(ToString::to_string).collect()
}

#[test]
fn every_safeguard_that_is_gone_or_weaker_is_named() {
    let gone = |field: &'static str| {
        changed(|plan| drop(plan["steps"][1].as_object_mut().unwrap().remove(field)))
    };
    for (field, named) in [
        ("approvalRequired", "step deploy: approvalRequired removed"),
        ("constraints", "step deploy: constraints removed"),
        ("undo", "step deploy: undo removed"),
        ("retry", "step deploy: retry removed"),
        ("timeoutSeconds", "step deploy: timeoutSeconds removed"),
        ("expect", "step deploy: expect removed"),
        ("capability", "step deploy: capability removed"),
        ("labels", "step deploy: labels removed"),
    ] {
        assert_eq!(losses(&gone(field)), [named], "{field}");
    }
    let set = |pointer: &'static str, value: Value| {
        changed(|plan| {
            let (place, name) = pointer.rsplit_once('/').unwrap();
            plan.pointer_mut(place).unwrap()[name] = value;
        })
    };
    for (pointer, value, named) in [
        (
            "/steps/1/timeoutSeconds",
            json!(60.0),
            "step deploy: timeoutSeconds weakened",
        ),
        (
            "/steps/1/retry/max",
            json!(7),
            "step deploy: retry.max weakened",
        ),
        (
            "/steps/1/expect",
            json!("true"),
            "step deploy: expect replaced",
        ),
        ("/steps/1/when", json!("true"), "step deploy: when replaced"),
        (
            "/steps/1/capability",
            json!("read"),
            "step deploy: capability replaced",
        ),
        (
            "/steps/1/critical",
            json!(false),
            "step deploy: critical weakened",
        ),
        (
            "/steps/1/optional",
            json!(true),
            "step deploy: optional weakened",
        ),
        (
            "/limits/maxConcurrency",
            json!(9),
            "limits.maxConcurrency weakened",
        ),
        (
            "/limits/onFailure",
            json!("continue"),
            "limits.onFailure weakened",
        ),
        (
            "/limits/budget/calls",
            json!(99),
            "limits.budget.calls weakened",
        ),
        (
            "/limits/budget/perTool",
            json!({}),
            "limits.budget.perTool.files.write removed",
        ),
        ("/toolsRequired", json!([]), "toolsRequired removed"),
        (
            "/toolsRequired",
            json!(["files.write", "files.delete", "web.ping", "x.y"]),
            "toolsRequired weakened",
        ),
        ("/steps/0/skip", json!(true), "step check: expect removed"),
    ] {
        assert_eq!(losses(&set(pointer, value)), [named], "{pointer}");
    }
}

#[test]
fn what_is_as_strict_or_stricter_is_no_loss() {
    let stricter = changed(|plan| {
        plan["steps"][1]["timeoutSeconds"] = json!(1.0);
        plan["steps"][1]["retry"]["max"] = json!(0);
        plan["steps"][1]["constraints"] =
            json!(["args.path.size() < 9", "args.path.startsWith('a')"]);
        plan["steps"][1]["args"]["path"] = json!("other");
        plan["steps"][2]["approvalRequired"] = json!(true);
        plan["limits"]["budget"]["calls"] = json!(3);
        plan["toolsRequired"] = json!(["web.ping", "files.delete", "files.write"]);
        plan["title"] = json!("other words");
    });
    assert_eq!(losses(&stricter), [""; 0]);
}

#[test]
fn a_step_that_is_gone_takes_its_gates_with_it_and_that_is_named() {
    let without = changed(|plan| {
        plan["steps"].as_array_mut().unwrap().remove(1);
        plan["steps"][1]["dependsOn"] = json!(["check"]);
    });
    assert_eq!(
        losses(&without),
        [
            "step deploy: approvalRequired removed",
            "step deploy: expect removed",
            "step deploy: constraints removed",
        ]
    );
}

#[test]
fn not_waiting_for_a_gate_any_more_is_named_also_behind_other_steps() {
    // `tell` waits for `check` and `deploy` through `deploy`.
    let loose = changed(|plan| {
        plan["steps"][2]["dependsOn"] = json!([]);
    });
    assert_eq!(
        losses(&loose),
        [
            "step tell: dependsOn removed",
            "step tell: dependsOn removed"
        ]
    );
    // By a reference it still waits.
    let still = changed(|plan| {
        plan["steps"][2]["dependsOn"] = json!([]);
        plan["steps"][2]["args"] = json!({"of": "${deploy}"});
    });
    assert_eq!(losses(&still), [""; 0]);
}

#[test]
fn the_text_and_the_json_of_a_diff_name_it() {
    let after = changed(|plan| {
        plan["steps"][1]
            .as_object_mut()
            .unwrap()
            .remove("approvalRequired");
    });
    let diff = PlanDiff::between(&guarded_plan(), &after);
    assert!(
        diff.to_string()
            .contains("! safeguard: step deploy: approvalRequired removed (was true)\n"),
        "{diff}"
    );
    let wire = serde_json::to_value(&diff).unwrap();
    assert_eq!(
        wire["safeguards"],
        json!([{"step": "deploy", "path": "approvalRequired", "kind": "removed", "before": true}])
    );
    assert_eq!(serde_json::from_value::<PlanDiff>(wire).unwrap(), diff);
    let same = PlanDiff::between(&after, &after);
    assert_eq!(serde_json::to_value(&same).unwrap().get("safeguards"), None);
}

/// A random step under an id, with any of the things that narrow.
fn random_step(dice: &mut Dice, id: &str) -> Value {
    let mut step = json!({"id": id, "tool": dice.pick(&["files.write", "web.ping"])});
    let options = [
        ("approvalRequired", json!(true)),
        ("skip", json!(true)),
        ("optional", json!(true)),
        ("critical", dice.pick(&[json!(true), json!(false)])),
        (
            "constraints",
            dice.pick(&[
                json!(["args.a == 1"]),
                json!(["args.a == 1", "args.b == 2"]),
            ]),
        ),
        ("labels", dice.pick(&[json!(["x"]), json!(["y"])])),
        ("expect", dice.pick(&[json!("result == 1"), json!("true")])),
        ("when", dice.pick(&[json!("true"), json!("1 < 2")])),
        ("timeoutSeconds", dice.pick(&[json!(1.0), json!(9.0)])),
        (
            "retry",
            dice.pick(&[json!({"max": 0}), json!({"max": 2}), json!({"max": 5})]),
        ),
        (
            "undo",
            dice.pick(&[json!({"tool": "files.delete"}), json!({"tool": "web.ping"})]),
        ),
        ("capability", dice.pick(&[json!("deploy"), json!("read")])),
    ];
    for (name, value) in options {
        if dice.chance(35) {
            step[name] = value;
        }
    }
    step
}

#[test]
fn whatever_a_step_is_replaced_by_nothing_of_it_is_lost() {
    let mut dice = Dice::new(7);
    let mut kept_something = 0;
    for _ in 0..3_000 {
        let old = document(json!({"id": "p", "steps": [random_step(&mut dice, "a")]}));
        let mut new = random_step(&mut dice, "a");
        // Leaving the step out takes its gates with it, which is named too.
        new.as_object_mut().unwrap().remove("skip");
        // Another call may say itself how it is taken back, which is named; see above.
        if new["tool"] != json!(old.steps[0].tool) {
            new.as_object_mut().unwrap().remove("undo");
        }
        let answer = document(json!({"title": "T", "steps": [new.clone()]}));
        let bare = SafeguardLoss::between(&old, &answer);
        let merged = merge_steps(&old, &["a".parse().unwrap()], answer).unwrap();
        assert_eq!(SafeguardLoss::between(&old, &merged), [], "{old:?} {new}");
        kept_something += usize::from(!bare.is_empty());
    }
    assert!(
        kept_something > 2_000,
        "only {kept_something} would have lost something"
    );
}

/// A plan under a policy that allows everything.
struct Life {
    review: Review,
    policy: Arc<Policy>,
}

fn at(seq: u64) -> Timestamp {
    Timestamp::from_millis(i64::try_from(seq).unwrap())
}

fn digest_of(document: &Document) -> Digest {
    let plan = plan(serde_json::to_value(document).unwrap());
    plan.digest(&crate::plans::catalog(), "default-1")
}

impl Life {
    fn begin(document: &Document) -> Self {
        let allows = json!({"rules": [{"tool": "*", "then": "allow"}], "adjust": "auto"});
        let policy: PolicyDocument = serde_json::from_value(allows).unwrap();
        let by = Principal::agent("planner");
        let first = Review::propose_first(Arc::new(document.clone()), digest_of(document), by);
        let entry = entry(1, first);
        Self {
            review: Review::open("p".parse().unwrap(), &entry).unwrap(),
            policy: Arc::new(Policy::read(&policy).unwrap()),
        }
    }

    fn give(&mut self, command: &ReviewCommand) -> Result<(), ReviewRefusal> {
        for event in self.review.decide(command, at(self.review.seq() + 1))? {
            let entry = entry(self.review.seq() + 1, event);
            self.review.apply(&entry).unwrap();
        }
        Ok(())
    }

    fn edit(&mut self, document: &Document, by: Principal) {
        let revision = Revision {
            based_on: self.review.current().number,
            document: Arc::new(document.clone()),
            digest: digest_of(document),
            by,
            reason: None,
            restored_from: None,
            planning: None,
        };
        self.give(&ReviewCommand::Edit(Box::new(revision))).unwrap();
    }

    fn approve(&mut self, by: Principal) -> Result<(), ReviewRefusal> {
        let digest = self.review.current().digest;
        let offer = Offer {
            policy: Arc::clone(&self.policy),
            ..Offer::default()
        };
        self.give(&ReviewCommand::Approve {
            shown: Shown::Digest(digest),
            digest,
            by,
            assurance: Assurance::Terminal,
            offer: Box::new(offer),
        })
    }

    fn approve_by_policy(&mut self) -> Result<(), ReviewRefusal> {
        let policy = self.policy.principal();
        self.approve(policy)
    }
}

fn entry(seq: u64, event: ReviewEvent) -> Entry<ReviewEvent> {
    Entry {
        seq,
        at: at(seq),
        epoch: 0,
        cause: Cause::Command,
        event,
    }
}

/// The plan without its retries, which no rule of any policy looks at.
fn without_retries() -> Document {
    changed(|plan| drop(plan["steps"][1].as_object_mut().unwrap().remove("retry")))
}

#[test]
fn policy_does_not_agree_to_a_version_that_lost_a_safeguard_whoever_wrote_it() {
    for by in [
        Principal::agent("bot"),
        Principal::reflector(),
        Principal::person("ada"),
    ] {
        let mut life = Life::begin(&guarded_plan());
        life.approve_by_policy().unwrap();
        life.edit(&without_retries(), by.clone());
        let refusal = life.approve_by_policy().unwrap_err();
        assert!(
            matches!(refusal, ReviewRefusal::SafeguardLost(_)),
            "{by}: {refusal}"
        );
        assert_eq!(
            refusal.to_string(),
            "1 safeguard of version 1 is gone or weaker (step deploy: retry removed), so only a person may approve"
        );
        assert_eq!(life.review.stage(), Some(ReviewStage::Proposed));
        life.approve(Principal::person("eve")).unwrap();
        assert_eq!(life.review.stage(), Some(ReviewStage::Approved));
    }
}

#[test]
fn a_loss_is_not_hidden_by_the_versions_after_it_until_a_person_agrees() {
    let mut life = Life::begin(&guarded_plan());
    life.edit(&without_retries(), Principal::agent("bot"));
    let mut reworded = without_retries();
    reworded.title = Some("the same in other words".to_owned());
    reworded.steps[1].args.insert("path".into(), json!("ab"));
    life.edit(&reworded, Principal::agent("bot"));
    assert!(life.approve_by_policy().is_err());
    life.approve(Principal::person("ada")).unwrap();
    // What ada agreed to is what counts from here on.
    let mut next = reworded.clone();
    next.steps[1].args.insert("path".into(), json!("abc"));
    life.edit(&next, Principal::agent("bot"));
    life.approve_by_policy().unwrap();
}

#[test]
fn a_version_that_brings_the_safeguard_back_needs_no_person() {
    let mut life = Life::begin(&guarded_plan());
    life.edit(&without_retries(), Principal::agent("bot"));
    life.edit(&guarded_plan(), Principal::agent("bot"));
    life.approve_by_policy().unwrap();
}
