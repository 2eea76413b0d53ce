//! Asking the person who chats, right there. Only a clear yes is a yes; everything else is a no.

use crate::command::execution::interrupts::{Interrupts, ask_unless_interrupted};
use crate::command::execution::questions::{ask_about_waiting_steps, ask_step_input};
use crate::exit::Failure;
use crate::terminal::approval_prompt::{
    ApprovalQuestion, Approved, YesNo, ask_yes_no, obtain_approval,
};
use crate::terminal::late_bound::LateChoices;
use crate::terminal::pending_calls::call_lines;
use crate::workspace::app::{App, user};
use planwright_core::plan::StepIx;
use planwright_core::principal::{Assurance, PrincipalKind};
use planwright_core::review::Review;
use planwright_core::run::{AskedCall, Resolution, Run, Shown, StepState};
use planwright_engine::port::BoxFuture;
use planwright_engine::{Candidate, Consented, Consenter, RunCommand, store_value};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::Mutex;

/// The person at the terminal, if there is one.
#[derive(Debug, Clone)]
pub(super) struct ChatPerson {
    app: App,
    /// One question at a time.
    asking: Arc<Mutex<()>>,
}

impl ChatPerson {
    pub(super) fn new(app: App) -> Self {
        Self {
            app,
            asking: Arc::default(),
        }
    }

    pub(super) fn is_there(&self) -> bool {
        let printer = self.app.printer();
        printer.can_ask() && !printer.json && user().kind == PrincipalKind::Person
    }

    /// Asks about everything that the run of a call waits for. Whether anything was decided.
    pub(super) async fn settle(&self, run: &Run, interrupts: &Interrupts) -> Result<bool, Failure> {
        if !self.is_there() || run.state().is_terminal() {
            return Ok(false);
        }
        let _asking = self.asking.lock().await;
        let mut decided = false;
        for ix in run.schedule().waiting().collect::<Vec<_>>() {
            let command = match run.step(ix) {
                StepState::AwaitingApproval {
                    call: Some(asked), ..
                } => Some(self.ask_call(run, ix, asked, interrupts).await?),
                StepState::AwaitingInput { .. } => {
                    decided |= ask_step_input(&self.app, run, ix, interrupts).await?;
                    None
                }
                StepState::OutcomeUnknown { .. } => self.ask_outcome(run, ix, interrupts).await?,
                _ => None,
            };
            if let Some(command) = command {
                self.app.engine.runs().command(run.id(), command).await?;
                decided = true;
            }
        }
        Ok(decided)
    }

    /// Shows the concrete call and asks. Every answer but yes, and an interrupt, is a no.
    async fn ask_call(
        &self,
        run: &Run,
        ix: StepIx,
        asked: &AskedCall,
        interrupts: &Interrupts,
    ) -> Result<RunCommand, Failure> {
        let printer = self.app.printer();
        let step = run.step_id(ix).to_string();
        for text in call_lines(&self.app, &step, asked).await? {
            printer.talk(&text);
        }
        let answer =
            ask_unless_interrupted(interrupts, move || ask_yes_no(printer, "Make this call?"))
                .await?;
        let by = user();
        let shown = Shown::Digest(asked.digest).into();
        Ok(match answer {
            Some(YesNo::Yes) => RunCommand::Approve {
                step,
                by,
                assurance: Assurance::Terminal,
                shown,
            },
            Some(YesNo::No | YesNo::Unclear) | None => RunCommand::Deny {
                step,
                by,
                shown,
                reason: "the user said no".to_owned(),
            },
        })
    }

    /// Asks the person about the outcome of a call that is unknown to the engine.
    async fn ask_outcome(
        &self,
        run: &Run,
        ix: StepIx,
        interrupts: &Interrupts,
    ) -> Result<Option<RunCommand>, Failure> {
        let printer = self.app.printer();
        let label =
            planwright_core::text::escape_invisible(run.definition(ix).action_label()).into_owned();
        printer.talk(&format!("the outcome of the call of {label} is unknown"));
        let question = "Did it happen? [yes, no, again = call it again, empty = later]";
        let answer = ask_unless_interrupted(interrupts, move || {
            crate::terminal::approval_prompt::read_answer(printer, question)
        })
        .await?;
        let resolution = match answer.as_deref().map(str::trim) {
            Some("yes" | "y") => {
                let (value, _) = store_value(&**self.app.artifacts(), Value::Null).await?;
                Resolution::Happened { value }
            }
            Some("no" | "n") => Resolution::DidNotHappen,
            Some("again") => Resolution::RunAgain,
            Some(_) | None => return Ok(None),
        };
        Ok(Some(RunCommand::Resolve {
            step: run.step_id(ix).to_string(),
            by: user(),
            resolution,
        }))
    }

    /// Shows a plan and asks, on a thread of its own: the conversation goes on to hold what it
    /// holds.
    async fn agrees(&self, review: &Review, candidate: &Candidate) -> Consented {
        if !self.is_there() {
            return Consented::NotAsked;
        }
        let _asking = self.asking.lock().await;
        let app = self.app.clone();
        let review = review.clone();
        let candidate = candidate.clone();
        let runtime = tokio::runtime::Handle::current();
        let asked = tokio::task::spawn_blocking(move || {
            let question = ApprovalQuestion {
                review: &review,
                candidate: &candidate,
                yes: false,
                late: LateChoices::default(),
                typed: String::new(),
                can_edit: false,
            };
            runtime.block_on(obtain_approval(&app, &question))
        });
        match asked.await {
            Ok(Ok(Approved::Now(given))) => Consented::Yes(Box::new(given)),
            Ok(Ok(Approved::Before { .. } | Approved::AfterEdit)) => Consented::NotAsked,
            // Other obstacles are reported by the start of the run.
            Ok(Err(_)) | Err(_) => Consented::No,
        }
    }

    async fn decides(&self, run: &Run) -> Result<bool, Failure> {
        if !self.is_there() {
            return Ok(false);
        }
        let _asking = self.asking.lock().await;
        ask_about_waiting_steps(&self.app, run, &Interrupts::listen()?).await
    }
}

impl Consenter for ChatPerson {
    fn agree<'a>(
        &'a self,
        review: &'a Review,
        candidate: &'a Candidate,
    ) -> BoxFuture<'a, Consented> {
        Box::pin(self.agrees(review, candidate))
    }

    fn decide<'a>(&'a self, run: &'a Run) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            self.decides(run).await.unwrap_or_else(|failure| {
                self.app.printer().failure(&failure);
                false
            })
        })
    }
}
