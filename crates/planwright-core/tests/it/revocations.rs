//! An approval that is taken back, or lost with the approver's access, starts nothing.

use crate::run_golden::live;
use planwright_core::digest::Digest;
use planwright_core::event::{EventName, PlanEvents};
use planwright_core::journal::{Cause, Entry, Record, StreamName};
use planwright_core::plan::{Bounds, Document};
use planwright_core::policy::{Policy, PolicyDocument, RolesTable};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::{
    Access, ApprovalState, Offer, Review, ReviewCommand, ReviewEvent, ReviewRefusal, ReviewStage,
    ReviewState, Revocation, access_holds,
};
use planwright_core::run::Shown;
use planwright_core::time::Timestamp;
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any};
use proptest::{prop_oneof, proptest};
use serde_json::json;
use std::sync::Arc;

const LATER: Timestamp = Timestamp::from_millis(1_700_001_000_000);

fn ada() -> Principal {
    Principal::person("ada")
}

fn bob() -> Principal {
    Principal::person("bob")
}

fn digest(doing: u32) -> Digest {
    Digest::of_bytes(&doing.to_le_bytes())
}

fn document(title: u32) -> Arc<Document> {
    let id = Some("plan-golden".parse().unwrap());
    Arc::new(Document {
        id,
        title: Some(format!("Take {title}")),
        ..Document::default()
    })
}

fn policy(value: serde_json::Value) -> Arc<Policy> {
    let document: PolicyDocument = serde_json::from_value(value).unwrap();
    Arc::new(Policy::read(&document).unwrap())
}

fn approve(
    by: &Principal,
    assurance: Assurance,
    doing: u32,
    policy: &Arc<Policy>,
) -> ReviewCommand {
    let offer = Box::new(Offer {
        policy: Arc::clone(policy),
        ..Offer::default()
    });
    let shown = Shown::Digest(digest(doing));
    let digest = digest(doing);
    ReviewCommand::Approve {
        shown,
        digest,
        by: by.clone(),
        assurance,
        offer,
    }
}

fn revoke(of: &Principal, by: &Principal, given: Option<Assurance>) -> ReviewCommand {
    revoke_under(of, by, given, &Arc::default())
}

fn revoke_under(
    of: &Principal,
    by: &Principal,
    given: Option<Assurance>,
    policy: &Arc<Policy>,
) -> ReviewCommand {
    let of = of.clone();
    let by = by.clone();
    let reason = Some("access was taken away".to_owned());
    ReviewCommand::RevokeApprovals(Box::new(Revocation {
        of,
        by,
        given,
        reason,
        policy: Arc::clone(policy),
    }))
}

fn propose(doing: u32) -> ReviewCommand {
    ReviewCommand::Propose {
        document: document(doing),
        digest: digest(doing),
        by: Principal::agent("planner"),
    }
}

fn open(doing: u32) -> ReviewCommand {
    ReviewCommand::OpenRun {
        run: "run_golden".parse().unwrap(),
        digest: digest(doing),
    }
}

/// The life of a plan that begins with what is called 1.
fn lived(commands: &[ReviewCommand]) -> Review {
    told(commands).1
}

fn told(commands: &[ReviewCommand]) -> (Vec<Record>, Review) {
    live(
        &Review::propose_first(document(1), digest(1), Principal::agent("planner")),
        commands,
    )
}

/// Bob approves with a token and loses it, ada takes hers back, and bob's second one is used.
pub(crate) fn story() -> (Vec<Record>, Review) {
    let plain = Arc::default();
    let mut take_back = revoke(&ada(), &ada(), None);
    if let ReviewCommand::RevokeApprovals(revocation) = &mut take_back {
        revocation.reason = None;
    }
    told(&[
        approve(&bob(), Assurance::Token, 1, &plain),
        revoke(&bob(), &ada(), Some(Assurance::Token)),
        approve(&ada(), Assurance::Terminal, 1, &plain),
        take_back,
        approve(&bob(), Assurance::Token, 1, &plain),
        open(1),
        propose(2),
    ])
}

fn refused(review: &Review, doing: u32) -> ReviewRefusal {
    review.decide(&open(doing), LATER).unwrap_err()
}

#[test]
fn an_approval_that_was_revoked_starts_nothing_and_says_why() {
    let plain = Arc::default();
    let yes = approve(&bob(), Assurance::Token, 1, &plain);
    let review = lived(&[yes.clone(), revoke(&bob(), &ada(), Some(Assurance::Token))]);
    assert_eq!(review.state(), ReviewState::Active(ReviewStage::Proposed));
    let words = "the approval of person bob was revoked by person ada before it was used";
    assert_eq!(refused(&review, 1).to_string(), words);
    let ApprovalState::Revoked(revoked) = review.approvals()[0].state(LATER) else {
        panic!("the approval was revoked");
    };
    assert_eq!(
        (&revoked.by, revoked.reason.as_deref()),
        (&ada(), Some("access was taken away"))
    );

    let review = lived(&[yes.clone(), revoke(&bob(), &bob(), None)]);
    assert_eq!(
        refused(&review, 1).to_string(),
        "person bob revoked the approval before it was used"
    );

    // A person who took an approval back may approve again, and others may agree instead.
    for by in [bob(), ada()] {
        let again = approve(&by, Assurance::Terminal, 1, &plain);
        let review = lived(&[yes.clone(), revoke(&bob(), &bob(), None), again]);
        assert_eq!(review.state(), ReviewState::Active(ReviewStage::Approved));
        assert!(review.decide(&open(1), LATER).is_ok());
    }
}

#[test]
fn only_what_was_given_like_that_is_lost_and_nothing_is_no_entry() {
    let review = lived(&[approve(&bob(), Assurance::Terminal, 1, &Arc::default())]);
    let nothing =
        |command: &ReviewCommand| assert_eq!(review.decide(command, LATER), Ok(Vec::new()));
    nothing(&revoke(&bob(), &ada(), Some(Assurance::Token)));
    nothing(&revoke(&ada(), &ada(), None));
    assert_eq!(
        review
            .decide(&revoke(&bob(), &ada(), None), LATER)
            .unwrap()
            .len(),
        1
    );
    let review = lived(&[
        approve(&bob(), Assurance::Token, 1, &Arc::default()),
        open(1),
    ]);
    assert_eq!(
        review.decide(&revoke(&bob(), &ada(), None), LATER),
        Ok(Vec::new()),
        "it was used"
    );
    let deleted = ReviewCommand::Delete {
        by: ada(),
        executing: false,
    };
    let review = lived(&[
        approve(&bob(), Assurance::Token, 1, &Arc::default()),
        deleted,
    ]);
    assert_eq!(
        review.decide(&revoke(&bob(), &ada(), None), LATER),
        Ok(Vec::new())
    );
}

#[test]
fn others_approvals_are_for_those_who_administer_and_for_rules() {
    let review = lived(&[approve(&bob(), Assurance::Token, 1, &Arc::default())]);
    let admins = RolesTable {
        admin: Some(vec!["person:root".to_owned()]),
        ..RolesTable::default()
    };
    let document = PolicyDocument {
        roles: Some(admins),
        ..PolicyDocument::default()
    };
    let roles = Arc::new(Policy::read(&document).unwrap());
    let may = |by: &Principal, policy: &Arc<Policy>| {
        review
            .decide(&revoke_under(&bob(), by, None, policy), LATER)
            .is_ok_and(|events| events.len() == 1)
    };
    let rule = Principal::read_only_policy();
    let root = Principal::person("root");
    assert!(may(&bob(), &roles) && may(&root, &roles) && may(&rule, &roles));
    assert!(
        may(&ada(), &Arc::default()),
        "without roles every person administers"
    );
    let refused = review
        .decide(&revoke_under(&bob(), &ada(), None, &roles), LATER)
        .unwrap_err();
    assert_eq!(
        refused,
        ReviewRefusal::MayNotRevoke {
            of: bob(),
            by: ada()
        }
    );
    for by in [Principal::agent("bot"), Principal::service("ci")] {
        assert!(!may(&by, &roles) && !may(&by, &Arc::default()), "{by}");
    }
}

#[test]
fn one_of_several_who_is_gone_leaves_too_few() {
    let two = policy(json!({"approval": {"required": 2}}));
    let both = [
        approve(&bob(), Assurance::Token, 1, &two),
        approve(&ada(), Assurance::Terminal, 1, &two),
    ];
    assert_eq!(
        lived(&both).state(),
        ReviewState::Active(ReviewStage::Approved)
    );
    let [first, second] = both;
    let review = lived(&[
        first,
        second,
        revoke(&bob(), &ada(), Some(Assurance::Token)),
    ]);
    assert_eq!(review.state(), ReviewState::Active(ReviewStage::Proposed));
    assert_eq!(
        refused(&review, 1),
        ReviewRefusal::NotEnough {
            given: 1,
            required: 2
        }
    );
}

#[test]
fn what_is_left_of_an_approval_for_several_runs_is_revoked() {
    let twice = policy(json!({"approval": {"uses": 2, "expires_after": "7d"}}));
    let yes = approve(&bob(), Assurance::Token, 1, &twice);
    let review = lived(&[yes.clone(), open(1)]);
    assert!(review.usable_approvals(&digest(1), LATER).is_some());
    let review = lived(&[yes, open(1), revoke(&bob(), &ada(), None)]);
    assert!(matches!(refused(&review, 1), ReviewRefusal::Revoked { .. }));
    assert_eq!(review.state(), ReviewState::Active(ReviewStage::Proposed));
}

#[test]
fn nothing_builds_on_an_approval_that_was_edited_away_and_then_revoked() {
    let yes = approve(&bob(), Assurance::Token, 1, &Arc::default());
    assert!(
        lived(&[yes.clone(), propose(2)])
            .approval_before_edit(LATER)
            .is_some()
    );
    let review = lived(&[yes.clone(), propose(2), revoke(&bob(), &ada(), None)]);
    assert_eq!(review.approval_before_edit(LATER), None);
    // Nor does it come back with the content it was given for.
    let review = lived(&[yes, revoke(&bob(), &ada(), None), propose(2), propose(1)]);
    assert_eq!(refused(&review, 1), ReviewRefusal::NotApproved);
}

#[test]
fn a_reason_has_an_end() {
    let review = lived(&[approve(&bob(), Assurance::Token, 1, &Arc::default())]);
    let mut command = revoke(&bob(), &ada(), None);
    if let ReviewCommand::RevokeApprovals(revocation) = &mut command {
        revocation.reason = Some("x".repeat(Review::MAX_REASON + 1));
    }
    assert!(matches!(
        review.decide(&command, LATER),
        Err(ReviewRefusal::ReasonTooLong(_))
    ));
}

#[test]
fn the_world_is_told_whose_approval_was_revoked_and_why() {
    let (records, _) = story();
    let mut events = PlanEvents::new("plan-golden".parse().unwrap(), Bounds::default());
    let stream: StreamName = "plan/plan-golden".parse().unwrap();
    let told = records
        .iter()
        .flat_map(|record| events.push(&stream, record).unwrap());
    let told: Vec<_> = told
        .filter(|event| event.event == EventName::PlanApprovalRevoked)
        .collect();
    let words: Vec<_> = told
        .iter()
        .map(|event| (event.summary.as_str(), event.reason.as_deref()))
        .collect();
    assert_eq!(
        words,
        [
            (
                "person ada revoked the approval of person bob",
                Some("access was taken away")
            ),
            ("person ada revoked the approval of person ada", None),
        ]
    );
}

#[test]
fn an_agent_never_revoked_anything_whatever_a_journal_says() {
    let mut review = lived(&[approve(&bob(), Assurance::Token, 1, &Arc::default())]);
    let of = bob();
    let by = Principal::agent("bot");
    let event = ReviewEvent::ApprovalRevoked {
        version: 1,
        of,
        by,
        given: None,
        reason: None,
    };
    let seq = review.seq() + 1;
    let entry = Entry {
        seq,
        at: LATER,
        epoch: 0,
        cause: Cause::Command,
        event,
    };
    assert!(review.apply(&entry).is_err());
    assert!(
        review.decide(&open(1), LATER).is_ok(),
        "and nothing was lost"
    );
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn token(created: i64, expires: Option<i64>, revoked: Option<i64>) -> Access {
    Access {
        created_at: at(created),
        expires_at: expires.map(at),
        revoked_at: revoked.map(at),
    }
}

#[test]
fn access_is_lost_with_the_last_token_and_not_with_time() {
    let given = at(10);
    let holds = |tokens: &[Access]| access_holds(tokens, given);
    assert!(holds(&[token(0, None, None)]));
    assert!(!holds(&[token(0, None, Some(20))]), "revoked");
    assert!(holds(&[token(0, Some(20), None)]), "merely expired");
    assert!(
        holds(&[token(0, None, Some(20)), token(20, None, None)]),
        "replaced in the same moment"
    );
    assert!(
        holds(&[token(0, None, Some(20)), token(5, Some(30), None)]),
        "another one was open, and expired"
    );
    assert!(
        !holds(&[token(0, None, Some(20)), token(5, Some(15), None)]),
        "the other one had expired before"
    );
    assert!(
        !holds(&[token(0, None, Some(20)), token(21, None, None)]),
        "given again, which brings nothing back"
    );
    assert!(
        !holds(&[token(0, None, Some(20)), token(0, None, Some(30))]),
        "both revoked"
    );
    assert!(
        holds(&[token(0, None, Some(5)), token(0, None, None)]),
        "one that was revoked before"
    );
    assert!(!holds(&[]), "no token of theirs is known");
    assert!(!holds(&[token(11, None, None)]), "made afterwards");
    assert!(
        !holds(&[token(0, None, Some(10))]),
        "revoked in the same moment"
    );
}

#[derive(Debug, Clone)]
enum Turn {
    Create { lasts: Option<u8> },
    Replace { which: u8 },
    Revoke { which: u8 },
    Approve,
    Wait(u8),
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        1 => any::<Option<u8>>().prop_map(|lasts| Turn::Create { lasts }),
        1 => any::<u8>().prop_map(|which| Turn::Replace { which }),
        2 => any::<u8>().prop_map(|which| Turn::Revoke { which }),
        2 => proptest::strategy::Just(Turn::Approve),
        2 => any::<u8>().prop_map(Turn::Wait),
    ]
}

/// A token as its holder keeps it, without a record of the past.
#[derive(Debug, Clone, Copy)]
struct Key {
    at: usize,
    until: Option<i64>,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same rule, lived through instead of looked up: a holder who has no key left after one
    /// was taken from them has lost what they had agreed to.
    #[test]
    fn what_is_read_from_the_tokens_is_what_happened(turns in vec(turn(), 1..30)) {
        let mut now = 0_i64;
        let mut tokens = Vec::<Access>::new();
        let mut keys = Vec::<Key>::new();
        let mut approvals: Vec<(i64, bool)> = Vec::new();
        for turn in turns {
            // Nothing happens in the same moment as something else, except what one command does.
            now += 1;
            keys.retain(|key| key.until.is_none_or(|until| now < until));
            let make = |keys: &mut Vec<Key>, tokens: &mut Vec<Access>, until: Option<i64>| {
                keys.push(Key { at: tokens.len(), until });
                tokens.push(token(now, until, None));
            };
            match turn {
                Turn::Create { lasts } => make(&mut keys, &mut tokens, lasts.map(|lasts| now + 1 + i64::from(lasts))),
                Turn::Replace { which } | Turn::Revoke { which } if !keys.is_empty() => {
                    let key = keys[usize::from(which) % keys.len()];
                    if matches!(turn, Turn::Replace { .. }) {
                        make(&mut keys, &mut tokens, key.until.map(|until| until + 7));
                    }
                    keys.retain(|other| other.at != key.at);
                    tokens[key.at].revoked_at = Some(at(now));
                    if keys.is_empty() {
                        approvals.iter_mut().for_each(|(_, counts)| *counts = false);
                    }
                }
                Turn::Approve if !keys.is_empty() => approvals.push((now, true)),
                Turn::Wait(time) => now += i64::from(time),
                Turn::Replace { .. } | Turn::Revoke { .. } | Turn::Approve => {}
            }
            for (given, counts) in &approvals {
                assert_eq!(access_holds(&tokens, at(*given)), *counts, "{given} {tokens:?}");
            }
        }
    }
}
