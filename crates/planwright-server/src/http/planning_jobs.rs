//! Plans that are being written while no caller waits: kept in memory, bounded, and gone with the
//! process. What a planner wrote is in the store, and other services are told how far it is.

use super::problem::{HttpResult, Problem, ProblemCode};
use planwright_api::{PlanningJob, PlanningStep};
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use planwright_engine::{Engine, PlannerEvent, PlannerSink};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Plans that are written at once, over all callers and for one of them.
const MAX_RUNNING: usize = 16;
const MAX_RUNNING_EACH: usize = 4;

/// Orders that are remembered. The oldest that are over are forgotten first.
const MAX_KEPT: usize = 256;

/// Things that are told about one order.
const MAX_TOLD: usize = 100;

/// Faults of an answer that are told, and characters of each.
const MAX_FAULTS: usize = 20;
const MAX_FAULT: usize = 500;

/// All orders. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlanningJobs(Arc<Mutex<BTreeMap<String, Job>>>);

/// One order.
#[derive(Debug)]
struct Job {
    number: u64,
    by: Principal,
    state: Arc<Told>,
    cancel: CancellationToken,
}

/// What is known about an order, and a number that grows with it.
#[derive(Debug)]
pub(crate) struct Told {
    job: Mutex<PlanningJob>,
    changes: watch::Sender<u64>,
}

/// An order that was taken.
#[derive(Debug)]
pub(crate) struct TakenJob {
    pub(crate) id: String,
    pub(crate) told: Arc<Told>,
    pub(crate) cancel: CancellationToken,
}

impl PlanningJobs {
    /// Takes an order, if there is room for one more.
    pub(crate) fn take(
        &self,
        engine: &Engine,
        (by, goal): (&Principal, &str),
        stop: &CancellationToken,
    ) -> HttpResult<TakenJob> {
        let mut jobs = self.jobs();
        let running = jobs.values().filter(|job| job.state.is_running());
        let (all, own) = running.fold((0, 0), |(all, own), job| {
            (all + 1, own + usize::from(job.by == *by))
        });
        if all >= MAX_RUNNING || own >= MAX_RUNNING_EACH {
            let words = "too many plans are being written";
            return Err(Problem::later(ProblemCode::TooBusy, words, 10));
        }
        forget_oldest(&mut jobs);
        let id = format!("pln-{:016x}", engine.entropy());
        let told = Arc::new(Told::new(&id, goal, engine.now()));
        let cancel = stop.child_token();
        let number = jobs
            .values()
            .map(|job| job.number)
            .max()
            .unwrap_or_default()
            + 1;
        let job = Job {
            number,
            by: by.clone(),
            state: Arc::clone(&told),
            cancel: cancel.clone(),
        };
        jobs.insert(id.clone(), job);
        Ok(TakenJob { id, told, cancel })
    }

    /// Finds an order of this service.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Told>> {
        let jobs = self.jobs();
        Some(Arc::clone(&jobs.get(id)?.state))
    }

    /// Finds who gave an order to this service, and what cancels it. One that is over stays as it is.
    pub(crate) fn find_cancel(&self, id: &str) -> Option<(Principal, CancellationToken)> {
        let jobs = self.jobs();
        let job = jobs.get(id)?;
        Some((job.by.clone(), job.cancel.clone()))
    }

    fn jobs(&self) -> MutexGuard<'_, BTreeMap<String, Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn unknown(id: &str) -> Problem {
    Problem::not_found(format!("no plan is being written as `{id}`"))
        .hint("orders are forgotten when the service stops; GET /plan lists the plans")
}

fn forget_oldest(jobs: &mut BTreeMap<String, Job>) {
    while jobs.len() >= MAX_KEPT {
        let over = jobs.iter().filter(|(_, job)| !job.state.is_running());
        let oldest = over.min_by_key(|(_, job)| job.number);
        let Some(id) = oldest.map(|(id, _)| id.clone()) else {
            return;
        };
        jobs.remove(&id);
    }
}

/// The life of an order for a plan.
#[derive(Debug, Clone, Copy)]
enum PlanningStatus {
    Running,
    Done,
    Failed,
    Cancelled,
}

impl PlanningStatus {
    /// Returns the word in documents.
    fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Returns whether the plan of this order is still being written.
pub(super) fn is_running(job: &PlanningJob) -> bool {
    job.status == PlanningStatus::Running.as_str()
}

impl Told {
    fn new(id: &str, goal: &str, at: Timestamp) -> Self {
        let job = PlanningJob {
            id: id.to_owned(),
            status: PlanningStatus::Running.as_str().into(),
            goal: goal.to_owned(),
            created_at: at.to_string(),
            progress: Vec::new(),
            plan_id: None,
            problem: None,
        };
        Self::of(job)
    }

    /// What was told elsewhere.
    pub(super) fn of(job: PlanningJob) -> Self {
        Self {
            job: Mutex::new(job),
            changes: watch::Sender::new(0),
        }
    }

    /// Takes over what was told elsewhere since.
    pub(super) fn replace(&self, job: PlanningJob) {
        let mut known = self.job();
        if *known == job {
            return;
        }
        *known = job;
        drop(known);
        self.tell();
    }

    /// What is known.
    pub(crate) fn document(&self) -> PlanningJob {
        self.job().clone()
    }

    /// Changes its value whenever there is more to tell.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(crate) fn is_running(&self) -> bool {
        is_running(&self.job())
    }

    /// Takes what the planner tells.
    pub(crate) fn sink(self: &Arc<Self>) -> PlannerSink {
        let told = Arc::clone(self);
        PlannerSink::new(move |event| told.note(event))
    }

    /// Ends the order with the plan that was written, or with why there is none.
    pub(crate) fn end(&self, ended: Result<String, Problem>, cancelled: bool) {
        let mut job = self.job();
        match ended {
            Ok(plan) => {
                job.status = PlanningStatus::Done.as_str().into();
                job.plan_id = Some(plan);
            }
            Err(problem) => {
                let status = match cancelled {
                    true => PlanningStatus::Cancelled,
                    false => PlanningStatus::Failed,
                };
                job.status = status.as_str().into();
                job.problem = serde_json::to_value(problem).ok();
            }
        }
        drop(job);
        self.tell();
    }

    fn note(&self, event: PlannerEvent) {
        let mut job = self.job();
        let step = match event {
            PlannerEvent::Asked { round, of, model } => PlanningStep {
                kind: "asked".into(),
                round: Some(round),
                of: Some(of),
                model: Some(model),
                ..PlanningStep::default()
            },
            PlannerEvent::Heard { bytes } => {
                heard(&mut job, bytes);
                drop(job);
                self.tell();
                return;
            }
            PlannerEvent::Looked { tool, args: _ } => PlanningStep {
                kind: "looked".into(),
                tool: Some(tool),
                ..PlanningStep::default()
            },
            PlannerEvent::Answered { used } => PlanningStep {
                kind: "answered".into(),
                model: Some(used.model.to_string()),
                input_tokens: Some(used.usage.input),
                output_tokens: Some(used.usage.output),
                ..PlanningStep::default()
            },
            PlannerEvent::SentBack { round, faults } => PlanningStep {
                kind: "sent_back".into(),
                round: Some(round),
                faults: faults
                    .iter()
                    .take(MAX_FAULTS)
                    .map(|fault| fault.chars().take(MAX_FAULT).collect())
                    .collect(),
                ..PlanningStep::default()
            },
        };
        if job.progress.len() < MAX_TOLD {
            job.progress.push(step);
        }
        drop(job);
        self.tell();
    }

    fn tell(&self) {
        self.changes.send_modify(|number| *number += 1);
    }

    fn job(&self) -> MutexGuard<'_, PlanningJob> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts the bytes of an answer that is coming.
fn heard(job: &mut PlanningJob, bytes: usize) {
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    match job.progress.last_mut() {
        Some(step) if step.kind == "asked" => {
            step.heard_bytes = Some(step.heard_bytes.unwrap_or_default().saturating_add(bytes));
        }
        Some(_) | None => {}
    }
}
