//! Large values in an object store, with a real server.

use planwright_adapters::files::FileArtifacts;
use planwright_adapters::objects::{ObjectArtifacts, ObjectsLocation, PATIENCE};
use planwright_core::digest::Digest;
use planwright_engine::memory::MemoryArtifacts;
use planwright_engine::port::{ArtifactError, ArtifactRef, Artifacts};
use planwright_testing::objects::ObjectServer;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The server of the tests that do not stop it.
fn server() -> &'static ObjectServer {
    static SERVER: OnceLock<ObjectServer> = OnceLock::new();
    SERVER.get_or_init(ObjectServer::start)
}

/// A place in the bucket that no other test uses.
fn new_prefix() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("place-{}", NEXT.fetch_add(1, Ordering::SeqCst))
}

fn open(url: &str, keys: [(String, String); 2], patience: Duration) -> ObjectArtifacts {
    let location = ObjectsLocation::parse(url, keys).unwrap();
    let own = Arc::new(MemoryArtifacts::new());
    ObjectArtifacts::new(&location, own, patience).unwrap()
}

fn at(prefix: &str) -> ObjectArtifacts {
    open(&server().url(prefix), server().keys(), PATIENCE)
}

mod laws {
    use super::*;

    fn make() -> (Arc<dyn Artifacts>, ()) {
        (Arc::new(at(&new_prefix())), ())
    }

    planwright_engine::artifact_laws!(make);
}

/// Files pass the same laws.
mod laws_of_files {
    use super::*;

    fn make() -> (Arc<dyn Artifacts>, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        (Arc::new(FileArtifacts::new(directory.path())), directory)
    }

    planwright_engine::artifact_laws!(make);
}

#[tokio::test]
async fn an_object_that_was_changed_or_cut_is_noticed_and_putting_it_again_repairs_it() {
    let prefix = new_prefix();
    let artifacts = at(&prefix);
    let bytes = b"evidence that is longer than it seems".to_vec();
    let artifact = artifacts.put(bytes.clone()).await.unwrap();
    let names = server().names(&prefix);
    assert_eq!(names, [format!("{prefix}/{}", artifact.digest.hex())]);
    for changed in [
        "evidence that is shorter",
        "EVIDENCE that is longer than it seems",
        "evidence that is longer than it seems, and longer",
    ] {
        server().replace(&names[0], changed);
        let found = artifacts.get(&artifact).await;
        assert!(matches!(found, Err(ArtifactError::Changed(_))), "{found:?}");
    }
    artifacts.put(bytes.clone()).await.unwrap();
    assert_eq!(artifacts.get(&artifact).await.unwrap(), bytes);
    assert_eq!(server().names(&prefix).len(), 1);
}

#[tokio::test]
async fn values_from_the_time_before_are_still_read() {
    let own = Arc::new(MemoryArtifacts::new());
    let before = own.put(b"before".to_vec()).await.unwrap();
    let url = server().url(&new_prefix());
    let location = ObjectsLocation::parse(&url, server().keys()).unwrap();
    let own_too: Arc<dyn Artifacts> = Arc::<MemoryArtifacts>::clone(&own);
    let artifacts = ObjectArtifacts::new(&location, own_too, PATIENCE).unwrap();
    assert_eq!(artifacts.get(&before).await.unwrap(), b"before");
    let named = artifacts.get_named(before.digest, 100).await;
    assert_eq!(named.unwrap(), b"before");
    let after = artifacts.put(b"after".to_vec()).await.unwrap();
    assert!(
        own.get(&after).await.is_err(),
        "new ones are kept elsewhere"
    );
}

#[tokio::test]
async fn a_bucket_that_is_missing_and_keys_that_are_wrong_are_not_damage() {
    let artifact = ArtifactRef {
        digest: Digest::of_bytes(b"one"),
        bytes: 3,
    };
    let nowhere = open(&server().url_of("nowhere", "a"), server().keys(), PATIENCE);
    let complaint = nowhere.get(&artifact).await.unwrap_err().to_string();
    assert!(complaint.contains("there is no such bucket"), "{complaint}");
    let complaint = nowhere.put(b"one".to_vec()).await.unwrap_err().to_string();
    assert!(complaint.contains("there is no such bucket"), "{complaint}");
    let mut wrong = server().keys();
    "hunter2".clone_into(&mut wrong[1].1);
    let refused = open(&server().url(&new_prefix()), wrong, PATIENCE);
    let complaint = refused.put(b"one".to_vec()).await.unwrap_err().to_string();
    assert!(complaint.contains("access is denied"), "{complaint}");
    assert!(!complaint.contains("hunter2"), "{complaint}");
}

#[tokio::test]
async fn a_server_that_is_away_is_waited_for_and_one_that_stays_away_is_an_error() {
    let own_server = ObjectServer::start();
    let patient = Arc::new(open(&own_server.url("a"), own_server.keys(), PATIENCE));
    let artifact = patient.put(b"one".to_vec()).await.unwrap();
    own_server.stop();
    let impatient = open(
        &own_server.url("a"),
        own_server.keys(),
        Duration::from_millis(300),
    );
    let complaint = impatient.get(&artifact).await.unwrap_err();
    assert!(matches!(complaint, ArtifactError::Io(_)), "{complaint:?}");
    assert!(
        complaint.to_string().contains("s3://values/a"),
        "{complaint}"
    );
    let reader = Arc::clone(&patient);
    let wanted = artifact.clone();
    let reading = tokio::spawn(async move { reader.get(&wanted).await });
    let writing = tokio::spawn(async move { patient.put(b"two".to_vec()).await });
    own_server.resume();
    assert_eq!(reading.await.unwrap().unwrap(), b"one");
    writing.await.unwrap().unwrap();
    assert_eq!(own_server.names("a").len(), 2);
}
