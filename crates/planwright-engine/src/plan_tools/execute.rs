//! Running a plan for a model.

use super::consenter::Consented;
use super::outcome::{executed_value, failure_value, pending};
use super::{PlanToolCall, PlanTools, Problem};
use crate::review::given_approval::GivenApproval;
use crate::review::plans::Candidate;
use crate::run::handle::RunHandle;
use crate::run::options::RunOptions;
use crate::run::remote_command::RunCommand;
use crate::run::start::StartRunError;
use crate::run::undo::load_any_run;
use planwright_core::id::RunId;
use planwright_core::plan::Finding;
use planwright_core::review::{Review, ReviewStage};
use planwright_core::run::Run;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// Findings of a plan that cannot run, as far as a model can make use of them.
const MAX_FINDINGS: usize = 20;

impl PlanTools {
    /// Runs a plan, or goes on with the run that an earlier attempt at the same call began.
    pub(super) async fn execute(
        &self,
        call: &PlanToolCall,
        review: Review,
        variables: Map<String, Value>,
    ) -> Result<Value, Problem> {
        let plan = review.id().clone();
        let begun = if call.again {
            self.begun_run(&review, call.trace()).await?
        } else {
            None
        };
        let done = match begun {
            Some(run) if run.state().is_terminal() => {
                Ok(executed_value(&self.engine.context, &run).await)
            }
            Some(run) => {
                let options = self.options(call, Map::new());
                let handle = self
                    .engine
                    .runs()
                    .resume_run(run.id(), options)
                    .await
                    .map_err(|error| start(&error))?;
                self.finish(call, handle).await
            }
            None => Box::pin(self.begin(call, &review, variables)).await,
        };
        done.map_err(|problem| problem.about(&plan))
    }

    async fn begin(
        &self,
        call: &PlanToolCall,
        review: &Review,
        variables: Map<String, Value>,
    ) -> Result<Value, Problem> {
        let runnable = Box::pin(self.engine.runs().check_runnable(review, &variables)).await;
        let candidate = runnable.map_err(|error| start(&error))?;
        let mut options = self.options(call, variables);
        match self.consent(review, &candidate).await? {
            Agreement::Spent => {}
            Agreement::Given(given) => options.approval = Some(*given),
            Agreement::Missing { refused } => {
                return Ok(pending(review, &candidate.digest, refused));
            }
        }
        if call.cancelled.is_cancelled() {
            return Err(Problem::cancelled());
        }
        let started = Box::pin(self.engine.runs().start(review.id(), options)).await;
        Box::pin(self.finish(call, started.map_err(|error| start(&error))?)).await
    }

    /// What lets the plan run: an approval that is there, policy's, or a person's.
    async fn consent(&self, review: &Review, candidate: &Candidate) -> Result<Agreement, Problem> {
        if let Some(denied) = self.engine.plans().judge(&candidate.plan).denial() {
            return Err(Problem::of(&denied));
        }
        match review.stage() {
            Some(ReviewStage::Proposed | ReviewStage::Approved | ReviewStage::NeedsReview) => {}
            Some(_) | None => {
                let status = review.state().status();
                return Err(Problem::new(format!("the plan is {status}")));
            }
        }
        let now = self.engine.context.ports.clock.now();
        if review.usable_approvals(&candidate.digest, now).is_some() {
            return Ok(Agreement::Spent);
        }
        if let Some(given) = self.engine.plans().consent_of_policy(review, candidate) {
            return Ok(Agreement::Given(Box::new(given)));
        }
        Ok(match self.consenter.agree(review, candidate).await {
            Consented::Yes(given) => Agreement::Given(given),
            Consented::No => Agreement::Missing { refused: true },
            Consented::NotAsked => Agreement::Missing { refused: false },
        })
    }

    fn options(&self, call: &PlanToolCall, variables: Map<String, Value>) -> RunOptions {
        let mut options = RunOptions::new(self.by.clone());
        options.variables = variables;
        options.trace = Some(call.trace());
        options.observers = self.observers.0.clone();
        options
    }

    /// Waits for the run; what it asks a person is asked where they are, and else left for later.
    async fn finish(&self, call: &PlanToolCall, mut handle: RunHandle) -> Result<Value, Problem> {
        loop {
            let run = self.wait(&mut handle, &call.cancelled).await?;
            let over = run.state().is_terminal() || call.cancelled.is_cancelled();
            if over || !self.consenter.decide(&run).await {
                return Ok(executed_value(&self.engine.context, &run).await);
            }
            handle = match self.resume_run(call, run.id()).await? {
                Resumed::Goes(handle) => handle,
                Resumed::Over(run) => return Ok(executed_value(&self.engine.context, &run).await),
            };
        }
    }

    /// Goes on with a run about which a person has decided, until it ends or stands still again.
    pub async fn resume(&self, call: &PlanToolCall, run: &RunId) -> Value {
        let done = match self.resume_run(call, run).await {
            Ok(Resumed::Goes(handle)) => Box::pin(self.finish(call, handle)).await,
            Ok(Resumed::Over(run)) => Ok(executed_value(&self.engine.context, &run).await),
            Err(problem) => Err(problem),
        };
        done.unwrap_or_else(|problem| failure_value(&problem))
    }

    /// Describes what a run came to so far.
    pub async fn describe_run(&self, run: &Run) -> Value {
        executed_value(&self.engine.context, run).await
    }

    async fn resume_run(&self, call: &PlanToolCall, id: &RunId) -> Result<Resumed, Problem> {
        let runs = self.engine.runs();
        let resumed = Box::pin(runs.resume_run(id, self.options(call, Map::new()))).await;
        match resumed {
            Ok(handle) => Ok(Resumed::Goes(handle)),
            // What was decided may have ended the run.
            Err(StartRunError::Ended { .. }) => {
                let loaded = load_any_run(&self.engine.context, id).await;
                let (run, _) = loaded.map_err(|error| Problem::of(&error))?;
                Ok(Resumed::Over(Box::new(run)))
            }
            Err(error) => Err(start(&error)),
        }
    }

    /// Waits until the run ends or stands still. When its result is not wanted any more it is
    /// cancelled.
    async fn wait(
        &self,
        handle: &mut RunHandle,
        cancelled: &CancellationToken,
    ) -> Result<Run, Problem> {
        let id = handle.run_id().clone();
        let stop = async {
            cancelled.cancelled().await;
            let cancel = RunCommand::Cancel {
                by: self.by.clone(),
            };
            if let Err(error) = self.engine.runs().command(&id, cancel).await {
                tracing::warn!(run = %id, %error, "a run could not be cancelled");
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            run = handle.wait() => run.map_err(|error| Problem::of(&error)),
            () = stop => unreachable!("it waits for ever"),
        }
    }
}

enum Resumed {
    Goes(RunHandle),
    Over(Box<Run>),
}

enum Agreement {
    /// There is an approval to spend.
    Spent,
    Given(Box<GivenApproval>),
    Missing {
        /// A person was asked.
        refused: bool,
    },
}

fn start(error: &StartRunError) -> Problem {
    let mut problem = Problem::of(error);
    if let StartRunError::Invalid(findings) = error {
        problem.findings = findings
            .iter()
            .filter(|finding| finding.is_error())
            .take(MAX_FINDINGS)
            .map(Finding::to_string)
            .collect();
    }
    problem
}
