//! One process in the life of a plan: people propose, approve, answer and change their minds, and
//! runs go on.

use super::author::plan;
use super::opening::{is_late, steps, waits_for};
use super::rules::{Choice, STRICT, policies};
use super::stage::Stage;
use crate::world::{after, document};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{StreamName, decode};
use planwright_core::policy::LateChoice;
use planwright_core::principal::{Assurance, Principal, PrincipalKind};
use planwright_core::review::{ReviewEvent, ReviewStage, ReviewState};
use planwright_core::run::{Reflection, Resolution, Run, RunState, Shown, StepState, StoredValue};
use planwright_engine::port::{OwnerId, StreamIndex as _};
use planwright_engine::{Engine, GivenApproval, PreparedUndo, RunCommand, RunHandle, RunOptions};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(super) struct Life {
    stage: Arc<Stage>,
    engine: Engine,
    pub(super) owner: OwnerId,
    plan: PlanId,
}

fn people() -> [Principal; 3] {
    [
        Principal::person("ada"),
        Principal::person("bob"),
        Principal::person("eve"),
    ]
}

impl Life {
    pub(super) fn begin(stage: &Arc<Stage>, number: u64) -> Self {
        let (engine, owner) = stage.engine(number);
        stage.tell(format!("LIFE {number} {:?}", stage.scene()));
        Self {
            stage: Arc::clone(stage),
            engine,
            owner,
            plan: "p".parse().unwrap(),
        }
    }

    pub(super) async fn go_on(&self, moves: usize) {
        for _ in 0..moves {
            match self.stage.dice(|dice| dice.below(30)) {
                0 | 1 => self.stage.perhaps_flip(100),
                2 | 3 => after(self.stage.dice(|dice| dice.below(12_000) as u64)).await,
                4 => self.propose().await,
                5 => self.reject().await,
                6 | 10 => self.answer_all().await,
                7..=9 => Box::pin(self.take_back()).await,
                _ => self.work().await,
            }
        }
    }

    /// A random principal, mostly a person.
    fn any_principal(&self) -> Principal {
        self.stage.dice(|dice| match dice.below(16) {
            0 => Principal::agent("planner"),
            1 => Principal::service("ci"),
            _ => dice.pick(&people()),
        })
    }

    /// The principal who goes on with a run: often a program.
    fn resumer(&self) -> Principal {
        match self.stage.dice(|dice| dice.chance(70)) {
            true => self.any_principal(),
            false => self.anyone(),
        }
    }

    /// A random principal, a program as likely as not.
    fn anyone(&self) -> Principal {
        self.stage.dice(|dice| match dice.below(6) {
            0 | 1 => Principal::agent("planner"),
            2 => Principal::service("ci"),
            _ => dice.pick(&people()),
        })
    }

    async fn propose(&self) {
        let plan = self.stage.dice(plan);
        let by = self.any_principal();
        let proposed = self
            .engine
            .plans()
            .propose(document(plan.clone()), &by)
            .await;
        self.stage
            .tell(format!("{by} proposes ({}) {plan}", proposed.is_ok()));
    }

    async fn reject(&self) {
        let Ok((review, _)) = self.engine.plans().load_review(&self.plan).await else {
            return;
        };
        let by = self.any_principal();
        let shown = Shown::Version(review.current().number);
        let rejected = self
            .engine
            .plans()
            .reject(&self.plan, shown, &by, "no")
            .await;
        self.stage
            .tell(format!("{by} rejects ({})", rejected.is_ok()));
    }

    /// Does what comes next for the plan, if people do their part.
    async fn work(&self) {
        let Ok((review, _)) = self.engine.plans().load_review(&self.plan).await else {
            return self.propose().await;
        };
        let last = match review.runs().last() {
            Some(opened) => self
                .engine
                .runs()
                .load_run(&opened.run, &review)
                .await
                .ok()
                .map(|(run, _)| run),
            None => None,
        };
        let over = last.as_ref().is_none_or(|run| run.state().is_terminal());
        let adjusted = last
            .as_ref()
            .is_some_and(|run| matches!(run.state(), RunState::Adjusted { .. }));
        match review.state() {
            _ if !over => {
                self.dawdle().await;
                if let Some(run) = last {
                    match self.stage.dice(|dice| dice.below(10)) {
                        0..=3 => self.leave_out(run.id()).await,
                        4 => self.pause(run.id()).await,
                        _ => {}
                    }
                }
                self.answer_all().await;
                self.resume(None).await;
            }
            ReviewState::Active(ReviewStage::Proposed)
            | ReviewState::Active(ReviewStage::Approved)
                if adjusted =>
            {
                self.go_on_adjusted().await;
            }
            ReviewState::Active(ReviewStage::Proposed)
            | ReviewState::Active(ReviewStage::Approved) => self.start().await,
            _ => self.propose().await,
        }
    }

    async fn start(&self) {
        if self.stage.dice(|dice| dice.chance(12)) {
            self.propose().await;
        }
        let is_strict = self.stage.scene().policy == STRICT;
        let more = if is_strict { 2 } else { 0 };
        let approvals = more + self.stage.dice(|dice| dice.pick(&[0, 1, 1, 2, 2, 2]));
        for _ in 0..approvals {
            self.approve().await;
        }
        self.dawdle().await;
        let options = RunOptions {
            reflection: self.reflection(),
            ..RunOptions::new(self.any_principal())
        };
        let started = self.engine.runs().start(&self.plan, options).await;
        self.drive("start", started).await;
    }

    /// People take their time, and sometimes too much of it.
    async fn dawdle(&self) {
        if self.stage.dice(|dice| dice.chance(15)) {
            after(self.stage.dice(|dice| 4_000 + dice.below(12_000) as u64)).await;
        }
    }

    async fn go_on_adjusted(&self) {
        match self.stage.dice(|dice| dice.below(9)) {
            0 => return self.propose().await,
            1..=4 => {}
            5 => {
                let given = self.given().await;
                return self.resume(given).await;
            }
            _ => {
                self.approve().await;
                self.approve().await;
            }
        }
        self.resume(None).await;
    }

    fn reflection(&self) -> Option<Reflection> {
        self.stage.dice(|dice| {
            let (max_cycles, max_replans) = dice.pick(&[(3, 0), (2, 1), (0, 1), (3, 1), (0, 0)]);
            let failures_only = dice.chance(60);
            Some(Reflection {
                max_cycles,
                max_replans,
                failures_only,
                ..Reflection::default()
            })
        })
    }

    /// A yes with what is said about late steps, as it is remembered.
    async fn given(&self) -> Option<(GivenApproval, Vec<(String, Choice)>)> {
        let (review, _) = self.engine.plans().load_review(&self.plan).await.ok()?;
        let candidate = self
            .engine
            .plans()
            .candidate(&review, &Map::new())
            .await
            .ok()?;
        let current = serde_json::to_value(&*review.current().document).unwrap();
        let by = match self.stage.dice(|dice| dice.below(12)) {
            0 => policies()[self.stage.scene().policy].principal(),
            _ => self.any_principal(),
        };
        let shown = self.stage.dice(|dice| match dice.below(15) {
            0 => Shown::Version(review.current().number + 1),
            1 => Shown::Version(review.current().number),
            _ => Shown::Digest(candidate.digest),
        });
        let mut given = GivenApproval::new(shown, by, Assurance::Terminal);
        let mut said = Vec::new();
        for step in steps(&current) {
            let id = step["id"].as_str().unwrap_or_default().to_owned();
            if step["skip"] == true || (!is_late(step) && step["agent"].is_null()) {
                continue;
            }
            let Some((choice, late)) = self.chosen(step) else {
                continue;
            };
            given.late.insert(id.clone(), late);
            said.push((id, choice));
        }
        Some((given, said))
    }

    /// What a person says about a step whose calls are not known.
    fn chosen(&self, step: &Value) -> Option<(Choice, LateChoice)> {
        let key = if step["tool"] == "r.look" { "of" } else { "to" };
        match self.stage.dice(|dice| dice.below(6)) {
            0 | 1 => Some((Choice::Any, LateChoice::Any)),
            2 => Some((Choice::Ask, LateChoice::Ask)),
            3 | 4 => Some((
                Choice::NotEvil,
                format!("args.{key} != 'evil'").parse().unwrap(),
            )),
            _ => None,
        }
    }

    async fn approve(&self) {
        let Some((given, said)) = self.given().await else {
            return;
        };
        let before = self.stage.position();
        let approved = self
            .engine
            .plans()
            .approve_on_terms(&self.plan, &Map::new(), &given)
            .await;
        self.note_approval(before, said);
        let words = approved.map_or_else(|error| error.to_string(), |_| "yes".to_owned());
        self.stage.tell(format!("{} approves: {words}", given.by));
    }

    /// What was said belongs to the approval that was written down since.
    fn note_approval(&self, before: u64, said: Vec<(String, Choice)>) {
        let written = self.stage.feed(before).into_iter().find(|placed| {
            matches!(placed.stream, StreamName::Plan(_))
                && matches!(
                    decode(&placed.record).unwrap().event,
                    ReviewEvent::PlanApproved { .. }
                )
        });
        if let Some(placed) = written {
            self.stage.say(placed.position.0, said);
        }
    }

    async fn resume(&self, given: Option<(GivenApproval, Vec<(String, Choice)>)>) {
        let (approval, said) =
            given.map_or((None, None), |(given, said)| (Some(given), Some(said)));
        let before = self.stage.position();
        let options = RunOptions {
            approval,
            ..RunOptions::new(self.resumer())
        };
        let resumed = self.engine.runs().resume(&self.plan, options).await;
        if let Some(said) = said {
            self.note_approval(before, said);
        }
        self.drive("resume", resumed).await;
    }

    /// Waits for a run, and answers what it asks meanwhile.
    async fn drive<E: std::fmt::Display>(&self, word: &str, begun: Result<RunHandle, E>) {
        let mut handle = match begun {
            Ok(handle) => handle,
            Err(error) => return self.stage.tell(format!("{word}: {error}")),
        };
        let run = handle.run_id().clone();
        self.stage.tell(format!("{word} {run}"));
        // Sometimes a principal does not want it to go on like this.
        let mut meddles = self
            .stage
            .dice(|dice| dice.chance(25).then(|| 1 + dice.below(60) as u64));
        let waited = handle.wait();
        tokio::pin!(waited);
        loop {
            let meddling = meddles.unwrap_or_else(|| u64::from(u32::MAX));
            tokio::select! {
                biased;
                ended = &mut waited => {
                    let words = ended.map_or_else(|error| error.to_string(), |run| run.status().as_str().to_owned());
                    return self.stage.tell(format!("it is {words}"));
                }
                () = after(meddling), if meddles.is_some() => {
                    meddles = None;
                    self.meddle(&run).await;
                }
                () = after(3_000) => self.answer_all().await,
            }
        }
    }

    /// A principal pauses the run, ends it, lets it go on or leaves a step out, or wants to.
    async fn meddle(&self, run: &RunId) {
        let by = self.anyone();
        match self.stage.dice(|dice| dice.below(12)) {
            0 | 1 => self.order(run, RunCommand::Cancel { by }).await,
            2 => self.order(run, RunCommand::Resume { by }).await,
            3..=5 => self.leave_out(run).await,
            _ => self.pause(run).await,
        }
    }

    /// Principals want the run to stand still, one after the other, and perhaps to go on again.
    async fn pause(&self, run: &RunId) {
        // Often a program is the first, and it or another wants to undo what came after it.
        let first = match self.stage.dice(|dice| dice.chance(50)) {
            true => Principal::agent("planner"),
            false => self.anyone(),
        };
        self.order(run, RunCommand::Pause { by: first }).await;
        if self.stage.dice(|dice| dice.chance(50)) {
            let by = self.anyone();
            self.order(run, RunCommand::Pause { by }).await;
        }
        for _ in 0..self.stage.dice(|dice| dice.below(3)) {
            let by = self.anyone();
            self.order(run, RunCommand::Resume { by }).await;
        }
    }

    /// A principal, often the author of the plan, wants a step left out.
    async fn leave_out(&self, run: &RunId) {
        let Some((document, author)) = self.stage.current_version() else {
            return;
        };
        let by = match self.stage.dice(|dice| dice.chance(50)) {
            true => author,
            false => self.anyone(),
        };
        let all = steps(&document);
        let ids: Vec<&str> = all.iter().filter_map(|step| step["id"].as_str()).collect();
        let is_waited_for = |id: &&str| {
            let mut others = all.iter();
            others.any(|step| waits_for(&document, step).contains(*id))
        };
        // The first step has always begun.
        let others = ids.iter().copied().filter(|id| *id != "a");
        let waited_for: Vec<&str> = others.filter(is_waited_for).collect();
        let step = self.stage.dice(|dice| {
            let one = dice.try_pick(&waited_for).filter(|_| dice.chance(70));
            one.unwrap_or_else(|| dice.pick(&ids)).to_owned()
        });
        let reason = String::new();
        self.order(run, RunCommand::LeaveOut { step, by, reason })
            .await;
    }

    async fn order(&self, run: &RunId, command: RunCommand) {
        let done = self.engine.runs().command(run, command.clone()).await;
        if let (Ok(()), RunCommand::Pause { by }) = (&done, &command)
            && by.kind == PrincipalKind::Person
        {
            self.stage.note_pause(run.as_str());
        }
        let words = done.map_or_else(|error| error.to_string(), |()| "yes".to_owned());
        self.stage.tell(format!("{command:?}: {words}"));
    }

    /// A principal wants to take the latest run back, with the right or the wrong thing on the screen.
    async fn take_back(&self) {
        let Ok((review, _)) = self.engine.plans().load_review(&self.plan).await else {
            return;
        };
        let Some(opened) = review.runs().last() else {
            return;
        };
        let Ok(candidate) = self.engine.runs().plan_undo(&opened.run).await else {
            return;
        };
        let by = self.anyone();
        let approval = match candidate.undo {
            PreparedUndo::Fresh { candidate, .. } => {
                let right = self.stage.dice(|dice| dice.chance(85));
                let digest = match right {
                    true => candidate.digest,
                    false => review.current().digest,
                };
                let shown = Shown::Digest(digest);
                Some(GivenApproval::new(shown, by.clone(), Assurance::Terminal))
            }
            PreparedUndo::Open(_) => None,
        };
        let options = RunOptions {
            approval,
            ..RunOptions::new(by)
        };
        let undone = self.engine.runs().undo(&opened.run, options).await;
        // Boxed: what takes a run back is driven like any run.
        Box::pin(self.drive("undo", undone)).await;
    }

    /// A person goes over everything that waits for one, with the right or the wrong thing on the
    /// screen.
    async fn answer_all(&self) {
        let Ok((review, _)) = self.engine.plans().load_review(&self.plan).await else {
            return;
        };
        for info in self.stage.world.store.runs(&self.plan).await.unwrap() {
            let StreamName::Run(id) = info.stream else {
                continue;
            };
            if matches!(
                info.status.status.as_str(),
                "completed" | "failed" | "cancelled" | "adjusted"
            ) {
                continue;
            }
            let Ok((run, _)) = self.engine.runs().load_run(&id, &review).await else {
                continue;
            };
            for ix in run.indices() {
                let Some(command) = self.answer(&run, run.step(ix), run.step_id(ix).as_str())
                else {
                    continue;
                };
                let answered = self.engine.runs().command(&id, command.clone()).await;
                let words = answered.map_or_else(|error| error.to_string(), |()| "yes".to_owned());
                self.stage.tell(format!("{command:?}: {words}"));
            }
        }
    }

    fn answer(&self, run: &Run, state: &StepState, step: &str) -> Option<RunCommand> {
        let step = step.to_owned();
        let by = self.any_principal();
        let throw = self.stage.dice(|dice| dice.below(12));
        match state {
            StepState::AwaitingApproval { call, .. } => {
                let right = match call {
                    Some(call) => Shown::Digest(call.digest),
                    None => Shown::Version(run.start().version),
                };
                let shown = if throw == 0 {
                    Shown::Digest(run.start().digest)
                } else {
                    right
                };
                match throw {
                    1 | 2 => Some(RunCommand::Deny {
                        step,
                        by,
                        shown: shown.into(),
                        reason: "no".to_owned(),
                    }),
                    3 => None,
                    _ => {
                        let assurance = Assurance::Terminal;
                        Some(RunCommand::Approve {
                            step,
                            by,
                            assurance,
                            shown: shown.into(),
                        })
                    }
                }
            }
            StepState::OutcomeUnknown { .. } => {
                let value = StoredValue::Inline(Arc::new(json!("ok")));
                let resolution = match throw % 3 {
                    0 => Resolution::Happened { value },
                    1 => Resolution::DidNotHappen,
                    _ => Resolution::RunAgain,
                };
                Some(RunCommand::Resolve {
                    step,
                    by,
                    resolution,
                })
            }
            _ => None,
        }
    }
}
