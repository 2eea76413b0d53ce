//! Half a lease is a fence: an engine over the store makes no call once the store has not confirmed
//! its lease for half of the lease's length.

use super::fixture::Subject;
use crate::memory::{ManualClock, MemoryArtifacts};
use crate::port::{AppendError, BoxFuture, Journal, Lease, Leases, OwnerId, StoreError};
use crate::run::handle::RunHandle;
use crate::run::options::RunOptions;
use crate::{Engine, FunctionTools};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::Shown;
use planwright_core::time::Timestamp;
use planwright_core::tool::ToolDefinition;
use serde_json::{Map, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

const TTL: Duration = Duration::from_secs(30);

pub async fn no_call_is_made_while_the_store_does_not_answer(store: Subject) {
    let mut trial = Trial::begin(store, Renewals::Stuck).await;
    trial.wait_for_renewal().await;
    assert_eq!(trial.made(), ["first"], "half of the lease is over");
    trial.store.renewals.send_replace(Renewals::Work);
    trial.run.wait().await.unwrap();
    assert_eq!(trial.made(), ["first", "second"]);
}

pub async fn no_call_is_made_while_leases_cannot_be_renewed(store: Subject) {
    let mut trial = Trial::begin(store, Renewals::Fail).await;
    trial.wait_for_renewal().await;
    // The run waits until the store is asked again.
    while trial.clock.next_wakeup().is_none() && !trial.run.task.is_finished() {
        tokio::task::yield_now().await;
    }
    assert_eq!(trial.made(), ["first"], "half of the lease is over");
    trial.store.renewals.send_replace(Renewals::Work);
    trial.clock.advance(TTL / 10);
    trial.run.wait().await.unwrap();
    assert_eq!(trial.made(), ["first", "second"]);
}

/// A run of two steps. Half a lease passes during the call of the first.
struct Trial {
    store: Arc<Unrenewed>,
    clock: ManualClock,
    made: Arc<Mutex<Vec<&'static str>>>,
    run: RunHandle,
}

impl Trial {
    async fn begin(store: Subject, renewals: Renewals) -> Self {
        let store = Arc::new(Unrenewed {
            inner: store,
            renewals: watch::Sender::new(renewals),
            asked: watch::Sender::new(0),
        });
        let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
        let made = Arc::<Mutex<Vec<_>>>::default();
        let tool = |name: &'static str, pause: Duration| {
            let made = Arc::clone(&made);
            let clock = clock.clone();
            let definition = ToolDefinition::new("law", name, "A call.", json!({"type": "object"}));
            let call = move |_| {
                made.lock().unwrap().push(name);
                clock.advance(pause);
                async { Ok(json!(null)) }
            };
            (definition, call)
        };
        let (first, call_first) = tool("first", TTL / 2);
        let (second, call_second) = tool("second", Duration::ZERO);
        let tools = FunctionTools::new()
            .with(first, call_first)
            .with(second, call_second);
        let engine = Engine::builder(Arc::new(tools))
            .clock(Arc::new(clock.clone()))
            .store(
                Arc::<Unrenewed>::clone(&store),
                Arc::<MemoryArtifacts>::default(),
            )
            .owner(OwnerId("law".into()))
            .lease_ttl(TTL)
            .build();
        let by = Principal::person("ada");
        let plan = json!({"id": "p", "steps": [
            {"id": "a", "tool": "law.first"},
            {"id": "b", "tool": "law.second", "dependsOn": ["a"]},
        ]});
        let plan = serde_json::from_value(plan).unwrap();
        let (review, _) = engine.plans().propose(plan, &by).await.unwrap();
        engine
            .plans()
            .approve(
                review.id(),
                &Map::new(),
                Shown::Version(1),
                &by,
                Assurance::Terminal,
            )
            .await
            .unwrap();
        let run = engine
            .runs()
            .start(review.id(), RunOptions::new(by))
            .await
            .unwrap();
        Self {
            store,
            clock,
            made,
            run,
        }
    }

    fn made(&self) -> Vec<&'static str> {
        self.made.lock().unwrap().clone()
    }

    /// Returns when the store was asked for a renewal, or the run ended without.
    async fn wait_for_renewal(&mut self) {
        let mut asked = self.store.asked.subscribe();
        tokio::select! {
            asked = asked.wait_for(|asked| *asked > 0) => drop(asked.unwrap()),
            _ = self.run.wait() => panic!("nothing asked for a renewal: {:?}", self.made()),
        }
    }
}

/// What becomes of renewals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Renewals {
    Work,
    Stuck,
    Fail,
}

/// A store that renews leases only when it is told to.
#[derive(Debug)]
struct Unrenewed {
    inner: Subject,
    renewals: watch::Sender<Renewals>,
    asked: watch::Sender<usize>,
}

crate::forward_ports!(Unrenewed: StreamIndex, Mailbox, Changes, StoreHealth);

impl Leases for Unrenewed {
    fn renew<'a>(
        &'a self,
        lease: &'a Lease,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, AppendError>> {
        self.asked.send_modify(|asked| *asked += 1);
        Box::pin(async move {
            if *self.renewals.borrow() == Renewals::Fail {
                return Err(StoreError::Failed("the disk is busy".into()).into());
            }
            let mut renewals = self.renewals.subscribe();
            let working = renewals.wait_for(|renewals| *renewals == Renewals::Work);
            drop(working.await.unwrap());
            self.inner.renew(lease, ttl).await
        })
    }

    crate::forward_methods!(acquire, release, living_owner, is_dead, lease);
}

impl Journal for Unrenewed {
    crate::forward_methods!(append, read, feed, head);
}
