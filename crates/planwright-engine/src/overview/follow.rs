//! Reading on in the feed: what came since the last look is counted, and the plans it is about are
//! summed up again.

use super::Overview;
use crate::context::{KeptOverview, PlanSummary, SeenRun};
use crate::journal::conversation::{is_conversation, is_session};
use crate::journal::load::{LoadError, load_run, load_version, plan_status};
use crate::journal::recent::load_recent_review;
use crate::port::{FeedOf, Placed, StoreError, is_last_feed_page};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{Entry, Record, StreamName, decode};
use planwright_core::plan::{Document, Plan};
use planwright_core::review::{Review, ReviewEvent, ReviewState};
use planwright_core::run::RunEvent;
use planwright_core::time::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::MutexGuard;

/// Records taken at a time.
const PAGE: usize = 1000;

/// Plans that were removed for good are looked for this often.
const SWEEP: Duration = Duration::from_secs(60);

/// Characters of a plan that a search looks through.
const MAX_TEXT: usize = 2_000;

/// Characters of a goal that stands in for a title.
const MAX_TITLE: usize = 200;

impl Overview {
    /// Reads what came since the last look. Those who look meanwhile wait for it.
    pub(super) async fn catch_up(&self) -> Result<MutexGuard<'_, KeptOverview>, LoadError> {
        let store = &self.context.ports.store;
        let mut kept = self.context.overview.lock().await;
        loop {
            let page = store.feed(&FeedOf::All, kept.position, PAGE).await?;
            for placed in &page {
                self.count(&mut kept, placed).await;
                kept.position = placed.position;
            }
            self.refresh_runs(&mut kept).await?;
            self.refresh_plans(&mut kept).await?;
            if is_last_feed_page(&page, PAGE) {
                self.sweep(&mut kept).await?;
                return Ok(kept);
            }
        }
    }

    /// Counts one record. What cannot be read is not counted: its plan says so.
    async fn count(&self, kept: &mut KeptOverview, placed: &Placed) {
        match &placed.stream {
            StreamName::Plan(plan) => {
                if let Ok(entry) = decode::<ReviewEvent>(&placed.record) {
                    kept.timeline.record_review(plan, &entry);
                }
                kept.changed_plans.insert(plan.clone());
            }
            StreamName::Run(run) => self.count_run(kept, run, &placed.record).await,
        }
    }

    async fn count_run(&self, kept: &mut KeptOverview, run: &RunId, record: &Record) {
        let Ok(entry) = decode::<RunEvent>(record) else {
            return;
        };
        let predicted = self.note_start(kept, run, &entry).await;
        kept.timeline.record_run(run, &entry, predicted);
        kept.changed_runs.insert(run.clone());
        if let Some(seen) = kept.runs.get(run) {
            let plan = seen.plan.clone();
            kept.run_activity.insert(plan.clone(), entry.at);
            kept.changed_plans.insert(plan);
        }
    }

    /// Remembers a run that begins, and predicts how long it will take.
    async fn note_start(
        &self,
        kept: &mut KeptOverview,
        run: &RunId,
        entry: &Entry<RunEvent>,
    ) -> Option<Duration> {
        let RunEvent::RunStarted {
            plan,
            version,
            undoes,
            parent,
            ..
        } = &entry.event
        else {
            return None;
        };
        let is_call = parent.as_ref().is_some_and(|parent| parent.call.is_some());
        let seen = SeenRun {
            plan: plan.clone(),
            is_call,
        };
        kept.runs.insert(run.clone(), seen);
        if is_call || undoes.is_some() {
            return None;
        }
        let document = self.version_document(plan, *version).await.ok()??;
        let plan = Plan::compile(document, &self.context.settings.bounds).ok()?;
        kept.timeline.predict_duration(&plan)
    }

    async fn version_document(
        &self,
        plan: &PlanId,
        version: u32,
    ) -> Result<Option<Document>, LoadError> {
        let store = &*self.context.ports.store;
        let (review, _) = load_recent_review(store, &self.context.reviews, plan).await?;
        let version = load_version(store, &review, version).await?;
        Ok(version.map(|version| (*version.document).clone()))
    }

    async fn refresh_runs(&self, kept: &mut KeptOverview) -> Result<(), LoadError> {
        while let Some(run) = kept.changed_runs.first().cloned() {
            let is_call = kept.runs.get(&run).is_none_or(|seen| seen.is_call);
            let stream = StreamName::Run(run.clone());
            if !is_call && let Some(info) = self.context.ports.store.info(&stream).await? {
                kept.timeline
                    .set_run_status(&run, info.updated_at, &info.status.status);
            }
            kept.changed_runs.remove(&run);
        }
        Ok(())
    }

    async fn refresh_plans(&self, kept: &mut KeptOverview) -> Result<(), LoadError> {
        while let Some(plan) = kept.changed_plans.first().cloned() {
            let activity = kept.run_activity.get(&plan).copied();
            match self.sum_up(&plan, activity).await {
                Ok(summary) => {
                    kept.plans.insert(plan.clone(), summary);
                }
                Err(LoadError::NoSuchPlan(_)) => {
                    kept.plans.remove(&plan);
                }
                Err(LoadError::Store(error)) if !matches!(error, StoreError::Damaged { .. }) => {
                    return Err(error.into());
                }
                Err(error) => self.keep_damaged(kept, &plan, &error).await?,
            }
            kept.changed_plans.remove(&plan);
        }
        Ok(())
    }

    async fn keep_damaged(
        &self,
        kept: &mut KeptOverview,
        plan: &PlanId,
        error: &LoadError,
    ) -> Result<(), LoadError> {
        let stream = StreamName::Plan(plan.clone());
        let Some(info) = self.context.ports.store.info(&stream).await? else {
            return Ok(());
        };
        let summary = PlanSummary {
            id: plan.clone(),
            text: info.status.label.to_lowercase(),
            title: info.status.label,
            status: None,
            is_archived: false,
            is_deleted: false,
            version: 0,
            steps: 0,
            author: None,
            tools: BTreeSet::new(),
            labels: BTreeSet::new(),
            is_conversation: false,
            is_template: false,
            created_at: info.created_at,
            updated_at: info.updated_at,
            active_at: info.updated_at,
            progress: None,
            damage: Some(crate::with_causes(error)),
        };
        kept.plans.insert(plan.clone(), summary);
        Ok(())
    }

    /// Sums a plan up as it is now.
    async fn sum_up(
        &self,
        plan: &PlanId,
        activity: Option<Timestamp>,
    ) -> Result<PlanSummary, LoadError> {
        let store = &*self.context.ports.store;
        let bounds = &self.context.settings.bounds;
        let (review, _) = load_recent_review(store, &self.context.reviews, plan).await?;
        let status = plan_status(store, &review, bounds).await?;
        let progress = if status.is_executing() {
            self.progress(&review).await?
        } else {
            None
        };
        let document = &review.current().document;
        let updated_at = review.updated_at();
        let first = review.versions().first();
        Ok(PlanSummary {
            id: plan.clone(),
            title: title_of(document),
            status: Some(status),
            is_archived: review.is_archived(),
            is_deleted: review.state() == ReviewState::Deleted,
            version: review.current().number,
            steps: document.steps.len(),
            author: first.map(|version| version.by.clone()),
            tools: tools_of(document),
            labels: document
                .steps
                .iter()
                .flat_map(|step| step.labels.iter().cloned())
                .collect(),
            is_conversation: is_conversation(document) || is_session(document),
            is_template: document.is_template(),
            created_at: review.created_at(),
            updated_at,
            active_at: activity.map_or(updated_at, |at| at.max(updated_at)),
            progress,
            damage: None,
            text: searchable_text(plan, document),
        })
    }

    /// Counts the steps of the latest run: those that are over, and all.
    async fn progress(&self, review: &Review) -> Result<Option<(usize, usize)>, LoadError> {
        let Some(opened) = review.runs().last() else {
            return Ok(None);
        };
        let store = &*self.context.ports.store;
        let bounds = &self.context.settings.bounds;
        let (run, _) = load_run(store, &opened.run, review, bounds).await?;
        let steps = run.plan().indices();
        let all = steps.len();
        let over = steps.filter(|&ix| run.step(ix).is_terminal()).count();
        Ok(Some((over, all)))
    }

    /// Forgets plans that were removed for good. Nothing in the feed says so.
    async fn sweep(&self, kept: &mut KeptOverview) -> Result<(), LoadError> {
        let now = self.context.ports.clock.now();
        let is_due = kept.swept_at.is_none_or(|at| now.since(at) >= SWEEP);
        if !is_due {
            return Ok(());
        }
        kept.swept_at = Some(now);
        let counts = self.context.ports.store.counts().await?;
        let there: u64 = counts.plans.values().sum();
        if there == kept.plans.len() as u64 {
            return Ok(());
        }
        let plans = self.context.ports.store.plans().await?;
        let there: BTreeSet<PlanId> = plans.into_iter().map(|info| info.status.plan).collect();
        kept.plans.retain(|plan, _| there.contains(plan));
        kept.runs.retain(|_, seen| there.contains(&seen.plan));
        kept.run_activity.retain(|plan, _| there.contains(plan));
        Ok(())
    }
}

fn title_of(document: &Document) -> String {
    let words = document.title.as_ref().or(document.goal.as_ref());
    words.map_or_else(String::new, |text| text.chars().take(MAX_TITLE).collect())
}

fn tools_of(document: &Document) -> BTreeSet<String> {
    let named = document
        .steps
        .iter()
        .filter_map(|step| step.tool.as_deref());
    named
        .chain(document.tools_required.iter().map(String::as_str))
        .map(str::to_owned)
        .collect()
}

fn searchable_text(plan: &PlanId, document: &Document) -> String {
    let steps = document.steps.iter();
    let words = [
        Some(plan.as_str()),
        document.title.as_deref(),
        document.goal.as_deref(),
    ];
    let of_steps = steps.flat_map(|step| [step.title.as_deref(), step.tool.as_deref()]);
    let mut text = String::new();
    for word in words.into_iter().chain(of_steps).flatten() {
        if text.len() >= MAX_TEXT {
            break;
        }
        text.extend(word.chars().take(MAX_TEXT).flat_map(char::to_lowercase));
        text.push('\n');
    }
    text
}
