//! `workers`: who carries out runs and steps, and what they do.

use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::{BOLD, DIM, YELLOW, ago, line};
use crate::workspace::app::{Access, App, CommandContext};
use planwright_api::WorkerLine;
use planwright_server::documents::load_workers;

pub(crate) async fn run(context: &CommandContext) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    if app.postgres.is_none() {
        return Err(Failure::refused(
            "there are no workers: the store is a file of this workspace, or the database has no store yet",
        )
        .hint("planwright worker --store postgres://USER@HOST/DATABASE"));
    }
    let list = load_workers(&app.engine.workers())
        .await
        .map_err(|error| Failure::from_error(Exit::Store, &error))?;
    let printer = app.printer();
    if printer.json {
        printer.document(&list)?;
        return Ok(Exit::Done);
    }
    if list.workers.is_empty() {
        printer.talk("no workers: planwright worker --capability NAME starts one");
    }
    for worker in &list.workers {
        show(&app, worker)?;
    }
    for offers in list.waiting {
        let steps = count_of(offers.steps, "step", "steps");
        let oldest = offers.oldest_seconds;
        let text = format!(
            "{steps} waiting for the capability {}, the first for {oldest} s",
            line(&offers.capability)
        );
        printer.data(&printer.out(YELLOW, &text))?;
    }
    Ok(Exit::Done)
}

fn show(app: &App, told: &WorkerLine) -> Result<(), Failure> {
    let printer = app.printer();
    let since = app.now().since(told.started_at);
    let takes = match told.capabilities.is_empty() {
        true => "runs".to_owned(),
        false => line(&told.capabilities.join(", ")),
    };
    let head = printer.out(BOLD, &told.id);
    let place = printer.out(
        DIM,
        &format!("{} {}, started {}", line(&told.host), told.pid, ago(since)),
    );
    printer.data(&format!("{head}  {}  {takes}  {place}", told.state))?;
    for step in &told.steps {
        printer.data(&format!("  step {} of {}", line(&step.step), step.run))?;
    }
    for run in &told.runs {
        printer.data(&format!("  run {run}"))?;
    }
    Ok(())
}
