//! Random lives of plans: no call starts that a valid approval of exactly that call does not cover,
//! regardless of what is edited, written anew, changed, approved, rejected, narrowed, always allowed,
//! paused, left out, cancelled, raced, crashed or waited out.

use crate::consent_oracle::{Choice, Fingerprint, Oracle, Part, To};
use crate::consent_world::{
    ALWAYS, BASES, DOCUMENTS, DOINGS, GATED, RUNS_PLAN, TOOLS, always_allows, compile, document,
    make_catalog, parts, people, policies, title, with_always,
};
use planwright_core::adjust::{Adjustable, Adjustment, StepProgress};
use planwright_core::digest::{Digest, canonical_json};
use planwright_core::id::RunId;
use planwright_core::journal::{Cause, Entry, Head, StreamName, decode, encode};
use planwright_core::plan::{Bounds, Document, Plan, StepIx, Values};
use planwright_core::planning::merge_steps;
use planwright_core::policy::{JudgedPlan, LateChoice, Policy, Subject, late_arguments};
use planwright_core::principal::{Assurance, PrincipalKind};
use planwright_core::review::{
    Offer, Pin, Review, ReviewCommand, ReviewEvent, ReviewStage, Revision, Revocation,
    find_choice_not_agreed,
};
use planwright_core::run::{
    CallFacts, CallReport, Command, Consent, Run, RunEvent, RunState, Shown, StepError, StepState,
    StoredValue, priorities, unit_estimate,
};
use planwright_core::time::Timestamp;
use planwright_core::tool::Catalog;
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

/// What is the same in all histories.
struct Setting {
    policies: Vec<Arc<Policy>>,
    documents: Vec<Arc<Document>>,
    /// Each with either of the plans that it may run.
    plans: Vec<[Arc<Plan>; 2]>,
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
    /// Steps that a planner or a reflection wrote anew, and that were to keep their gate.
    rewritten: u64,
    /// Calls behind a gate.
    gated: u64,
    /// Policy was refused because a safeguard was lost.
    lost: u64,
    /// Tools that people allowed for good, and calls that went without a question for it.
    always: u64,
    always_calls: u64,
    /// Runs that were to be narrower than approved: refused, and begun.
    narrowed: [u64; 2],
    /// Approvals of something that was looked at before: refused, and given.
    looked: [u64; 2],
    /// Pauses of people that a program wanted to lift, and that a person lifted.
    pauses: [u64; 2],
    /// Steps that were not to be left out, and that were.
    left_out: [u64; 2],
    cancelled: u64,
    /// Runs that were not to be taken back, and that were.
    undone: [u64; 2],
}

/// Something that a person looked at, to decide about it later.
#[derive(Debug, Clone)]
struct Look {
    version: u32,
    digest: Digest,
    about: Fingerprint,
}

struct Life<'a> {
    setting: &'a mut Setting,
    tally: &'a mut Tally,
    dice: Dice,
    oracle: Oracle,
    now: i64,
    /// What the current version is meant to be.
    document: usize,
    /// What it is, compiled with either child.
    plans: [Arc<Plan>; 2],
    /// It is what it is meant to be.
    as_meant: bool,
    /// The plan that `RUNS_PLAN` runs.
    child: usize,
    look: Option<Look>,
    /// What the current version was about when it was proposed.
    proposed: Option<Fingerprint>,
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
        let policy = dice.below(BASES);
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
        let mut oracle = Oracle::default();
        oracle.proposed(document % DOINGS);
        let tools = vec![0; TOOLS.len()];
        let plans = setting.plans[document].clone();
        Self {
            setting,
            tally,
            dice,
            oracle,
            document,
            plans,
            as_meant: true,
            child: 0,
            look: None,
            proposed: None,
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
        let doing = self.doing();
        let used: BTreeSet<&str> = parts(doing).iter().map(|part| part.tool).collect();
        let versions = TOOLS.iter().zip(&self.tools);
        let versions = versions.map(|(name, &version)| {
            if used.contains(&*format!("s.{name}")) {
                version
            } else {
                0
            }
        });
        // No person is asked about `undo` here, but its tool is pinned: it is `s.read`, as `a` is.
        (doing, versions.collect(), self.policy)
    }

    /// What the plan does, with the child as it is.
    fn doing(&self) -> usize {
        match self.document % DOINGS {
            RUNS_PLAN => RUNS_PLAN + self.child,
            doing => doing,
        }
    }

    /// The plan as it would run now.
    fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plans[self.child])
    }

    fn judge(&mut self) -> JudgedPlan {
        let catalog = self.setting.catalog(&self.tools);
        self.policy().judge_plan(&self.plans[self.child], &catalog)
    }

    fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.setting.policies[self.policy])
    }

    fn digest(&mut self) -> Digest {
        let about = self.about();
        let plan = &self.plans[self.child];
        let policy = &self.setting.policies[self.policy];
        let take = |about: &Fingerprint| {
            plan.digest(
                &make_catalog(&about.1),
                policy.version().unwrap_or("default-1"),
            )
        };
        if !self.as_meant {
            return take(&about);
        }
        let digests = &mut self.setting.digests;
        *digests.entry(about).or_insert_with_key(take)
    }

    fn step(&mut self) {
        match self.dice.below(32) {
            0 => self.edit(),
            24 => self.rewrite(),
            25 => self.child = self.dice.below(2),
            26 => self.look(),
            27 if self.dice.below(4) == 0 => self.allow_for_good(),
            28 | 29 => self.stand_still(),
            30 => self.leave_out(),
            31 if self.dice.below(2) == 0 => self.end(),
            1 => {
                let tool = self.dice.below(self.tools.len());
                self.tools[tool] = u32::try_from(self.dice.below(3)).unwrap();
            }
            // What people always allow stays theirs when the operator changes the rules, until they
            // take it back.
            2 => {
                let always = if self.dice.below(4) == 0 {
                    0
                } else {
                    self.policy / BASES
                };
                self.policy = self.dice.below(BASES) + BASES * always;
            }
            3 => self.now += i64::try_from(self.dice.below(15_000)).unwrap(),
            4..=7 => self.approve(),
            8 => self.reject(),
            9..=11 => {
                let narrower = self.dice.below(8) == 0;
                self.open(narrower);
                if self.dice.below(5) == 0 {
                    self.leave_out();
                }
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
        let document = Arc::clone(&self.setting.documents[next]);
        self.revise(next, document);
    }

    /// A planner or a reflection writes the gated step anew, and says nothing of its gate.
    fn rewrite(&mut self) {
        let doing = self.document % DOINGS;
        if !GATED.contains(&doing) {
            return;
        }
        let before = Arc::clone(&self.review.current().document);
        let evil = self.dice.below(2);
        let next = self.document - doing + GATED[evil];
        let to = ["ok", "evil"][evil];
        let step = json!({"id": "c", "tool": "s.write", "args": {"to": to}, "critical": false});
        let mut document = match self.dice.below(3) {
            0 => {
                let answer = json!({"title": "anew", "steps": [step]});
                let answer: Document = serde_json::from_value(answer).unwrap();
                merge_steps(&before, &["c".parse().unwrap()], answer).unwrap()
            }
            1 => {
                let replace = json!({"type": "replace", "step": "c", "new": step});
                adjust(&before, replace)
            }
            _ => {
                let modify = json!({"type": "modify", "step": "c", "args": {"to": to}});
                adjust(&before, modify)
            }
        };
        document.title = Some(title(next));
        self.tally.rewritten += 1;
        self.revise(next, Arc::new(document));
    }

    /// Proposes a document that is meant to be `next`.
    fn revise(&mut self, next: usize, document: Arc<Document>) {
        let by = self.dice.pick(&people());
        // A program does not bring back what was rejected too often.
        if self.review.stage() == Some(ReviewStage::NeedsReview) && by.kind != PrincipalKind::Person
        {
            return;
        }
        let as_meant = *document == *self.setting.documents[next];
        let plans = match as_meant {
            true => self.setting.plans[next].clone(),
            false => [0, 1].map(|child| Arc::new(compile((*document).clone(), child))),
        };
        let before = (
            std::mem::replace(&mut self.document, next),
            std::mem::replace(&mut self.plans, plans),
            std::mem::replace(&mut self.as_meant, as_meant),
        );
        let digest = self.digest();
        let current = self.review.current().number;
        let is_same = *self.review.current().document == *document;
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
            (self.document, self.plans, self.as_meant) = before;
        } else if !is_same {
            assert_eq!(self.review.current().number, current + 1);
            let about = self.about();
            self.oracle.proposed(about.0);
            self.proposed = Some(about.clone());
            self.oracle.edited(&about);
            self.tally.carried += u64::from(self.review.stage() == Some(ReviewStage::Approved));
        }
    }

    /// A person looks at the plan as it is now, and decides about it later.
    fn look(&mut self) {
        self.look = Some(Look {
            version: self.review.current().number,
            digest: self.digest(),
            about: self.about(),
        });
    }

    /// A person at the question about the plan allows what it asks about for good.
    fn allow_for_good(&mut self) {
        let by = self.dice.pick(&people()[..3]);
        let catalog = self.setting.catalog(&self.tools);
        let judged = self.judge();
        let rules = judged.narrowest_rules(&self.plans[self.child], &catalog);
        for rule in rules {
            assert_eq!(
                rule.condition, None,
                "the tools of this world have no known arguments"
            );
            let shown = judged_parts(self.doing());
            Oracle::always(&by, self.policy, &rule.tool, &shown);
            self.policy = with_always(self.policy, &rule.tool);
            self.tally.always += 1;
        }
    }

    /// A principal wants the run to stand still, or to go on.
    fn stand_still(&mut self) {
        let by = self.dice.pick(&people());
        let Some(live) = &self.run else { return };
        if *live.run.state() != RunState::Paused || self.dice.below(4) == 0 {
            self.command(&Command::Pause { by: by.clone() });
            // Every principal here may pause: what was said counts, whether it had to be written or not.
            let stands = |live: &Live| *live.run.state() == RunState::Paused;
            if self.run.as_ref().is_some_and(stands) {
                self.oracle.paused(&by);
            }
            return;
        }
        let by_person = live.run.is_paused_by_person();
        let resumed = self.command(&Command::Resume { by: by.clone() });
        if resumed.is_empty() {
            self.tally.pauses[0] += u64::from(by_person);
        } else {
            self.oracle.resumed(&by);
            self.tally.pauses[1] += u64::from(by_person);
        }
    }

    /// A principal wants a step left out.
    fn leave_out(&mut self) {
        let by = match self.dice.below(3) {
            0 => self.review.current().by.clone(),
            _ => self.dice.pick(&people()),
        };
        let step = self.dice.pick(&["a", "a", "b", "c"]).to_owned();
        let Some(live) = &self.run else { return };
        let Some(ix) = live.run.find(&step) else {
            return;
        };
        let is_waited_for = live.run.plan().indices().any(|other| {
            let waits = live.run.plan().graph().dependencies(other);
            waits.contains(&ix)
        });
        let reason = String::new();
        let done = self.command(&Command::LeaveOut {
            step,
            by: by.clone(),
            reason,
        });
        if done.is_empty() {
            self.tally.left_out[0] += u64::from(is_waited_for);
        } else {
            self.oracle.left_out(&by, is_waited_for);
            self.tally.left_out[1] += u64::from(is_waited_for);
        }
    }

    /// A principal cancels the run, or takes it back if it has ended.
    fn end(&mut self) {
        let by = self.dice.pick(&people());
        let Some(live) = &self.run else { return };
        if !live.run.state().is_terminal() {
            if !self.command(&Command::Cancel { by }).is_empty() {
                self.oracle.cancelled();
                self.tally.cancelled += 1;
            }
            return;
        }
        let undo = Command::Undo {
            run: "run_undo".parse().unwrap(),
            digest: Digest::of_bytes(b"what takes it back"),
            by: by.clone(),
            assurance: Assurance::Terminal,
        };
        let can_be = live.run.undoable().next().is_some();
        if !self.command(&undo).is_empty() {
            self.oracle.undone(&by);
            self.tally.undone[1] += 1;
        } else {
            self.tally.undone[0] += u64::from(can_be);
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

    /// What an approver says about arguments that are not known yet.
    fn choose(
        &mut self,
        plan: &Plan,
    ) -> (BTreeMap<String, LateChoice>, Vec<(&'static str, Choice)>) {
        let mut chosen = BTreeMap::new();
        let mut told = Vec::new();
        for (id, argument) in [("b", "to"), ("d", "of")] {
            let has_late = plan
                .find(id)
                .is_some_and(|ix| !late_arguments(plan, ix).is_empty());
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
        (chosen, told)
    }

    fn approve(&mut self) {
        let digest = self.digest();
        let policy = self.policy();
        let by = match self.dice.below(6) {
            0 => policy.principal(),
            1 => self.dice.pick(&people()),
            _ => self.dice.pick(&people()[..3]),
        };
        let plan = self.plan();
        let catalog = self.setting.catalog(&self.tools);
        let judged = policy.judge_plan(&plan, &catalog);
        if judged.denial().is_some() {
            return;
        }
        let (chosen, told) = self.choose(&plan);
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
        let look = self.look.clone().filter(|_| self.dice.below(3) == 0);
        let shown = match &look {
            Some(look) if self.dice.below(2) == 0 => Shown::Version(look.version),
            Some(look) => Shown::Digest(look.digest),
            None => self.shown(digest),
        };
        let asks_nothing = offer.asks_about.is_none();
        let command = ReviewCommand::Approve {
            shown,
            digest,
            by: by.clone(),
            assurance,
            offer: Box::new(offer),
        };
        let given = self.give(&command);
        if let Some(look) = &look {
            self.tally.looked[usize::from(given)] += u64::from(look.about != self.about());
            let runs_plan = self.document % DOINGS == RUNS_PLAN;
            let is_whole = matches!(shown, Shown::Digest(_)) || runs_plan;
            // A version stands for the plan as it was when it was proposed.
            let as_proposed =
                matches!(shown, Shown::Version(_)) && self.proposed == Some(self.about());
            assert!(
                !given || !is_whole || look.about == self.about() || as_proposed,
                "{by} approved what was not what they had looked at"
            );
        }
        if !given && asks_nothing && by.kind == PrincipalKind::Policy {
            self.tally.lost += u64::from(self.review.lost_safeguards().is_some());
        }
        if given {
            assert!(
                shown == Shown::Digest(digest)
                    || shown == Shown::Version(self.review.current().number)
            );
            let about = self.about();
            let proposer = self.review.current().by.clone();
            let parts = judged_parts(about.0);
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
    fn open(&mut self, narrower: bool) {
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
        if find_choice_not_agreed(&spent, &chosen).is_some() {
            self.tally.narrowed[0] += 1;
            return;
        }
        self.tally.narrowed[1] += u64::from(!chosen.is_empty());
        self.runs += 1;
        let consent = Consent::of(&spent, self.review.current(), &policy);
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

    /// Gives a command to the run. Returns what it came to; nothing if it was refused.
    fn command(&mut self, command: &Command) -> Vec<RunEvent> {
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

    fn start(&mut self, ix: StepIx) {
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
        let subject = Subject {
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
        if self.dice.below(2) == 0 {
            self.now += 6_000;
        }
        let Some(live) = &self.run else { return };
        let Some(ix) = live.run.waiting().next() else {
            return;
        };
        let StepState::AwaitingApproval {
            call, expires_at, ..
        } = live.run.step(ix)
        else {
            return;
        };
        let asked = call.clone();
        let step = live.run.plan().step_id(ix).to_string();
        let (version, plan_digest) = (live.run.start().version, live.run.start().digest);
        let late = expires_at.is_some_and(|until| until <= at(self.now));
        let right = match &asked {
            Some(asked) => Shown::Digest(asked.digest),
            None => Shown::Digest(plan_digest),
        };
        let shown = match self.dice.below(6) {
            0 => Shown::Digest(plan_digest),
            1 => Shown::Version(version.wrapping_sub(1)),
            _ => right,
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
        let granted = self.command(&command);
        if let Some(RunEvent::ApprovalGranted { .. }) = granted.first() {
            assert_eq!(shown, right, "something was approved that was not shown");
            assert!(!late, "a yes that came too late counted");
            self.tally.agreed += 1;
            let Some(asked) = asked else {
                self.oracle.let_through(&by, self.now, &step);
                return;
            };
            let StoredValue::Inline(args) = asked.args else {
                panic!("small arguments are kept inline")
            };
            let tool = asked.tool.to_string();
            self.oracle
                .agreed(&by, self.now, (&step, &tool, &text_of(&args)));
        } else if late && by.kind == PrincipalKind::Person {
            self.tally.expired += 1;
        }
    }
}

/// The document after one adjustment, nothing of which has run.
fn adjust(before: &Document, adjustment: Value) -> Document {
    let adjustment: Adjustment = serde_json::from_value(adjustment).unwrap();
    let ids = before.steps.iter().filter_map(|step| step.id.clone());
    let state: Adjustable = ids.map(|id| (id, StepProgress::Open)).collect();
    before
        .apply_adjustments(&[adjustment], &state, &Bounds::default())
        .unwrap()
}

/// What the oracle is told of a plan before it runs.
fn judged_parts(doing: usize) -> Vec<Part> {
    parts(doing)
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
    let plans = (0..DOCUMENTS)
        .map(|number| [0, 1].map(|child| Arc::new(compile(document(number), child))))
        .collect();
    let mut setting = Setting {
        policies: policies(),
        documents: (0..DOCUMENTS)
            .map(|number| Arc::new(document(number)))
            .collect(),
        plans,
        digests: BTreeMap::new(),
        catalogs: BTreeMap::new(),
    };
    let mut tally = Tally::default();
    for seed in seeds {
        let mut life = Life::begin(&mut setting, &mut tally, seed);
        for _ in 0..38 {
            life.step();
        }
    }
    tally.check();
}

impl Tally {
    /// It must not pass by doing nothing.
    fn check(&self) {
        let expected = [
            ("calls", self.calls, 20_000),
            ("runs", self.runs, 10_000),
            ("questions about calls", self.asked, 1_000),
            ("answers of people", self.agreed, 200),
            ("tools that changed", self.changed, 500),
            ("calls that policy denies", self.denied, 50),
            ("constraints that were broken", self.broken, 300),
            ("answers that came too late", self.expired, 20),
            ("approvals that outlived an edit", self.carried, 500),
            ("approvals that were taken back", self.revoked, 500),
            ("refusals", self.refused, 50_000),
            ("steps written anew behind a gate", self.rewritten, 500),
            ("calls behind a gate", self.gated, 100),
            (
                "lost safeguards that policy did not agree to",
                self.lost,
                100,
            ),
            ("tools that are always allowed", self.always, 500),
            (
                "calls of tools that are always allowed",
                self.always_calls,
                500,
            ),
            ("runs that could not be narrower", self.narrowed[0], 100),
            ("runs that were as narrow as wanted", self.narrowed[1], 20),
            ("approvals of what was not looked at", self.looked[0], 500),
            ("pauses of people that stood", self.pauses[0], 100),
            ("pauses of people that people lifted", self.pauses[1], 100),
            (
                "steps that others wait for and that stayed",
                self.left_out[0],
                100,
            ),
            (
                "steps that others wait for and that were left out",
                self.left_out[1],
                20,
            ),
            ("runs that were cancelled", self.cancelled, 200),
            ("runs that were not taken back", self.undone[0], 20),
            ("runs that were taken back", self.undone[1], 20),
        ];
        for (what, found, least) in expected {
            assert!(found > least, "only {found} {what}: {self:?}");
        }
    }
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
