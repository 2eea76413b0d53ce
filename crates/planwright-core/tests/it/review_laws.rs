//! The life of a plan: consent is for exactly what was shown, is a person's to give, and is used
//! once.

use planwright_core::digest::Digest;
use planwright_core::id::RunId;
use planwright_core::journal::{Cause, Entry, Head, StreamName, decode, encode};
use planwright_core::plan::Document;
use planwright_core::principal::{Assurance, Principal, PrincipalKind};
use planwright_core::review::{
    BuildsOn, Review, ReviewCommand, ReviewEvent, ReviewRefusal, ReviewStage, ReviewState,
    Revision, Revocation, Terms,
};
use planwright_core::run::{Corrupt, Shown};
use planwright_core::status::PlanStatus;
use planwright_core::time::Timestamp;
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any};
use proptest::{prop_oneof, proptest};
use std::sync::Arc;

const LATER: Timestamp = Timestamp::from_millis(1_000_000);

fn document(title: u8) -> Arc<Document> {
    let id = Some("plan-x".parse().unwrap());
    Arc::new(Document {
        id,
        title: Some(format!("take {title}")),
        ..Document::default()
    })
}

/// What would run: the content, and a tool that may have changed. Two titles each are words for the
/// same content.
fn digest(title: u8, tools: u8) -> Digest {
    Digest::of_bytes(&[title / 2, tools])
}

/// A plan's journal, with a second account of who agreed to what kept beside it.
struct Life {
    review: Review,
    entries: Vec<Entry<ReviewEvent>>,
    head: Head,
    stream: StreamName,
    /// What the current version says.
    title: u8,
    version: u32,
    /// Digests of the current version that a person agreed to and that were not used or taken back.
    granted: Vec<Digest>,
    rejections: usize,
    runs: u32,
}

impl Life {
    fn begin() -> Self {
        let stream: StreamName = "plan/plan-x".parse().unwrap();
        let first = Review::propose_first(document(0), digest(0, 0), Principal::agent("planner"));
        let record = encode(
            Head::EMPTY,
            &stream,
            Timestamp::from_millis(1),
            0,
            Cause::Command,
            &first,
        );
        let entry = decode(&record).unwrap();
        Self {
            review: Review::open("plan-x".parse().unwrap(), &entry).unwrap(),
            entries: vec![entry],
            head: record.head(),
            stream,
            title: 0,
            version: 1,
            granted: Vec::new(),
            rejections: 0,
            runs: 0,
        }
    }

    fn give(&mut self, command: &ReviewCommand) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        let now = Timestamp::from_millis(1 + i64::try_from(self.head.seq).unwrap());
        let events = self.review.decide(command, now)?;
        for event in &events {
            let record = encode(self.head, &self.stream, now, 0, Cause::Command, event);
            let entry: Entry<ReviewEvent> = decode(&record).unwrap();
            assert_eq!(
                entry.event, *event,
                "every event survives being written down"
            );
            self.review
                .apply(&entry)
                .expect("what was decided can be applied");
            self.head = record.head();
            self.entries.push(entry);
        }
        Ok(events)
    }

    fn propose(&mut self, title: u8, by: &Principal) {
        let deleted = self.review.state() == ReviewState::Deleted;
        let command = ReviewCommand::Propose {
            document: document(title),
            digest: digest(title, 0),
            by: by.clone(),
        };
        let new = title != self.title || deleted;
        let waits_for_person = self.review.state() == ReviewState::Active(ReviewStage::NeedsReview);
        if new && waits_for_person && by.kind != PrincipalKind::Person {
            assert_eq!(
                self.give(&command).unwrap_err(),
                ReviewRefusal::NeedsPerson,
                "a program brought back what was rejected three times"
            );
            return;
        }
        let made = self.give(&command).unwrap();
        assert_eq!(
            made.len(),
            usize::from(new),
            "the same content again is the same version"
        );
        if new {
            (self.title, self.version) = (title, self.version + 1);
            // An edit of words keeps what was agreed to; everything else, and a new life, begins
            // without.
            self.granted
                .retain(|granted| !deleted && *granted == digest(title, 0));
            let agreed = !self.granted.is_empty();
            let expected = if agreed {
                ReviewState::Active(ReviewStage::Approved)
            } else {
                ReviewState::Active(ReviewStage::Proposed)
            };
            assert_eq!(self.review.state(), expected);
        }
        assert_eq!(self.review.current().number, self.version);
    }

    fn approve(&mut self, tools: u8, by: &Principal, shown: Shown) {
        let digest = digest(self.title, tools);
        let before = self.review.state();
        let by_them = by.clone();
        let assurance = Assurance::Terminal;
        let offer = Box::default();
        let command = ReviewCommand::Approve {
            shown,
            digest,
            by: by_them,
            assurance,
            offer,
        };
        if self.give(&command).is_ok() {
            assert!(by.may_approve(), "{by} approved a plan");
            assert!(
                shown == Shown::Version(self.version) || shown == Shown::Digest(digest),
                "{shown} was shown"
            );
            assert!(!matches!(
                before,
                ReviewState::Active(ReviewStage::Rejected) | ReviewState::Deleted
            ));
            assert_eq!(
                self.review.state(),
                ReviewState::Active(ReviewStage::Approved)
            );
            self.granted.push(digest);
        }
    }

    fn reject(&mut self, by: &Principal, shown: Shown) {
        let command = ReviewCommand::Reject {
            shown,
            digest: digest(self.title, 0),
            by: by.clone(),
            reason: format!("round {}", self.rejections + 1),
        };
        if self.give(&command).is_ok() {
            assert!(by.may_approve(), "{by} rejected a plan");
            self.rejections += 1;
            self.granted.clear();
            let expected = if self.rejections >= Review::MAX_REJECTIONS {
                ReviewState::Active(ReviewStage::NeedsReview)
            } else {
                ReviewState::Active(ReviewStage::Rejected)
            };
            assert_eq!(self.review.state(), expected);
            let last = self.review.rejections().last().unwrap();
            assert_eq!(
                (last.version, last.reason.clone()),
                (self.version, format!("round {}", self.rejections))
            );
        }
        assert_eq!(
            self.review.rejections().len(),
            self.rejections,
            "feedback is kept"
        );
    }

    fn open(&mut self, tools: u8) {
        let digest = digest(self.title, tools);
        let run: RunId = format!("run_{}", self.runs).parse().unwrap();
        let before = self.review.state();
        let at = self.granted.iter().position(|granted| *granted == digest);
        match (
            self.give(&ReviewCommand::OpenRun {
                run: run.clone(),
                digest,
            }),
            at,
        ) {
            (Ok(_), Some(at)) => {
                assert!(!matches!(
                    before,
                    ReviewState::Active(ReviewStage::Rejected)
                        | ReviewState::Active(ReviewStage::NeedsReview)
                        | ReviewState::Deleted
                ));
                self.granted.remove(at);
                self.runs += 1;
                let spent = self
                    .review
                    .approvals()
                    .iter()
                    .filter(|a| a.spent_by.contains(&run));
                assert_eq!(spent.count(), 1, "one approval, one run");
            }
            (Ok(_), None) => panic!("a run of {digest} opened without an approval of it"),
            (Err(refusal), Some(_)) => {
                assert!(matches!(refusal, ReviewRefusal::Deleted), "{refusal}");
            }
            (Err(_), None) => {}
        }
    }

    fn delete(&mut self, executing: bool, by: &Principal) {
        let deleted = self.give(&ReviewCommand::Delete {
            by: by.clone(),
            executing,
        });
        assert!(
            !executing || deleted == Err(ReviewRefusal::Executing),
            "deleted while executing"
        );
        if deleted.is_ok() {
            assert_eq!(self.review.state(), ReviewState::Deleted);
            self.granted.clear();
        }
    }

    /// Voids what ada agreed to, if `by` may.
    fn revoke(&mut self, by: &Principal, tokens: bool) {
        let given = tokens.then_some(Assurance::Token);
        let revocation = Revocation {
            of: ada(),
            by: by.clone(),
            given,
            reason: None,
            policy: Arc::default(),
        };
        let events = self.give(&ReviewCommand::RevokeApprovals(Box::new(revocation)));
        match by.may_approve() {
            true if tokens => assert_eq!(
                events,
                Ok(Vec::new()),
                "nothing here was agreed to with a token"
            ),
            true => {
                assert!(self.granted.is_empty() || events.is_ok_and(|events| events.len() == 1));
                self.granted.clear();
                assert_ne!(
                    self.review.state(),
                    ReviewState::Active(ReviewStage::Approved)
                );
            }
            false => assert_eq!(
                events,
                Err(ReviewRefusal::MayNotRevoke {
                    of: ada(),
                    by: by.clone()
                })
            ),
        }
    }

    /// Every prefix folds, and the whole folds to the same.
    fn check_replay(&self) {
        let mut again = Review::open("plan-x".parse().unwrap(), &self.entries[0]).unwrap();
        for entry in &self.entries[1..] {
            again.apply(entry).unwrap();
        }
        assert_eq!(format!("{again:?}"), format!("{:?}", self.review));
    }
}

#[derive(Debug, Clone)]
enum Deed {
    Propose(u8),
    Approve { tools: u8, shown: u8 },
    Reject { shown: u8 },
    Open { tools: u8 },
    Delete { executing: bool },
    Revoke { tokens: bool },
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        3 => (0..6_u8).prop_map(Deed::Propose),
        4 => (0..2_u8, 0..4_u8).prop_map(|(tools, shown)| Deed::Approve { tools, shown }),
        2 => (0..4_u8).prop_map(|shown| Deed::Reject { shown }),
        4 => (0..2_u8).prop_map(|tools| Deed::Open { tools }),
        1 => any::<bool>().prop_map(|executing| Deed::Delete { executing }),
        2 => any::<bool>().prop_map(|tokens| Deed::Revoke { tokens }),
    ]
}

fn who() -> impl Strategy<Value = Principal> {
    prop_oneof![
        4 => Just(Principal::person("ada")),
        2 => Just(Principal::agent("planner")),
        1 => Just(Principal::service("cron")),
    ]
}

/// Mostly what is there, sometimes what was there before or never.
fn shown(life: &Life, which: u8, tools: u8) -> Shown {
    match which {
        0 | 1 => Shown::Version(life.version),
        2 => Shown::Digest(digest(life.title, tools)),
        _ => Shown::Version(life.version.saturating_sub(1)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_opens_only_against_an_approval_of_exactly_that(deeds in vec((deed(), who()), 1..40)) {
        let mut life = Life::begin();
        for (deed, by) in deeds {
            match deed {
                Deed::Propose(title) => life.propose(title, &by),
                Deed::Approve { tools, shown: which } => {
                    let shown = shown(&life, which, tools);
                    life.approve(tools, &by, shown);
                }
                Deed::Reject { shown: which } => {
                    let shown = shown(&life, which, 0);
                    life.reject(&by, shown);
                }
                Deed::Open { tools } => life.open(tools),
                Deed::Delete { executing } => life.delete(executing, &by),
                Deed::Revoke { tokens } => life.revoke(&by, tokens),
            }
        }
        life.check_replay();
    }
}

fn ada() -> Principal {
    Principal::person("ada")
}

#[test]
fn the_third_rejection_needs_a_person_to_step_in() {
    let mut life = Life::begin();
    for round in 1..=3 {
        life.reject(&ada(), Shown::Version(round));
        if round < 3 {
            assert_eq!(
                life.review.state(),
                ReviewState::Active(ReviewStage::Rejected)
            );
            life.propose(u8::try_from(round).unwrap(), &Principal::agent("planner"));
        }
    }
    assert_eq!(
        life.review.state(),
        ReviewState::Active(ReviewStage::NeedsReview)
    );
    assert_eq!(life.review.status(None).as_str(), "needs_review");
    life.approve(0, &ada(), Shown::Version(3));
    assert_eq!(
        life.review.state(),
        ReviewState::Active(ReviewStage::Approved),
        "a person may still agree"
    );
}

#[test]
fn a_rejection_takes_back_an_approval_that_was_not_used() {
    let mut life = Life::begin();
    life.propose(1, &ada());
    life.reject(&ada(), Shown::Version(2));
    life.propose(2, &ada());
    life.reject(&ada(), Shown::Version(3));
    life.propose(3, &ada());
    // Agreed to with today's tools, then rejected for the third time, then agreed to with other
    // tools.
    life.approve(0, &ada(), Shown::Version(4));
    life.reject(&ada(), Shown::Version(4));
    life.approve(1, &ada(), Shown::Digest(digest(3, 1)));
    life.open(0);
    assert_eq!(life.runs, 0, "what was rejected came back to life");
    life.open(1);
    assert_eq!(life.runs, 1);
}

#[test]
fn a_version_does_not_say_that_its_tools_are_others_now() {
    let mut life = Life::begin();
    life.approve(1, &ada(), Shown::Version(1));
    assert!(life.granted.is_empty(), "no approver was shown these tools");
    life.approve(1, &ada(), Shown::Digest(digest(0, 1)));
    assert_eq!(life.granted, [digest(0, 1)]);
}

#[test]
fn an_edit_voids_the_approval_and_names_both_digests() {
    let mut life = Life::begin();
    life.approve(0, &ada(), Shown::Version(1));
    let refused = life.review.decide(
        &ReviewCommand::OpenRun {
            run: "run_1".parse().unwrap(),
            digest: digest(0, 1),
        },
        LATER,
    );
    let approved = digest(0, 0);
    let current = digest(0, 1);
    assert_eq!(refused, Err(ReviewRefusal::Changed { approved, current }));
    life.propose(2, &Principal::agent("planner"));
    let refused = life.review.decide(
        &ReviewCommand::OpenRun {
            run: "run_1".parse().unwrap(),
            digest: digest(2, 0),
        },
        LATER,
    );
    assert_eq!(refused, Err(ReviewRefusal::NotApproved));
    // Going back does not bring it back: the author of the edit had changed their mind.
    life.propose(0, &Principal::agent("planner"));
    let refused = life.review.decide(
        &ReviewCommand::OpenRun {
            run: "run_1".parse().unwrap(),
            digest: digest(0, 0),
        },
        LATER,
    );
    assert_eq!(refused, Err(ReviewRefusal::NotApproved));
}

fn proposed(version: u32, restored_from: Option<u32>) -> ReviewEvent {
    let document = document(2);
    let digest = digest(2, 0);
    let by = ada();
    ReviewEvent::PlanProposed {
        version,
        document,
        digest,
        by,
        reason: None,
        restored_from,
        draft: false,
        trace: None,
        planning: None,
    }
}

#[test]
fn a_journal_cannot_say_what_was_never_agreed_to() {
    let life = Life::begin();
    let forged = [
        ReviewEvent::RunOpened {
            run: "run_1".parse().unwrap(),
            version: 1,
            digest: digest(0, 0),
        },
        ReviewEvent::PlanApproved {
            version: 2,
            digest: digest(0, 0),
            by: ada(),
            assurance: Assurance::Terminal,
            terms: Terms::default(),
        },
        ReviewEvent::PlanApproved {
            version: 1,
            digest: digest(0, 0),
            by: Principal::agent("planner"),
            assurance: Assurance::Program,
            terms: Terms::default(),
        },
        ReviewEvent::PlanRejected {
            version: 1,
            by: Principal::agent("planner"),
            reason: "no".into(),
        },
        ReviewEvent::PlanRejected {
            version: 2,
            by: ada(),
            reason: "no".into(),
        },
        proposed(1, None),
        proposed(3, None),
        proposed(2, Some(2)),
        proposed(2, Some(0)),
        ReviewEvent::DraftProposed {
            version: 1,
            by: ada(),
        },
        ReviewEvent::ApprovalRevoked {
            version: 1,
            of: ada(),
            by: ada(),
            given: None,
            reason: None,
        },
    ];
    for event in forged {
        let mut review = life.review.clone();
        let entry = Entry {
            seq: review.seq() + 1,
            at: Timestamp::from_millis(9),
            epoch: 0,
            cause: Cause::Command,
            event: event.clone(),
        };
        assert!(review.apply(&entry).is_err(), "{event:?}");
        assert_eq!(
            format!("{review:?}"),
            format!("{:?}", life.review),
            "a refused entry changes nothing"
        );
    }
}

#[test]
fn the_journal_of_a_plan_begins_with_entry_1() {
    for seq in [0, 2, u64::MAX] {
        let first = Entry {
            seq,
            at: Timestamp::from_millis(9),
            epoch: 0,
            cause: Cause::Command,
            event: proposed(1, None),
        };
        let opened = Review::open("plan-x".parse().unwrap(), &first);
        assert!(
            matches!(opened, Err(Corrupt::Gap { last: 0, found }) if found == seq),
            "{seq}: {opened:?}"
        );
    }
}

#[test]
fn a_rejected_or_deleted_plan_accepts_no_run_and_no_second_decision() {
    for end in [
        ReviewState::Active(ReviewStage::Rejected),
        ReviewState::Deleted,
    ] {
        let mut life = Life::begin();
        life.approve(0, &ada(), Shown::Version(1));
        match end {
            ReviewState::Active(ReviewStage::Rejected) => life.reject(&ada(), Shown::Version(1)),
            _ => life.delete(false, &ada()),
        }
        let at = Timestamp::from_millis(9);
        let run = "run_1".parse().unwrap();
        let digest = digest(0, 0);
        let mut events = vec![ReviewEvent::RunOpened {
            run,
            version: 1,
            digest,
        }];
        if end == ReviewState::Deleted {
            events.push(ReviewEvent::PlanDeleted { by: ada() });
        }
        for event in events {
            let mut review = life.review.clone();
            let seq = review.seq() + 1;
            let entry = Entry {
                seq,
                at,
                epoch: 0,
                cause: Cause::Command,
                event,
            };
            assert!(
                review.apply(&entry).is_err(),
                "{:?} follows {end:?}",
                entry.event
            );
        }
    }
}

fn edit(based_on: u32, title: u8) -> ReviewCommand {
    let document = document(title);
    let digest = digest(title, 0);
    let reason = Some("it was wrong".to_owned());
    ReviewCommand::Edit(Box::new(Revision {
        based_on,
        document,
        digest,
        by: ada(),
        reason,
        restored_from: None,
        planning: None,
    }))
}

#[test]
fn an_edit_of_a_version_that_is_not_current_is_refused_and_names_both() {
    let mut life = Life::begin();
    life.give(&edit(1, 2)).unwrap();
    assert_eq!(
        life.review.current().reason.as_deref(),
        Some("it was wrong")
    );
    let refused = life.give(&edit(1, 4)).unwrap_err();
    assert_eq!(
        refused,
        ReviewRefusal::Conflict {
            based_on: 1,
            current: 2
        }
    );
    assert_eq!(
        refused.to_string(),
        "the plan is at version 2, the edit was made to version 1"
    );
    assert_eq!(
        life.give(&edit(2, 2)),
        Ok(Vec::new()),
        "the same content is the same version"
    );
}

#[test]
fn an_edit_of_words_keeps_the_approval_and_a_run_spends_it_once() {
    let mut life = Life::begin();
    life.approve(0, &ada(), Shown::Version(1));
    life.give(&edit(1, 1)).unwrap();
    assert_eq!(
        life.review.state(),
        ReviewState::Active(ReviewStage::Approved)
    );
    life.title = 1;
    life.version = 2;
    life.open(0);
    assert_eq!(life.runs, 1);
    life.open(0);
    assert_eq!(life.runs, 1, "it was used up");
}

#[test]
fn an_approval_after_an_edit_says_what_it_builds_on() {
    let mut life = Life::begin();
    life.approve(0, &ada(), Shown::Version(1));
    life.propose(2, &ada());
    let before = life.review.approval_before_edit(LATER);
    assert_eq!(
        before,
        Some(BuildsOn {
            version: 1,
            digest: digest(0, 0)
        })
    );
    life.approve(0, &ada(), Shown::Version(2));
    assert_eq!(life.review.approvals()[1].terms.builds_on, before);
    life.open(0);
    life.propose(0, &ada());
    assert_eq!(
        life.review.approval_before_edit(LATER),
        None,
        "what was used up was not voided by an edit"
    );
    life.approve(0, &ada(), Shown::Version(3));
    life.reject(&ada(), Shown::Version(3));
    life.propose(2, &ada());
    assert_eq!(
        life.review.approval_before_edit(LATER),
        None,
        "what was taken back is nothing to build on"
    );
}

#[test]
fn a_draft_is_neither_approved_nor_rejected_nor_run_until_it_is_proposed() {
    let steps = vec![planwright_core::plan::Step::default()];
    let with_steps = Arc::new(Document {
        steps,
        ..(*document(2)).clone()
    });
    let first = Review::draft_first(document(0), digest(0, 0), ada());
    let at = Timestamp::from_millis(1);
    let entry = Entry {
        seq: 1,
        at,
        epoch: 0,
        cause: Cause::Command,
        event: first,
    };
    let mut review = Review::open("plan-x".parse().unwrap(), &entry).unwrap();
    assert_eq!(review.status(None).as_str(), "draft");
    let mut give = |command: &ReviewCommand| {
        let events = review.decide(command, LATER)?;
        for event in &events {
            let seq = review.seq() + 1;
            let entry = Entry {
                seq,
                at,
                epoch: 0,
                cause: Cause::Command,
                event: event.clone(),
            };
            review.apply(&entry).unwrap();
        }
        Ok((events.len(), review.state()))
    };
    let shown = Shown::Version(1);
    let assurance = Assurance::Terminal;
    let approve = ReviewCommand::Approve {
        shown,
        digest: digest(0, 0),
        by: ada(),
        assurance,
        offer: Box::default(),
    };
    let reject = ReviewCommand::Reject {
        shown,
        digest: digest(0, 0),
        by: ada(),
        reason: "no".into(),
    };
    let open = ReviewCommand::OpenRun {
        run: "run_1".parse().unwrap(),
        digest: digest(0, 0),
    };
    for command in [&approve, &reject, &open] {
        assert_eq!(give(command), Err(ReviewRefusal::Draft));
    }
    let propose = ReviewCommand::ProposeDraft { by: ada() };
    assert_eq!(give(&propose), Err(ReviewRefusal::NoSteps));
    let digest = digest(2, 0);
    let by = ada();
    let edit = Revision {
        based_on: 1,
        document: Arc::clone(&with_steps),
        digest,
        by: by.clone(),
        reason: None,
        restored_from: None,
        planning: None,
    };
    assert_eq!(
        give(&ReviewCommand::Edit(Box::new(edit))),
        Ok((1, ReviewState::Active(ReviewStage::Draft))),
        "it stays a draft"
    );
    let again = ReviewCommand::Propose {
        document: Arc::clone(&with_steps),
        digest,
        by: by.clone(),
    };
    assert_eq!(
        give(&again),
        Ok((1, ReviewState::Active(ReviewStage::Proposed)))
    );
    assert_eq!(
        give(&again),
        Ok((0, ReviewState::Active(ReviewStage::Proposed)))
    );
    assert_eq!(
        give(&propose),
        Err(ReviewRefusal::NotADraft(PlanStatus::Proposed))
    );
    let draft = ReviewCommand::Draft {
        document: document(0),
        digest,
        by,
    };
    assert_eq!(
        give(&draft),
        Err(ReviewRefusal::NotADraft(PlanStatus::Proposed))
    );
}
