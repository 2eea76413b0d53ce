//! Keeps `.plans/<id>/` in step with the journal. A file that cannot be written is a warning, never
//! an outcome.

use crate::workspace::app::App;
use planwright_adapters::files::{Draft, Projection};
use planwright_api::LogLine;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::StreamName;
use planwright_core::plan::stored_part_file;
use planwright_core::review::{Review, ReviewState, Version};
use planwright_engine::port::{BoxFuture, PlanFiles, is_last_page};
use planwright_engine::{Engine, LoadError};
use planwright_server::documents::write_markdown;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Once};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Records read at a time: bounds memory for runs of any length.
const PAGE: usize = 1000;

/// The files of the plans of one workspace.
#[derive(Debug)]
pub(crate) struct WorkspaceFiles {
    engine: Engine,
    plans: PathBuf,
    /// An encrypted store has no plain files beside it.
    encrypted: bool,
    /// Held while files are put in place, so that an older state never replaces a newer one.
    turn: Arc<Mutex<()>>,
}

impl PlanFiles for WorkspaceFiles {
    fn write<'a>(&'a self, plan: &'a PlanId) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let turn = Arc::clone(&self.turn).lock_owned().await;
            match self.engine.plans().load_review(plan).await {
                Ok((review, _)) => self.bring_up_to_date(&review, turn).await,
                // It was removed for good, and its files before it.
                Err(LoadError::NoSuchPlan(_)) => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        })
    }
}

/// Writes the plan's files as the journal has them, or removes them if the plan was deleted.
pub(crate) async fn update_plan_files(app: &App, review: &Review) {
    if app.files.encrypted {
        return mention_encryption_once(app);
    }
    let turn = Arc::clone(&app.files.turn).lock_owned().await;
    if let Err(problem) = app.files.bring_up_to_date(review, turn).await {
        app.printer().warn(&format!(
            "the files of plan `{}` are not up to date: {problem}",
            review.id()
        ));
    }
}

impl WorkspaceFiles {
    pub(crate) fn new(engine: Engine, plans: PathBuf, encrypted: bool) -> Self {
        Self {
            engine,
            plans,
            encrypted,
            turn: Arc::default(),
        }
    }

    /// Returns whether everything about plans is kept sealed, so that nothing of them may be
    /// written anywhere else.
    pub(crate) fn is_sealed(&self) -> bool {
        self.encrypted
    }

    async fn bring_up_to_date(
        &self,
        review: &Review,
        turn: OwnedMutexGuard<()>,
    ) -> Result<(), String> {
        if self.encrypted {
            return Ok(());
        }
        let kept = Projection::of(&self.plans, review.id());
        let Some((kept, archived)) = kept.zip(Projection::of_archived(&self.plans, review.id()))
        else {
            return Err("its id is the name of something else there".to_owned());
        };
        let stream = StreamName::Plan(review.id().clone());
        let sealed = self.engine.maintenance().sealed_journal(&stream).await;
        let is_sealed = sealed.map_err(|error| error.to_string())?.is_some();
        let (place, others) = match review.state() {
            // Everything is in the sealed file; a plan that is restored gets its files again.
            ReviewState::Active(_) | ReviewState::Archived(_) if is_sealed => {
                (None, vec![kept, archived])
            }
            ReviewState::Active(_) => (Some(kept), vec![archived]),
            ReviewState::Archived(_) => (Some(archived), vec![kept]),
            ReviewState::Deleted => (None, vec![kept, archived]),
        };
        // Written there before it is removed here: there is no moment without it.
        let turn = match place {
            Some(place) => self.write(review, place, turn).await?,
            None => turn,
        };
        for other in others {
            other
                .remove(&stored_files(review))
                .map_err(|error| error.to_string())?;
        }
        drop(turn);
        Ok(())
    }

    async fn write(
        &self,
        review: &Review,
        projection: Projection,
        turn: OwnedMutexGuard<()>,
    ) -> Result<OwnedMutexGuard<()>, String> {
        let mut drafts = Vec::new();
        let mut plan = open_draft(&projection, Projection::PLAN_JSON)?;
        serde_json::to_writer_pretty(&mut plan, &*review.current().document)
            .map_err(|error| error.to_string())?;
        plan.write_all(b"\n").map_err(|error| error.to_string())?;
        drafts.push(plan);
        let page = render_markdown(&self.engine, review, review.current()).await?;
        let mut plan = open_draft(&projection, Projection::PLAN_MD)?;
        plan.write_all(page.as_bytes())
            .map_err(|error| error.to_string())?;
        drafts.push(plan);
        if let Some(opened) = review.runs().last() {
            let mut session = open_draft(&projection, Projection::SESSION)?;
            write_session(&self.engine, review, &opened.run, &mut session).await?;
            drafts.push(session);
        }
        let mut unused = stored_files(review);
        for (name, artifact) in &review.current().document.context.stored {
            let file = stored_part_file(name);
            let part = projection.draft_stored(&file, &artifact.digest);
            if let Some(mut part) = part.map_err(|error| planwright_engine::with_causes(&error))? {
                let bytes = self.engine.journals().read_artifact(artifact).await;
                let bytes = bytes.map_err(|error| error.to_string())?;
                part.write_all(&bytes).map_err(|error| error.to_string())?;
                drafts.push(part);
            }
            unused.remove(&file);
        }
        let publishing = tokio::task::spawn_blocking(move || {
            let published = Projection::publish(drafts);
            let removed = projection.remove_stored(&unused);
            published.map_err(|error| planwright_engine::with_causes(&error))?;
            removed.map_err(|error| error.to_string())?;
            Ok(turn)
        });
        publishing
            .await
            .unwrap_or_else(|error| Err(error.to_string()))
    }
}

/// The files of the stored parts of all versions.
fn stored_files(review: &Review) -> BTreeSet<String> {
    let names = review.stored_parts().iter();
    names.map(|name| stored_part_file(name)).collect()
}

/// Mentions once per process that an encrypted store writes no plain files.
fn mention_encryption_once(app: &App) {
    static TOLD: Once = Once::new();
    let told =
        "the store is encrypted: no files are written to .plans (planwright export writes one)";
    TOLD.call_once(|| app.printer().talk(told));
}

/// A version of the plan as Markdown, with what the journal knows about it.
pub(crate) async fn render_markdown(
    engine: &Engine,
    review: &Review,
    version: &Version,
) -> Result<String, String> {
    let rendered = write_markdown(engine, review, version, Some(Projection::SESSION)).await;
    rendered.map_err(|error| error.to_string())
}

fn open_draft(projection: &Projection, name: &'static str) -> Result<Draft, String> {
    projection
        .draft(name)
        .map_err(|error| planwright_engine::with_causes(&error))
}

/// Writes the journal of a run, each call with the arguments that it was sent.
async fn write_session(
    engine: &Engine,
    review: &Review,
    run: &RunId,
    session: &mut Draft,
) -> Result<(), String> {
    let stream = &StreamName::Run(run.clone());
    let mut trail = engine.journals().follow_calls(run, review.clone());
    let mut after = 0;
    loop {
        let page = engine
            .journals()
            .read(stream, after, PAGE)
            .await
            .map_err(|error| error.to_string())?;
        for record in &page {
            let sent = trail.arguments_of(record).await;
            let line = LogLine::new(stream, record).map_err(|error| error.to_string())?;
            let line = line.with_args(sent);
            serde_json::to_writer(&mut *session, &line).map_err(|error| error.to_string())?;
            session
                .write_all(b"\n")
                .map_err(|error| error.to_string())?;
            after = record.seq;
        }
        if is_last_page(&page, PAGE) {
            return Ok(());
        }
    }
}
