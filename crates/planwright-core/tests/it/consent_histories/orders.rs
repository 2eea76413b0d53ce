//! Orders to a run: to stand still, to go on, to leave a step out, to end, and answers to what it
//! asks.

use super::life::{Life, at};
use super::runs::{Live, text_of};
use crate::consent_world::people;
use planwright_core::digest::Digest;
use planwright_core::principal::{Assurance, PrincipalKind};
use planwright_core::run::{Command, RunEvent, RunState, Shown, StepState, StoredValue};

impl Life<'_> {
    /// A principal wants the run to stand still, or to go on.
    pub(super) fn stand_still(&mut self) {
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
        let by_person = live.run.pause().is_by_person();
        let resumed = self.command(&Command::Resume { by: by.clone() });
        if resumed.is_empty() {
            self.tally.pauses[0] += u64::from(by_person);
        } else {
            self.oracle.resumed(&by);
            self.tally.pauses[1] += u64::from(by_person);
        }
    }

    /// A principal wants a step left out.
    pub(super) fn leave_out(&mut self) {
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
    pub(super) fn end(&mut self) {
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

    /// A person decides about a step that waits, with the right or the wrong thing on the screen.
    pub(super) fn answer_step(&mut self) {
        let by = self.dice.pick(&people());
        // People take their time, and some of them too much of it.
        if self.dice.below(2) == 0 {
            self.now += 6_000;
        }
        let Some(live) = &self.run else { return };
        let Some(ix) = live.run.schedule().waiting().next() else {
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
        let version = live.run.start().version;
        let plan_digest = live.run.start().digest;
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
