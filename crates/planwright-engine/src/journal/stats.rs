//! Reading every journal for figures: page by page, one stream at a time.

use crate::journal::journals::Journals;
use crate::journal::load::{
    LoadError, load_review, load_version, plan_status, read_entries, readable_runs,
};
use crate::port::StreamInfo;
use planwright_core::journal::StreamName;
use planwright_core::plan::{Document, Plan};
use planwright_core::review::{Review, ReviewEvent, ReviewState};
use planwright_core::run::RunEvent;
use planwright_core::stats::{ReviewTally, RunTally, Statistics};
use planwright_core::status::PlanStatus;
use planwright_core::time::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

impl Journals {
    /// Statistics over everything that happened since then, or ever. Predictions use only what had
    /// happened before.
    pub async fn stats(&self, since: Option<Timestamp>) -> Result<Statistics, LoadError> {
        let mut figures = Statistics::default();
        let mut plans = self.context.ports.store.plans().await?;
        plans.sort_by_key(|info| info.created_at);
        for info in plans {
            if let Err(error) = self.count_plan(&info, since, &mut figures).await {
                tracing::warn!(plan = %info.status.plan, %error, "not counted");
                figures.unreadable += 1;
            }
        }
        Ok(figures)
    }

    async fn count_plan(
        &self,
        info: &StreamInfo,
        since: Option<Timestamp>,
        figures: &mut Statistics,
    ) -> Result<(), LoadError> {
        let plan = &info.status.plan;
        let mut tally = ReviewTally::since(since);
        read_entries::<ReviewEvent>(&*self.context.ports.store, &info.stream, |_, entry| {
            tally.record(&entry);
            Ok(())
        })
        .await?;
        let store = &*self.context.ports.store;
        let bounds = &self.context.settings.bounds;
        let (review, _) = load_review(store, plan).await?;
        let status = plan_status(store, &review, bounds).await?;
        figures.add_review(
            &tally,
            match review.state() {
                ReviewState::Archived(_) => PlanStatus::Archived,
                ReviewState::Active(_) | ReviewState::Deleted => status,
            },
        );
        if review.state() != ReviewState::Deleted {
            for gap in self.missing(&review.current().document) {
                figures.add_gap(&gap);
            }
        }
        for run in readable_runs(&*self.context.ports.store, &review).await? {
            if since.is_none_or(|since| run.updated_at >= since) {
                self.count_run(&run, &review, figures).await?;
            }
        }
        Ok(())
    }

    async fn count_run(
        &self,
        info: &StreamInfo,
        review: &Review,
        figures: &mut Statistics,
    ) -> Result<(), LoadError> {
        let StreamName::Run(_) = &info.stream else {
            return Ok(());
        };
        let mut tally = RunTally::default();
        let mut predicts = None;
        let mut is_call = false;
        read_entries::<RunEvent>(&*self.context.ports.store, &info.stream, |_, entry| {
            if let RunEvent::RunStarted {
                version,
                undoes: None,
                parent,
                ..
            } = &entry.event
            {
                is_call = parent.as_ref().is_some_and(|parent| parent.call.is_some());
                predicts = (!is_call).then_some(*version);
            }
            tally.record(&entry);
            if tally.is_full() {
                figures.add_calls(&mut tally);
            }
            Ok(())
        })
        .await?;
        let predicted = match predicts {
            Some(version) => self.prediction(review, version, figures).await?,
            None => None,
        };
        // A call that an executor made is a call of its tool, and no run of the plan.
        match is_call {
            true => figures.add_call_run(tally),
            false => figures.add_run(tally, &info.status.status, predicted),
        }
        Ok(())
    }

    async fn prediction(
        &self,
        review: &Review,
        version: u32,
        figures: &Statistics,
    ) -> Result<Option<Duration>, LoadError> {
        let store = &*self.context.ports.store;
        let Some(version) = load_version(store, review, version).await? else {
            return Ok(None);
        };
        let document = (*version.document).clone();
        let plan = Plan::compile(document, &self.context.settings.bounds).ok();
        Ok(plan.and_then(|plan| figures.predict_duration(&plan)))
    }

    /// The tools that a plan asks for and no server offers at this moment.
    fn missing(&self, document: &Document) -> BTreeSet<String> {
        let catalog = self.context.catalog();
        let named = document
            .steps
            .iter()
            .filter_map(|step| step.tool.as_deref());
        let all = named.chain(document.tools_required.iter().map(String::as_str));
        let missing = all.filter(|name| catalog.lacks(name));
        missing.map(str::to_owned).collect()
    }
}
