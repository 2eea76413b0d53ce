//! What a store gives back: journals of plans and runs, and the consent in them.

use planwright_core::digest::Digest;
use planwright_core::event::PlanEvents;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{Entry, Head, Journaled, Record, StreamName, check_chain, decode};
use planwright_core::plan::{Bounds, Document, Plan};
use planwright_core::policy::LateChoice;
use planwright_core::principal::{Assurance, Principal, PrincipalKind};
use planwright_core::review::{Offer, Review, ReviewCommand, ReviewEvent};
use planwright_core::run::{Command, Run, RunEvent, RunReport, Shown, priorities, unit_estimate};
use planwright_core::status::StepStatus;
use planwright_core::time::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most entries of one input: there are golden journals with a hundred.
const MAX_ENTRIES: usize = 200;

/// A line of a journal, as the golden journals have them.
#[derive(Debug, Deserialize)]
struct Line {
    seq: u64,
    at: Timestamp,
    epoch: u64,
    body: Value,
}

impl Line {
    fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    fn record(&self) -> Record {
        Record {
            seq: self.seq,
            at: self.at,
            epoch: self.epoch,
            key: None,
            body: self.body.to_string().into_bytes(),
            hash: Digest::ZERO,
        }
    }
}

/// Reads a journal. That of a run has its plan in the first line.
pub(crate) fn read_journal(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let is_review = Line::read(first).is_some();
    let lines = if is_review { text } else { rest };
    let records: Vec<Record> = lines
        .lines()
        .filter_map(Line::read)
        .take(MAX_ENTRIES)
        .map(|line| line.record())
        .collect();
    let plan: PlanId = "plan-x".parse().expect("an id");
    let run: RunId = "run_x".parse().expect("an id");
    let stream = if is_review {
        StreamName::Plan(plan.clone())
    } else {
        StreamName::Run(run.clone())
    };
    drop(check_chain(Head::EMPTY, &stream, &records));
    let mut events = PlanEvents::new(plan.clone(), Bounds::for_untrusted());
    for record in &records {
        drop(events.push(&stream, record));
    }
    if is_review {
        drop(fold_review(plan, &records));
    } else if let Some(plan) = read_plan(first) {
        fold_run(run, &plan, &records);
    }
}

fn read_plan(text: &str) -> Option<Arc<Plan>> {
    let document: Document = serde_json::from_str(text).ok()?;
    let plan = Plan::compile(document, &Bounds::for_untrusted()).ok()?;
    Some(Arc::new(plan))
}

fn entries<E: Journaled>(records: &[Record]) -> Vec<Entry<E>> {
    records
        .iter()
        .filter_map(|record| decode(record).ok())
        .collect()
}

fn fold_review(id: PlanId, records: &[Record]) -> Option<Review> {
    let mut entries = entries::<ReviewEvent>(records).into_iter();
    let mut review = Review::open(id, &entries.next()?).ok()?;
    for mut entry in entries {
        if review.apply(&entry).is_err() {
            // An entry that cannot follow changes nothing, so the others can be tried in its place.
            let before = format!("{review:?}");
            entry.seq = review.seq().saturating_add(1);
            if review.apply(&entry).is_err() {
                assert_eq!(before, format!("{review:?}"), "{entry:?}");
            }
        }
    }
    review.cached_status();
    review.approval_expires_at();
    Some(review)
}

fn fold_run(id: RunId, plan: &Arc<Plan>, records: &[Record]) {
    let mut entries = entries::<RunEvent>(records).into_iter();
    let Some(first) = entries.next() else { return };
    let priority = priorities(plan, unit_estimate);
    let Ok(mut run) = Run::open(id, Arc::clone(plan), priority, &first) else {
        return;
    };
    for mut entry in entries {
        if run.apply(&entry).is_err() {
            entry.seq = run.seq().saturating_add(1);
            let before = look_at(&run);
            if run.apply(&entry).is_err() {
                assert_eq!(before, look_at(&run), "{entry:?}");
            }
        }
    }
    let now = Timestamp::from_millis(1_800_000_000_000);
    RunReport::new(&run, now);
    for command in [
        Command::Recover,
        Command::Tick,
        Command::AskApprovals,
        Command::Settle,
        Command::Cancel {
            by: Principal::person("ada"),
        },
    ] {
        follow(&run, &command, now);
    }
}

/// Everything a refused entry must not change.
fn look_at(run: &Run) -> (u64, Digest, Vec<StepStatus>) {
    let steps = run.plan().indices().map(|ix| run.step(ix).status());
    (run.seq(), run.steps_digest(), steps.collect())
}

/// What is decided can be noted.
fn follow(run: &Run, command: &Command, now: Timestamp) {
    let Ok(events) = run.decide(command, now) else {
        return;
    };
    let mut run = run.clone();
    for event in events {
        let Some(seq) = run.seq().checked_add(1) else {
            return;
        };
        let entry = Entry {
            seq,
            at: now,
            epoch: 1,
            cause: planwright_core::journal::Cause::Command,
            event,
        };
        run.apply(&entry)
            .unwrap_or_else(|error| panic!("{command:?} decided {entry:?}: {error}"));
    }
}

/// What an approver says, beside the journal of the plan.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Yes {
    by: Principal,
    assurance: Assurance,
    digest: Digest,
    #[serde(default)]
    shown: Option<u32>,
    #[serde(default)]
    late: BTreeMap<String, LateChoice>,
    now: Timestamp,
}

/// Reads the consent in a journal, and what approvers say about it: lines of a journal, then lines
/// of approvers.
pub(crate) fn read_approvals(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let records: Vec<Record> = text
        .lines()
        .filter_map(Line::read)
        .take(MAX_ENTRIES)
        .map(|line| line.record())
        .collect();
    let plan = "plan-x".parse().expect("an id");
    let Some(mut review) = fold_review(plan, &records) else {
        return;
    };
    let said = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    for yes in said.take(8) {
        approve(&mut review, yes);
    }
    let digests: Vec<Digest> = review
        .approvals()
        .iter()
        .map(|given| given.digest)
        .collect();
    for digest in digests {
        for now in [0, 1_700_000_000_000, 4_000_000_000_000] {
            open_run(&mut review, digest, Timestamp::from_millis(now));
        }
    }
}

fn approve(review: &mut Review, yes: Yes) {
    let Yes {
        by,
        assurance,
        digest,
        shown,
        late,
        now,
    } = yes;
    let is_agent = by.kind == PrincipalKind::Agent;
    let shown = shown.map_or(Shown::Digest(digest), Shown::Version);
    let offer = Box::new(Offer {
        late,
        ..Offer::default()
    });
    let command = ReviewCommand::Approve {
        shown,
        digest,
        by,
        assurance,
        offer,
    };
    if let Ok(events) = review.decide(&command, now) {
        assert!(!is_agent, "an agent approved: {command:?}");
        note(review, events, now);
    }
}

/// A run is opened against approvals of exactly its digest, and uses them.
fn open_run(review: &mut Review, digest: Digest, now: Timestamp) {
    let run = RunId::mint(review.seq());
    let spent = |review: &Review| -> usize {
        let approvals = review.approvals().iter();
        approvals.map(|given| given.spent_by.len()).sum()
    };
    let usable = review
        .usable_approvals(&digest, now)
        .map(|given| given.len());
    let before = spent(review);
    let command = ReviewCommand::OpenRun { run, digest };
    if let Ok(events) = review.decide(&command, now) {
        let usable = usable.expect("a run was opened without an approval");
        note(review, events, now);
        // One who agreed twice counts once, and both are used.
        assert!(spent(review) >= before + usable, "approvals are not used");
    }
}

fn note(review: &mut Review, events: Vec<ReviewEvent>, now: Timestamp) {
    for event in events {
        let Some(seq) = review.seq().checked_add(1) else {
            return;
        };
        let entry = Entry {
            seq,
            at: now,
            epoch: 0,
            cause: planwright_core::journal::Cause::Command,
            event,
        };
        review
            .apply(&entry)
            .unwrap_or_else(|error| panic!("decided {entry:?}: {error}"));
    }
}
