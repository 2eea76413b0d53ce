//! What a principal brings into the store is counted, has a limit, and leaves nothing behind when it is
//! refused.

use planwright_core::plan::{Bounds, Document};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::Shown;
use planwright_engine::memory::{MemoryArtifacts, MemoryStore};
use planwright_engine::port::{ArtifactError, ArtifactRef, Artifacts, BoxFuture, StreamIndex as _};
use planwright_engine::{Engine, FunctionTools, ReviewError};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const PART: usize = 100_000;

/// Counts what is stored.
#[derive(Debug, Default)]
struct CountingArtifacts {
    inner: MemoryArtifacts,
    stored: AtomicUsize,
}

impl Artifacts for CountingArtifacts {
    fn put(&self, bytes: Vec<u8>) -> BoxFuture<'_, Result<ArtifactRef, ArtifactError>> {
        self.stored.fetch_add(1, Ordering::SeqCst);
        self.inner.put(bytes)
    }

    fn get<'a>(
        &'a self,
        artifact: &'a ArtifactRef,
    ) -> BoxFuture<'a, Result<Vec<u8>, ArtifactError>> {
        self.inner.get(artifact)
    }
}

fn document(id: &str, title: &str, steps: &Value) -> Document {
    let notes = format!("{id} {}", "x".repeat(PART));
    let plan = json!({ "id": id, "title": title, "context": { "notes": notes }, "steps": steps });
    Document::from_json(plan, &Bounds::default()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn parts_of_a_version_count_once_and_refused_versions_leave_none() {
    let artifacts = Arc::new(CountingArtifacts::default());
    let store = Arc::new(MemoryStore::new());
    let engine = Engine::builder(Arc::new(FunctionTools::new()))
        .store(
            Arc::<MemoryStore>::clone(&store),
            Arc::<CountingArtifacts>::clone(&artifacts),
        )
        .stored_bytes(250_000)
        .build();
    let plans = engine.plans();
    let agent = Principal::agent("eager");
    let stored = || artifacts.stored.load(Ordering::SeqCst);
    let good = json!([]);
    // A circle of steps is no plan.
    let circle = json!([{ "id": "a", "tool": "t.x", "dependsOn": ["b"] }, { "id": "b", "tool": "t.x", "dependsOn": ["a"] }]);
    let refused = plans.propose(document("p", "One", &circle), &agent).await;
    assert!(
        matches!(refused, Err(ReviewError::Invalid(_))),
        "{refused:?}"
    );
    assert_eq!(stored(), 0);
    assert_eq!(store.brought_bytes(&agent).await.unwrap(), 0);
    plans
        .propose(document("p", "One", &good), &agent)
        .await
        .unwrap();
    assert_eq!(stored(), 1);
    let brought = store.brought_bytes(&agent).await.unwrap();
    assert!((100_000..110_000).contains(&brought), "{brought}");
    // The same again is nothing new; other words with the same part are a few bytes.
    plans
        .propose(document("p", "One", &good), &agent)
        .await
        .unwrap();
    assert_eq!(
        (stored(), store.brought_bytes(&agent).await.unwrap()),
        (1, brought)
    );
    plans
        .propose(document("p", "Two", &good), &agent)
        .await
        .unwrap();
    let after = store.brought_bytes(&agent).await.unwrap();
    assert!((1..10_000).contains(&(after - brought)), "{after}");
    for id in ["q", "r"] {
        plans
            .propose(document(id, "One", &good), &agent)
            .await
            .unwrap();
    }
    let before = stored();
    let refused = plans.propose(document("s", "One", &good), &agent).await;
    let Err(ReviewError::StoredTooMuch { by, limit: 250_000 }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((by, stored()), (agent, before));
    // Another principal is not concerned, and one who decides never is.
    let ada = Principal::person("ada");
    for number in 0..3 {
        let plan = document(&format!("own{number}"), "One", &good);
        plans.propose(plan, &ada).await.unwrap();
    }
    let full = plans.propose(document("more", "One", &good), &ada).await;
    assert!(
        matches!(full, Err(ReviewError::StoredTooMuch { .. })),
        "{full:?}"
    );
    let plan = "p".parse().unwrap();
    plans
        .reject(&plan, Shown::Version(2), &ada, "not this one")
        .await
        .unwrap();
    let other = "q".parse().unwrap();
    plans
        .approve(
            &other,
            &Map::new(),
            Shown::Version(1),
            &ada,
            Assurance::Terminal,
        )
        .await
        .unwrap();
    plans.delete(&"r".parse().unwrap(), &ada).await.unwrap();
}
