//! The next version of a plan, and the end of the run that it grew out of, in one commit.

use super::Looked;
use crate::dispatch::{RunError, RunLoop};
use crate::journal::load::load_review;
use crate::planner::{PlannerEvent, PlannerOptions, PlannerSink, Replanned};
use crate::port::{Append, AppendError};
use crate::review::plans::ReviewError;
use crate::run::runs::Runs;
use planwright_core::adjust::StepProgress;
use planwright_core::journal::{Cause, StreamName};
use planwright_core::model::ModelUse;
use planwright_core::plan::{Document, Finding};
use planwright_core::principal::Principal;
use planwright_core::review::{Review, ReviewCommand, Revision};
use planwright_core::run::{Command, Run};
use planwright_core::status::StepStatus;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// How often the version is written again because something else was said about the plan meanwhile.
const TRIES: usize = 16;

/// The version with which the work goes on, and what makes it durable. Nothing, if the plan stays
/// as it is.
struct Next {
    version: u32,
    append: Option<Append>,
}

impl RunLoop {
    /// Makes the adjustments that were proposed and recorded.
    pub(super) async fn adjust(&mut self) -> Result<(), RunError> {
        let Some(looked) = self.run.reflection().looked_at() else {
            return Ok(());
        };
        let adjustments = looked.adjustments.clone();
        let reasoning = looked.reasoning.clone();
        let state = self.run.reflection().adjustable();
        let bounds = self.context.settings.bounds;
        let make = move |document: &Document| {
            document
                .apply_adjustments(&adjustments, &state, &bounds)
                .map_err(|error| error.to_string())
        };
        self.go_on_with(make, &reasoning, false, &[]).await
    }

    /// Takes over a plan of the remaining work.
    pub(super) async fn replan(
        &mut self,
        revised: Document,
        used: Vec<ModelUse>,
    ) -> Result<(), RunError> {
        let run = self.run.clone();
        // What was given for one run is not part of the plan.
        let make = move |before: &Document| {
            kept(&run, before, &revised).map(|()| Document {
                variables: before.variables.clone(),
                ..revised.clone()
            })
        };
        self.go_on_with(
            make,
            "the remaining work was planned anew after a failure",
            true,
            &used,
        )
        .await
    }

    async fn go_on_with(
        &mut self,
        make: impl Fn(&Document) -> Result<Document, String>,
        reason: &str,
        replanned: bool,
        used: &[ModelUse],
    ) -> Result<(), RunError> {
        for _ in 0..TRIES {
            let Next { version, append } =
                match self.runs.next_version(&self.run, &make, reason).await {
                    Ok(next) => next,
                    Err(reason) => {
                        let reason = format!("the plan cannot be adjusted: {reason}");
                        self.execute(
                            &Command::Abandon {
                                reason,
                                used: used.to_vec(),
                            },
                            Cause::Report,
                        )?;
                        return Ok(());
                    }
                };
            let before = self.snapshot();
            let command = Command::Adjust {
                version,
                replanned,
                used: used.to_vec(),
            };
            self.execute(&command, Cause::Report)?;
            self.also(append);
            match self.commit().await {
                // Something was said about the plan meanwhile: the version is made again from how
                // it is then.
                Err(RunError::Append(
                    AppendError::Conflict {
                        stream: StreamName::Plan(_),
                        ..
                    }
                    | AppendError::Duplicate {
                        stream: StreamName::Plan(_),
                        ..
                    },
                )) => self.restore(before),
                done => {
                    done?;
                    return Ok(());
                }
            }
        }
        let reason = "the plan changes faster than it can be adjusted".to_owned();
        self.execute(
            &Command::Abandon {
                reason,
                used: used.to_vec(),
            },
            Cause::Report,
        )?;
        Ok(())
    }
}

impl Runs {
    /// The version that `make` makes of the one the run executes.
    async fn next_version(
        &self,
        run: &Run,
        make: &impl Fn(&Document) -> Result<Document, String>,
        reason: &str,
    ) -> Result<Next, String> {
        let words = |error: &dyn std::error::Error| error.to_string();
        let id = run.plan().id();
        let (review, head) = load_review(&*self.context.ports.store, id)
            .await
            .map_err(|error| words(&error))?;
        let began = run.start().version;
        let current = review.current().number;
        if began != current {
            return Err(format!(
                "version {current} of it was made while version {began} was executed"
            ));
        }
        let mut document = make(&review.current().document)?;
        document.id = Some(id.clone());
        if document == *review.current().document {
            return Ok(Next {
                version: current,
                append: None,
            });
        }
        self.check_next(document.with_variables(&run.start().variables))
            .await?;
        let candidate = self
            .plans()
            .compile(document)
            .await
            .map_err(|error| words(&error))?;
        let reason: String = reason.chars().take(Review::MAX_REASON / 4).collect();
        let revision = Revision {
            based_on: current,
            document: Arc::clone(candidate.plan.document()),
            digest: candidate.digest,
            by: Principal::reflector(),
            reason: Some(reason).filter(|reason| !reason.is_empty()),
            restored_from: None,
            planning: None,
        };
        let now = self.context.ports.clock.now();
        let events = review
            .decide(&ReviewCommand::Edit(Box::new(revision)), now)
            .map_err(|error| words(&error))?;
        let (append, review) = self
            .plans()
            .review_append(review, head, (now, events))
            .await
            .map_err(|error| words(&error))?;
        let append = Some(append).filter(|append| !append.records.is_empty());
        Ok(Next {
            version: review.current().number,
            append,
        })
    }

    /// Returns whether a document could run: nothing is missing, wrong or forbidden.
    pub(super) async fn check_next(&self, document: Document) -> Result<(), String> {
        let listed = |findings: &[Finding]| {
            let errors = findings
                .iter()
                .filter(|finding| finding.is_error())
                .take(10);
            errors
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; ")
        };
        let candidate = match self.plans().compile(document).await {
            Ok(candidate) => candidate,
            Err(ReviewError::Invalid(findings)) => return Err(listed(&findings)),
            Err(error) => return Err(error.to_string()),
        };
        let missing = candidate.plan.missing_tools(&self.context.catalog());
        if !missing.is_empty() {
            return Err(ReviewError::MissingTools(missing).to_string());
        }
        if candidate.findings.iter().any(Finding::is_error) {
            return Err(listed(&candidate.findings));
        }
        match self.plans().judge(&candidate.plan).denial() {
            Some(denied) => Err(denied.to_string()),
            None => Ok(()),
        }
    }

    /// Asks the planner for a plan of the remaining work.
    pub(crate) async fn ask_for_another_plan(
        self,
        run: Run,
        cancelled: CancellationToken,
    ) -> Looked {
        let heard: Arc<Mutex<Vec<ModelUse>>> = Arc::default();
        let listening = Arc::clone(&heard);
        let told = PlannerSink::new(move |event| {
            if let PlannerEvent::Answered { used } = event {
                listening
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(used);
            }
        });
        let options = PlannerOptions {
            cancelled,
            told,
            ..PlannerOptions::default()
        };
        match self.planner().replan(&run, &options).await {
            Ok(Replanned { document, planning }) => Looked::Replanned {
                document: Ok(Box::new(document)),
                used: planning.used,
            },
            Err(error) => {
                // What was asked in vain was paid for all the same.
                let used =
                    std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
                Looked::Replanned {
                    document: Err(error.to_string()),
                    used,
                }
            }
        }
    }
}

/// Returns whether everything that was executed is in the revised plan just as it was.
fn kept(run: &Run, before: &Document, revised: &Document) -> Result<(), String> {
    let state = run.reflection().adjustable();
    for (step, progress) in state.iter() {
        let find = |document: &Document| {
            document
                .steps
                .iter()
                .find(|found| found.id.as_ref() == Some(step))
                .cloned()
        };
        match progress {
            StepProgress::Unknown => {
                return Err(format!("whether step `{step}` happened is not known"));
            }
            // What a person said no to may be done in another way.
            StepProgress::Done(StepStatus::Denied) => {}
            StepProgress::Done(_) | StepProgress::Absent if find(before) != find(revised) => {
                return Err(format!(
                    "step `{step}` was executed, and is not in the new plan as it was"
                ));
            }
            StepProgress::Partial if find(before) == find(revised) => {
                return Err(format!(
                    "part of step `{step}` was done, and it would be done again"
                ));
            }
            StepProgress::Done(_)
            | StepProgress::Absent
            | StepProgress::Partial
            | StepProgress::Open
            | StepProgress::Failed => {}
        }
    }
    Ok(())
}
