//! What is said about a plan, what time does to it, and putting it away.

use planwright_core::digest::Digest;
use planwright_core::id::CommentId;
use planwright_core::journal::{Cause, Entry, Head, Record, StreamName, decode, encode};
use planwright_core::plan::{Document, Step};
use planwright_core::policy::{Policy, PolicyDocument};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::{
    CommentCommand, CommentRefusal, Offer, Review, ReviewCommand, ReviewEvent, ReviewRefusal,
    ReviewStage, ReviewState,
};
use planwright_core::run::Shown;
use planwright_core::stats::{ReviewTally, Statistics};
use planwright_core::status::RunStatus;
use planwright_core::time::Timestamp;
use proptest::prelude::{ProptestConfig, Strategy, any};
use proptest::{prop_oneof, proptest};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

const DAY: Duration = Duration::from_hours(24);

fn ada() -> Principal {
    Principal::person("ada")
}

fn planner() -> Principal {
    Principal::agent("planner")
}

fn document(title: &str, steps: &[&str]) -> Arc<Document> {
    let step = |id: &&str| Step {
        id: Some(id.parse().unwrap()),
        tool: Some("r.read".into()),
        ..Step::default()
    };
    Arc::new(Document {
        id: Some("plan-x".parse().unwrap()),
        title: Some(title.to_owned()),
        steps: steps.iter().map(step).collect(),
        ..Document::default()
    })
}

fn digest(version: u32) -> Digest {
    Digest::of_bytes(&version.to_le_bytes())
}

/// A plan's journal, and the time.
struct Life {
    review: Review,
    records: Vec<Record>,
    now: Timestamp,
    comments: u64,
}

impl Life {
    fn begin() -> Self {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let first = Review::propose_first(document("Take 1", &["a", "b"]), digest(1), planner());
        let record = encode(Head::EMPTY, &stream(), now, 0, Cause::Command, &first);
        let review = Review::open("plan-x".parse().unwrap(), &decode(&record).unwrap()).unwrap();
        Self {
            review,
            records: vec![record],
            now,
            comments: 0,
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.plus(time);
    }

    fn give(&mut self, command: &ReviewCommand) -> Result<usize, ReviewRefusal> {
        let events = self.review.decide(command, self.now)?;
        for event in &events {
            let head = self.records[self.records.len() - 1].head();
            let record = encode(head, &stream(), self.now, 0, Cause::Command, event);
            let entry: Entry<ReviewEvent> = decode(&record).unwrap();
            assert_eq!(
                entry.event, *event,
                "every event survives being written down"
            );
            self.review
                .apply(&entry)
                .expect("what was decided can be applied");
            self.records.push(record);
        }
        Ok(events.len())
    }

    fn propose(&mut self, steps: &[&str]) {
        let version = self.review.current().number + 1;
        let document = document(&format!("Take {version}"), steps);
        self.give(&ReviewCommand::Propose {
            document,
            digest: digest(version),
            by: planner(),
        })
        .unwrap();
    }

    fn approve(&mut self, policy: serde_json::Value) -> Result<usize, ReviewRefusal> {
        let version = self.review.current().number;
        let policy: PolicyDocument = serde_json::from_value(policy).unwrap();
        let offer = Offer {
            policy: Arc::new(Policy::read(&policy).unwrap()),
            ..Offer::default()
        };
        self.give(&ReviewCommand::Approve {
            shown: Shown::Version(version),
            digest: digest(version),
            by: ada(),
            assurance: Assurance::Terminal,
            offer: Box::new(offer),
        })
    }

    fn send_back(&mut self, by: Principal) -> Result<usize, ReviewRefusal> {
        let version = self.review.current().number;
        let shown = Shown::Version(version);
        let digest = digest(version);
        self.give(&ReviewCommand::RequestChanges {
            shown,
            digest,
            by,
            reason: "name the file".into(),
        })
    }

    fn say(
        &mut self,
        text: &str,
        on: Option<&str>,
        reply_to: Option<&str>,
        by: Principal,
    ) -> Result<CommentId, CommentRefusal> {
        let comment = CommentId::mint(self.comments);
        self.comments += 1;
        let on = on.map(str::to_owned);
        let reply_to = reply_to.map(str::to_owned);
        let add = CommentCommand::Add {
            comment: comment.clone(),
            on,
            reply_to,
            by,
            text: text.to_owned(),
        };
        match self.give(&ReviewCommand::Comment(add)) {
            Ok(_) => Ok(comment),
            Err(ReviewRefusal::Comment(refusal)) => Err(refusal),
            Err(other) => panic!("{other}"),
        }
    }

    fn settle(&mut self, comment: &CommentId, by: Principal) -> Result<usize, ReviewRefusal> {
        let comment = comment.to_string();
        self.give(&ReviewCommand::Comment(CommentCommand::Resolve {
            comment,
            by,
        }))
    }

    fn reopen(&mut self, comment: &CommentId, by: Principal) -> Result<usize, ReviewRefusal> {
        let comment = comment.to_string();
        self.give(&ReviewCommand::Comment(CommentCommand::Reopen {
            comment,
            by,
        }))
    }

    fn expire(&mut self, after_days: u32) -> usize {
        self.give(&ReviewCommand::Expire {
            after_days,
            latest_run: None,
        })
        .unwrap()
    }

    fn archive(&mut self) -> Result<usize, ReviewRefusal> {
        self.give(&ReviewCommand::Archive {
            by: ada(),
            latest_run: None,
        })
    }

    fn fold(&self) -> Review {
        let entries: Vec<Entry<ReviewEvent>> = self
            .records
            .iter()
            .map(|record| decode(record).unwrap())
            .collect();
        let mut review = Review::open("plan-x".parse().unwrap(), &entries[0]).unwrap();
        for entry in &entries[1..] {
            review.apply(entry).unwrap();
        }
        review
    }
}

fn stream() -> StreamName {
    "plan/plan-x".parse().unwrap()
}

/// Every event of this part of a plan's life, for the golden journal.
pub(crate) fn story() -> (Vec<Record>, Review) {
    let mut life = Life::begin();
    let first = life
        .say("is this safe?", Some("a"), None, planner())
        .unwrap();
    life.pass(DAY);
    life.say("it is", None, Some(first.as_str()), ada())
        .unwrap();
    life.settle(&first, ada()).unwrap();
    life.reopen(&first, planner()).unwrap();
    life.send_back(ada()).unwrap();
    life.propose(&["b", "c"]);
    life.approve(json!({"approval": {"expires_after": "1h"}}))
        .unwrap();
    life.pass(DAY);
    life.give(&ReviewCommand::ExpireApprovals).unwrap();
    life.pass(DAY * 30);
    assert_eq!(life.expire(30), 1);
    life.archive().unwrap();
    life.give(&ReviewCommand::Unarchive { by: ada() }).unwrap();
    (life.records, life.review)
}

#[test]
fn a_comment_on_a_step_begins_a_thread_and_answers_belong_to_it() {
    let mut life = Life::begin();
    let first = life
        .say("is this safe?", Some("a"), None, planner())
        .unwrap();
    let answer = life
        .say("it is", None, Some(first.as_str()), ada())
        .unwrap();
    life.say("thanks", None, Some(answer.as_str()), planner())
        .unwrap();
    life.say("and the whole?", None, None, ada()).unwrap();
    let [on_step, on_plan] = life.review.threads() else {
        panic!("two threads")
    };
    assert_eq!(on_step.on.as_ref().map(|step| step.as_str()), Some("a"));
    let texts: Vec<&str> = on_step
        .comments()
        .map(|comment| comment.text.as_str())
        .collect();
    assert_eq!(texts, ["is this safe?", "it is", "thanks"]);
    assert!(on_plan.on.is_none() && on_plan.replies.is_empty());
    assert_eq!(life.review.open_threads().count(), 2);
}

#[test]
fn a_comment_outlives_the_step_it_is_about() {
    let mut life = Life::begin();
    life.say("why?", Some("a"), None, ada()).unwrap();
    assert!(!life.review.threads()[0].is_outdated(&life.review.current().document));
    life.propose(&["b"]);
    assert!(life.review.threads()[0].is_outdated(&life.review.current().document));
    assert_eq!(life.review.open_threads().count(), 1, "it is still open");
}

#[test]
fn comments_have_bounds_and_say_which() {
    let mut life = Life::begin();
    assert_eq!(
        life.say(" \n", None, None, ada()),
        Err(CommentRefusal::Empty)
    );
    let long = "x".repeat(Review::MAX_COMMENT_BYTES + 1);
    let refused = life.say(&long, None, None, ada()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "a comment has at most 65536 bytes, this one has 65537"
    );
    assert_eq!(
        life.say("x", Some("zz"), None, ada()),
        Err(CommentRefusal::NoSuchStep("zz".into()))
    );
    assert_eq!(
        life.say("x", Some("../a"), None, ada()),
        Err(CommentRefusal::NoSuchStep("../a".into()))
    );
    assert_eq!(
        life.say("x", None, Some("c-no"), ada()),
        Err(CommentRefusal::NoSuchComment("c-no".into()))
    );
    let first = life.say("x", None, None, ada()).unwrap();
    let both = life.say("x", Some("a"), Some(first.as_str()), ada());
    assert_eq!(both, Err(CommentRefusal::ReplyWithStep));
    for _ in 1..Review::MAX_COMMENTS {
        life.say("x", None, Some(first.as_str()), planner())
            .unwrap();
    }
    assert_eq!(
        life.say("x", None, None, ada()),
        Err(CommentRefusal::TooMany)
    );
    assert_eq!(
        life.review.threads()[0].comments().count(),
        Review::MAX_COMMENTS
    );
}

#[test]
fn a_person_or_whoever_began_it_settles_a_thread() {
    let mut life = Life::begin();
    let of_agent = life.say("x", None, None, planner()).unwrap();
    let of_person = life.say("y", None, None, ada()).unwrap();
    let other = Principal::agent("other");
    for (comment, by, may) in [
        (&of_agent, &other, false),
        (&of_person, &planner(), false),
        (&of_agent, &planner(), true),
        (&of_person, &Principal::person("bob"), true),
    ] {
        assert_eq!(
            life.settle(comment, by.clone()).is_ok(),
            may,
            "{by} settles {comment}"
        );
    }
    let again = life.settle(&of_agent, ada()).unwrap_err();
    assert_eq!(again.to_string(), "the thread is resolved already");
    life.reopen(&of_agent, ada()).unwrap();
    assert_eq!(life.review.open_threads().count(), 1);
}

#[test]
fn open_threads_block_an_approval_only_where_the_policy_says_so() {
    let block = json!({"approval": {"open_comments": "block"}});
    let mut life = Life::begin();
    let first = life.say("x", None, None, ada()).unwrap();
    life.say("y", None, None, ada()).unwrap();
    let refused = life.approve(block.clone()).unwrap_err();
    assert_eq!(
        refused,
        ReviewRefusal::OpenThreads {
            count: 2,
            first: first.clone()
        }
    );
    assert_eq!(
        refused.to_string(),
        format!("2 comments are left to discuss, the first of them {first}")
    );
    assert!(
        life.review
            .decide(&ReviewCommand::ExpireApprovals, life.now)
            .unwrap()
            .is_empty()
    );
    life.approve(json!({})).unwrap();

    let mut life = Life::begin();
    let first = life.say("x", None, None, ada()).unwrap();
    life.settle(&first, ada()).unwrap();
    life.approve(block).unwrap();
}

#[test]
fn a_request_for_changes_voids_the_approval_and_counts_for_no_round() {
    let mut life = Life::begin();
    for version in 2..6 {
        life.approve(json!({})).unwrap();
        assert!(life.send_back(planner()).is_err(), "agents decide nothing");
        life.send_back(ada()).unwrap();
        assert_eq!(
            life.review.state(),
            ReviewState::Active(ReviewStage::ChangesRequested)
        );
        assert_eq!(
            life.approve(json!({})),
            Err(ReviewRefusal::ChangesRequested)
        );
        let open = ReviewCommand::OpenRun {
            run: "run_x".parse().unwrap(),
            digest: digest(version - 1),
        };
        assert_eq!(life.give(&open), Err(ReviewRefusal::ChangesRequested));
        life.propose(&[&format!("s{version}")]);
        assert_eq!(
            life.review.state(),
            ReviewState::Active(ReviewStage::Proposed)
        );
    }
    assert_eq!(
        (
            life.review.rejections().len(),
            life.review.change_requests().len()
        ),
        (0, 4)
    );
}

#[test]
fn a_plan_expires_when_nobody_touched_it_and_its_approval_does_not_survive_that() {
    let mut life = Life::begin();
    life.approve(json!({})).unwrap();
    life.pass(DAY * 29);
    assert_eq!(life.expire(30), 0);
    life.say("still wanted", None, None, ada()).unwrap();
    life.pass(DAY * 29);
    assert_eq!(life.expire(30), 0, "a comment touches it");
    life.pass(DAY);
    assert_eq!(
        (life.expire(0), life.expire(30), life.expire(30)),
        (0, 1, 0)
    );
    assert_eq!(
        life.review.state(),
        ReviewState::Active(ReviewStage::Expired)
    );
    assert_eq!(life.approve(json!({})), Err(ReviewRefusal::PlanExpired));
    // The same content brings it back, and has to be agreed to again.
    let document = Arc::clone(&life.review.current().document);
    life.give(&ReviewCommand::Propose {
        document,
        digest: digest(1),
        by: planner(),
    })
    .unwrap();
    assert_eq!(
        (life.review.state(), life.review.current().number),
        (ReviewState::Active(ReviewStage::Proposed), 2)
    );
    assert!(life.review.usable_approvals(&digest(1), life.now).is_none());
}

#[test]
fn an_expired_approval_is_noted_once_and_is_not_a_rejection() {
    let mut life = Life::begin();
    life.approve(json!({"approval": {"expires_after": "1h"}}))
        .unwrap();
    assert_eq!(
        life.review.approval_expires_at(),
        Some(life.now.plus(Duration::from_hours(1)))
    );
    assert_eq!(life.give(&ReviewCommand::ExpireApprovals), Ok(0));
    life.pass(Duration::from_hours(1));
    assert_eq!(life.give(&ReviewCommand::ExpireApprovals), Ok(1));
    assert_eq!(life.give(&ReviewCommand::ExpireApprovals), Ok(0));
    assert_eq!(
        (life.review.state(), life.review.rejections().len()),
        (ReviewState::Active(ReviewStage::Proposed), 0)
    );
    let open = ReviewCommand::OpenRun {
        run: "run_x".parse().unwrap(),
        digest: digest(1),
    };
    assert!(
        matches!(life.give(&open), Err(ReviewRefusal::Expired { .. })),
        "the reason is that it expired"
    );
    life.approve(json!({})).unwrap();
    assert_eq!(
        life.review.state(),
        ReviewState::Active(ReviewStage::Approved)
    );
}

#[test]
fn only_a_plan_that_is_over_is_archived_and_an_archived_one_accepts_no_decision() {
    let mut life = Life::begin();
    let refused = life.archive().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the plan is proposed: only a finished plan can be archived"
    );
    assert_eq!(
        life.give(&ReviewCommand::Unarchive { by: ada() }),
        Err(ReviewRefusal::NotArchived)
    );
    life.send_back(ada()).unwrap();
    assert_eq!((life.archive(), life.archive()), (Ok(1), Ok(0)));
    assert_eq!(
        (
            life.review.cached_status().as_str(),
            life.review.is_archived()
        ),
        ("archived", true)
    );
    assert_eq!(life.approve(json!({})), Err(ReviewRefusal::Archived));
    assert_eq!(life.send_back(ada()), Err(ReviewRefusal::Archived));
    life.give(&ReviewCommand::Unarchive { by: ada() }).unwrap();
    assert_eq!(life.review.cached_status().as_str(), "changes_requested");
    life.archive().unwrap();
    life.propose(&["c"]);
    assert!(!life.review.is_archived(), "a new version brings it back");
}

#[test]
fn the_word_beside_the_journal_tells_what_waits_from_what_was_opened() {
    let mut life = Life::begin();
    assert_eq!(life.review.cached_status().as_str(), "proposed");
    life.approve(json!({})).unwrap();
    assert_eq!(life.review.cached_status().as_str(), "approved");
    life.give(&ReviewCommand::OpenRun {
        run: "run_x".parse().unwrap(),
        digest: digest(1),
    })
    .unwrap();
    assert_eq!(
        (life.review.cached_status().as_str(), life.review.state()),
        ("opened", ReviewState::Active(ReviewStage::Proposed))
    );
    // The word stands exactly where the run says where the plan stands.
    assert_eq!(
        life.review.status(Some(RunStatus::Completed)).as_str(),
        "completed"
    );
    life.approve(json!({})).unwrap();
    assert_eq!(life.review.cached_status().as_str(), "approved");
    life.give(&ReviewCommand::OpenRun {
        run: "run_y".parse().unwrap(),
        digest: digest(1),
    })
    .unwrap();
    life.propose(&["c"]);
    assert_eq!(life.review.cached_status().as_str(), "proposed");
    assert_eq!(
        life.review.status(Some(RunStatus::Completed)).as_str(),
        "proposed"
    );
}

#[test]
fn the_figures_say_what_was_decided() {
    let (records, review) = story();
    let mut tally = ReviewTally::since(None);
    records
        .iter()
        .for_each(|record| tally.record(&decode(record).unwrap()));
    let mut figures = Statistics::default();
    figures.add_review(&tally, review.status(None));
    let reviews = &figures.reviews;
    assert_eq!(
        (reviews.plans, reviews.versions, reviews.approvals),
        (1, 2, 1)
    );
    assert_eq!(
        (reviews.change_requests, reviews.comments, reviews.expiries),
        (1, 2, 2)
    );
    assert_eq!(figures.plans.get("expired"), Some(&1));
    assert_eq!(reviews.time_to_approval.count(), 1);
}

#[derive(Debug, Clone)]
enum Turn {
    Propose(u8),
    Approve,
    SendBack,
    Say(bool),
    Settle(u8),
    Reopen(u8),
    Pass(u8),
    Expire,
    ExpireApprovals,
    Archive,
    Unarchive,
    Delete,
}

fn step() -> impl Strategy<Value = Turn> {
    prop_oneof![
        any::<u8>().prop_map(Turn::Propose),
        any::<bool>().prop_map(Turn::Say),
        any::<u8>().prop_map(Turn::Settle),
        any::<u8>().prop_map(Turn::Reopen),
        any::<u8>().prop_map(Turn::Pass),
        (0_u8..7).prop_map(|which| match which {
            0 => Turn::Approve,
            1 => Turn::SendBack,
            2 => Turn::Expire,
            3 => Turn::ExpireApprovals,
            4 => Turn::Archive,
            5 => Turn::Unarchive,
            _ => Turn::Delete,
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_happens_the_journal_folds_and_consent_never_outlives_what_voids_it(
        steps in proptest::collection::vec(step(), 0..40)
    ) {
        let mut life = Life::begin();
        for step in steps {
            let comment = |life: &Life, which: u8| {
                CommentId::mint(u64::from(which) % life.comments.max(1))
            };
            // A refusal is fine; an entry that cannot be applied is not.
            match step {
                Turn::Propose(title) => life.propose(&[&format!("s{title}")]),
                Turn::Approve => drop(life.approve(json!({"approval": {"expires_after": "3d"}}))),
                Turn::SendBack => drop(life.send_back(ada())),
                Turn::Say(agent) => {
                    if life.review.state() != ReviewState::Deleted {
                        let by = if agent { planner() } else { ada() };
                        life.say("x", None, None, by).unwrap();
                    }
                }
                Turn::Settle(which) => drop(life.settle(&comment(&life, which), ada())),
                Turn::Reopen(which) => drop(life.reopen(&comment(&life, which), ada())),
                Turn::Pass(days) => life.pass(DAY * u32::from(days % 16)),
                Turn::Expire => drop(life.expire(10)),
                Turn::ExpireApprovals => drop(life.give(&ReviewCommand::ExpireApprovals)),
                Turn::Archive => drop(life.archive()),
                Turn::Unarchive => drop(life.give(&ReviewCommand::Unarchive { by: ada() })),
                Turn::Delete => drop(life.give(&ReviewCommand::Delete { by: ada(), executing: false })),
            }
            let open = ReviewCommand::OpenRun {
                run: "run_x".parse().unwrap(),
                digest: digest(life.review.current().number),
            };
            let may_run = life.review.decide(&open, life.now).is_ok();
            let put_forward =
                matches!(life.review.state(), ReviewState::Active(ReviewStage::Proposed) | ReviewState::Active(ReviewStage::Approved));
            assert!(!may_run || put_forward && !life.review.is_archived());
        }
        assert_eq!(format!("{:?}", life.fold()), format!("{:?}", life.review));
    }
}
