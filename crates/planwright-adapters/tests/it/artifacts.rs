//! Artifacts in files.

use planwright_adapters::files::FileArtifacts;
use planwright_core::digest::Digest;
use planwright_engine::port::{ArtifactError, ArtifactRef, Artifacts as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

#[tokio::test]
async fn what_was_put_comes_back_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    let artifacts = FileArtifacts::new(directory.path().join("artifacts"));
    for bytes in [Vec::new(), b"a\0b\xff".to_vec(), vec![7; 1024 * 1024]] {
        let artifact = artifacts.put(bytes.clone()).await.unwrap();
        assert_eq!(
            (artifact.digest, artifact.bytes),
            (Digest::of_bytes(&bytes), bytes.len() as u64)
        );
        assert_eq!(artifacts.get(&artifact).await.unwrap(), bytes);
        let mode = std::fs::metadata(artifacts.path(&artifact.digest))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(
        std::fs::read_dir(directory.path().join("artifacts"))
            .unwrap()
            .count(),
        3
    );
}

#[tokio::test]
async fn every_change_on_disk_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let artifacts = FileArtifacts::new(directory.path());
    let artifact = artifacts
        .put(b"forty-two bytes of evidence, more or less".to_vec())
        .await
        .unwrap();
    let path = artifacts.path(&artifact.digest);
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        std::fs::write(&path, changed).unwrap();
        assert!(
            matches!(
                artifacts.get(&artifact).await,
                Err(ArtifactError::Changed(_))
            ),
            "byte {at}"
        );
        std::fs::write(&path, &whole[..at]).unwrap();
        assert!(
            matches!(
                artifacts.get(&artifact).await,
                Err(ArtifactError::Changed(_))
            ),
            "cut at {at}"
        );
    }
    std::fs::write(&path, [whole.as_slice(), b"x"].concat()).unwrap();
    assert!(matches!(
        artifacts.get(&artifact).await,
        Err(ArtifactError::Changed(_))
    ));
    assert_eq!(artifacts.put(whole.clone()).await.unwrap(), artifact);
    assert_eq!(
        artifacts.get(&artifact).await.unwrap(),
        whole,
        "putting it again repairs it"
    );
}

#[tokio::test]
async fn the_same_content_is_written_once() {
    let directory = tempfile::tempdir().unwrap();
    let artifacts = FileArtifacts::new(directory.path());
    let artifact = artifacts.put(b"same".to_vec()).await.unwrap();
    let before = std::fs::metadata(artifacts.path(&artifact.digest))
        .unwrap()
        .ino();
    artifacts.put(b"same".to_vec()).await.unwrap();
    assert_eq!(
        std::fs::metadata(artifacts.path(&artifact.digest))
            .unwrap()
            .ino(),
        before
    );
}

#[tokio::test]
async fn a_missing_artifact_is_missing_and_a_link_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let artifacts = FileArtifacts::new(directory.path().join("artifacts"));
    let artifact = ArtifactRef {
        digest: Digest::of_bytes(b"secret"),
        bytes: 6,
    };
    assert!(matches!(
        artifacts.get(&artifact).await,
        Err(ArtifactError::Missing(_))
    ));
    std::fs::create_dir(directory.path().join("artifacts")).unwrap();
    std::fs::write(directory.path().join("elsewhere"), "secret").unwrap();
    symlink(
        directory.path().join("elsewhere"),
        artifacts.path(&artifact.digest),
    )
    .unwrap();
    assert!(matches!(
        artifacts.get(&artifact).await,
        Err(ArtifactError::Io(_))
    ));
    assert!(artifacts.put(b"secret".to_vec()).await.is_err());
}
