//! Journals that leave the database once no run needs them there, and what is removed for good.
//!
//! Each journal is looked at, sealed and taken out by itself, so that runs that go on wait for one
//! of them at most. The candidates come from an index; only their own journals are read. The rules
//! are in `planwright_core::retention`.

use super::facade::Maintenance;
use super::report::{MaintenanceNotice, MaintenanceReport};
use crate::context::RetentionPorts;
use crate::journal::load::{LoadError, load_review};
use crate::port::{
    DeliveryState, Position, Removed, RetainError, SealCursor, SealedJournal, StoreError,
    StreamInfo,
};
use crate::review::plans::ReviewError;
use crate::run::undo::load_any_run;
use planwright_core::id::RunId;
use planwright_core::journal::{Head, StreamName};
use planwright_core::retention::{
    PlanFacts, RemovalFacts, RetentionDecision, RunFacts, decide_plan_sealing, decide_removal,
    decide_run_sealing,
};
use planwright_core::review::{ApprovalState, ReviewState};
use planwright_core::run::RunEvent;
use planwright_core::status::{CachedStatus, RunStatus};
use planwright_core::time::Timestamp;
use std::collections::BTreeSet;

/// Candidates that are looked at with one look into the index.
const PAGE: usize = 50;

/// Journals that are sealed along with a command that shows plans.
const ALONG: usize = 8;

const ENDED: [CachedStatus; 5] = [
    CachedStatus::Run(RunStatus::Completed),
    CachedStatus::Run(RunStatus::CompletedWithFailures),
    CachedStatus::Run(RunStatus::Failed),
    CachedStatus::Run(RunStatus::Adjusted),
    CachedStatus::Run(RunStatus::Cancelled),
];

const LIVE: [CachedStatus; 4] = [
    CachedStatus::Run(RunStatus::Executing),
    CachedStatus::Run(RunStatus::Waiting),
    CachedStatus::Run(RunStatus::Paused),
    CachedStatus::Run(RunStatus::Stalled),
];

const PUT_AWAY: [CachedStatus; 2] = [CachedStatus::Archived, CachedStatus::Deleted];

/// The bounds of one pass of retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionPass {
    /// The most journals that are looked at.
    pub max_journals: usize,
    /// Nothing is changed; the report says what would be.
    pub dry_run: bool,
}

/// The work that one pass of retention did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetentionReport {
    /// Another process, or a backup, has the turn: nothing was looked at.
    pub is_busy: bool,
    /// The journals that were sealed.
    pub sealed: Vec<StreamName>,
    /// The journals that were removed for good.
    pub removed: Vec<StreamName>,
    /// The sealed files that went with them.
    pub removed_files: Removed,
    /// The large values that no journal refers to.
    pub artifacts: Removed,
    /// The journals that could not be sealed or removed, and why. They are where they were.
    pub failures: Vec<(StreamName, String)>,
    /// The pass ended before everything was looked at.
    pub has_more: bool,
}

/// Facts that a pass finds out once, and needs for every candidate.
struct PassFacts {
    now: Timestamp,
    /// Runs that have not ended, and those that they were made from or belong to.
    needed_runs: BTreeSet<RunId>,
    /// The first record that a webhook was not told of.
    first_awaited: Option<Position>,
}

impl Maintenance {
    /// Seals what is due along with other maintenance. A failure is logged and tried again later.
    pub(super) async fn seal_along(&self, report: &mut MaintenanceReport) {
        let pass = RetentionPass {
            max_journals: ALONG,
            dry_run: false,
        };
        match self.apply_retention(pass).await {
            Ok(done) => {
                for stream in done.sealed.iter().chain(&done.removed) {
                    if let StreamName::Plan(plan) = stream {
                        let plan = plan.clone();
                        report.notices.push(MaintenanceNotice::PlanSealed { plan });
                    }
                }
                if done.has_more {
                    report.look_again_at(self.context.ports.clock.now());
                }
            }
            Err(error) => tracing::warn!(%error, "retention could not be applied"),
        }
    }

    /// Seals, removes and cleans up what the settings say, up to the limit of the pass.
    pub async fn apply_retention(&self, pass: RetentionPass) -> Result<RetentionReport, LoadError> {
        let mut report = RetentionReport::default();
        let Some(ports) = &self.context.ports.retention else {
            return Ok(report);
        };
        let settings = self.context.settings.retention;
        if settings.seal_after.is_none() && settings.remove_artifacts_after.is_none() {
            return Ok(report);
        }
        if !self.is_anything_due(ports).await? {
            return Ok(report);
        }
        let Some(_turn) = ports.store.take_turn()? else {
            report.is_busy = true;
            return Ok(report);
        };
        if let Some(seal_after) = settings.seal_after {
            let now = self.context.ports.clock.now();
            let until = now.minus(seal_after);
            let mut left = pass.max_journals;
            for statuses in [&ENDED[..], &PUT_AWAY[..]] {
                self.seal_untouched(ports, statuses, until, (&mut left, pass), &mut report)
                    .await?;
            }
        }
        if let Some(remove_after) = settings.remove_after {
            let until = self.context.ports.clock.now().minus(remove_after);
            self.remove_sealed(ports, until, pass, &mut report).await?;
        }
        Ok(report)
    }

    /// Returns whether there may be something to seal or to remove: a look into the index.
    async fn is_anything_due(&self, ports: &RetentionPorts) -> Result<bool, LoadError> {
        let settings = self.context.settings.retention;
        let now = self.context.ports.clock.now();
        if let Some(seal_after) = settings.seal_after {
            let until = now.minus(seal_after);
            for statuses in [&ENDED[..], &PUT_AWAY[..]] {
                if !ports
                    .store
                    .unsealed(statuses, until, None, 1)
                    .await?
                    .is_empty()
                {
                    return Ok(true);
                }
            }
        }
        let Some(remove_after) = settings.remove_after else {
            return Ok(false);
        };
        let removable = ports
            .store
            .sealed_plans(now.minus(remove_after), None, 1)
            .await?;
        Ok(!removable.is_empty())
    }

    /// Removes the large values that no journal names. It reads every journal, so it is asked for
    /// now and then, and not with every pass.
    pub async fn remove_unused_artifacts(&self, dry_run: bool) -> Result<Removed, LoadError> {
        let Some(ports) = &self.context.ports.retention else {
            return Ok(Removed::default());
        };
        let Some(after) = self.context.settings.retention.remove_artifacts_after else {
            return Ok(Removed::default());
        };
        let Some(_turn) = ports.store.take_turn()? else {
            return Ok(Removed::default());
        };
        let before = self.context.ports.clock.now().minus(after);
        Ok(ports.store.remove_unused_artifacts(before, dry_run).await?)
    }

    /// The sealed file of a journal, if it is in one.
    pub async fn sealed_journal(
        &self,
        stream: &StreamName,
    ) -> Result<Option<SealedJournal>, StoreError> {
        match &self.context.ports.retention {
            Some(ports) => ports.store.sealed(stream).await,
            None => Ok(None),
        }
    }

    /// Brings a sealed journal back before something is added to it.
    pub(super) async fn restore_for_writing(&self, stream: &StreamName) -> Result<(), ReviewError> {
        let Some(ports) = &self.context.ports.retention else {
            return Ok(());
        };
        let sealed = ports.store.sealed(stream).await;
        if sealed.map_err(LoadError::from)?.is_none() {
            return Ok(());
        }
        let busy = || StoreError::Busy("another process applies retention".to_owned());
        let turn = ports.store.take_turn().map_err(LoadError::from)?;
        let _turn = turn.ok_or_else(|| LoadError::from(busy()))?;
        match ports.store.restore(stream).await {
            Ok(()) | Err(RetainError::NotSealed(_)) => Ok(()),
            Err(RetainError::Store(error)) => Err(LoadError::from(error).into()),
            Err(error @ (RetainError::Changed(_) | RetainError::BadFile { .. })) => {
                Err(LoadError::from(StoreError::Failed(error.to_string())).into())
            }
        }
    }

    async fn seal_untouched(
        &self,
        ports: &RetentionPorts,
        statuses: &[CachedStatus],
        until: Timestamp,
        (left, pass): (&mut usize, RetentionPass),
        report: &mut RetentionReport,
    ) -> Result<(), LoadError> {
        // What is kept for a reason must not hide what comes after it: each pass goes on where the
        // last one ended, and begins again after the end.
        let remembered = &self.context.active.seal_cursor;
        let is_remembered = statuses == ENDED && pass.max_journals < usize::MAX;
        let mut cursor: Option<SealCursor> = match is_remembered {
            true => remembered.lock().map_or(None, |cursor| cursor.clone()),
            false => None,
        };
        let mut facts = None;
        loop {
            let limit = PAGE.min(*left);
            if limit == 0 {
                report.has_more = true;
                break;
            }
            let page = ports
                .store
                .unsealed(statuses, until, cursor.clone(), limit)
                .await?;
            if facts.is_none() && !page.is_empty() {
                facts = Some(self.collect_facts(ports).await?);
            }
            for info in &page {
                let Some(facts) = &facts else { break };
                *left = left.saturating_sub(1);
                cursor = Some((info.updated_at, info.stream.clone()));
                match self.seal_if_due(ports, info, facts, pass.dry_run).await {
                    Ok(true) => report.sealed.push(info.stream.clone()),
                    Ok(false) => {}
                    Err(reason) => {
                        tracing::warn!(stream = %info.stream, reason, "the journal is not sealed");
                        report.failures.push((info.stream.clone(), reason));
                    }
                }
                tokio::task::yield_now().await;
            }
            if page.len() < limit {
                cursor = None;
                break;
            }
        }
        if is_remembered && let Ok(mut remembered) = remembered.lock() {
            *remembered = cursor;
        }
        Ok(())
    }

    /// Returns whether the journal was sealed, or would be.
    async fn seal_if_due(
        &self,
        ports: &RetentionPorts,
        info: &StreamInfo,
        facts: &PassFacts,
        dry_run: bool,
    ) -> Result<bool, String> {
        let decided = match &info.stream {
            StreamName::Run(run) => {
                let plan = &info.status.plan;
                let review = load_review(&*self.context.ports.store, plan).await;
                // What a person has accepted as damaged stays as it is.
                if review.is_ok_and(|(review, _)| review.is_written_off(run)) {
                    return Ok(false);
                }
                self.decide_run(ports, run, facts).await
            }
            StreamName::Plan(_) => self.decide_plan(ports, info, facts).await,
        };
        let (decision, head) = decided.map_err(|error| error.to_string())?;
        match decision {
            RetentionDecision::Due if dry_run => Ok(true),
            RetentionDecision::Due => match ports.store.seal(&info.stream, head, facts.now).await {
                Ok(_) => Ok(true),
                Err(RetainError::Changed(_)) => Ok(false),
                Err(error) => Err(error.to_string()),
            },
            RetentionDecision::DueAt(_) => Ok(false),
            RetentionDecision::Kept(reason) => {
                tracing::debug!(stream = %info.stream, %reason, "the journal stays");
                Ok(false)
            }
        }
    }

    async fn decide_run(
        &self,
        ports: &RetentionPorts,
        id: &RunId,
        facts: &PassFacts,
    ) -> Result<(RetentionDecision, Head), LoadError> {
        let store = &self.context.ports.store;
        let stream = StreamName::Run(id.clone());
        // Folding checks the chain: what is damaged is not sealed as if it were whole.
        let (run, head) = load_any_run(&self.context, id).await?;
        let parent = run.start().parent.as_ref();
        let undos = run.undos().iter();
        let has_live_relative = facts.needed_runs.contains(id)
            || parent.is_some_and(|parent| facts.needed_runs.contains(&parent.run))
            || undos
                .into_iter()
                .any(|undo| facts.needed_runs.contains(undo));
        let known = RunFacts {
            status: run.status(),
            last_entry_at: self.last_entry_at(&stream, head).await?,
            is_owned: self.context.active.get(id).is_some()
                || store.living_owner(id).await?.is_some(),
            has_messages: !store.messages(id).await?.is_empty(),
            has_live_relative,
            is_awaited: is_awaited(ports, &stream, facts).await?,
        };
        Ok((
            self.decide_with(facts, |after| decide_run_sealing(&known, after, facts.now)),
            head,
        ))
    }

    async fn decide_plan(
        &self,
        ports: &RetentionPorts,
        info: &StreamInfo,
        facts: &PassFacts,
    ) -> Result<(RetentionDecision, Head), LoadError> {
        let (review, head) = load_review(&*self.context.ports.store, &info.status.plan).await?;
        let mut has_unsealed_runs = false;
        for run in self.context.ports.store.runs(&info.status.plan).await? {
            has_unsealed_runs |= ports.store.sealed(&run.stream).await?.is_none();
        }
        let is_open = |state: ApprovalState| state == ApprovalState::Open;
        let mut approvals = review.approvals().iter();
        let known = PlanFacts {
            is_put_away: matches!(
                review.state(),
                ReviewState::Archived(_) | ReviewState::Deleted
            ),
            last_entry_at: self.last_entry_at(&info.stream, head).await?,
            has_open_approval: approvals.any(|approval| is_open(approval.state(facts.now))),
            has_unsealed_runs,
            is_awaited: is_awaited(ports, &info.stream, facts).await?,
        };
        Ok((
            self.decide_with(facts, |after| decide_plan_sealing(&known, after, facts.now)),
            head,
        ))
    }

    fn decide_with(
        &self,
        facts: &PassFacts,
        decide: impl FnOnce(std::time::Duration) -> RetentionDecision,
    ) -> RetentionDecision {
        match self.context.settings.retention.seal_after {
            Some(after) => decide(after),
            None => RetentionDecision::DueAt(facts.now.plus(std::time::Duration::MAX)),
        }
    }

    async fn last_entry_at(&self, stream: &StreamName, head: Head) -> Result<Timestamp, LoadError> {
        let before = head.seq.saturating_sub(1);
        let last = self.context.ports.store.read(stream, before, 1).await?;
        Ok(last
            .first()
            .map_or(Timestamp::from_millis(i64::MAX), |last| last.at))
    }

    /// Collects what is the same for all candidates. It costs as much as there are live runs and
    /// webhooks.
    async fn collect_facts(&self, ports: &RetentionPorts) -> Result<PassFacts, LoadError> {
        let store = &self.context.ports.store;
        let mut needed_runs = BTreeSet::new();
        for info in store.runs_in(&LIVE).await? {
            let StreamName::Run(id) = &info.stream else {
                continue;
            };
            needed_runs.insert(id.clone());
            needed_runs.extend(self.relatives(&info.stream).await?);
        }
        let mut first_awaited: Option<Position> = None;
        for name in &ports.endpoints {
            let Some(standing) = ports.outbox.standing(name).await? else {
                continue;
            };
            if standing.disabled.is_some() {
                continue;
            }
            let next = Position(standing.cursor.0.saturating_add(1));
            let waiting = ports.outbox.list(name, DeliveryState::Waiting, 1).await?;
            let oldest = waiting.first().map_or(next, |delivery| delivery.position);
            let oldest = oldest.min(next);
            first_awaited = Some(first_awaited.map_or(oldest, |known| known.min(oldest)));
        }
        Ok(PassFacts {
            now: self.context.ports.clock.now(),
            needed_runs,
            first_awaited,
        })
    }

    /// The runs that a live run was made from, and the one it works for. Its first entry names
    /// them.
    async fn relatives(&self, stream: &StreamName) -> Result<Vec<RunId>, LoadError> {
        let store = &*self.context.ports.store;
        let page = store.read(stream, 0, 1).await?;
        let Some(first) = page.first() else {
            return Ok(Vec::new());
        };
        // An entry that cannot be read keeps nothing: its own run is kept, because it has not
        // ended.
        let Ok(entry) = planwright_core::journal::decode::<RunEvent>(first) else {
            return Ok(Vec::new());
        };
        let RunEvent::RunStarted {
            forked_from,
            undoes,
            parent,
            ..
        } = entry.event
        else {
            return Ok(Vec::new());
        };
        let forked = forked_from.map(|fork| fork.run);
        let parent = parent.map(|parent| parent.run);
        Ok(forked.into_iter().chain(undoes).chain(parent).collect())
    }

    /// Removes plans whose journals have all been sealed for long enough.
    async fn remove_sealed(
        &self,
        ports: &RetentionPorts,
        until: Timestamp,
        pass: RetentionPass,
        report: &mut RetentionReport,
    ) -> Result<(), LoadError> {
        let mut cursor: Option<SealCursor> = None;
        let mut left = pass.max_journals;
        loop {
            let limit = PAGE.min(left);
            if limit == 0 {
                report.has_more = true;
                return Ok(());
            }
            let page = ports
                .store
                .sealed_plans(until, cursor.clone(), limit)
                .await?;
            for sealed in &page {
                left = left.saturating_sub(1);
                cursor = Some((sealed.sealed_at, sealed.stream.clone()));
                if let Err(reason) = self.remove_if_due(ports, sealed, pass, report).await {
                    report.failures.push((sealed.stream.clone(), reason));
                }
            }
            if page.len() < limit {
                return Ok(());
            }
        }
    }

    async fn remove_if_due(
        &self,
        ports: &RetentionPorts,
        sealed: &SealedJournal,
        pass: RetentionPass,
        report: &mut RetentionReport,
    ) -> Result<(), String> {
        let failed = |error: StoreError| error.to_string();
        let store = &self.context.ports.store;
        let plan = store.info(&sealed.stream).await.map_err(failed)?;
        let mut facts = RemovalFacts {
            is_put_away: plan.is_some_and(|plan| PUT_AWAY.contains(&plan.status.status)),
            is_partly_unsealed: false,
            sealed_at: sealed.sealed_at,
        };
        let mut streams = vec![sealed.stream.clone()];
        let StreamName::Plan(id) = &sealed.stream else {
            return Ok(());
        };
        for run in store.runs(id).await.map_err(failed)? {
            match ports.store.sealed(&run.stream).await.map_err(failed)? {
                Some(run) => facts.sealed_at = facts.sealed_at.max(run.sealed_at),
                None => facts.is_partly_unsealed = true,
            }
            streams.push(run.stream);
        }
        let Some(remove_after) = self.context.settings.retention.remove_after else {
            return Ok(());
        };
        let now = self.context.ports.clock.now();
        if decide_removal(&facts, remove_after, now) != RetentionDecision::Due {
            return Ok(());
        }
        if !pass.dry_run {
            let removed = ports.store.remove(&streams, now).await;
            let removed = removed.map_err(|error| error.to_string())?;
            report.removed_files.files += removed.files;
            report.removed_files.bytes += removed.bytes;
        }
        report.removed.extend(streams);
        Ok(())
    }
}

/// Returns whether a webhook was not told of all of a journal.
async fn is_awaited(
    ports: &RetentionPorts,
    stream: &StreamName,
    facts: &PassFacts,
) -> Result<bool, StoreError> {
    let Some(first) = facts.first_awaited else {
        return Ok(false);
    };
    let last = ports.store.last_position(stream).await?;
    Ok(last.is_some_and(|last| last >= first))
}
