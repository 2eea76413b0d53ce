//! Orders to runs, and whether their givers may give them: found anew from what was said and written
//! down.

use super::opening::{steps, waits_for};
use super::oracle::Oracle;
use super::rules::STRICT;
use planwright_core::principal::{Principal, PrincipalKind};
use planwright_core::run::RunEvent;

/// What came of the orders of a history.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// Pauses of people that people lifted.
    pub(super) lifted: u64,
    /// Pauses of people over those of programs.
    pub(super) over: u64,
    /// Steps that were left out though others wait for them.
    pub(super) left_out: u64,
}

fn is_person(by: &Principal) -> bool {
    by.kind == PrincipalKind::Person
}

impl Oracle<'_> {
    /// Returns an order that its giver may not give, in words.
    pub(super) fn check_orders(&self) -> Result<Orders, String> {
        let mut orders = Orders::default();
        for run in self.past.runs.keys() {
            self.check_pauses(run, &mut orders)?;
            self.check_left_out(run, &mut orders)?;
        }
        Ok(orders)
    }

    /// What a person stopped, a person lets go on: no matter who had stopped it before, and whether the
    /// person's word was written down or not.
    fn check_pauses(&self, run: &str, orders: &mut Orders) -> Result<(), String> {
        let mut said = self.stage.pauses(run).into_iter().peekable();
        let mut by_person = false;
        let mut by_program = false;
        for noted in self.past.of_run(run) {
            while said
                .next_if(|&position| position < noted.position)
                .is_some()
            {
                orders.over += u64::from(by_program && !by_person);
                by_person = true;
            }
            match &noted.event {
                RunEvent::RunPaused { by } if is_person(by) => {
                    orders.over += u64::from(by_program && !by_person);
                    by_person = true;
                }
                RunEvent::RunPaused { .. } => by_program = true,
                RunEvent::RunResumed { by } if by_person && !is_person(by) => {
                    return Err(format!("{by} lifted the pause of a person in {run}"));
                }
                RunEvent::RunResumed { .. } => {
                    orders.lifted += u64::from(by_person);
                    (by_person, by_program) = (false, false);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// People leave steps out; where four eyes are needed, not the author what others wait for.
    fn check_left_out(&self, run: &str, orders: &mut Orders) -> Result<(), String> {
        for noted in self.past.of_run(run) {
            let RunEvent::StepSkipped {
                by: Some(by), step, ..
            } = &noted.event
            else {
                continue;
            };
            if !is_person(by) {
                return Err(format!("{by} left out step {step} in {run}"));
            }
            // What takes a run back, or is done for an executor, has no plan of its own.
            if self.past.taken_back(run).is_some() || self.past.parent(run).is_some() {
                continue;
            }
            let opening = self.opening(run)?;
            let is_waited_for = steps(&opening.document)
                .iter()
                .any(|other| waits_for(&opening.document, other).contains(step.as_str()));
            orders.left_out += u64::from(is_waited_for);
            if is_waited_for && opening.scene.policy == STRICT && *by == opening.proposer {
                return Err(format!(
                    "four eyes: {by} left out step {step} of their own plan in {run}"
                ));
            }
        }
        Ok(())
    }
}
