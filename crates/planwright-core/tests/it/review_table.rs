//! The tables of a plan's review, looked at from outside: every state with every command, and with
//! every event that a journal could hold.

use crate::run_files;
use planwright_core::digest::Digest;
use planwright_core::journal::{Cause, Entry};
use planwright_core::plan::{Document, Step};
use planwright_core::policy::{Policy, PolicyDocument};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::{
    Approval, ApprovalState, CommentCommand, Creation, Offer, Review, ReviewCommand, ReviewEvent,
    ReviewStage, ReviewState, Revision, Revocation, RunRequest, Terms,
};
use planwright_core::run::Shown;
use planwright_core::status::RunStatus;
use planwright_core::time::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

const BEGIN: Timestamp = Timestamp::from_millis(1_700_000_000_000);
/// More than an hour and less than a day later.
const LATER: Timestamp = Timestamp::from_millis(BEGIN.as_millis() + 7_200_000);
/// More than a week later.
const MUCH_LATER: Timestamp = Timestamp::from_millis(BEGIN.as_millis() + 1_000_000_000);
const MONTHS_LATER: Timestamp = Timestamp::from_millis(BEGIN.as_millis() + 10_000_000_000);

fn ada() -> Principal {
    Principal::person("ada")
}

fn planner() -> Principal {
    Principal::agent("planner")
}

fn document(content: u8) -> Arc<Document> {
    Arc::new(Document {
        id: Some("plan-x".parse().unwrap()),
        title: Some(format!("take {content}")),
        steps: vec![Step {
            id: Some("a".parse().unwrap()),
            tool: Some("r.read".into()),
            ..Step::default()
        }],
        ..Document::default()
    })
}

fn digest(content: u8) -> Digest {
    Digest::of_bytes(&[content])
}

/// A plan in a state, with the content of its current version.
#[derive(Clone)]
struct Life {
    review: Review,
    content: u8,
    now: Timestamp,
}

impl Life {
    fn begin(draft: bool) -> Self {
        let creation = Creation {
            document: document(1),
            digest: digest(1),
            by: planner(),
            draft,
        };
        let entry = entry(1, BEGIN, creation.first_event());
        Self {
            review: Review::open("plan-x".parse().unwrap(), &entry).unwrap(),
            content: 1,
            now: BEGIN,
        }
    }

    fn proposed() -> Self {
        Self::begin(false)
    }

    /// Proposed, and approved on these terms.
    fn approved(approval: Value) -> Self {
        Self::proposed().then(&approve(1, approval))
    }

    fn then(mut self, command: &ReviewCommand) -> Self {
        let events = self.review.decide(command, self.now).unwrap();
        assert!(!events.is_empty(), "{command:?} does nothing");
        for event in events {
            let entry = entry(self.review.seq() + 1, self.now, event);
            self.review.apply(&entry).unwrap();
        }
        self
    }

    /// A journal that only a fault could write, and that is read nevertheless.
    fn forced(mut self, event: ReviewEvent) -> Self {
        let entry = entry(self.review.seq() + 1, self.now, event);
        self.review.apply(&entry).unwrap();
        self
    }

    fn at(mut self, now: Timestamp) -> Self {
        self.now = now;
        self
    }

    fn edited(mut self) -> Self {
        self = self.clone().then(&edit(&self, 2));
        self.content = 2;
        self
    }

    fn rejected() -> Self {
        Self::approved(json!({})).then(&reject(1))
    }

    fn rejected_thrice() -> Self {
        let mut life = Self::proposed();
        for content in 1..=3 {
            if content > 1 {
                life = life.clone().then(&edit(&life, content));
                life.content = content;
            }
            life = life.then(&reject(content));
        }
        life
    }

    fn archived(self) -> Self {
        let latest_run = (!self.review.runs().is_empty()).then_some(RunStatus::Completed);
        self.then(&ReviewCommand::Archive {
            by: ada(),
            latest_run,
        })
    }

    fn deleted(self) -> Self {
        self.then(&ReviewCommand::Delete {
            by: ada(),
            executing: false,
        })
    }

    fn opened() -> Self {
        Self::approved(json!({})).then(&open_run(1))
    }

    fn expired() -> Self {
        Self::approved(json!({}))
            .at(MUCH_LATER)
            .then(&ReviewCommand::Expire {
                after_days: 7,
                latest_run: None,
            })
    }
}

fn entry(seq: u64, at: Timestamp, event: ReviewEvent) -> Entry<ReviewEvent> {
    Entry {
        seq,
        at,
        epoch: 0,
        cause: Cause::Command,
        event,
    }
}

fn approve(content: u8, approval: Value) -> ReviewCommand {
    let policy: PolicyDocument = serde_json::from_value(json!({ "approval": approval })).unwrap();
    ReviewCommand::Approve {
        shown: Shown::Digest(digest(content)),
        digest: digest(content),
        by: ada(),
        assurance: Assurance::Terminal,
        offer: Box::new(Offer {
            policy: Arc::new(Policy::read(&policy).unwrap()),
            ..Offer::default()
        }),
    }
}

fn reject(content: u8) -> ReviewCommand {
    ReviewCommand::Reject {
        shown: Shown::Digest(digest(content)),
        digest: digest(content),
        by: ada(),
        reason: "no".into(),
    }
}

fn request_changes(content: u8) -> ReviewCommand {
    ReviewCommand::RequestChanges {
        shown: Shown::Digest(digest(content)),
        digest: digest(content),
        by: ada(),
        reason: "name the file".into(),
    }
}

fn open_run(content: u8) -> ReviewCommand {
    ReviewCommand::OpenRun {
        run: "run_x".parse().unwrap(),
        digest: digest(content),
    }
}

fn request_run(content: u8) -> ReviewCommand {
    ReviewCommand::RequestRun(Box::new(RunRequest {
        digest: digest(content),
        variables: serde_json::Map::new(),
        by: planner(),
        trace: None,
    }))
}

fn edit(life: &Life, content: u8) -> ReviewCommand {
    ReviewCommand::Edit(Box::new(Revision {
        based_on: life.review.current().number,
        document: document(content),
        digest: digest(content),
        by: planner(),
        reason: None,
        restored_from: None,
        planning: None,
    }))
}

fn revoke(by: Principal) -> ReviewCommand {
    ReviewCommand::RevokeApprovals(Box::new(Revocation {
        of: ada(),
        by,
        given: None,
        reason: None,
        policy: Arc::default(),
    }))
}

fn archive() -> ReviewEvent {
    ReviewEvent::PlanArchived { by: ada() }
}

/// Plans in every state, with approvals in every state.
fn lives() -> Vec<(&'static str, Life)> {
    let expiring = || Life::approved(json!({ "expires_after": "1h" })).at(LATER);
    vec![
        ("draft", Life::begin(true)),
        ("proposed", Life::proposed()),
        (
            "proposed, one of two has approved",
            Life::approved(json!({ "required": 2 })),
        ),
        (
            "proposed, and a run requested",
            Life::proposed().then(&request_run(1)),
        ),
        ("approved", Life::approved(json!({}))),
        (
            "approved, and a run requested",
            Life::proposed()
                .then(&request_run(1))
                .then(&approve(1, json!({}))),
        ),
        (
            "approved for two runs, one was opened",
            Life::approved(json!({ "uses": 2, "expires_after": "1h" })).then(&open_run(1)),
        ),
        ("approved, too long ago", expiring()),
        (
            "approved too long ago, as was noted",
            expiring().then(&ReviewCommand::ExpireApprovals),
        ),
        ("approved, and a run was opened", Life::opened()),
        (
            "approved, and revoked",
            Life::approved(json!({})).then(&revoke(ada())),
        ),
        ("approved, and edited", Life::approved(json!({})).edited()),
        (
            "approved, edited, and revoked",
            Life::approved(json!({})).edited().then(&revoke(ada())),
        ),
        ("rejected", Life::rejected()),
        ("rejected three times", Life::rejected_thrice()),
        (
            "changes requested",
            Life::approved(json!({})).then(&request_changes(1)),
        ),
        ("expired", Life::expired()),
        ("archived after a run", Life::opened().archived()),
        ("archived when rejected", Life::rejected().archived()),
        (
            "archived when rejected three times",
            Life::rejected_thrice().archived(),
        ),
        (
            "archived when changes were requested",
            Life::approved(json!({}))
                .then(&request_changes(1))
                .archived(),
        ),
        ("archived when expired", Life::expired().archived()),
        (
            "archived as a draft, by a fault",
            Life::begin(true).forced(archive()),
        ),
        (
            "archived when approved, by a fault",
            Life::approved(json!({})).forced(archive()),
        ),
        ("deleted", Life::approved(json!({})).deleted()),
        (
            "archived, and deleted",
            Life::rejected().archived().deleted(),
        ),
    ]
}

/// Every command, about the content that is current where it makes a difference.
fn commands(life: &Life) -> Vec<(&'static str, ReviewCommand)> {
    let content = life.content;
    let propose = |content| ReviewCommand::Propose {
        document: document(content),
        digest: digest(content),
        by: planner(),
    };
    let draft = |content| ReviewCommand::Draft {
        document: document(content),
        digest: digest(content),
        by: planner(),
    };
    let create = |draft| {
        ReviewCommand::Create(Creation {
            document: document(9),
            digest: digest(9),
            by: planner(),
            draft,
        })
    };
    let approve_by = |who: Principal| {
        let mut command = approve(content, json!({}));
        if let ReviewCommand::Approve { by, .. } = &mut command {
            *by = who;
        }
        command
    };
    vec![
        ("create", create(false)),
        ("create a draft", create(true)),
        ("propose the same", propose(content)),
        ("propose another", propose(9)),
        ("draft the same", draft(content)),
        ("draft another", draft(9)),
        (
            "propose the draft",
            ReviewCommand::ProposeDraft { by: ada() },
        ),
        ("edit", edit(life, 9)),
        ("edit to the same", edit(life, content)),
        ("approve", approve_by(ada())),
        ("approve by another", approve_by(Principal::person("bob"))),
        ("approve by an agent", approve_by(planner())),
        ("approve another digest", approve(9, json!({}))),
        ("reject", reject(content)),
        ("request changes", request_changes(content)),
        ("open a run", open_run(content)),
        ("open a run of another digest", open_run(9)),
        ("request a run", request_run(content)),
        ("request a run of another", request_run(9)),
        (
            "delete",
            ReviewCommand::Delete {
                by: ada(),
                executing: false,
            },
        ),
        (
            "delete while it executes",
            ReviewCommand::Delete {
                by: ada(),
                executing: true,
            },
        ),
        (
            "expire",
            ReviewCommand::Expire {
                after_days: 1,
                latest_run: None,
            },
        ),
        ("expire approvals", ReviewCommand::ExpireApprovals),
        ("revoke", revoke(ada())),
        ("revoke by an agent", revoke(planner())),
        (
            "archive",
            ReviewCommand::Archive {
                by: ada(),
                latest_run: Some(RunStatus::Completed),
            },
        ),
        ("unarchive", ReviewCommand::Unarchive { by: ada() }),
        (
            "comment",
            ReviewCommand::Comment(CommentCommand::Add {
                comment: "cmt_x".parse().unwrap(),
                on: None,
                reply_to: None,
                by: planner(),
                text: "why?".into(),
            }),
        ),
    ]
}

/// Every event that can change a state, about the current version.
fn events(life: &Life) -> Vec<(&'static str, ReviewEvent)> {
    let version = life.review.current().number;
    let written = |content, draft| ReviewEvent::PlanProposed {
        version: version + 1,
        document: document(content),
        digest: digest(content),
        by: planner(),
        reason: None,
        restored_from: None,
        draft,
        trace: None,
        planning: None,
    };
    let reason = || "no".to_owned();
    let current = digest(life.content);
    vec![
        ("other words proposed", written(life.content, false)),
        ("another version proposed", written(9, false)),
        ("other words drafted", written(life.content, true)),
        (
            "draft proposed",
            ReviewEvent::DraftProposed { version, by: ada() },
        ),
        (
            "approved",
            ReviewEvent::PlanApproved {
                version,
                digest: current,
                by: ada(),
                assurance: Assurance::Terminal,
                terms: Terms::default(),
            },
        ),
        (
            "approved by an agent",
            ReviewEvent::PlanApproved {
                version,
                digest: current,
                by: planner(),
                assurance: Assurance::Terminal,
                terms: Terms::default(),
            },
        ),
        (
            "rejected",
            ReviewEvent::PlanRejected {
                version,
                by: ada(),
                reason: reason(),
            },
        ),
        (
            "changes requested",
            ReviewEvent::ChangesRequested {
                version,
                by: ada(),
                reason: reason(),
            },
        ),
        (
            "run opened",
            ReviewEvent::RunOpened {
                run: "run_y".parse().unwrap(),
                version,
                digest: current,
            },
        ),
        (
            "run requested",
            ReviewEvent::RunRequested {
                version,
                digest: current,
                variables: serde_json::Map::new(),
                by: planner(),
                trace: None,
            },
        ),
        (
            "expired",
            ReviewEvent::PlanExpired {
                version,
                after_days: 1,
            },
        ),
        (
            "approval expired",
            ReviewEvent::ApprovalExpired {
                version,
                digest: current,
            },
        ),
        (
            "approval revoked",
            ReviewEvent::ApprovalRevoked {
                version,
                of: ada(),
                by: ada(),
                given: None,
                reason: None,
            },
        ),
        ("archived", archive()),
        ("unarchived", ReviewEvent::PlanUnarchived { by: ada() }),
        ("deleted", ReviewEvent::PlanDeleted { by: ada() }),
    ]
}

fn name_approval_state(approval: &Approval, now: Timestamp) -> &'static str {
    match approval.state(now) {
        ApprovalState::Open => "open",
        ApprovalState::Spent => "spent",
        ApprovalState::Expired => "expired",
        ApprovalState::Withdrawn => "withdrawn",
        ApprovalState::Revoked(_) => "revoked",
        ApprovalState::Superseded => "superseded",
    }
}

/// The state of the plan, and of its approvals.
fn describe(review: &Review, now: Timestamp) -> String {
    let archived = if review.is_archived() {
        "archived "
    } else {
        ""
    };
    let approvals: Vec<&str> = review
        .approvals()
        .iter()
        .map(|approval| name_approval_state(approval, now))
        .collect();
    let approvals = match approvals.as_slice() {
        [] => String::new(),
        some => format!(" [{}]", some.join(", ")),
    };
    let requested = match (review.requested_run(now), review.startable_run(now)) {
        (None, _) => "",
        (Some(_), None) => ", a run requested",
        (Some(_), Some(_)) => ", a run requested and approved",
    };
    format!(
        "{archived}{}{approvals}{requested}",
        review.state().status()
    )
}

#[test]
fn every_command_in_every_state_does_what_is_written_down() {
    let mut text = String::from(
        "What a command does to a plan: state, command, the state that follows or the refusal. In brackets: its approvals.\n\
         Rewritten with UPDATE_DOCS=1.\n",
    );
    for (name, life) in lives() {
        writeln!(text, "\n{name}: {}", describe(&life.review, life.now)).unwrap();
        for (command_name, command) in commands(&life) {
            let life = match command {
                // Long enough for everything that can expire.
                ReviewCommand::Expire { .. } => life.clone().at(MONTHS_LATER),
                _ => life.clone(),
            };
            let outcome = match life.review.decide(&command, life.now) {
                Err(refusal) => format!("refused: {refusal}"),
                Ok(events) if events.is_empty() => "nothing".to_owned(),
                Ok(_) => {
                    let after = life.then(&command);
                    format!("-> {}", describe(&after.review, after.now))
                }
            };
            writeln!(text, "  {command_name:<28} {outcome}").unwrap();
        }
    }
    run_files::check("tables/review_commands.txt", &text);
}

#[test]
fn every_event_in_every_state_leads_where_is_written_down() {
    let mut text = String::from(
        "What can happen to a plan: state, event, the state that follows. In brackets: its approvals.\n\
         Every pair that is not listed cannot be in a journal. Rewritten with UPDATE_DOCS=1.\n",
    );
    for (name, life) in lives() {
        let before = format!("{:?}", life.review);
        writeln!(text, "\n{name}: {}", describe(&life.review, life.now)).unwrap();
        for (event_name, event) in events(&life) {
            let mut after = life.review.clone();
            let entry = entry(after.seq() + 1, life.now, event);
            if after.apply(&entry).is_ok() {
                let after = describe(&after, life.now);
                writeln!(text, "  {event_name:<28} -> {after}").unwrap();
            } else {
                let after = format!("{after:?}");
                assert_eq!(after, before, "{name} was changed by {event_name}");
            }
        }
    }
    run_files::check("tables/review_events.txt", &text);
}

#[test]
fn every_state_is_in_the_tables() {
    let mut stages = BTreeSet::new();
    let mut approvals = BTreeSet::new();
    for (_, life) in lives() {
        stages.insert(match life.review.state() {
            ReviewState::Active(stage) => ("active", Some(name_stage(stage))),
            ReviewState::Archived(stage) => ("archived", Some(name_stage(stage))),
            ReviewState::Deleted => ("deleted", None),
        });
        let of_plan = life.review.approvals().iter();
        approvals.extend(of_plan.map(|approval| name_approval_state(approval, life.now)));
    }
    assert_eq!(stages.len(), 7 + 7 + 1, "{stages:?}");
    assert_eq!(approvals.len(), 6, "{approvals:?}");
}

/// Names each stage once, so that a new one cannot be left out of the tables.
fn name_stage(stage: ReviewStage) -> &'static str {
    stage.status().as_str()
}
