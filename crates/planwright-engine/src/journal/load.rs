//! Reading lives back: pages of records, their chain checked, folded into a plan's review or a run.

use crate::port::{Journal, Store, StoreError, StreamIndex, StreamInfo, is_last_page};
use planwright_core::error::{ClassifiedError, ErrorClass, ErrorKind, Hint};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{
    DecodeEntryError, Entry, Head, Journaled, Record, StreamName, check_chain, decode,
};
use planwright_core::plan::{Bounds, Document, Finding, Plan};
use planwright_core::principal::Principal;
use planwright_core::review::{Review, ReviewEvent, Version};
use planwright_core::run::{Corrupt, Run, RunEvent, priorities, unit_estimate};
use planwright_core::status::{PlanStatus, RunStatus};
use std::sync::Arc;

/// Records read at a time: bounds memory regardless of the length of a run.
pub(super) const PAGE: usize = 1000;

/// The reason a plan or a run cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No journal exists for the plan.
    #[error("there is no plan `{0}`")]
    NoSuchPlan(PlanId),
    /// No journal exists for the run.
    #[error("there is no run `{0}`")]
    NoSuchRun(RunId),
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal cannot be folded.
    #[error("the journal of {stream} is damaged: {reason}")]
    Damaged {
        /// The journal.
        stream: StreamName,
        /// The first contradiction in it.
        reason: String,
    },
    /// The plan in the journal does not compile any more.
    #[error("the plan in the journal is not valid: {}", .0.first().map_or("", |finding| finding.message.as_str()))]
    Plan(Vec<Finding>),
}

impl ClassifiedError for LoadError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NoSuchPlan(_) => ErrorKind::NotFound.with_code("unknown_plan"),
            Self::NoSuchRun(_) => ErrorKind::NotFound.with_code("unknown_run"),
            Self::Store(error) => error.class(),
            Self::Damaged { .. } => ErrorKind::Damaged.with_code("journal_damaged"),
            Self::Plan(_) => ErrorKind::Damaged.with_code("stored_plan_invalid"),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::NoSuchPlan(_) | Self::NoSuchRun(_) => Some(Hint::ListPlans),
            Self::Store(error) => error.hint(),
            Self::Damaged {
                stream: StreamName::Run(run),
                ..
            } => Some(Hint::RepairRun(run.clone())),
            Self::Damaged { .. } | Self::Plan(_) => Some(Hint::ListDamage),
        }
    }
}

impl LoadError {
    pub(super) fn decode(stream: &StreamName) -> impl FnOnce(DecodeEntryError) -> Self + '_ {
        move |error| {
            let reason = match &error {
                DecodeEntryError::Unreadable { source, .. } => format!("{error}: {source}"),
                DecodeEntryError::Newer { .. } => error.to_string(),
            };
            Self::Damaged {
                stream: stream.clone(),
                reason,
            }
        }
    }

    pub(super) fn corrupt(stream: &StreamName) -> impl FnOnce(Corrupt) -> Self + '_ {
        move |error| Self::Damaged {
            stream: stream.clone(),
            reason: error.to_string(),
        }
    }
}

/// The content of a version of a plan: of an earlier one, it is read from the journal.
pub(crate) async fn load_version(
    store: &dyn Journal,
    review: &Review,
    number: u32,
) -> Result<Option<Version>, LoadError> {
    let current = review.current();
    if current.number == number {
        return Ok(Some(current.clone()));
    }
    let Some(summary) = review.version(number) else {
        return Ok(None);
    };
    let stream = StreamName::Plan(review.id().clone());
    // With the one before it, so that the record can be checked. The whole chain was when the plan was
    // folded.
    let after = summary.seq.saturating_sub(2);
    let (mut before, record) = match (summary.seq, read_two(store, &stream, after).await?) {
        (1, records) => (Head::EMPTY, records.into_iter().next()),
        (_, records) => {
            let mut records = records.into_iter();
            let before = records.next().map_or(Head::EMPTY, |record| record.head());
            (before, records.next())
        }
    };
    if let Some(record) = &record {
        before = check_chain(before, &stream, [record])
            .map_err(|error| StoreError::chain(&stream, &error))?;
    }
    let entry = record.as_ref().filter(|_| before.seq == summary.seq);
    let entry = entry.map(decode::<ReviewEvent>).transpose();
    let event = entry
        .map_err(LoadError::decode(&stream))?
        .map(|entry| entry.event);
    match event {
        Some(ReviewEvent::PlanProposed {
            version, document, ..
        }) if version == number => Ok(Some(Version {
            summary: summary.clone(),
            document,
        })),
        Some(_) | None => Err(LoadError::Damaged {
            stream,
            reason: format!("version {number} is not where it was"),
        }),
    }
}

/// The two records after this one. A large one comes alone.
async fn read_two(
    store: &dyn Journal,
    stream: &StreamName,
    after: u64,
) -> Result<Vec<Record>, StoreError> {
    let mut records = store.read(stream, after, 2).await?;
    if let [only] = &records[..] {
        let next = store.read(stream, only.seq, 1).await?;
        records.extend(next);
    }
    Ok(records)
}

/// Reads a whole stream in pages, checking the chain, and hands each entry to `each`.
pub async fn read_entries<E: Journaled>(
    store: &dyn Journal,
    stream: &StreamName,
    each: impl FnMut(&Record, Entry<E>) -> Result<(), LoadError>,
) -> Result<Head, LoadError> {
    let page = store.read(stream, 0, PAGE).await?;
    read_on(store, stream, (Head::EMPTY, page), each).await
}

/// As [`read_entries`], from the page on that follows `head`.
async fn read_on<E: Journaled>(
    store: &dyn Journal,
    stream: &StreamName,
    (mut head, mut page): (Head, Vec<Record>),
    mut each: impl FnMut(&Record, Entry<E>) -> Result<(), LoadError>,
) -> Result<Head, LoadError> {
    loop {
        head =
            check_chain(head, stream, &page).map_err(|error| StoreError::chain(stream, &error))?;
        for record in &page {
            each(record, decode(record).map_err(LoadError::decode(stream))?)?;
        }
        if is_last_page(&page, PAGE) {
            return Ok(head);
        }
        // Not two pages at once: they may be large, and readers many.
        drop(page);
        page = store.read(stream, head.seq, PAGE).await?;
    }
}

/// A plan's review and where its journal ends.
pub async fn load_review(store: &dyn Journal, id: &PlanId) -> Result<(Review, Head), LoadError> {
    let stream = StreamName::Plan(id.clone());
    let mut review: Option<Review> = None;
    let head = read_entries::<ReviewEvent>(store, &stream, |_, entry| {
        match &mut review {
            Some(review) => review.apply(&entry),
            None => Review::open(id.clone(), &entry).map(|opened| review = Some(opened)),
        }
        .map_err(LoadError::corrupt(&stream))
    })
    .await?;
    review
        .map(|review| (review, head))
        .ok_or_else(|| LoadError::NoSuchPlan(id.clone()))
}

/// A run folded from its journal, and where that ends.
pub async fn load_run(
    store: &dyn Journal,
    id: &RunId,
    review: &Review,
    bounds: &Bounds,
) -> Result<(Run, Head), LoadError> {
    let beginning = RunBeginning::read(store, id).await?;
    beginning.fold(store, review, bounds).await
}

/// The review of the plan that a run belongs to, the run, and where its journal ends.
pub(crate) async fn load_run_with_review(
    store: &dyn Journal,
    id: &RunId,
    bounds: &Bounds,
) -> Result<(Review, Run, Head), LoadError> {
    let beginning = RunBeginning::read(store, id).await?;
    let (review, _) = load_review(store, beginning.plan()?).await?;
    let (run, head) = beginning.fold(store, &review, bounds).await?;
    Ok((review, run, head))
}

/// Folds what was added to the journal of a run since it ended at `head`. Returns where it ends now.
pub(crate) async fn fold_added(
    store: &dyn Journal,
    run: &mut Run,
    head: Head,
) -> Result<Head, LoadError> {
    let stream = StreamName::Run(run.id().clone());
    let page = store.read(&stream, head.seq, PAGE).await?;
    read_on::<RunEvent>(store, &stream, (head, page), |_, entry| {
        run.apply(&entry).map_err(LoadError::corrupt(&stream))
    })
    .await
}

/// The first page of the journal of a run. Its first entry names what is needed to fold it, and most
/// journals are no longer than the page: neither is asked for twice.
struct RunBeginning {
    id: RunId,
    stream: StreamName,
    page: Vec<Record>,
    first: RunEvent,
}

impl RunBeginning {
    async fn read(store: &dyn Journal, id: &RunId) -> Result<Self, LoadError> {
        let stream = StreamName::Run(id.clone());
        let page = store.read(&stream, 0, PAGE).await?;
        let record = page
            .first()
            .ok_or_else(|| LoadError::NoSuchRun(id.clone()))?;
        let first = decode::<RunEvent>(record).map_err(LoadError::decode(&stream))?;
        Ok(Self {
            id: id.clone(),
            stream,
            first: first.event,
            page,
        })
    }

    fn plan(&self) -> Result<&PlanId, LoadError> {
        match &self.first {
            RunEvent::RunStarted { plan, .. } => Ok(plan),
            _ => Err(no_start(&self.stream)),
        }
    }

    async fn fold(
        self,
        store: &dyn Journal,
        review: &Review,
        bounds: &Bounds,
    ) -> Result<(Run, Head), LoadError> {
        let Self {
            id,
            stream,
            page,
            first,
        } = self;
        let document = load_run_document(store, review, &first).await?;
        let mut run: Option<Run> = None;
        let from = (Head::EMPTY, page);
        let head = read_on::<RunEvent>(store, &stream, from, |_, entry| {
            fold_entry(
                &mut run,
                &stream,
                (&id, document.as_deref(), bounds),
                &entry,
            )
        })
        .await?;
        run.map(|run| (run, head)).ok_or(LoadError::NoSuchRun(id))
    }
}

fn no_start(stream: &StreamName) -> LoadError {
    LoadError::Damaged {
        stream: stream.clone(),
        reason: Corrupt::NoStart.to_string(),
    }
}

/// Applies one entry to a run, which its first entry opens.
fn fold_entry(
    run: &mut Option<Run>,
    stream: &StreamName,
    (id, document, bounds): (&RunId, Option<&Document>, &Bounds),
    entry: &Entry<RunEvent>,
) -> Result<(), LoadError> {
    match run {
        Some(run) => run.apply(entry).map_err(LoadError::corrupt(stream)),
        None => {
            let plan = run_plan(stream, document, bounds, &entry.event)?;
            let priority = priorities(&plan, unit_estimate);
            let opened = Run::open(id.clone(), Arc::new(plan), priority, entry);
            *run = Some(opened.map_err(LoadError::corrupt(stream))?);
            Ok(())
        }
    }
}

/// The document of the version that a run begins with, unless the run has one of its own.
pub(crate) async fn load_run_document(
    store: &dyn Journal,
    review: &Review,
    first: &RunEvent,
) -> Result<Option<Arc<Document>>, LoadError> {
    match first {
        RunEvent::RunStarted {
            version,
            document: None,
            ..
        } => {
            let version = load_version(store, review, *version).await?;
            Ok(version.map(|version| version.document))
        }
        _ => Ok(None),
    }
}

/// Folds a run whose entries come one by one.
#[derive(Debug)]
pub(crate) struct RunFolder {
    id: RunId,
    stream: StreamName,
    document: Option<Arc<Document>>,
    bounds: Bounds,
    run: Option<Run>,
}

impl RunFolder {
    pub(crate) fn new(id: RunId, bounds: Bounds) -> Self {
        Self {
            stream: StreamName::Run(id.clone()),
            id,
            document: None,
            bounds,
            run: None,
        }
    }

    /// The run as it is so far.
    pub(crate) fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// Gives it the document that the run begins with.
    pub(crate) fn set_document(&mut self, document: Option<Arc<Document>>) {
        self.document = document;
    }

    pub(crate) fn apply(&mut self, entry: &Entry<RunEvent>) -> Result<(), LoadError> {
        let context = (&self.id, self.document.as_deref(), &self.bounds);
        fold_entry(&mut self.run, &self.stream, context, entry)
    }

    /// The error for an entry that cannot be decoded.
    pub(crate) fn decode_error(&self, error: DecodeEntryError) -> LoadError {
        LoadError::decode(&self.stream)(error)
    }
}

/// The plan whose run begins with `first`.
fn run_plan(
    stream: &StreamName,
    of_version: Option<&Document>,
    bounds: &Bounds,
    first: &RunEvent,
) -> Result<Plan, LoadError> {
    let damaged = |reason: String| LoadError::Damaged {
        stream: stream.clone(),
        reason,
    };
    let RunEvent::RunStarted {
        version,
        variables,
        document,
        ..
    } = first
    else {
        return Err(damaged(Corrupt::NoStart.to_string()));
    };
    if let Some(document) = document {
        return Plan::compile((**document).clone(), bounds).map_err(LoadError::Plan);
    }
    let found = of_version.ok_or_else(|| {
        damaged(format!(
            "it runs version {version}, which the plan does not have"
        ))
    })?;
    Plan::compile(found.with_variables(variables), bounds).map_err(LoadError::Plan)
}

/// Returns the status of a plan, over its review and its latest run.
pub(crate) async fn plan_status(
    store: &dyn Store,
    review: &Review,
    bounds: &Bounds,
) -> Result<PlanStatus, LoadError> {
    Ok(review.status(latest_run_status(store, review, bounds).await?))
}

/// Returns the status of the plan's latest run.
pub(crate) async fn latest_run_status(
    store: &dyn Store,
    review: &Review,
    bounds: &Bounds,
) -> Result<Option<RunStatus>, LoadError> {
    let Some(opened) = review.runs().last() else {
        return Ok(None);
    };
    let stream = StreamName::Run(opened.run.clone());
    let Some(info) = store.info(&stream).await? else {
        return Ok(None);
    };
    if let Some(status) = info.status.status.run_status() {
        return Ok(Some(status));
    }
    // A word of a newer version: the journal says where the run stands, or is refused by the
    // fold. Taking the run for ended would let another one start beside it.
    let (run, _) = load_run(store, &opened.run, review, bounds).await?;
    Ok(Some(run.status()))
}

/// The run streams of a plan, without those whose damage a person has accepted.
pub(crate) async fn readable_runs(
    store: &dyn StreamIndex,
    review: &Review,
) -> Result<Vec<StreamInfo>, StoreError> {
    let mut runs = store.runs(review.id()).await?;
    runs.retain(|info| !matches!(&info.stream, StreamName::Run(run) if review.is_written_off(run)));
    Ok(runs)
}

/// The plan a run belongs to, from its first entry.
pub async fn plan_of_run(store: &dyn Journal, id: &RunId) -> Result<PlanId, LoadError> {
    let (plan, _) = read_beginning(store, id).await?;
    Ok(plan)
}

/// The plan a run belongs to and the principal who began it, from its first entry.
pub(crate) async fn read_beginning(
    store: &dyn Journal,
    id: &RunId,
) -> Result<(PlanId, Principal), LoadError> {
    let stream = StreamName::Run(id.clone());
    let page = store.read(&stream, 0, 1).await?;
    let record = page
        .first()
        .ok_or_else(|| LoadError::NoSuchRun(id.clone()))?;
    match decode::<RunEvent>(record)
        .map_err(LoadError::decode(&stream))?
        .event
    {
        RunEvent::RunStarted { plan, by, .. } => Ok((plan, by)),
        _ => Err(no_start(&stream)),
    }
}
