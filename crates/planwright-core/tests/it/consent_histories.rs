//! Random lives of plans: no call starts that a valid approval of exactly that call does not cover,
//! regardless of what is edited, changed, approved, rejected, raced, crashed or waited out.

use crate::consent_oracle::{Choice, Fingerprint, Oracle, Part, To};
use planwright_core::digest::{Digest, canonical_json};
use planwright_core::id::RunId;
use planwright_core::journal::{Cause, Entry, Head, StreamName, decode, encode};
use planwright_core::plan::{Bounds, Document, Plan, StepIx, Values};
use planwright_core::policy::{LateChoice, Policy, PolicyDocument, Subject, late_arguments};
use planwright_core::principal::{Assurance, Principal, PrincipalKind};
use planwright_core::review::{
    Offer, Pin, Review, ReviewCommand, ReviewEvent, ReviewStage, Revision, Revocation,
};
use planwright_core::run::{
    CallFacts, CallReport, Command, Consent, Run, RunEvent, Shown, StepError, StepState,
    StoredValue, priorities, unit_estimate,
};
use planwright_core::time::Timestamp;
use planwright_core::tool::{Annotations, Catalog, EffectClass, KnownTool, ToolDefinition};
use planwright_testing::dice::Dice;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Half of all histories, so that both halves run at once.
const HALF: u64 = 25_000;

/// `PLANWRIGHT_CONSENT_HISTORIES` asks for more of them.
fn half() -> u64 {
    let asked = crate::run_files::setting("PLANWRIGHT_CONSENT_HISTORIES");
    asked.map_or(HALF, |count| {
        count
            .parse::<u64>()
            .expect("the number of histories")
            .div_ceil(2)
    })
}

const TOOLS: [&str; 3] = ["read", "write", "peek"];

fn parts(document: usize) -> Vec<Part> {
    let part = |id, tool, to| Part { id, tool, to };
    let a = part("a", "s.read", To::Absent);
    let b = part("b", "s.write", To::Later);
    let c = part("c", "s.write", To::Known("ok"));
    let c_evil = part("c", "s.write", To::Known("evil"));
    // Its argument is called `of`, which no policy of this world looks at.
    let d = part("d", "s.peek", To::Absent);
    match document % DOINGS {
        0 => vec![a, b],
        1 => vec![a, c],
        2 => vec![a, d],
        3 => vec![a, b, c, d],
        4 => vec![a],
        _ => vec![a, c_evil, b],
    }
}

/// Different things to do.
const DOINGS: usize = 6;
/// Each of them is said in two ways.
const DOCUMENTS: usize = 2 * DOINGS;

fn document(number: usize) -> Document {
    let steps: Vec<Value> = parts(number)
        .iter()
        .map(|part| match (part.id, part.to) {
            ("a", _) => json!({"id": "a", "tool": "s.read"}),
            ("b", _) => json!({"id": "b", "tool": "write", "args": {"to": "${a}"}, "critical": false,
                               "retry": {"max": 2, "on": ["busy"], "backoff": 0.001}}),
            ("c", To::Known(to)) => {
                json!({"id": "c", "tool": "s.write", "args": {"to": to}, "critical": false})
            }
            _ => json!({"id": part.id, "tool": "mcp__s__peek", "args": {"of": "x ${a}"}, "critical": false}),
        })
        .collect();
    serde_json::from_value(json!({"id": "p", "title": format!("take {number}"), "steps": steps}))
        .unwrap()
}

fn policies() -> Vec<Arc<Policy>> {
    let texts = [
        json!({}),
        json!({"rules": [{"tool": "write", "if": "args.to == 'evil'", "then": "deny"},
                         {"tool": "s.write", "if": "args.to == 'ok'", "then": "allow"}],
               "approval": {"expires_after": "10s"}}),
        json!({"approval": {"four_eyes": true, "required": 2, "step_expires_after": "5s"}, "late_bound": "ask"}),
        json!({"guarded_tools": ["Peek"], "rules": [{"tool": "s.read", "then": "allow"}],
               "approval": {"uses": 2, "expires_after": "20s"}}),
        json!({"rules": [{"tool": "s.*", "if": "args.to.size() > 2", "then": "ask"}, {"tool": "*", "then": "allow"}]}),
        json!({"mode": "observe", "rules": [{"tool": "*", "then": "deny"}], "caps": {"s.write": 1}}),
    ];
    let read = |text: &Value| {
        let document: PolicyDocument = serde_json::from_value(text.clone()).unwrap();
        Arc::new(Policy::read(&document).unwrap())
    };
    texts.iter().map(read).collect()
}

fn make_catalog(versions: &[u32]) -> Catalog {
    Catalog::new(TOOLS.iter().zip(versions).map(|(name, version)| {
        let definition = ToolDefinition::new(
            "s",
            name,
            &format!("version {version}"),
            json!({"type": "object"}),
        );
        let annotations = if *name == "write" {
            Annotations::default()
        } else {
            Annotations::read_only()
        };
        KnownTool::new(definition.with_annotations(annotations), EffectClass::Safe)
    }))
}

fn people() -> [Principal; 5] {
    [
        Principal::person("ada"),
        Principal::person("bob"),
        Principal::person("eve"),
        Principal::agent("planner"),
        Principal::service("ci"),
    ]
}

/// What is the same in all histories.
struct Setting {
    policies: Vec<Arc<Policy>>,
    documents: Vec<Arc<Document>>,
    plans: Vec<Arc<Plan>>,
    digests: BTreeMap<Fingerprint, Digest>,
    catalogs: BTreeMap<Vec<u32>, Catalog>,
}

impl Setting {
    fn catalog(&mut self, versions: &[u32]) -> Catalog {
        if !self.catalogs.contains_key(versions) {
            self.catalogs
                .insert(versions.to_vec(), make_catalog(versions));
        }
        self.catalogs[versions].clone()
    }
}

/// What came of all histories.
#[derive(Debug, Default)]
struct Tally {
    calls: u64,
    runs: u64,
    asked: u64,
    agreed: u64,
    changed: u64,
    denied: u64,
    broken: u64,
    expired: u64,
    /// Approvals that outlived an edit of words.
    carried: u64,
    revoked: u64,
    refused: u64,
}

struct Life<'a> {
    setting: &'a mut Setting,
    tally: &'a mut Tally,
    dice: Dice,
    oracle: Oracle,
    now: i64,
    document: usize,
    tools: Vec<u32>,
    policy: usize,
    review: Review,
    review_entries: Vec<Entry<ReviewEvent>>,
    run: Option<Live>,
    runs: u32,
}

struct Live {
    run: Run,
    entries: Vec<Entry<RunEvent>>,
    about: Fingerprint,
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

impl<'a> Life<'a> {
    fn begin(setting: &'a mut Setting, tally: &'a mut Tally, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let document = dice.below(DOCUMENTS);
        let policy = dice.below(setting.policies.len());
        let by = dice.pick(&people());
        let first =
            Review::propose_first(Arc::clone(&setting.documents[document]), Digest::ZERO, by);
        let entry = Entry {
            seq: 1,
            at: at(0),
            epoch: 0,
            cause: Cause::Command,
            event: first,
        };
        let review = Review::open("p".parse().unwrap(), &entry).unwrap();
        let oracle = Oracle::default();
        let tools = vec![0; TOOLS.len()];
        Self {
            setting,
            tally,
            dice,
            oracle,
            document,
            policy,
            review,
            tools,
            now: 0,
            review_entries: vec![entry],
            run: None,
            runs: 0,
        }
    }

    fn about(&self) -> Fingerprint {
        // Only tools that the plan uses are part of what is approved.
        let used: BTreeSet<&str> = parts(self.document).iter().map(|part| part.tool).collect();
        let versions = TOOLS.iter().zip(&self.tools);
        let versions = versions.map(|(name, &version)| {
            if used.contains(&*format!("s.{name}")) {
                version
            } else {
                0
            }
        });
        (self.document % DOINGS, versions.collect(), self.policy)
    }

    fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.setting.policies[self.policy])
    }

    fn digest(&mut self) -> Digest {
        let about = self.about();
        let plan = &self.setting.plans[self.document];
        let policy = &self.setting.policies[self.policy];
        let digests = &mut self.setting.digests;
        *digests.entry(about).or_insert_with_key(|about| {
            plan.digest(
                &make_catalog(&about.1),
                policy.version().unwrap_or("default-1"),
            )
        })
    }

    fn step(&mut self) {
        match self.dice.below(24) {
            0 => self.edit(),
            1 => {
                let tool = self.dice.below(self.tools.len());
                self.tools[tool] = u32::try_from(self.dice.below(3)).unwrap();
            }
            2 => self.policy = self.dice.below(self.setting.policies.len()),
            3 => self.now += i64::try_from(self.dice.below(15_000)).unwrap(),
            4..=7 => self.approve(),
            8 => self.reject(),
            9..=11 => {
                self.open();
                self.work();
                if self.dice.below(4) == 0 {
                    let tool = self.dice.below(self.tools.len());
                    self.tools[tool] += 1;
                }
                self.work();
            }
            12 => self.crash(),
            13..=15 => {
                self.answer_step();
                self.work();
            }
            16 => self.race(),
            17 => self.revoke(),
            _ => self.work(),
        }
    }

    fn give(&mut self, command: &ReviewCommand) -> bool {
        let Ok(events) = self.review.decide(command, at(self.now)) else {
            self.tally.refused += 1;
            return false;
        };
        self.write(events);
        true
    }

    fn write(&mut self, events: Vec<ReviewEvent>) {
        for event in events {
            let seq = self.review.seq() + 1;
            let entry = Entry {
                seq,
                at: at(self.now),
                epoch: 0,
                cause: Cause::Command,
                event,
            };
            self.review
                .apply(&entry)
                .expect("what was decided can be applied");
            self.review_entries.push(entry);
        }
    }

    fn edit(&mut self) {
        // Often the same thing in other words.
        let next = match self.dice.below(3) {
            0 => (self.document + DOINGS) % DOCUMENTS,
            _ => self.dice.below(DOCUMENTS),
        };
        let before = std::mem::replace(&mut self.document, next);
        let by = self.dice.pick(&people());
        let document = Arc::clone(&self.setting.documents[next]);
        let digest = self.digest();
        let current = self.review.current().number;
        let based_on = if self.dice.below(4) == 0 {
            current.wrapping_sub(1)
        } else {
            current
        };
        let command = if self.dice.below(2) == 0 {
            ReviewCommand::Propose {
                document,
                digest,
                by,
            }
        } else {
            let revision = Revision {
                based_on,
                document,
                digest,
                by,
                reason: Some("better".into()),
                restored_from: None,
                planning: None,
            };
            ReviewCommand::Edit(Box::new(revision))
        };
        if !self.give(&command) {
            assert_ne!(
                based_on, current,
                "only an edit of another version is refused"
            );
            self.document = before;
        } else if next != before {
            assert_eq!(self.review.current().number, current + 1);
            let about = self.about();
            self.oracle.edited(&about);
            self.tally.carried += u64::from(self.review.stage() == Some(ReviewStage::Approved));
        }
    }

    fn shown(&mut self, digest: Digest) -> Shown {
        match self.dice.below(12) {
            0 => Shown::Digest(Digest::of_bytes(b"something else")),
            1 => Shown::Version(self.review.current().number.wrapping_sub(1)),
            2 => Shown::Version(self.review.current().number),
            _ => Shown::Digest(digest),
        }
    }

    fn approve(&mut self) {
        let digest = self.digest();
        let policy = self.policy();
        let by = match self.dice.below(6) {
            0 => policy.principal(),
            1 => self.dice.pick(&people()),
            _ => self.dice.pick(&people()[..3]),
        };
        let plan = Arc::clone(&self.setting.plans[self.document]);
        let catalog = self.setting.catalog(&self.tools);
        let judged = policy.judge_plan(&plan, &catalog);
        if judged.denial().is_some() {
            return;
        }
        let mut chosen = BTreeMap::new();
        let mut told = Vec::new();
        for (id, argument) in [("b", "to"), ("d", "of")] {
            let has_late = plan
                .find(id)
                .is_some_and(|ix| !late_arguments(&plan, ix).is_empty());
            let (choice, word) = match self.dice.below(5) {
                0 => (LateChoice::Any, Choice::Any),
                1 => (LateChoice::Ask, Choice::Ask),
                2 => (
                    format!("!args.{argument}.contains('evil')")
                        .parse()
                        .unwrap(),
                    Choice::NotEvil,
                ),
                _ => continue,
            };
            if has_late {
                chosen.insert(id.to_owned(), choice);
                told.push((id, word));
            }
        }
        judged.check_choices(&plan, &chosen).unwrap();
        let pins = plan.tool_names().into_iter().map(|name| {
            let tool = catalog.resolve(name).unwrap();
            (
                tool.name.to_string(),
                Pin {
                    digest: tool.digest,
                    definition: None,
                },
            )
        });
        let offer = Offer {
            asks_about: judged
                .asked_steps()
                .next()
                .map(|step| step.step.to_string()),
            pins: pins.collect(),
            late: judged.late_choices(&chosen, &policy.late_bound),
            only_to_go_on: false,
            policy,
        };
        let token = self.dice.below(2) == 0;
        let assurance = if token {
            Assurance::Token
        } else {
            Assurance::Terminal
        };
        let shown = self.shown(digest);
        let command = ReviewCommand::Approve {
            shown,
            digest,
            by: by.clone(),
            assurance,
            offer: Box::new(offer),
        };
        if self.give(&command) {
            assert!(
                shown == Shown::Digest(digest)
                    || shown == Shown::Version(self.review.current().number)
            );
            let about = self.about();
            let proposer = self.review.current().by.clone();
            let parts = judged_parts(self.document);
            self.oracle
                .approved((&by, &proposer, token), (&about, self.now), &parts, &told);
        }
    }

    fn reject(&mut self) {
        let digest = self.digest();
        let shown = self.shown(digest);
        let by = self.dice.pick(&people());
        let command = ReviewCommand::Reject {
            shown,
            digest,
            by,
            reason: "no".into(),
        };
        if self.give(&command) {
            self.oracle.rejected();
        }
    }

    /// A person takes an approval back, or takes another person's access away.
    fn revoke(&mut self) {
        let of = self.dice.pick(&people());
        let by = self.dice.pick(&people());
        let tokens = self.dice.below(2) == 0;
        let given = tokens.then_some(Assurance::Token);
        let policy = self.policy();
        let revocation = Revocation {
            of: of.clone(),
            by: by.clone(),
            given,
            reason: None,
            policy,
        };
        let before = self.review.seq();
        if self.give(&ReviewCommand::RevokeApprovals(Box::new(revocation))) {
            self.oracle.revoked(&of, &by, tokens);
            self.tally.revoked += self.review.seq() - before;
        }
    }

    /// Two orders given at the same moment: the second finds another head and is not written.
    fn race(&mut self) {
        let digest = self.digest();
        let order = |n: u32| ReviewCommand::OpenRun {
            run: format!("run_r{n}").parse().unwrap(),
            digest,
        };
        let before = self.review.clone();
        let second = before.decide(&order(self.runs + 1), at(self.now));
        self.open();
        let moved = self.review.seq() != before.seq();
        if let (Ok(events), false) = (second, moved) {
            assert!(
                events.is_empty(),
                "both orders were decided on the same head, and only one may win"
            );
        }
    }

    fn open(&mut self) {
        let digest = self.digest();
        let policy = self.policy();
        let about = self.about();
        let catalog = self.setting.catalog(&self.tools);
        let judged = policy.judge_plan(&self.setting.plans[self.document], &catalog);
        if judged.denial().is_some() {
            return;
        }
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
        self.runs += 1;
        let spent = self.review.usable_approvals(&digest, at(self.now)).unwrap();
        let consent = Consent::of(&spent, self.review.current(), &policy);
        let proposer = self.review.current().by.clone();
        let version = self.review.current().number;
        self.write(events);
        self.oracle.opened(&about, self.now, &proposer);
        self.tally.runs += 1;
        let plan = Arc::clone(&self.setting.plans[self.document]);
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
    fn crash(&mut self) {
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

    fn command(&mut self, command: &Command) -> Option<RunEvent> {
        let now = at(self.now);
        let live = self.run.as_mut()?;
        if self.setting.policies[live.about.2]
            .permit_command(command)
            .is_err()
        {
            return None;
        }
        let events = live.run.decide(command, now).ok()?;
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
        events.into_iter().next()
    }

    /// What an engine does in one turn. It goes on with a run only if nothing it was approved with
    /// has changed, but a tool may change under a run that goes on.
    fn work(&mut self) {
        let digest = self.digest();
        let Some(live) = &self.run else { return };
        let other_policy = live.about.2 != self.policy;
        let stale = digest != live.run.start().digest;
        // A process that began with one policy keeps it; a new one refuses to resume.
        if other_policy || stale && self.dice.below(2) == 0 {
            return;
        }
        self.command(&Command::Tick);
        self.command(&Command::AskApprovals);
        let now = at(self.now);
        let ready: Vec<StepIx> = self
            .run
            .iter()
            .flat_map(|live| live.run.schedule().startable(now))
            .collect();
        for ix in ready {
            self.start(ix);
        }
        self.command(&Command::Settle);
    }

    fn start(&mut self, ix: StepIx) {
        let Some(live) = &self.run else { return };
        let plan = Arc::clone(live.run.plan());
        let policy = Arc::clone(&self.setting.policies[live.about.2]);
        let catalog = self.setting.catalog(&self.tools);
        let tool = catalog.resolve(plan.step(ix).action_label()).unwrap();
        let args = Arc::new(Value::Object(plan.resolve_args(ix, live).unwrap()));
        let call = Digest::of_parts(&[tool.name.to_string().as_bytes(), &canonical_json(&args)]);
        let subject = Subject {
            tool: Some(tool),
            args: &args,
            unknown: &BTreeSet::new(),
            step: plan.step(ix),
            step_id: plan.step_id(ix).as_str(),
            plan: "p",
        };
        let late = !late_arguments(&plan, ix).is_empty();
        let facts = CallFacts::new(&policy, tool, Arc::clone(&args), late, &subject);
        let name = tool.name.clone();
        let class = tool.class;
        let facts = Some(Box::new(facts));
        let document = live.about.0;
        match self.command(&Command::Start {
            step: ix,
            tool: name,
            class,
            call,
            facts,
        }) {
            Some(RunEvent::AttemptStarted { attempt, .. }) => {
                self.tally.calls += 1;
                let part = parts(document)
                    .into_iter()
                    .find(|part| part.id == plan.step_id(ix).as_str())
                    .unwrap();
                let tool_at = TOOLS
                    .iter()
                    .position(|name| format!("s.{name}") == part.tool)
                    .unwrap();
                self.oracle
                    .started(&part, &text_of(&args), &self.tools, tool_at);
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

    fn finish(&mut self, step: StepIx, attempt: u32) {
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

    /// A person decides about a step that waits, with the right or the wrong thing on the screen.
    fn answer_step(&mut self) {
        let by = self.dice.pick(&people());
        // People take their time, and some of them too much of it.
        if self.dice.below(3) == 0 {
            self.now += 6_000;
        }
        let Some(live) = &self.run else { return };
        let Some(ix) = live.run.waiting().next() else {
            return;
        };
        let StepState::AwaitingApproval {
            call: Some(asked),
            expires_at,
            ..
        } = live.run.step(ix)
        else {
            return;
        };
        let digest = asked.digest;
        let step = live.run.plan().step_id(ix).to_string();
        let tool = asked.tool.to_string();
        let args = asked.args.clone();
        let plan_digest = live.run.start().digest;
        let late = expires_at.is_some_and(|until| until <= at(self.now));
        let shown = match self.dice.below(6) {
            0 => Shown::Digest(plan_digest),
            1 => Shown::Version(1),
            _ => Shown::Digest(digest),
        };
        if self.dice.below(5) == 0 {
            self.command(&Command::Deny {
                step,
                by,
                shown,
                reason: "no".into(),
            });
            return;
        }
        let command = Command::Approve {
            step: step.clone(),
            by: by.clone(),
            assurance: Assurance::Terminal,
            shown,
        };
        if let Some(RunEvent::ApprovalGranted { .. }) = self.command(&command) {
            assert_eq!(
                shown,
                Shown::Digest(digest),
                "a call was approved that was not shown"
            );
            assert!(!late, "a yes that came too late counted");
            let StoredValue::Inline(args) = args else {
                panic!("small arguments are kept inline")
            };
            self.oracle
                .agreed(&by, self.now, (&step, &tool, &text_of(&args)));
            self.tally.agreed += 1;
        } else if late && by.kind == PrincipalKind::Person {
            self.tally.expired += 1;
        }
    }
}

/// What the oracle is told of a plan before it runs.
fn judged_parts(document: usize) -> Vec<Part> {
    parts(document)
        .into_iter()
        .map(|part| {
            if part.id == "d" {
                Part {
                    to: To::Later,
                    ..part
                }
            } else {
                part
            }
        })
        .collect()
}

fn text_of(args: &Value) -> String {
    args.as_object()
        .and_then(|args| args.values().next()?.as_str())
        .unwrap_or_default()
        .to_owned()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_000_000 + millis)
}

/// Lives through these histories; the oracle stops at the first call that was not covered.
fn live_through(seeds: std::ops::Range<u64>) {
    let plans =
        (0..DOCUMENTS).map(|number| Plan::compile(document(number), &Bounds::default()).unwrap());
    let mut setting = Setting {
        policies: policies(),
        documents: (0..DOCUMENTS)
            .map(|number| Arc::new(document(number)))
            .collect(),
        plans: plans.map(Arc::new).collect(),
        digests: BTreeMap::new(),
        catalogs: BTreeMap::new(),
    };
    let mut tally = Tally::default();
    for seed in seeds {
        let mut life = Life::begin(&mut setting, &mut tally, seed);
        for _ in 0..26 {
            life.step();
        }
    }
    let Tally {
        calls,
        runs,
        asked,
        agreed,
        changed,
        denied,
        broken,
        expired,
        carried,
        revoked,
        refused,
    } = tally;
    // It must not pass by doing nothing.
    let enough = [
        calls > 20_000,
        runs > 10_000,
        asked > 1_000,
        agreed > 200,
        changed > 500,
        carried > 500,
    ];
    let enough_noes = [
        denied > 50,
        broken > 300,
        expired > 20,
        revoked > 500,
        refused > 50_000,
    ];
    assert!(
        enough.iter().chain(&enough_noes).all(|&enough| enough),
        "{tally:?}"
    );
}

#[test]
fn no_call_starts_without_a_valid_approval_of_exactly_that_call() {
    let half = half();
    live_through(1..half + 1);
}

#[test]
fn nor_in_as_many_other_histories() {
    let half = half();
    live_through(half + 1..2 * half + 1);
}
