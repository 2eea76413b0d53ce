//! Questions that servers ask in the middle of calls, put to the person at the terminal while the
//! calls wait.

use crate::command::execution::execute::load_run;
use crate::command::execution::interrupts::Interrupts;
use crate::command::execution::questions::{ask_step_input, is_person_here};
use crate::exit::Failure;
use crate::terminal::progress::RunProgress;
use crate::workspace::app::App;
use planwright_core::id::{RunId, StepId};
use planwright_core::journal::Entry;
use planwright_core::run::{Run, RunEvent};
use planwright_engine::Observer;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The questions that may wait for the one before them.
const MAX_QUESTIONS: usize = 64;

/// Hears of every question that a call waits for.
#[derive(Debug)]
pub(crate) struct HeldQuestions {
    heard: mpsc::Receiver<(RunId, StepId)>,
    /// Keeps the line open where no person is there.
    _ear: Arc<Ear>,
}

#[derive(Debug)]
struct Ear(mpsc::Sender<(RunId, StepId)>);

impl Observer for Ear {
    fn entry(&self, run: &Run, entry: &Entry<RunEvent>) {
        if let RunEvent::InputRequested {
            step, held: true, ..
        } = &entry.event
        {
            // What does not fit is still asked by `planwright input`.
            drop(self.0.try_send((run.id().clone(), step.clone())));
        }
    }
}

impl HeldQuestions {
    /// Has questions held open if a person is there to answer them.
    pub(crate) fn listen(app: &App) -> Self {
        let (told, heard) = mpsc::channel(MAX_QUESTIONS);
        let ear = Arc::new(Ear(told));
        if is_person_here(app) {
            app.engine.hold_questions();
            app.engine
                .watch(Arc::<Ear>::clone(&ear) as Arc<dyn Observer>);
        }
        Self { heard, _ear: ear }
    }

    /// Asks what is heard, one after the other. Never returns.
    pub(crate) async fn ask_while_running(
        &mut self,
        app: &App,
        progress: &RunProgress,
        interrupts: &Interrupts,
    ) {
        while let Some((run, step)) = self.heard.recv().await {
            progress.hide();
            let asked = ask(app, &run, &step, interrupts).await;
            progress.show();
            if let Err(failure) = asked {
                app.printer().failure(&failure);
            }
        }
        std::future::pending::<()>().await;
    }
}

async fn ask(
    app: &App,
    run: &RunId,
    step: &StepId,
    interrupts: &Interrupts,
) -> Result<(), Failure> {
    let run = load_run(app, run).await?;
    if let Some(ix) = run.find(step.as_str()) {
        ask_step_input(app, &run, ix, interrupts).await?;
    }
    Ok(())
}
