//! What interrupted calls left running is ended before they are settled.

use crate::world::{World, after, approved, chain, entries, options, status_of};
use planwright_core::error::ClassifiedError as _;
use planwright_core::id::RunId;
use planwright_core::run::RunEvent;
use planwright_engine::port::{BoxFuture, Leases as _, Leftovers, OwnerId, StillRunning};
use planwright_engine::{CommandError, Engine, RunCommand, RunError};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Something of a call that goes on, and may refuse to end.
#[derive(Debug, Default)]
struct Stubborn {
    refuses: AtomicBool,
    asked: AtomicUsize,
    /// How many entries the run had whenever it was asked about.
    lengths: Mutex<Vec<usize>>,
    world: Option<Arc<planwright_engine::memory::MemoryStore>>,
}

impl Leftovers for Stubborn {
    fn end_leftovers(&self, run: &RunId) -> BoxFuture<'static, Result<(), StillRunning>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if let Some(store) = &self.world {
            let length = entries(&**store, run).len();
            self.lengths.lock().unwrap().push(length);
        }
        let ended = if self.refuses.load(Ordering::Relaxed) {
            Err(StillRunning::new("process 7 goes on"))
        } else {
            Ok(())
        };
        Box::pin(std::future::ready(ended))
    }
}

fn engine(world: &World, name: &str, leftovers: &Arc<Stubborn>) -> Engine {
    world
        .builder(name)
        .store(world.store.clone(), world.artifacts.clone())
        .leftovers(Arc::<Stubborn>::clone(leftovers))
        .build()
}

fn is_settled(world: &World, run: &RunId) -> bool {
    entries(&*world.store, run).iter().any(|entry| {
        matches!(
            entry.event,
            RunEvent::OutcomeLost { .. } | RunEvent::AttemptInterrupted { .. }
        )
    })
}

#[tokio::test(start_paused = true)]
async fn a_call_is_settled_only_when_nothing_of_it_goes_on() {
    for tool in ["w.write", "r.read"] {
        let world = World::new();
        let one = world.engine("one");
        let id = approved(&one, chain(1, tool, 3_600_000)).await;
        let first = one.runs().start(&id, options()).await.unwrap();
        after(100).await;
        world.store.kill_owner(&OwnerId("one".into()));

        let leftovers = Arc::new(Stubborn {
            world: Some(world.store.clone()),
            ..Stubborn::default()
        });
        leftovers.refuses.store(true, Ordering::Relaxed);
        let two = engine(&world, "two", &leftovers);
        let mut second = two.runs().resume(&id, options()).await.unwrap();
        let error = second.wait().await.unwrap_err();
        assert!(matches!(error, RunError::StillRunning(_)), "{error}");
        assert_eq!(error.code(), "call_still_running");
        assert!(!is_settled(&world, first.run_id()));
        assert_eq!(world.calls_of("s1"), 1, "it was not made again");
        let lease = world.store.lease(first.run_id()).await.unwrap();
        assert!(lease.is_none(), "the run can be taken over at once");

        let by = options().by;
        let refused = two
            .runs()
            .command(first.run_id(), RunCommand::Cancel { by })
            .await
            .unwrap_err();
        assert!(
            matches!(refused, CommandError::StillRunning(_)),
            "{refused}"
        );
        assert!(!is_settled(&world, first.run_id()));

        leftovers.refuses.store(false, Ordering::Relaxed);
        let before = entries(&*world.store, first.run_id()).len();
        let mut third = two.runs().resume(&id, options()).await.unwrap();
        let run = third.wait().await.unwrap();
        assert!(is_settled(&world, first.run_id()));
        assert_eq!(leftovers.asked.load(Ordering::Relaxed), 3);
        let lengths = leftovers.lengths.lock().unwrap().clone();
        assert_eq!(
            lengths, [before; 3],
            "it was asked before anything is written"
        );
        let expected = if tool == "w.write" {
            ("outcome_unknown", 1)
        } else {
            ("completed", 2)
        };
        assert_eq!((status_of(&run, "s1"), world.calls_of("s1")), expected);
    }
}
