//! A store that fails: never a call without a durable start, and a restart goes on.

use crate::world::{World, approved, chain, entries, options, status_of};
use planwright_core::journal::{Record, StreamName};
use planwright_core::run::RunEvent;
use planwright_engine::memory::{MemoryArtifacts, MemoryStore};
use planwright_engine::port::{
    Append, AppendError, BoxFuture, Journal, Lease, Leases, OwnerId, StoreError,
};
use planwright_engine::{Engine, EngineBuilder, RunError};
use serde_json::json;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Passes everything on to a store in memory, counts the appends to runs, and fails the one it is
/// told to fail and all that follow.
#[derive(Debug)]
pub(crate) struct FaultyStore {
    inner: Arc<MemoryStore>,
    appends: AtomicUsize,
    reads: AtomicUsize,
    fail_from: AtomicUsize,
    /// Writes the failing append all the same: the connection broke after the commit.
    written: bool,
    /// Fails these appends with this error, and works again after them.
    trouble: Option<(Range<usize>, StoreError)>,
    /// Says that leases are renewed, and renews none.
    lose_renewals: bool,
    /// Lets others work after each read, before what was read is used.
    yielding: bool,
    /// The time that each append takes.
    slowness: Duration,
}

impl FaultyStore {
    pub(crate) fn new(world: &World) -> Arc<Self> {
        Self::failing(world, usize::MAX, false)
    }

    pub(crate) fn failing(world: &World, from: usize, written: bool) -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::clone(&world.store),
            appends: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            fail_from: AtomicUsize::new(from),
            written,
            trouble: None,
            lose_renewals: false,
            yielding: false,
            slowness: Duration::ZERO,
        })
    }

    pub(crate) fn losing_renewals(world: &World) -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::clone(&world.store),
            appends: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            fail_from: AtomicUsize::new(usize::MAX),
            written: false,
            trouble: None,
            lose_renewals: true,
            yielding: false,
            slowness: Duration::ZERO,
        })
    }

    /// A store whose appends take this long.
    pub(crate) fn slow(world: &World, slowness: Duration) -> Arc<Self> {
        let mut store = Self::new(world);
        Arc::get_mut(&mut store).unwrap().slowness = slowness;
        store
    }

    /// A store that cannot be written for a while.
    pub(crate) fn troubled(world: &World, appends: Range<usize>, error: StoreError) -> Arc<Self> {
        let mut store = Self::new(world);
        Arc::get_mut(&mut store).unwrap().trouble = Some((appends, error));
        store
    }

    /// A store in which everybody reads before anybody writes.
    pub(crate) fn yielding(world: &World) -> Arc<Self> {
        let mut store = Self::new(world);
        Arc::get_mut(&mut store).unwrap().yielding = true;
        store
    }

    pub(crate) fn appends(&self) -> usize {
        self.appends.load(Ordering::SeqCst)
    }

    /// How often a journal was read.
    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    pub(crate) fn engine(self: &Arc<Self>, world: &World, name: &str) -> Engine {
        self.engine_of(world, world.builder(name))
    }

    pub(crate) fn engine_of(self: &Arc<Self>, world: &World, builder: EngineBuilder) -> Engine {
        let artifacts = Arc::<MemoryArtifacts>::clone(&world.artifacts);
        builder.store(Arc::<Self>::clone(self), artifacts).build()
    }
}

planwright_engine::forward_ports!(FaultyStore: StreamIndex, Mailbox, Changes, StoreHealth);

impl Journal for FaultyStore {
    fn append(&self, appends: Vec<Append>) -> BoxFuture<'_, Result<(), AppendError>> {
        let of_run = appends
            .iter()
            .any(|append| matches!(append.stream, StreamName::Run(_)));
        let number = if of_run {
            self.appends.fetch_add(1, Ordering::SeqCst) + 1
        } else {
            0
        };
        let from = self.fail_from.load(Ordering::SeqCst);
        if let Some((appends, error)) = &self.trouble
            && appends.contains(&number)
        {
            return Box::pin(std::future::ready(Err(error.clone().into())));
        }
        if number < from {
            return Box::pin(async move {
                if !self.slowness.is_zero() {
                    tokio::time::sleep(self.slowness).await;
                }
                self.inner.append(appends).await
            });
        }
        Box::pin(async move {
            if number == from && self.written {
                self.inner.append(appends).await?;
            }
            Err(StoreError::Failed("the disk is gone".into()).into())
        })
    }

    fn read<'a>(
        &'a self,
        stream: &'a StreamName,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        if self.yielding {
            return Box::pin(async move {
                let read = self.inner.read(stream, after, limit).await;
                tokio::task::yield_now().await;
                read
            });
        }
        self.inner.read(stream, after, limit)
    }

    planwright_engine::forward_methods!(feed, head);
}

impl Leases for FaultyStore {
    fn renew<'a>(
        &'a self,
        lease: &'a Lease,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, AppendError>> {
        if self.lose_renewals {
            return Box::pin(std::future::ready(Ok(lease.clone())));
        }
        self.inner.renew(lease, ttl)
    }

    planwright_engine::forward_methods!(acquire, release, living_owner, is_dead, lease);
}

/// Fails the `k`-th append to the run, restarts on a store that works, and checks what was called
/// how often.
async fn fail_and_restart(k: usize, written: bool, plan: serde_json::Value) -> bool {
    let world = World::new();
    let faulty = FaultyStore::failing(&world, k, written);
    let engine = faulty.engine(&world, "one");
    let id = approved(&engine, plan).await;
    let failed = match engine.runs().start(&id, options()).await {
        Ok(mut handle) => match handle.wait().await {
            Ok(run) => {
                assert_eq!(run.status().as_str(), "completed");
                return false;
            }
            Err(RunError::Append(AppendError::Store(_))) => true,
            Err(error) => panic!("{error}"),
        },
        Err(_) => false,
    };
    world.store.kill_owner(&OwnerId("one".into()));
    let engine = world.engine("two");
    let (review, _) = engine.plans().load_review(&id).await.unwrap();
    let Some(opened) = review.runs().last() else {
        assert!(
            !failed && world.made().is_empty(),
            "a call was made without a run"
        );
        return true;
    };
    let run_id = opened.run.clone();
    let run = engine.runs().resume(&id, options()).await;
    let run = match run {
        Ok(mut handle) => handle.wait().await.unwrap(),
        // Only the news of the end was lost.
        Err(error) => {
            assert!(error.to_string().contains("already ended"), "{error}");
            engine.runs().load_run(&run_id, &review).await.unwrap().0
        }
    };
    let journal = entries(&*world.store, &run_id);
    let starts = |step: &str| {
        let of_step = |entry: &&planwright_core::journal::Entry<RunEvent>| matches!(&entry.event, RunEvent::AttemptStarted { step: s, .. } if s.as_str() == step);
        journal.iter().filter(of_step).count()
    };
    for ix in run.plan().indices() {
        let step = run.plan().step_id(ix).as_str();
        assert!(
            world.calls_of(step) <= starts(step),
            "`{step}` was called more often than it was started"
        );
        if run.plan().step(ix).tool.as_deref() == Some("w.write") {
            assert!(
                world.calls_of(step) <= 1,
                "the unsafe `{step}` was called twice"
            );
        }
    }
    let unsafe_lost = status_of(&run, "s2") == "outcome_unknown";
    assert_eq!(
        run.status().as_str(),
        if unsafe_lost { "waiting" } else { "completed" }
    );
    true
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_at_any_append_costs_no_call_its_record() {
    let mut mixed = chain(4, "r.read", 10);
    mixed["steps"][1]["tool"] = json!("w.write");
    mixed["steps"][3]["tool"] = json!("k.put");
    for plan in [chain(4, "r.read", 10), mixed] {
        for written in [false, true] {
            let mut k = 1;
            while fail_and_restart(k, written, plan.clone()).await {
                k += 1;
            }
            assert!(k > 5, "only {k} appends were made");
        }
    }
}
