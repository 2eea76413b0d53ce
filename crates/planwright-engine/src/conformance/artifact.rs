//! The laws of [`Artifacts`].

use crate::port::{ArtifactError, ArtifactRef, Artifacts};
use futures::future::join_all;
use planwright_core::digest::Digest;
use std::sync::Arc;

type Subject = Arc<dyn Artifacts>;

pub async fn what_was_put_comes_back_byte_for_byte(artifacts: Subject) {
    for bytes in [Vec::new(), b"a\0b\xff".to_vec(), vec![7; 1024 * 1024]] {
        let artifact = artifacts.put(bytes.clone()).await.unwrap();
        assert_eq!(artifact.digest, Digest::of_bytes(&bytes));
        assert_eq!(artifact.bytes, bytes.len() as u64);
        assert_eq!(artifacts.get(&artifact).await.unwrap(), bytes);
        let most = artifact.bytes;
        let named = artifacts.get_named(artifact.digest, most).await;
        assert_eq!(named.unwrap(), bytes);
    }
}

pub async fn the_same_content_is_the_same_value(artifacts: Subject) {
    let first = artifacts.put(b"same".to_vec()).await.unwrap();
    let second = artifacts.put(b"same".to_vec()).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(artifacts.get(&first).await.unwrap(), b"same");
}

pub async fn many_may_put_the_same_content_at_once(artifacts: Subject) {
    let puts = (0..16).map(|_| artifacts.put(vec![9; 100_000]));
    let put = join_all(puts).await;
    let put: Vec<ArtifactRef> = put.into_iter().map(Result::unwrap).collect();
    assert!(put.iter().all(|one| one == &put[0]));
    assert_eq!(artifacts.get(&put[0]).await.unwrap(), vec![9; 100_000]);
}

pub async fn what_was_never_put_is_missing(artifacts: Subject) {
    let digest = Digest::of_bytes(b"never");
    let artifact = ArtifactRef { digest, bytes: 5 };
    let found = artifacts.get(&artifact).await;
    assert!(matches!(found, Err(ArtifactError::Missing(named)) if named == digest));
    let found = artifacts.get_named(digest, 100).await;
    assert!(matches!(found, Err(ArtifactError::Missing(named)) if named == digest));
}

pub async fn no_more_is_read_than_is_wanted(artifacts: Subject) {
    let artifact = artifacts.put(vec![1; 1000]).await.unwrap();
    let found = artifacts.get_named(artifact.digest, 999).await;
    let complaint = found.unwrap_err().to_string();
    assert!(complaint.contains("more than 999 bytes"), "{complaint}");
}

/// Makes one test of every law of [`Artifacts`].
#[macro_export]
macro_rules! artifact_laws {
    ($make:ident) => {
        $crate::artifact_laws! { @tests $make;
            what_was_put_comes_back_byte_for_byte,
            the_same_content_is_the_same_value,
            many_may_put_the_same_content_at_once,
            what_was_never_put_is_missing,
            no_more_is_read_than_is_wanted,
        }
    };
    (@tests $make:ident; $($law:ident),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $law() {
            let (artifacts, _keep) = $make();
            $crate::conformance::artifact::$law(artifacts).await;
        })*
    };
}
