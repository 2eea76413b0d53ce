//! Runs: they are opened, call, crash and are folded again.

use super::life::{Life, at};
use crate::consent_oracle::Fingerprint;
use crate::consent_world::{ALWAYS, TOOLS, always_allows, parts};
use planwright_core::digest::{Digest, canonical_json};
use planwright_core::id::RunId;
use planwright_core::journal::{Cause, Entry, Head, StreamName, decode, encode};
use planwright_core::plan::{StepIx, Values};
use planwright_core::policy::{CallToJudge, late_arguments};
use planwright_core::review::{Review, ReviewCommand};
use planwright_core::run::{
    CallFacts, CallReport, Command, Consent, Run, RunEvent, StepError, StoredValue, priorities,
    unit_estimate,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) struct Live {
    pub(super) run: Run,
    pub(super) entries: Vec<Entry<RunEvent>>,
    pub(super) about: Fingerprint,
}

impl Values for Live {
    fn variable(&self, _: &str) -> Option<&Value> {
        None
    }

    fn step(&self, ix: StepIx) -> Option<&Value> {
        match self.run.step(ix).value() {
            Some(StoredValue::Inline(value)) => Some(value),
            _ => Some(&Value::Null),
        }
    }
}

impl Life<'_> {
    /// Two orders given at the same moment: the second finds another head and is not written.
    pub(super) fn race(&mut self) {
        let digest = self.digest();
        let order = |n: u32| ReviewCommand::OpenRun {
            run: format!("run_r{n}").parse().unwrap(),
            digest,
        };
        let before = self.review.clone();
        let second = before.decide(&order(self.runs + 1), at(self.now));
        self.open(false);
        let moved = self.review.seq() != before.seq();
        if let (Ok(events), false) = (second, moved) {
            assert!(
                events.is_empty(),
                "both orders were decided on the same head, and only one may win"
            );
        }
    }

    /// Starts a run, perhaps with less than was approved.
    pub(super) fn open(&mut self, narrower: bool) {
        let digest = self.digest();
        let policy = self.policy();
        let about = self.about();
        if self.judge().denial().is_some() {
            return;
        }
        let plan = self.plan();
        let (chosen, wanted) = match narrower {
            true => self.choose(&plan),
            false => (BTreeMap::new(), Vec::new()),
        };
        let id: RunId = format!("run_{}", self.runs).parse().unwrap();
        let Ok(events) = self.review.decide(
            &ReviewCommand::OpenRun {
                run: id.clone(),
                digest,
            },
            at(self.now),
        ) else {
            self.tally.refused += 1;
            return;
        };
        let spent = self.review.usable_approvals(&digest, at(self.now)).unwrap();
        let consent = Consent::of(&spent, self.review.current(), &policy);
        if consent.find_choice_not_agreed(&chosen).is_some() {
            self.tally.narrowed[0] += 1;
            return;
        }
        self.tally.narrowed[1] += u64::from(!chosen.is_empty());
        self.runs += 1;
        let proposer = self.review.current().by.clone();
        let version = self.review.current().number;
        self.write(events);
        self.oracle.opened((&about, self.now), &proposer, &wanted);
        self.tally.runs += 1;
        let started = RunEvent::RunStarted {
            plan: "p".parse().unwrap(),
            version,
            digest,
            variables: Map::new(),
            max_concurrency: 4,
            guards: true,
            by: proposer,
            forked_from: None,
            undoes: None,
            parent: None,
            document: None,
            consent: Some(Box::new(consent)),
            trace: None,
            reflection: None,
            call_timeout_ms: None,
            stepwise: false,
        };
        // Written down and read back: what is not in the journal does not count.
        let record = encode(
            Head::EMPTY,
            &StreamName::Run(id.clone()),
            at(self.now),
            1,
            Cause::Command,
            &started,
        );
        let entry = decode(&record).unwrap();
        let run = Run::open(
            id,
            Arc::clone(&plan),
            priorities(&plan, unit_estimate),
            &entry,
        )
        .unwrap();
        self.run = Some(Live {
            run,
            entries: vec![entry],
            about,
        });
    }

    /// Everything in memory is lost and folded again.
    pub(super) fn crash(&mut self) {
        let id = self.review.id().clone();
        let mut review = Review::open(id, &self.review_entries[0]).unwrap();
        for entry in &self.review_entries[1..] {
            review.apply(entry).unwrap();
        }
        assert_eq!(
            (review.seq(), review.state()),
            (self.review.seq(), self.review.state())
        );
        assert_eq!(review.approvals().len(), self.review.approvals().len());
        self.review = review;
        let Some(live) = &mut self.run else { return };
        let plan = Arc::clone(live.run.plan());
        let mut run = Run::open(
            live.run.id().clone(),
            Arc::clone(&plan),
            priorities(&plan, unit_estimate),
            &live.entries[0],
        )
        .unwrap();
        for entry in &live.entries[1..] {
            run.apply(entry).unwrap();
        }
        assert_eq!(run.steps_digest(), live.run.steps_digest());
        live.run = run;
        self.command(&Command::Recover);
    }

    /// Gives a command to the run. Returns what it came to; nothing if it was refused.
    pub(super) fn command(&mut self, command: &Command) -> Vec<RunEvent> {
        let now = at(self.now);
        let Some(live) = self.run.as_mut() else {
            return Vec::new();
        };
        if self.setting.policies[live.about.2]
            .permit_command(&live.run, command)
            .is_err()
        {
            return Vec::new();
        }
        let events = live.run.decide(command, now).unwrap_or_default();
        for event in &events {
            let seq = live.run.seq() + 1;
            let entry = Entry {
                seq,
                at: now,
                epoch: 1,
                cause: Cause::Schedule,
                event: event.clone(),
            };
            live.run
                .apply(&entry)
                .expect("what was decided can be applied");
            live.entries.push(entry);
        }
        events
    }

    /// What an engine does in one turn. It continues in a run only if nothing it was approved with
    /// has changed, but a tool may change under a run that goes on.
    pub(super) fn work(&mut self) {
        let digest = self.digest();
        let Some(live) = &self.run else { return };
        let other_policy = live.about.2 != self.policy;
        let stale = digest != live.run.start().digest;
        // A process that began with one policy keeps it; a new one refuses to resume.
        if other_policy || stale && self.dice.below(2) == 0 {
            return;
        }
        self.command(&Command::Tick);
        for asked in self.command(&Command::AskApprovals) {
            if let RunEvent::ApprovalRequested { step, .. } = asked {
                self.oracle.asked(step.as_str(), self.now);
            }
        }
        let now = at(self.now);
        // A process may be late: what it wants to start by then is not for it to say.
        let is_late = self.dice.below(6) == 0;
        let live = self.run.iter();
        let ready: Vec<StepIx> = match is_late {
            true => live.flat_map(|live| live.run.plan().indices()).collect(),
            false => live
                .flat_map(|live| live.run.schedule().startable(now))
                .collect(),
        };
        for ix in ready {
            self.start(ix);
        }
        self.command(&Command::Settle);
    }

    pub(super) fn start(&mut self, ix: StepIx) {
        let Some(live) = &self.run else { return };
        let plan = Arc::clone(live.run.plan());
        // What another plan does is the business of its own run.
        if plan.step(ix).plan.is_some() {
            return;
        }
        let policy = Arc::clone(&self.setting.policies[live.about.2]);
        let catalog = self.setting.catalog(&self.tools);
        let tool = catalog.resolve(plan.step(ix).action_label()).unwrap();
        let args = Arc::new(Value::Object(plan.resolve_args(ix, live).unwrap()));
        let call = Digest::of_parts(&[tool.name.to_string().as_bytes(), &canonical_json(&args)]);
        let subject = CallToJudge {
            tool: Some(tool),
            args: &args,
            unknown: &BTreeSet::new(),
            step: plan.step(ix),
            step_id: plan.step_id(ix).as_str(),
            plan: "p",
            chosen_by_model: false,
        };
        let late = !late_arguments(&plan, ix).is_empty();
        let facts = CallFacts::new(&policy, tool, Arc::clone(&args), late, &subject);
        let name = tool.name.clone();
        let class = tool.class;
        let facts = Some(Box::new(facts));
        let doing = live.about.0;
        let began_with = live.about.2;
        let started = self.command(&Command::Start {
            step: ix,
            tool: name,
            class,
            call,
            facts,
        });
        match started.into_iter().next() {
            Some(RunEvent::AttemptStarted { attempt, .. }) => {
                self.tally.calls += 1;
                let part = parts(doing)
                    .into_iter()
                    .find(|part| part.id == plan.step_id(ix).as_str())
                    .unwrap();
                let tool_at = TOOLS
                    .iter()
                    .position(|name| format!("s.{name}") == part.tool)
                    .unwrap();
                self.oracle
                    .started(&part, &text_of(&args), &self.tools, tool_at);
                self.tally.gated += u64::from(part.gate);
                let always = ALWAYS.contains(&part.tool) && always_allows(began_with, part.tool);
                self.tally.always_calls += u64::from(always);
                self.finish(ix, attempt);
            }
            Some(RunEvent::ApprovalRequested { step, .. }) => {
                self.tally.asked += 1;
                self.oracle.asked(step.as_str(), self.now);
            }
            Some(RunEvent::StepFailed { error, .. }) => match error.code.as_str() {
                "tool_changed" => self.tally.changed += 1,
                "policy_denied" => self.tally.denied += 1,
                "constraint_violated" => self.tally.broken += 1,
                "guard_blocked" => {}
                other => panic!("{other}: {}", error.message),
            },
            other => assert!(other.is_none(), "{other:?}"),
        }
    }

    pub(super) fn finish(&mut self, step: StepIx, attempt: u32) {
        let text = self.dice.pick(&["ok", "evil", "other"]);
        let answer = match self.dice.below(6) {
            0 => CallReport::Failed(StepError::new("busy".into(), "later")),
            1 => CallReport::Lost {
                reason: "gone".into(),
            },
            _ => CallReport::Succeeded(StoredValue::Inline(Arc::new(json!(text)))),
        };
        self.command(&Command::Report {
            step,
            attempt,
            answer,
        });
    }
}

pub(super) fn text_of(args: &Value) -> String {
    args.as_object()
        .and_then(|args| args.values().next()?.as_str())
        .unwrap_or_default()
        .to_owned()
}
