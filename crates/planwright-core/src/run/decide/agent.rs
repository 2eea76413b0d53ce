//! What the executor of an agent step wants: bounds, scope, guards and consent decide about every
//! call, in the decision whose entry records it.

use super::consent::{list_names, refused_by_consent};
use crate::id::AttemptNo;
use crate::model::ModelUse;
use crate::plan::{Agent, StepIx};
use crate::policy::{Mode, Verdict};
use crate::run::guard::Usage;
use crate::run::{
    AgentCall, AgentWork, CallFate, ClientTerms, GuardBlock, Refusal, Run, RunEvent, RunState,
    StepError, StepErrorCode, StoredValue, Wanted, WantedCallFacts,
};
use crate::time::Timestamp;
use crate::tool::ToolScope;

/// The words and wishes of an executor, as the engine hands them in.
pub(super) struct Turn<'a> {
    pub(super) attempt: AttemptNo,
    pub(super) text: Option<&'a StoredValue>,
    pub(super) calls: &'a [Wanted],
    /// The use of the model; absent for an executor that is no model of ours.
    pub(super) used: Option<&'a ModelUse>,
    /// Calls outside the scope are noted and go the way of every other call.
    pub(super) observe: bool,
    /// The terms of the calls of a client of the gateway.
    pub(super) client: Option<ClientTerms>,
}

/// The limits that the calls of one turn are held against, while they are decided on.
struct Weighing<'a> {
    agent: &'a Agent,
    scope: ToolScope,
    usage: Usage,
    /// Wanted before this one.
    before: u32,
    observe: bool,
    client: Option<ClientTerms>,
    /// No call of this turn is made, because the step ends with it.
    stop: Option<&'a StepError>,
}

impl Run {
    pub(super) fn decide_turn(
        &self,
        ix: StepIx,
        turn: &Turn<'_>,
        now: Timestamp,
    ) -> Result<Vec<RunEvent>, Refusal> {
        let step = self.step_id(ix).clone();
        let attempt = turn.attempt;
        let not_in_flight = || Refusal::NotInFlight {
            step: step.to_string(),
            attempt,
        };
        let in_flight = self
            .in_flight(ix)
            .filter(|(tally, _)| tally.attempts == attempt);
        let (tally, _) = in_flight.ok_or_else(not_in_flight)?;
        let agent = self
            .definition(ix)
            .agent
            .as_deref()
            .ok_or_else(not_in_flight)?;
        if self.state == RunState::Cancelling {
            return Err(not_in_flight());
        }
        let mut events: Vec<RunEvent> = turn
            .used
            .map(|used| RunEvent::ModelUsed {
                step: Some(step.clone()),
                used: used.clone(),
            })
            .into_iter()
            .collect();
        let stop = if turn.calls.is_empty() {
            None
        } else {
            self.why_over(ix, agent, turn, now)
        };
        let calls = self.weigh(ix, agent, turn, stop.as_ref(), now);
        let number = self.agent_work(ix).map_or(0, |work| work.turns().len()) + 1;
        events.push(RunEvent::AgentTurn {
            step,
            attempt,
            turn: u32::try_from(number).unwrap_or(u32::MAX),
            text: turn.text.cloned(),
            calls,
        });
        events.extend(stop.map(|error| self.failed(ix, tally, error, now)));
        Ok(events)
    }

    /// Returns why the step may not go on after this turn, although its executor wants to.
    fn why_over(
        &self,
        ix: StepIx,
        agent: &Agent,
        turn: &Turn<'_>,
        now: Timestamp,
    ) -> Option<StepError> {
        if let Some(failed) = self.stopping_on() {
            let message = format!(
                "step `{}` failed, so nothing else is called",
                self.step_id(failed)
            );
            return Some(StepError::new(StepErrorCode::Stopped, message));
        }
        let used = turn.used?;
        let (asked, tokens) = self
            .agent_work(ix)
            .map_or((0, 0), |work| (work.asked(), work.tokens()));
        if asked + 1 >= agent.max_turns() {
            let message = format!(
                "its model may be asked {} times, and has been",
                agent.max_turns()
            );
            return Some(StepError::new(StepErrorCode::TooManyTurns, message));
        }
        let tokens = tokens.saturating_add(used.usage.total());
        let of_step = agent.max_tokens.filter(|&limit| tokens >= limit);
        let block = match of_step {
            Some(limit) => Some(GuardBlock::Tokens { limit }),
            None => self
                .check_tokens(used.usage.total())
                .and_then(|()| self.check_seconds(now))
                .err(),
        };
        block.map(|block| guard_error(&block))
    }

    fn weigh(
        &self,
        ix: StepIx,
        agent: &Agent,
        turn: &Turn<'_>,
        stop: Option<&StepError>,
        now: Timestamp,
    ) -> Vec<AgentCall> {
        let mut weighing = Weighing {
            agent,
            scope: self.plan().document().agent_scope(),
            usage: self.usage.clone(),
            before: self.agent_work(ix).map_or(0, AgentWork::calls),
            observe: turn.observe,
            client: turn.client,
            stop,
        };
        let calls = turn.calls.iter().map(|wanted| {
            let number = weighing.before;
            let decided = self.decide_call(&mut weighing, wanted, now);
            let admitted = decided.as_ref().ok().cloned().unwrap_or_default();
            let outside = admitted.outside;
            let fate = match decided {
                Ok(_) => {
                    let place = crate::run::Parent {
                        outside,
                        ..self.child_runs(ix).call_place(number)
                    };
                    CallFate::Run(place.child())
                }
                Err(error) => CallFate::Refused(error),
            };
            weighing.before = weighing.before.saturating_add(1);
            let known = wanted.known.as_ref().ok();
            AgentCall {
                number,
                id: wanted.id.clone(),
                tool: wanted.tool.clone(),
                args: wanted.args.clone(),
                name: known.map(|known| known.tool.clone()),
                digest: known.map(|known| known.call),
                outside,
                let_through: admitted.let_through,
                fate,
            }
        });
        calls.collect()
    }

    /// Decides whether the call is made, and on which terms.
    fn decide_call(
        &self,
        weighing: &mut Weighing<'_>,
        wanted: &Wanted,
        now: Timestamp,
    ) -> Result<Admitted, StepError> {
        if let Some(stop) = weighing.stop {
            return Err(stop.clone());
        }
        let limit = weighing.agent.max_calls();
        if weighing.before >= limit {
            let message = format!("the step may make {limit} calls, and has made them");
            return Err(StepError::new(StepErrorCode::TooManyCalls, message));
        }
        let named = wanted.known.as_ref().map(|known| known.tool.to_string());
        let full = named.as_deref().unwrap_or(&wanted.tool);
        let pins = self.start.consent.as_deref().map(|consent| &consent.pins);
        // The definition must be the one that was approved under this name, not another with the
        // same bare name.
        let pinned = pins.is_none_or(|pins| pins.contains_key(full));
        let in_scope = weighing.scope.holds(full) && pinned;
        if !in_scope && !weighing.observe {
            let names: Vec<String> = self
                .plan()
                .document()
                .agent_tools()
                .into_iter()
                .map(str::to_owned)
                .collect();
            let name = &wanted.tool;
            let only = list_names(&names);
            let message =
                format!("Tool {name} not available in plan scope. Only [{only}] are available.");
            return Err(StepError::new(StepErrorCode::OutOfScope, message));
        }
        let known = wanted.known.as_ref().map_err(StepError::clone)?;
        let consent = self.start.consent.as_deref().filter(|_| in_scope);
        if let Some(error) = refused_by_consent(consent, &known.tool, &known.facts) {
            return Err(error);
        }
        let let_through = weighing
            .client
            .map(|terms| check_client_call(terms, known))
            .transpose()?
            .flatten();
        let caps = &known.facts.caps;
        let guards = self.check_guards_after(&weighing.usage, &known.tool, &known.call, caps, now);
        guards.map_err(|block| guard_error(&block))?;
        weighing.usage.note(
            &known.tool,
            &known.call,
            self.start(),
            &self.plan().document().limits.budget,
        );
        // No approver was told of this tool: what was said about the step's calls is not about it,
        // unless policy needs no approval.
        let harmless = known.read_only && known.facts.judgement.verdict == Verdict::Allow;
        Ok(Admitted {
            outside: !in_scope && !harmless,
            let_through,
        })
    }
}

/// A call that is made.
#[derive(Debug, Clone, Default)]
struct Admitted {
    /// Only a person lets it through, because it is outside the scope.
    outside: bool,
    let_through: Option<StepError>,
}

/// Refuses what a client may not call outside an approved plan, or, where the gateway only observes
/// or warns, returns why it would have. What policy denies is denied in every mode.
fn check_client_call(
    terms: ClientTerms,
    known: &WantedCallFacts,
) -> Result<Option<StepError>, StepError> {
    let asks = known.facts.judgement.verdict == Verdict::Ask;
    let tool = &known.tool;
    let objection = if let Some(pattern) = &known.guarded {
        let message = format!(
            "`{tool}` is guarded ({pattern}): it is called only as a step of an approved plan"
        );
        Some(StepError::new(StepErrorCode::GuardedTool, message))
    } else if asks && !(terms.attended && terms.mode == Mode::Enforce) {
        let why = known.facts.judgement.explain();
        let message = format!("a person has to agree to `{tool}`, and none can be asked: {why}");
        Some(StepError::new(StepErrorCode::NeedsPerson, message))
    } else {
        None
    };
    match (objection, terms.mode) {
        (Some(error), Mode::Enforce) => Err(error),
        (objection, _) => Ok(objection),
    }
}

/// Makes the error of a step that a guard stopped.
pub(super) fn guard_error(block: &GuardBlock) -> StepError {
    StepError::new(
        StepErrorCode::GuardBlocked,
        format!("Guard blocked: {block}"),
    )
}
