//! What a plan's review keeps: versions, runs that were written off, and what they bring into a
//! store.

use crate::run_golden::live;
use planwright_core::artifact::ArtifactRef;
use planwright_core::digest::Digest;
use planwright_core::error::{ClassifiedError as _, Hint};
use planwright_core::id::RunId;
use planwright_core::journal::{Journaled as _, decode};
use planwright_core::model::{Cost, ModelRole, ModelUse, TokenUsage};
use planwright_core::plan::Document;
use planwright_core::policy::{Policy, PolicyDocument, RolesTable};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::{
    CommentCommand, Offer, PlanningRecord, RequestedRun, Review, ReviewCommand, ReviewEvent,
    ReviewRefusal, ReviewStage, Revision, Revocation, RunRequest,
};
use planwright_core::run::{Corrupt, Shown};
use planwright_core::status::PlanStatus;
use planwright_core::time::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const LATER: Timestamp = Timestamp::from_millis(1_700_001_000_000);

fn ada() -> Principal {
    Principal::person("ada")
}

fn planner() -> Principal {
    Principal::agent("planner")
}

fn digest(doing: u32) -> Digest {
    Digest::of_bytes(&doing.to_le_bytes())
}

fn document(doing: u32) -> Document {
    crate::plans::document(
        json!({"id": "plan-golden", "title": format!("Take {doing}"),
        "steps": [{"id": "a", "tool": "t.a"}]}),
    )
}

fn propose_as(document: Document, doing: u32) -> ReviewCommand {
    ReviewCommand::Propose {
        document: Arc::new(document),
        digest: digest(doing),
        by: planner(),
    }
}

fn propose(doing: u32) -> ReviewCommand {
    propose_as(document(doing), doing)
}

fn policy(approval: Value) -> Arc<Policy> {
    let document: PolicyDocument = serde_json::from_value(json!({"approval": approval})).unwrap();
    Arc::new(Policy::read(&document).unwrap())
}

fn approve_under(doing: u32, by: Principal, offer: Offer) -> ReviewCommand {
    ReviewCommand::Approve {
        shown: Shown::Digest(digest(doing)),
        digest: digest(doing),
        by,
        assurance: Assurance::Terminal,
        offer: Box::new(offer),
    }
}

fn approve(doing: u32) -> ReviewCommand {
    approve_under(doing, ada(), Offer::default())
}

fn run(number: u32) -> RunId {
    format!("run_{number}").parse().unwrap()
}

fn open(number: u32, doing: u32) -> ReviewCommand {
    ReviewCommand::OpenRun {
        run: run(number),
        digest: digest(doing),
    }
}

fn write_off(number: u32, by: Principal) -> ReviewCommand {
    ReviewCommand::WriteOffRun {
        run: run(number),
        by,
        loss: "entry 7 is damaged".into(),
    }
}

fn comment(number: u32) -> ReviewCommand {
    ReviewCommand::Comment(CommentCommand::Add {
        comment: format!("comment_{number}").parse().unwrap(),
        on: None,
        reply_to: None,
        by: ada(),
        text: "why?".into(),
    })
}

/// The life of a plan that begins with what is called 1.
fn lived(commands: &[ReviewCommand]) -> Review {
    let first = Review::propose_first(Arc::new(document(1)), digest(1), planner());
    live(&first, commands).1
}

#[test]
fn a_run_that_was_written_off_is_told_apart_from_the_others() {
    let twice = policy(json!({"uses": 2, "expires_after": "1d"}));
    let offer = Offer {
        policy: twice,
        ..Offer::default()
    };
    let review = lived(&[
        approve_under(1, ada(), offer),
        open(1, 1),
        open(2, 1),
        write_off(2, ada()),
    ]);
    let left: Vec<&RunId> = review.runs().iter().map(|opened| &opened.run).collect();
    assert_eq!(left, [&run(1)]);
    let [lost] = review.written_off() else {
        panic!("{:?}", review.written_off());
    };
    assert_eq!((&lost.opened.run, &lost.by), (&run(2), &ada()));
    assert_eq!(lost.loss, "entry 7 is damaged");
    assert!(review.is_written_off(&run(2)));
    assert!(!review.is_written_off(&run(1)));
    assert!(
        review.approvals()[0].spent_by.contains(&run(2)),
        "what it was allowed stays used"
    );
}

#[test]
fn only_a_person_accepts_a_loss_and_only_that_of_a_run_of_the_plan() {
    let review = lived(&[approve(1), open(1, 1)]);
    let by_agent = review.decide(&write_off(1, planner()), LATER);
    assert!(matches!(by_agent, Err(ReviewRefusal::Decision(_))));
    let unknown = review.decide(&write_off(9, ada()), LATER);
    assert!(matches!(unknown, Err(ReviewRefusal::NoSuchRun(run)) if run.as_str() == "run_9"));
    let again = lived(&[approve(1), open(1, 1), write_off(1, ada())]);
    let again = again.decide(&write_off(1, ada()), LATER).unwrap();
    assert_eq!(again, [], "it is written off");
}

#[test]
fn comments_change_neither_the_plan_nor_where_it_stands() {
    let review = lived(&[approve(1), comment(1), comment(2)]);
    assert_eq!((review.seq(), review.settled_seq()), (4, 2));
    let review = lived(&[comment(1), propose(2)]);
    assert_eq!((review.seq(), review.settled_seq()), (3, 3));
}

#[test]
fn every_version_is_kept_with_its_place_in_the_journal() {
    let review = lived(&[comment(1), propose(2), propose(3)]);
    let kept: Vec<(u32, u64, Option<&str>)> = review
        .versions()
        .iter()
        .map(|version| (version.number, version.seq, version.title.as_deref()))
        .collect();
    assert_eq!(
        kept,
        [
            (1, 1, Some("Take 1")),
            (2, 3, Some("Take 2")),
            (3, 4, Some("Take 3"))
        ]
    );
    assert_eq!(review.version(2).unwrap().digest, digest(2));
    assert!(review.version(4).is_none());
}

#[test]
fn secrets_and_stored_parts_of_every_version_are_remembered() {
    let mut second = document(2);
    let token = json!("${secret.API_KEY}");
    second.steps[0].args.insert("token".into(), token);
    let part = ArtifactRef {
        digest: digest(7),
        bytes: 70,
    };
    second.context.stored.insert("notes".into(), part);
    let review = lived(&[propose_as(second, 2), propose(3)]);
    let names: Vec<&str> = review
        .secret_names()
        .iter()
        .map(|name| name.as_str())
        .collect();
    assert_eq!(names, ["API_KEY"]);
    let parts: Vec<&str> = review.stored_parts().iter().map(String::as_str).collect();
    assert_eq!(parts, ["notes"]);
    assert!(lived(&[]).stored_parts().is_empty());
}

#[test]
fn a_version_brings_only_the_parts_that_the_one_before_did_not_have() {
    let with = |parts: &[(&str, u32)]| {
        let mut document = document(1);
        for (name, bytes) in parts {
            let part = ArtifactRef {
                digest: digest(*bytes),
                bytes: u64::from(*bytes),
            };
            document.context.stored.insert((*name).to_owned(), part);
        }
        document
    };
    let before = with(&[("notes", 100)]);
    let after = with(&[("notes", 100), ("toolOutputs/a", 20), ("toolOutputs/b", 3)]);
    let event = Review::propose_first(Arc::new(after), digest(1), planner());
    assert_eq!(event.new_part_bytes(Some(&before)), 23);
    assert_eq!(event.new_part_bytes(None), 123);
    let archived = ReviewEvent::PlanArchived { by: ada() };
    assert_eq!(archived.new_part_bytes(Some(&before)), 0);
}

#[test]
fn words_and_versions_count_against_their_authors_and_decisions_do_not() {
    let proposed = Review::propose_first(Arc::new(document(1)), digest(1), planner());
    assert_eq!(proposed.brought_by(), Some(&planner()));
    let unarchived = ReviewEvent::PlanUnarchived { by: ada() };
    assert_eq!(unarchived.brought_by(), Some(&ada()));
    let archived = ReviewEvent::PlanArchived { by: ada() };
    assert_eq!(archived.brought_by(), None);
    let review = lived(&[]);
    let approved = review.decide(&approve(1), LATER).unwrap();
    assert_eq!(approved[0].brought_by(), None);
}

#[test]
fn a_version_a_run_and_a_comment_are_written_down_once() {
    let key = |review: &Review, command: &ReviewCommand| {
        review.decide(command, LATER).unwrap()[0].unique_key()
    };
    let review = lived(&[approve(1)]);
    let proposed = Review::propose_first(Arc::new(document(1)), digest(1), planner());
    assert_eq!(proposed.unique_key().as_deref(), Some("version 1"));
    assert_eq!(key(&review, &propose(2)).as_deref(), Some("version 2"));
    assert_eq!(key(&review, &open(1, 1)).as_deref(), Some("run run_1"));
    assert_ne!(key(&review, &comment(1)), key(&review, &comment(2)));
    assert_eq!(key(&lived(&[]), &approve(1)), None, "approvals are many");
}

#[test]
fn an_entry_that_cannot_follow_is_named() {
    let mut review = lived(&[]);
    let event = ReviewEvent::PlanUnarchived { by: ada() };
    let (records, _) = live(
        &Review::propose_first(Arc::new(document(1)), digest(1), planner()),
        &[comment(1)],
    );
    let mut entry = decode::<ReviewEvent>(&records[1]).unwrap();
    entry.event = event;
    let refused = review.apply(&entry).unwrap_err();
    assert_eq!(refused.hint(), Some(Hint::ListDamage));
    let Corrupt::PlanTransition { seq, event, status } = refused else {
        panic!("{refused}");
    };
    assert_eq!(
        (seq, event, status),
        (2, "plan_unarchived", PlanStatus::Proposed)
    );
}

#[test]
fn an_approval_is_good_for_as_many_runs_as_the_policy_says() {
    let terms = |uses: u32, required: u32, only_to_go_on: bool| {
        let offer = Offer {
            policy: policy(json!({"uses": uses, "required": required, "expires_after": "1d"})),
            only_to_go_on,
            ..Offer::default()
        };
        let review = lived(&[approve_under(1, ada(), offer)]);
        let terms = review.approvals()[0].terms.clone();
        (terms.uses, terms.required)
    };
    assert_eq!(terms(3, 2, false), (Some(3), Some(2)));
    assert_eq!(
        terms(1, 1, false),
        (None, None),
        "nothing out of the ordinary"
    );
    assert_eq!(terms(3, 1, true), (None, None), "only the run that goes on");
}

#[test]
fn an_approval_for_several_runs_is_used_up_by_the_last_of_them() {
    let offer = Offer {
        policy: policy(json!({"uses": 2, "expires_after": "1d"})),
        ..Offer::default()
    };
    let approved = approve_under(1, ada(), offer);
    let once = lived(&[approved.clone(), open(1, 1)]);
    assert_eq!(once.stage(), Some(ReviewStage::Approved));
    let twice = lived(&[approved, open(1, 1), open(2, 1)]);
    assert_eq!(twice.stage(), Some(ReviewStage::Proposed));
    assert!(twice.decide(&open(3, 1), LATER).is_err());
}

#[test]
fn a_reason_may_be_as_long_as_the_limit_and_no_longer() {
    let review = lived(&[]);
    let edit = |length: usize| {
        let revision = Revision {
            based_on: 1,
            document: Arc::new(document(2)),
            digest: digest(2),
            by: ada(),
            reason: Some("x".repeat(length)),
            restored_from: None,
            planning: None,
        };
        review.decide(&ReviewCommand::Edit(Box::new(revision)), LATER)
    };
    assert!(edit(16 * 1024).is_ok());
    assert!(matches!(
        edit(16 * 1024 + 1),
        Err(ReviewRefusal::ReasonTooLong(16_385))
    ));
}

fn revoke(of: Principal, by: Principal) -> ReviewCommand {
    ReviewCommand::RevokeApprovals(Box::new(Revocation {
        of,
        by,
        given: None,
        reason: None,
        policy: Arc::default(),
    }))
}

#[test]
fn a_plan_stays_approved_while_the_approvals_that_are_left_are_enough() {
    let offer = Offer {
        policy: policy(json!({"required": 2})),
        ..Offer::default()
    };
    let bob = Principal::person("bob");
    let two = [
        approve_under(1, ada(), offer.clone()),
        approve_under(1, bob.clone(), offer),
        revoke(ada(), ada()),
    ];
    assert_eq!(lived(&two).stage(), Some(ReviewStage::Proposed));

    let review = lived(&[
        approve(1),
        approve_under(2, bob, Offer::default()),
        revoke(ada(), ada()),
    ]);
    assert_eq!(
        review.stage(),
        Some(ReviewStage::Approved),
        "what the tools make of it now was agreed to by another"
    );
}

#[test]
fn a_revoked_approval_is_named_until_the_plan_changes() {
    let revoked = [approve(1), revoke(ada(), ada())];
    let refused = lived(&revoked).decide(&open(1, 1), LATER);
    assert!(matches!(refused, Err(ReviewRefusal::Revoked { of, .. }) if of == ada()));
    let mut words = document(1);
    words.title = Some("Other words".into());
    let same = [revoked[0].clone(), revoked[1].clone(), propose_as(words, 1)];
    let refused = lived(&same).decide(&open(1, 1), LATER);
    assert!(
        matches!(refused, Err(ReviewRefusal::Revoked { .. })),
        "a version that does the same"
    );
    let back = [
        revoked[0].clone(),
        revoked[1].clone(),
        propose(2),
        propose(1),
    ];
    let refused = lived(&back).decide(&open(1, 1), LATER);
    assert!(matches!(refused, Err(ReviewRefusal::NotApproved)));
}

#[test]
fn a_withdrawn_agreement_counts_as_none_for_the_safeguards() {
    let guarded = |guarded: bool, doing: u32| {
        let mut document = document(doing);
        document.steps[0].approval_required = guarded;
        propose_as(document, doing)
    };
    let agreed = lived(&[guarded(true, 2), guarded(false, 3), approve(3)]);
    assert_eq!(
        agreed.lost_safeguards(),
        None,
        "a person agreed to the loss"
    );
    let withdrawn = lived(&[
        guarded(true, 2),
        guarded(false, 3),
        approve(3),
        revoke(ada(), ada()),
    ]);
    let lost = withdrawn.lost_safeguards().unwrap();
    assert_eq!((lost.since, lost.losses.len()), (2, 1));
    let words = lost.to_string();
    assert!(words.contains("1 safeguard of version 2"), "{words}");
    assert!(!words.contains('…'), "{words}");
}

#[test]
fn of_several_lost_safeguards_the_first_is_named() {
    let guarded = |guarded: bool, doing: u32| {
        let mut document = document(doing);
        let mut second = document.steps[0].clone();
        second.id = Some("b".parse().unwrap());
        document.steps.push(second);
        for step in &mut document.steps {
            step.approval_required = guarded;
        }
        propose_as(document, doing)
    };
    let review = lived(&[guarded(true, 2), guarded(false, 3)]);
    let lost = review.lost_safeguards().unwrap();
    assert_eq!((lost.since, lost.losses.len()), (2, 2));
    let words = lost.to_string();
    assert!(words.contains("2 safeguards of version 2"), "{words}");
    assert!(words.contains('…'), "{words}");
}

#[test]
fn safeguards_of_the_last_eight_versions_are_compared_and_older_ones_taken_for_lost() {
    let guarded = |doing: u32| {
        let mut document = document(doing);
        document.steps[0].approval_required = true;
        propose_as(document, doing)
    };
    let versions = |last: u32| -> Review {
        let commands: Vec<ReviewCommand> = (2..=last).map(guarded).collect();
        let mut first = document(1);
        first.steps[0].approval_required = true;
        let first = Review::propose_first(Arc::new(first), digest(1), planner());
        live(&first, &commands).1
    };
    assert_eq!(versions(9).lost_safeguards(), None);
    assert_eq!(versions(10).lost_safeguards().unwrap().since, 1);
    assert_eq!(versions(12).lost_safeguards().unwrap().since, 3);
}

#[test]
fn planning_costs_what_all_its_rounds_cost() {
    let used = |input: u64, cost: Option<u64>| ModelUse {
        role: ModelRole::Planner,
        model: "some/model".into(),
        usage: TokenUsage {
            input,
            output: 1,
            cached: 0,
            estimated: false,
        },
        cost: cost.map(Cost),
    };
    let record = PlanningRecord {
        used: vec![used(10, Some(3)), used(20, None), used(5, Some(4))],
        ..PlanningRecord::default()
    };
    assert_eq!(record.usage().total(), 38);
    assert_eq!(record.cost(), Some(Cost(7)));
    let unknown = PlanningRecord {
        used: vec![used(10, None)],
        ..PlanningRecord::default()
    };
    assert_eq!(unknown.cost(), None);
    assert!(PlanningRecord::fallback().fallback);
    assert_eq!(PlanningRecord::fallback().usage().total(), 0);
}

#[test]
fn refusals_say_what_to_do_next_where_something_can_be_done() {
    let draft = ReviewRefusal::Draft;
    assert_eq!(draft.hint(), Some(Hint::Propose));
    let archived = ReviewRefusal::Archived;
    assert_eq!(archived.hint(), Some(Hint::Unarchive));
    assert_eq!(ReviewRefusal::Deleted.hint(), None);
}

fn write_as(doing: u32, by: Principal) -> ReviewCommand {
    ReviewCommand::Propose {
        document: Arc::new(document(doing)),
        digest: digest(doing),
        by,
    }
}

/// Whether these may approve the last version where four eyes are wanted.
fn may_approve(doing: u32, commands: &[ReviewCommand], by: &Principal) -> bool {
    let first = Review::propose_first(Arc::new(document(1)), digest(1), ada());
    let review = live(&first, commands).1;
    let offer = Offer {
        policy: policy(json!({"four_eyes": true})),
        ..Offer::default()
    };
    match review.decide(&approve_under(doing, by.clone(), offer), LATER) {
        Ok(_) => true,
        Err(ReviewRefusal::FourEyes(who)) => {
            assert_eq!(who, *by);
            false
        }
        Err(refusal) => panic!("{refusal}"),
    }
}

#[test]
fn where_four_eyes_are_wanted_no_author_approves_their_own_plan() {
    let bob = Principal::person("bob");
    assert!(!may_approve(1, &[], &ada()));
    assert!(may_approve(1, &[], &bob));
    let edited = [write_as(2, planner())];
    assert!(
        !may_approve(2, &edited, &ada()),
        "an edit by another does not make it theirs alone"
    );
    assert!(may_approve(2, &edited, &bob));
}

#[test]
fn an_author_of_what_was_approved_and_run_may_approve_what_others_made_of_it() {
    let bob = || Principal::person("bob");
    let agreed = approve_under(1, bob(), Offer::default());
    let ran = [agreed.clone(), open(1, 1), write_as(2, planner())];
    assert!(may_approve(2, &ran, &ada()));
    let unused = [agreed.clone(), write_as(2, planner())];
    assert!(!may_approve(2, &unused, &ada()), "it was never run");
    let again = [agreed.clone(), open(1, 1)];
    assert!(!may_approve(1, &again, &ada()), "it is still their plan");
    let later = [
        agreed,
        open(1, 1),
        write_as(2, bob()),
        write_as(3, planner()),
    ];
    assert!(!may_approve(3, &later, &bob()), "changed since");
    assert!(may_approve(3, &later, &ada()));
}

#[test]
fn only_people_and_rules_approve_and_only_with_the_role() {
    let review = lived(&[]);
    let refused = review.decide(&approve_under(1, planner(), Offer::default()), LATER);
    assert!(matches!(refused, Err(ReviewRefusal::Decision(_))));
    let roles = RolesTable {
        approver: Some(vec!["person:bob".to_owned()]),
        ..RolesTable::default()
    };
    let document = PolicyDocument {
        roles: Some(roles),
        ..PolicyDocument::default()
    };
    let offer = Offer {
        policy: Arc::new(Policy::read(&document).unwrap()),
        ..Offer::default()
    };
    let by = |name: &str| approve_under(1, Principal::person(name), offer.clone());
    assert!(review.decide(&by("ada"), LATER).is_err());
    assert!(review.decide(&by("bob"), LATER).is_ok());
}

#[test]
fn a_draft_is_put_forward_by_proposing_it_as_it_is() {
    let first = Review::draft_first(Arc::new(document(1)), digest(1), planner());
    let review = live(&first, &[]).1;
    let events = review.decide(&propose(1), LATER).unwrap();
    assert!(matches!(
        events.as_slice(),
        [ReviewEvent::DraftProposed { version: 1, .. }]
    ));
    let events = review.decide(&propose(2), LATER).unwrap();
    assert!(matches!(
        events.as_slice(),
        [ReviewEvent::PlanProposed { version: 2, .. }]
    ));
    let proposed = lived(&[]);
    assert_eq!(
        proposed.decide(&propose(1), LATER).unwrap(),
        [],
        "the same again is the same version"
    );
}

#[test]
fn a_comment_may_be_as_long_as_the_limit_and_no_longer() {
    let say = |bytes: usize| {
        let command = ReviewCommand::Comment(CommentCommand::Add {
            comment: "comment_1".parse().unwrap(),
            on: None,
            reply_to: None,
            by: ada(),
            text: "x".repeat(bytes),
        });
        lived(&[]).decide(&command, LATER).is_ok()
    };
    assert!(say(64 * 1024));
    assert!(!say(64 * 1024 + 1));
}

#[test]
fn a_step_without_an_id_is_commented_on_by_its_place() {
    let mut unnamed = document(1);
    unnamed.steps[0].id = None;
    let first = Review::propose_first(Arc::new(unnamed), digest(1), planner());
    let review = live(&first, &[]).1;
    let on = |step: &str| {
        let command = ReviewCommand::Comment(CommentCommand::Add {
            comment: "comment_1".parse().unwrap(),
            on: Some(step.to_owned()),
            reply_to: None,
            by: ada(),
            text: "why?".into(),
        });
        review.decide(&command, LATER).is_ok()
    };
    assert!(on("1"));
    assert!(!on("2"));
    assert!(!on("a"));
}

fn reject(doing: u32) -> ReviewCommand {
    ReviewCommand::Reject {
        shown: Shown::Digest(digest(doing)),
        digest: digest(doing),
        by: ada(),
        reason: "no".into(),
    }
}

fn request(doing: u32, by: Principal) -> ReviewCommand {
    ReviewCommand::RequestRun(Box::new(RunRequest {
        digest: digest(doing),
        variables: serde_json::Map::from_iter([("who".to_owned(), json!("world"))]),
        by,
        trace: None,
    }))
}

#[test]
fn a_requested_run_needs_an_approval_of_exactly_its_digest() {
    let review = lived(&[request(1, planner())]);
    let requested = review.requested_run(LATER).unwrap();
    assert_eq!(requested.variables["who"], "world");
    assert_eq!((&requested.by, requested.version), (&planner(), 1));
    assert_eq!(
        review.startable_run(LATER),
        None,
        "a request is no approval"
    );
    let other = lived(&[request(2, planner()), approve(1)]);
    assert_eq!(other.startable_run(LATER), None);
    let review = lived(&[request(1, planner()), approve(1)]);
    assert!(review.startable_run(LATER).is_some());
    assert_eq!(review.settled_seq(), 3, "the approval is what was decided");
}

#[test]
fn a_request_ends_with_a_run_a_new_version_and_a_no() {
    let ends = [
        vec![approve(1), open(1, 1)],
        vec![propose(2)],
        vec![reject(1)],
        vec![ReviewCommand::Delete {
            by: ada(),
            executing: false,
        }],
    ];
    for end in ends {
        let mut life = vec![request(1, planner())];
        life.extend(end.clone());
        assert_eq!(lived(&life).requested_run(LATER), None, "{end:?}");
    }
    let twice = policy(json!({"uses": 2, "expires_after": "1d"}));
    let offer = Offer {
        policy: twice,
        ..Offer::default()
    };
    let review = lived(&[
        request(1, planner()),
        approve_under(1, ada(), offer),
        open(1, 1),
    ]);
    assert!(review.usable_approvals(&digest(1), LATER).is_some());
    assert_eq!(review.startable_run(LATER), None, "one request is one run");
}

#[test]
fn a_request_is_forgotten_after_a_day_and_kept_once() {
    let review = lived(&[request(1, planner())]);
    let at = review.updated_at();
    let last = at.plus(RequestedRun::VALID_FOR.saturating_sub(Duration::from_millis(1)));
    assert!(review.requested_run(last).is_some());
    let over = at.plus(RequestedRun::VALID_FOR);
    assert_eq!(review.requested_run(over), None);
    assert_eq!(review.decide(&request(1, planner()), last).unwrap(), []);
    for (command, now) in [
        (request(1, planner()), over),
        (request(2, planner()), last),
        (request(1, ada()), last),
    ] {
        let events = review.decide(&command, now).unwrap();
        assert!(
            matches!(events.as_slice(), [ReviewEvent::RunRequested { .. }]),
            "{events:?}"
        );
        assert_eq!(events[0].brought_by(), Some(command_by(&command)));
    }
}

fn command_by(command: &ReviewCommand) -> &Principal {
    match command {
        ReviewCommand::RequestRun(request) => &request.by,
        other => panic!("{other:?}"),
    }
}
