//! A world on paper: plans from a specification, tools that answer by script, and a driver that
//! does what the engine does between two waits, without tasks, a store or real time.

use crate::run_laws;
use planwright_core::digest::Digest;
use planwright_core::id::RunId;
use planwright_core::journal::{Cause, Entry, Head, Record, StreamName, decode, encode};
use planwright_core::plan::{
    Bounds, Budget, Document, Input, Limits, OnFailure, Plan, Retry, Step, StepIx, Undo,
};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::{
    Asked, CallReport, Command, Question, Refusal, Reply, Resolution, Run, RunEvent, Shown,
    StepError, StepErrorCode, StepState, StoredValue, priorities, unit_estimate,
};
use planwright_core::time::Timestamp;
use planwright_core::tool::{EffectClass, ToolName};
use planwright_testing::dice::Dice;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How the world treats the calls of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conduct {
    Succeeds,
    /// The first calls fail in a way that is worth a retry.
    FailsFirst(u32),
    /// Every call fails in a way that is not.
    FailsForGood,
    /// No call ever answers. The step has a timeout.
    Hangs,
    /// The connection breaks during the first calls.
    LosesFirst(u32),
    /// The first calls never leave.
    NotMadeFirst(u32),
    /// The first calls are the run of a sub-plan that waits for a person.
    ParksFirst(u32),
    /// The first calls ask a person before they do anything.
    AsksFirst(u32),
}

/// What the step's `when` comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    Always,
    Never,
    /// Cannot be decided.
    Undecidable,
    /// Only elements with an even number run.
    EvenElements,
}

#[derive(Debug, Clone)]
pub(crate) struct StepSpec {
    /// Positions of earlier steps.
    pub(crate) depends_on: Vec<usize>,
    pub(crate) class: EffectClass,
    pub(crate) conduct: Conduct,
    pub(crate) retries: u32,
    pub(crate) timeout_ms: Option<u32>,
    pub(crate) critical: bool,
    pub(crate) gated: bool,
    /// The tool is not there; the step is skipped if it is optional, else it fails.
    pub(crate) missing: bool,
    pub(crate) optional: bool,
    /// The step says how it is taken back.
    pub(crate) undo: bool,
    /// Steps with the same letter make the same call.
    pub(crate) call: u8,
    pub(crate) condition: Condition,
    /// The step runs once for each of so many elements.
    pub(crate) elements: Option<usize>,
    pub(crate) max_parallel: Option<u32>,
    /// A person is asked, and no tool is called.
    pub(crate) asks: bool,
}

impl StepSpec {
    pub(crate) fn plain(depends_on: &[usize]) -> Self {
        Self {
            depends_on: depends_on.to_vec(),
            class: EffectClass::Safe,
            conduct: Conduct::Succeeds,
            retries: 0,
            timeout_ms: None,
            critical: true,
            gated: false,
            missing: false,
            optional: false,
            undo: true,
            call: 0,
            condition: Condition::Always,
            elements: None,
            max_parallel: None,
            asks: false,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct PlanSpec {
    pub(crate) steps: Vec<StepSpec>,
    pub(crate) max_concurrency: u32,
    pub(crate) calls: Option<u64>,
    pub(crate) per_tool: Option<u64>,
    pub(crate) same_call: Option<u64>,
    pub(crate) seconds: Option<u32>,
    pub(crate) on_failure_continue: bool,
    /// The steps are written in the opposite order, so that dependencies come after their
    /// dependants.
    pub(crate) reversed: bool,
}

impl PlanSpec {
    pub(crate) fn of(steps: Vec<StepSpec>) -> Self {
        Self {
            steps,
            max_concurrency: 4,
            calls: None,
            per_tool: None,
            same_call: None,
            seconds: None,
            on_failure_continue: false,
            reversed: false,
        }
    }

    /// A plan of up to `size` steps.
    pub(crate) fn random(dice: &mut Dice, size: usize) -> Self {
        let count = dice.below(size + 1);
        let steps = (0..count).map(|at| StepSpec::random(dice, at)).collect();
        Self {
            steps,
            max_concurrency: 1 + u32::try_from(dice.below(4)).expect("small"),
            calls: dice.chance(10).then(|| dice.below(12) as u64),
            per_tool: dice.chance(10).then(|| dice.below(6) as u64),
            same_call: dice.chance(10).then(|| 1 + dice.below(4) as u64),
            seconds: dice
                .chance(10)
                .then(|| u32::try_from(dice.below(10)).expect("small")),
            on_failure_continue: dice.chance(15),
            reversed: dice.chance(30),
        }
    }

    /// The same plan in a world where everything succeeds in the end or fails without stopping the
    /// run, and nothing depends on how long anything takes.
    pub(crate) fn benign(&self) -> Self {
        let mut spec = self.clone();
        (spec.calls, spec.per_tool, spec.same_call, spec.seconds) = (None, None, None, None);
        for step in &mut spec.steps {
            step.timeout_ms = None;
            step.conduct = match step.conduct {
                Conduct::FailsFirst(times)
                    if times <= step.retries && step.class != EffectClass::Unsafe =>
                {
                    Conduct::FailsFirst(times)
                }
                Conduct::FailsFirst(_) | Conduct::FailsForGood | Conduct::Hangs => {
                    step.critical = false;
                    Conduct::FailsForGood
                }
                Conduct::ParksFirst(times) => Conduct::ParksFirst(times),
                Conduct::AsksFirst(times) => Conduct::AsksFirst(times),
                Conduct::Succeeds | Conduct::LosesFirst(_) | Conduct::NotMadeFirst(_) => {
                    Conduct::Succeeds
                }
            };
            step.critical &= step.condition != Condition::Undecidable;
            step.optional |= step.missing;
        }
        spec
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    fn position(&self, at: usize) -> usize {
        if self.reversed {
            self.len() - 1 - at
        } else {
            at
        }
    }

    pub(crate) fn step(&self, ix: StepIx) -> &StepSpec {
        &self.steps[self.position(ix.index())]
    }

    pub(crate) fn plan(&self) -> Arc<Plan> {
        let mut steps: Vec<Step> = self
            .steps
            .iter()
            .enumerate()
            .map(|(at, step)| step.write(at))
            .collect();
        if self.reversed {
            steps.reverse();
        }
        let budget = Budget {
            calls: self.calls,
            per_tool: self
                .per_tool
                .map(|limit| ("w.t0".to_owned(), limit))
                .into_iter()
                .collect(),
            same_call: self.same_call,
            seconds: self.seconds.map(f64::from),
            tokens: None,
        };
        let limits = Limits {
            max_concurrency: Some(self.max_concurrency),
            budget,
            on_failure: self.on_failure_continue.then_some(OnFailure::Continue),
            ..Limits::default()
        };
        let id = Some("plan-paper".parse().unwrap());
        let document = Document {
            id,
            steps,
            limits,
            ..Document::default()
        };
        Arc::new(Plan::compile(document, &Bounds::default()).expect("the specification is sound"))
    }
}

impl StepSpec {
    fn random(dice: &mut Dice, at: usize) -> Self {
        let depends_on = (0..at)
            .filter(|_| dice.chance(if at < 4 { 45 } else { 20 }))
            .collect();
        let retries = u32::try_from(dice.below(4)).expect("small");
        let few = 1 + u32::try_from(dice.below(3)).expect("small");
        let conduct = match dice.below(22) {
            0..=10 => Conduct::Succeeds,
            11..=13 => Conduct::FailsFirst(few),
            14 => Conduct::FailsForGood,
            15 => Conduct::Hangs,
            16 => Conduct::LosesFirst(few * 3),
            17 => Conduct::AsksFirst(few),
            18 | 19 => Conduct::ParksFirst(few),
            _ => Conduct::NotMadeFirst(few * 3),
        };
        let class = [
            EffectClass::Safe,
            EffectClass::Safe,
            EffectClass::Keyed,
            EffectClass::Unsafe,
        ][dice.below(4)];
        let timeout = dice
            .chance(25)
            .then(|| 20 + u32::try_from(dice.below(400)).expect("small"));
        Self {
            depends_on,
            class,
            conduct,
            retries,
            timeout_ms: timeout.or_else(|| (conduct == Conduct::Hangs).then_some(100)),
            critical: dice.chance(70),
            gated: dice.chance(15),
            missing: dice.chance(5),
            optional: dice.chance(50),
            undo: dice.chance(70),
            call: u8::try_from(dice.below(3)).expect("small"),
            condition: match dice.below(20) {
                0 => Condition::Never,
                1 => Condition::Undecidable,
                2 | 3 => Condition::EvenElements,
                _ => Condition::Always,
            },
            elements: dice.chance(20).then(|| dice.below(5)),
            max_parallel: dice
                .chance(50)
                .then(|| 1 + u32::try_from(dice.below(3)).expect("small")),
            asks: dice.chance(10),
        }
    }

    fn write(&self, at: usize) -> Step {
        let retry = Retry {
            max: self.retries,
            backoff: 0.05,
            factor: 2.0,
            jitter: 0.2,
            ..Retry::default()
        };
        let timeout_ms = self
            .timeout_ms
            .or_else(|| (self.conduct == Conduct::Hangs).then_some(100));
        let question = Input {
            message: Some("How many?".into()),
            schema: json!({"type": "object"}),
        };
        Step {
            id: Some(format!("s{at}").parse().unwrap()),
            tool: (!self.asks).then(|| format!("w.t{}", self.call % 2)),
            input: self.asks.then(|| Box::new(question)),
            for_each: self
                .elements
                .map(|count| json!((0..count).collect::<Vec<_>>())),
            max_parallel: self.max_parallel,
            when: match self.condition {
                Condition::Always => None,
                Condition::Never => Some("1 > 2".into()),
                Condition::Undecidable => Some("1 / 0 == 1".into()),
                Condition::EvenElements => self.elements.map(|_| "index % 2 == 0".into()),
            },
            depends_on: self
                .depends_on
                .iter()
                .map(|d| format!("s{d}").parse().unwrap())
                .collect(),
            retry: (self.retries > 0).then(|| Box::new(retry)),
            timeout_seconds: timeout_ms.map(|ms| f64::from(ms) / 1000.0),
            approval_required: self.gated,
            critical: (!self.critical).then_some(false),
            optional: self.optional,
            undo: self.undo.then(|| {
                Box::new(Undo {
                    tool: "w.undo".into(),
                    args: serde_json::Map::new(),
                })
            }),
            ..Step::default()
        }
    }

    fn tool(&self) -> ToolName {
        ToolName {
            server: "w".into(),
            tool: format!("t{}", self.call % 2),
        }
    }
}

pub(crate) fn person() -> Principal {
    Principal::person("ada")
}

pub(crate) fn value_of(run: &Run, ix: StepIx) -> StoredValue {
    StoredValue::Inline(Arc::new(
        json!({"of": run.step_id(ix).as_str(), "kind": "v", "n": [1, 2.5, null]}),
    ))
}

/// What a tool asks.
pub(crate) fn asked() -> Asked {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let question = Question {
        key: "n".into(),
        message: "How many?".into(),
        schema,
        url: None,
    };
    Asked {
        questions: vec![question],
        state: Some("halfway".into()),
    }
}

/// The values of a loop's elements, as the engine gathers them.
fn gathered(run: &Run, ix: StepIx) -> StoredValue {
    let instances = run.open_loop(ix).expect("it was opened").instances();
    let value = |ix| match run.step(ix).value() {
        Some(StoredValue::Inline(value)) => (**value).clone(),
        _ => Value::Null,
    };
    StoredValue::Inline(Arc::new(Value::Array(instances.map(value).collect())))
}

/// The answer of a person to the question a step asks.
fn answer_to(run: &Run, ix: StepIx, by: Principal, reply: Reply) -> Option<Command> {
    let StepState::AwaitingInput { asked, .. } = run.step(ix) else {
        return None;
    };
    let step = run.step_id(ix).to_string();
    Some(Command::GiveInput {
        step,
        by,
        question: asked.digest(),
        replies: vec![reply],
    })
}

pub(crate) const BEGIN: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// One journal and the run it folds to, with every law checked after every entry.
#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) run: Run,
    pub(crate) entries: Vec<Entry<RunEvent>>,
    pub(crate) records: Vec<Record>,
    pub(crate) now: Timestamp,
    stream: StreamName,
    head: Head,
    epoch: u64,
}

/// The beginning of a run as most tests want it.
pub(crate) fn started(plan: &Plan, guards: bool) -> RunEvent {
    RunEvent::RunStarted {
        plan: plan.id().clone(),
        version: 1,
        digest: Digest::of_bytes(b"shown"),
        variables: serde_json::Map::new(),
        max_concurrency: plan.document().limits.max_concurrency(),
        guards,
        by: person(),
        forked_from: None,
        consent: None,
        undoes: None,
        parent: None,
        document: None,
        trace: None,
        reflection: None,
        call_timeout_ms: None,
        stepwise: false,
    }
}

impl History {
    pub(crate) fn begin(plan: &Arc<Plan>, guards: bool) -> Self {
        Self::begin_with(plan, "run_paper".parse().unwrap(), started(plan, guards))
    }

    pub(crate) fn begin_with(plan: &Arc<Plan>, id: RunId, started: RunEvent) -> Self {
        let stream = StreamName::Run(id.clone());
        let record = encode(Head::EMPTY, &stream, BEGIN, 1, Cause::Command, &started);
        let entry = decode(&record).unwrap();
        let run = Run::open(
            id,
            Arc::clone(plan),
            priorities(plan, unit_estimate),
            &entry,
        )
        .unwrap();
        let head = record.head();
        Self {
            run,
            entries: vec![entry],
            records: vec![record],
            now: BEGIN,
            stream,
            head,
            epoch: 1,
        }
    }

    /// Folds the first `count` entries, as a new owner would. Nothing is recovered yet.
    pub(crate) fn fold(&self, count: usize) -> Self {
        let plan = self.run.plan();
        let first = decode(&self.records[0]).unwrap();
        let priority = priorities(plan, unit_estimate);
        let mut run = Run::open(self.run.id().clone(), Arc::clone(plan), priority, &first).unwrap();
        for record in &self.records[1..count] {
            run.apply(&decode(record).unwrap())
                .expect("every prefix of a journal folds");
        }
        Self {
            run,
            entries: self.entries[..count].to_vec(),
            records: self.records[..count].to_vec(),
            now: self.records[count - 1].at,
            stream: self.stream.clone(),
            head: self.records[count - 1].head(),
            epoch: self.records[count - 1].epoch + 1,
        }
    }

    /// Decides, writes down and applies. Returns how many entries that made.
    pub(crate) fn give(&mut self, command: &Command, cause: Cause) -> Result<usize, Refusal> {
        let events = self.run.decide(command, self.now)?;
        let count = events.len();
        for event in events {
            self.write(event, cause);
        }
        Ok(count)
    }

    pub(crate) fn write(&mut self, event: RunEvent, cause: Cause) {
        let record = encode(self.head, &self.stream, self.now, self.epoch, cause, &event);
        let entry: Entry<RunEvent> = decode(&record).expect("what was written can be read");
        assert_eq!(
            entry.event, event,
            "every event survives being written down"
        );
        self.run
            .apply(&entry)
            .expect("what was decided can be applied");
        self.head = record.head();
        self.records.push(record);
        self.entries.push(entry);
        run_laws::check_index(&self.run, self.now);
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        self.now = self.now.plus(by);
    }

    pub(crate) fn ended(&self) -> bool {
        self.run.state().is_terminal()
    }

    /// What every step came to: its word and its value.
    pub(crate) fn outcome(&self) -> Vec<(String, &'static str, Option<StoredValue>)> {
        let plan = self.run.plan();
        let step = |ix| {
            (
                plan.step_id(ix).to_string(),
                self.run.step(ix).status().as_str(),
                self.run.step(ix).value().cloned(),
            )
        };
        plan.indices().map(step).collect()
    }
}

/// The world that answers, and what has been asked of it.
#[derive(Debug, Clone)]
pub(crate) struct World<'a> {
    pub(crate) spec: &'a PlanSpec,
    pub(crate) dice: Dice,
    pub(crate) calls: BTreeMap<StepIx, u32>,
}

impl<'a> World<'a> {
    pub(crate) fn new(spec: &'a PlanSpec, seed: u64) -> Self {
        Self {
            spec,
            dice: Dice::new(seed),
            calls: BTreeMap::new(),
        }
    }

    /// A world that has already seen the calls in a journal.
    pub(crate) fn after(spec: &'a PlanSpec, seed: u64, history: &History) -> Self {
        let mut world = Self::new(spec, seed);
        for entry in &history.entries {
            if let RunEvent::AttemptStarted { step, .. } = &entry.event {
                let ix = history.run.find(step.as_str()).unwrap();
                *world.calls.entry(ix).or_default() += 1;
            }
        }
        world
    }

    /// What the engine does between two waits.
    pub(crate) fn turn(&mut self, history: &mut History) {
        history.give(&Command::Tick, Cause::Timer).unwrap();
        loop {
            self.settle_flow(history);
            let free = history.run.schedule().free_slots();
            let startable: Vec<StepIx> = history
                .run
                .schedule()
                .startable(history.now)
                .take(free)
                .collect();
            if startable.is_empty() {
                break;
            }
            for ix in startable {
                self.start(history, ix);
            }
        }
        // A skipped step can make one ready that needs approval, so people are asked last.
        history
            .give(&Command::AskApprovals, Cause::Schedule)
            .unwrap();
        history.give(&Command::Settle, Cause::Schedule).unwrap();
    }

    fn of(&self, run: &Run, ix: StepIx) -> &'a StepSpec {
        self.spec.step(run.plan_step(ix))
    }

    /// Closes loops and decides conditions before anybody is asked, until nothing follows any more.
    fn settle_flow(&mut self, history: &mut History) {
        loop {
            let closable: Vec<StepIx> = history.run.schedule().closable().collect();
            let unasked: Vec<StepIx> = history.run.schedule().unasked_steps().collect();
            let mut changed = !closable.is_empty();
            for step in closable {
                let value = gathered(&history.run, step);
                assert_eq!(
                    history.give(&Command::CloseLoop { step, value }, Cause::Schedule),
                    Ok(1)
                );
            }
            for ix in unasked {
                changed |= self.stopped_by_condition(history, ix);
            }
            if !changed {
                return;
            }
        }
    }

    /// Skips or fails the step if its condition says so.
    fn stopped_by_condition(&self, history: &mut History, ix: StepIx) -> bool {
        let run = &history.run;
        if run.step(ix).tally().attempts > 0 || !matches!(run.step(ix), StepState::Ready { .. }) {
            return false;
        }
        let instance = run.instance(ix).map(|instance| instance.index);
        let command = match (self.of(run, ix).condition, instance) {
            (Condition::Never, None) => Command::Skip {
                step: ix,
                reason: "when: 1 > 2 is false".into(),
            },
            (Condition::EvenElements, Some(index)) if index % 2 == 1 => Command::Skip {
                step: ix,
                reason: "when: index % 2 == 0 is false".into(),
            },
            (Condition::Undecidable, None) => Command::Fail {
                step: ix,
                error: StepError::new(StepErrorCode::ConditionFailed, "division by zero"),
            },
            (
                Condition::Always
                | Condition::Never
                | Condition::Undecidable
                | Condition::EvenElements,
                Some(_) | None,
            ) => return false,
        };
        history.give(&command, Cause::Schedule).unwrap();
        true
    }

    fn start(&mut self, history: &mut History, ix: StepIx) {
        if self.stopped_by_condition(history, ix) {
            return;
        }
        let step = self.of(&history.run, ix);
        let asks = step.asks && !history.run.loops(ix);
        if step.missing && !step.asks && matches!(history.run.step(ix), StepState::Ready { .. }) {
            let reason = "unknown tool".to_owned();
            let command = if step.optional {
                Command::Skip { step: ix, reason }
            } else {
                Command::Fail {
                    step: ix,
                    error: StepError::new(StepErrorCode::ToolUnavailable, reason),
                }
            };
            history.give(&command, Cause::Schedule).unwrap();
            return;
        }
        if asks || history.run.loops(ix) {
            let items = StoredValue::Inline(Arc::new(json!("the list")));
            let command = if asks {
                Command::AskInput {
                    step: ix,
                    message: Some("How many?".into()),
                }
            } else {
                Command::OpenLoop {
                    step: ix,
                    items,
                    count: step.elements.unwrap_or_default(),
                }
            };
            // A critical step or another element may have failed in the same turn.
            let given = history.give(&command, Cause::Schedule);
            let over =
                history.run.schedule().free_slots() == 0 || history.run.step(ix).is_terminal();
            assert!(given.is_ok() || over, "{given:?}");
            return;
        }
        let call = Digest::of_bytes(&[step.call]);
        let command = Command::Start {
            step: ix,
            tool: step.tool(),
            class: step.class,
            call,
            facts: None,
        };
        match history.give(&command, Cause::Schedule) {
            // A critical step or another element may have failed in the same turn.
            Err(Refusal::CannotStart { .. }) => {
                assert!(
                    history.run.schedule().free_slots() == 0 || history.run.step(ix).is_terminal()
                );
            }
            Err(refusal) => panic!("{refusal}"),
            Ok(_) if matches!(history.run.step(ix), StepState::Running { .. }) => {
                *self.calls.entry(ix).or_default() += 1;
            }
            Ok(_) => {}
        }
    }

    /// What the world says to the call in flight; nothing if it hangs.
    pub(crate) fn answer(&self, run: &Run, ix: StepIx) -> Option<CallReport> {
        let made = self.calls.get(&ix).copied().unwrap_or_default();
        let value = || CallReport::Succeeded(value_of(run, ix));
        Some(match self.of(run, ix).conduct {
            Conduct::Succeeds => value(),
            Conduct::FailsFirst(times) if made <= times => CallReport::Failed(
                StepError::new(StepErrorCode::ToolError, "not yet").retryable(true),
            ),
            Conduct::LosesFirst(times) if made <= times => CallReport::Lost {
                reason: "the line broke".into(),
            },
            Conduct::NotMadeFirst(times) if made <= times => CallReport::NotMade,
            Conduct::ParksFirst(times) if made <= times => CallReport::Parked {
                run: "run_child".parse().unwrap(),
            },
            Conduct::AsksFirst(times) if made <= times => CallReport::Asked(Box::new(asked())),
            Conduct::FailsFirst(_)
            | Conduct::LosesFirst(_)
            | Conduct::NotMadeFirst(_)
            | Conduct::AsksFirst(_)
            | Conduct::ParksFirst(_) => value(),
            Conduct::FailsForGood => {
                CallReport::Failed(StepError::new(StepErrorCode::ToolError, "no"))
            }
            Conduct::Hangs => return None,
        })
    }

    /// Lets one call in flight come back. Returns false if none can.
    pub(crate) fn let_one_answer(&mut self, history: &mut History) -> bool {
        let run = &history.run;
        let able: Vec<StepIx> = run
            .schedule()
            .running()
            .filter(|&ix| self.answer(run, ix).is_some())
            .collect();
        let Some(ix) = self.dice.try_pick(&able) else {
            return false;
        };
        let answer = self
            .answer(&history.run, ix)
            .expect("chosen because it answers");
        let attempt = history.run.step(ix).tally().attempts;
        history
            .give(
                &Command::Report {
                    step: ix,
                    attempt,
                    answer,
                },
                Cause::Report,
            )
            .unwrap();
        true
    }

    /// Brings the run to its end with everybody helping: calls answer, time passes, people say yes
    /// and tell the truth.
    pub(crate) fn drain(&mut self, history: &mut History) {
        let limit = 200
            + 60 * self
                .spec
                .steps
                .iter()
                .map(|step| 1 + step.elements.unwrap_or(0))
                .sum::<usize>();
        for _ in 0..limit {
            self.turn(history);
            if history.ended() {
                return;
            }
            if !self.let_one_answer(history) && !pass_time(history) {
                self.let_people_help(history);
            }
            history.advance(Duration::from_millis(1));
        }
        panic!("the run does not come to an end: {:?}", history.outcome());
    }

    /// Takes the ended run back, step by step, up to some point, where another undo goes on.
    pub(crate) fn undo(&mut self, history: &mut History) {
        for number in 0..3 {
            let run: RunId = format!("run_undo{number}").parse().unwrap();
            let order = |by| Command::Undo {
                run: run.clone(),
                digest: Digest::of_bytes(b"undo"),
                by,
                assurance: Assurance::Terminal,
            };
            let agent = history.give(&order(Principal::agent("planner")), Cause::Command);
            assert!(agent.is_err(), "an agent ordered an undo");
            let left: Vec<StepIx> = history.run.undoable().collect();
            let given = history.give(&order(person()), Cause::Command);
            assert_eq!(given.is_ok(), !left.is_empty());
            for step in left {
                if self.dice.chance(30) {
                    break;
                }
                history.advance(Duration::from_millis(1));
                history
                    .give(
                        &Command::NoteUndone {
                            step,
                            run: run.clone(),
                        },
                        Cause::Command,
                    )
                    .unwrap();
                let twice = history.give(
                    &Command::NoteUndone {
                        step,
                        run: run.clone(),
                    },
                    Cause::Command,
                );
                assert!(twice.is_err(), "a step was taken back twice");
            }
        }
    }

    fn let_people_help(&self, history: &mut History) {
        if history.run.status().as_str() == "paused" {
            history
                .give(&Command::Resume { by: person() }, Cause::Command)
                .unwrap();
            return;
        }
        let stuck = || panic!("nothing can happen: {:?}", history.outcome());
        let ix = history
            .run
            .schedule()
            .waiting()
            .next()
            .unwrap_or_else(stuck);
        let step = history.run.step_id(ix).to_string();
        let values = Map::from_iter([("n".to_owned(), json!(3))]);
        let answer = answer_to(&history.run, ix, person(), Reply::Values(values));
        let command = if matches!(history.run.step(ix), StepState::AwaitingApproval { .. }) {
            let shown = Shown::Version(1);
            Command::Approve {
                step,
                by: person(),
                assurance: Assurance::Terminal,
                shown,
            }
        } else if matches!(history.run.step(ix), StepState::AwaitingPlan { .. }) {
            Command::ResumeChildren
        } else if let Some(answer) = answer {
            answer
        } else {
            let conduct = self.of(&history.run, ix).conduct;
            let happens = !matches!(conduct, Conduct::FailsForGood | Conduct::Hangs);
            let value = value_of(&history.run, ix);
            let resolution = if happens {
                Resolution::Happened { value }
            } else {
                Resolution::DidNotHappen
            };
            Command::Resolve {
                step,
                by: person(),
                resolution,
            }
        };
        history.give(&command, Cause::Command).unwrap();
    }

    /// Anything at all happens `times` times: answers in any order, people who change their minds,
    /// agents who try to approve, late answers, crashes.
    pub(crate) fn disturb(&mut self, history: &mut History, times: usize) {
        for _ in 0..times {
            self.turn(history);
            if history.ended() {
                return;
            }
            match self.dice.below(20) {
                0..=8 => {
                    self.let_one_answer(history);
                }
                9..=11 => {
                    pass_time(history);
                }
                12 => {
                    *history = history.fold(history.entries.len());
                    history.give(&Command::Recover, Cause::Recovery).unwrap();
                    history
                        .give(&Command::ResumeChildren, Cause::Recovery)
                        .unwrap();
                }
                13 => self.late_answer(history),
                _ => self.some_command(history),
            }
            history.advance(Duration::from_millis(self.dice.below(40) as u64));
        }
    }

    /// An answer to an attempt that is not in flight changes nothing.
    fn late_answer(&mut self, history: &mut History) {
        let steps: Vec<StepIx> = history.run.indices().collect();
        let Some(ix) = self.dice.try_pick(&steps) else {
            return;
        };
        let attempts = history.run.step(ix).tally().attempts;
        let in_flight = matches!(history.run.step(ix), StepState::Running { .. });
        let attempt = if in_flight { attempts + 1 } else { attempts };
        let answer = CallReport::Succeeded(value_of(&history.run, ix));
        let refused = history.give(
            &Command::Report {
                step: ix,
                attempt,
                answer,
            },
            Cause::Report,
        );
        assert!(
            matches!(refused, Err(Refusal::NotInFlight { .. })),
            "a late answer was heard: {refused:?}"
        );
    }

    fn some_command(&mut self, history: &mut History) {
        let by = if self.dice.chance(20) {
            Principal::agent("planner")
        } else {
            person()
        };
        let waiting: Vec<StepIx> = history.run.schedule().waiting().collect();
        let steps: Vec<StepIx> = history.run.indices().collect();
        let chosen = if waiting.is_empty() {
            self.dice.try_pick(&steps)
        } else {
            self.dice.try_pick(&waiting)
        };
        let Some(ix) = chosen else { return };
        let step = history.run.step_id(ix).to_string();
        let spec = self.of(&history.run, ix);
        let shown = if self.dice.chance(90) {
            Shown::Version(1)
        } else {
            Shown::Version(2)
        };
        let command = match self.dice.below(15) {
            0 | 1 => Command::Pause { by: by.clone() },
            2 | 3 => Command::Resume { by: by.clone() },
            4 if self.dice.chance(25) => Command::Cancel { by: by.clone() },
            5 | 6 => Command::Approve {
                step,
                by: by.clone(),
                assurance: Assurance::CommandLine,
                shown,
            },
            7 => Command::Deny {
                step,
                by: by.clone(),
                shown,
                reason: "too risky".into(),
            },
            8 => self.some_resolution(&history.run, ix, &by),
            9 => {
                let call = Digest::of_bytes(&[spec.call]);
                Command::Start {
                    step: ix,
                    tool: spec.tool(),
                    class: spec.class,
                    call,
                    facts: None,
                }
            }
            10..=12 => {
                let wrong = Map::from_iter([("n".to_owned(), json!("three"))]);
                let reply = match self.dice.below(4) {
                    0 => Reply::Decline,
                    1 => Reply::Values(wrong),
                    _ => Reply::Values(Map::from_iter([("n".to_owned(), json!(3))])),
                };
                answer_to(&history.run, ix, by.clone(), reply).unwrap_or(Command::Tick)
            }
            _ => Command::Tick,
        };
        let given = history.give(&command, Cause::Command);
        match command {
            Command::Approve { .. }
            | Command::Deny { .. }
            | Command::Resolve { .. }
            | Command::GiveInput { .. } => {
                let by_agent = !by.may_approve();
                assert!(!by_agent || given.is_err(), "an agent decided: {given:?}");
            }
            Command::Start { step, .. }
                if matches!(history.run.step(step), StepState::Running { .. }) =>
            {
                *self.calls.entry(step).or_default() +=
                    u32::try_from(given.unwrap_or_default()).expect("small");
            }
            _ => {}
        }
    }

    fn some_resolution(&mut self, run: &Run, ix: StepIx, by: &Principal) -> Command {
        let resolution = match self.dice.below(3) {
            0 => Resolution::Happened {
                value: value_of(run, ix),
            },
            1 => Resolution::DidNotHappen,
            _ => Resolution::RunAgain,
        };
        Command::Resolve {
            step: run.step_id(ix).to_string(),
            by: by.clone(),
            resolution,
        }
    }
}

/// Goes to the next instant at which something falls due.
fn pass_time(history: &mut History) -> bool {
    let next = history.run.schedule().next_timer(history.now);
    if let Some(at) = next {
        history.now = at;
    }
    next.is_some()
}
