//! An encrypted store obeys the same laws, opens with its passphrase and with nothing else, and shows nothing.

use crate::chains::{CANARIES, Chain, artifacts, check, plant};
use crate::databases::{Database, passphrase};
use planwright_adapters::postgres::{
    OpenPostgresError, PostgresOptions, PostgresStore, is_encrypted,
};
use planwright_adapters::vault::UnlockError;
use planwright_core::digest::Digest;
use planwright_core::journal::{Head, check_chain};
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    Append, Artifacts as _, FeedOf, Journal as _, MAX_PAGE_BYTES, Position, RetentionStore as _,
    Store, StoreError, is_last_page,
};
use planwright_testing::postgres::server;
use std::fmt::Write as _;
use std::sync::Arc;

fn opened() -> (Arc<PostgresStore>, Database) {
    let database = Database::new();
    (Arc::new(database.open_sealed()), database)
}

mod laws {
    use super::*;

    fn make() -> (Arc<dyn Store>, Database) {
        let (store, database) = opened();
        (store, database)
    }

    planwright_engine::store_laws!(make);
}

mod tokens {
    use super::*;
    use planwright_engine::port::Tokens;

    fn make_tokens() -> (Arc<dyn Tokens>, Database) {
        let (store, database) = opened();
        (store, database)
    }

    planwright_engine::token_laws!(make_tokens);
}

mod passes {
    use super::*;
    use planwright_engine::port::Passes;

    fn make_passes() -> (Arc<dyn Passes>, Database) {
        let (store, database) = opened();
        (store, database)
    }

    planwright_engine::pass_laws!(make_passes);
}

mod passkeys {
    use super::*;
    use planwright_engine::port::Passkeys;

    fn make_passkeys() -> (Arc<dyn Passkeys>, Database) {
        let (store, database) = opened();
        (store, database)
    }

    planwright_engine::passkey_laws!(make_passkeys);
}

mod offers {
    use super::*;
    use planwright_engine::conformance::offer::OfferingStore;

    fn make_offers() -> (OfferingStore, Database) {
        let (store, database) = opened();
        let subject = OfferingStore {
            store: Arc::<PostgresStore>::clone(&store),
            offers: store,
        };
        (subject, database)
    }

    planwright_engine::offer_laws!(make_offers);
}

fn hex(text: &[u8]) -> String {
    text.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

#[tokio::test]
async fn nothing_that_was_kept_is_found_in_a_dump() {
    let (store, database) = opened();
    let planted = plant(&store).await;
    check(&store, &planted).await;
    let dump = server().dump(database.name());
    assert!(dump.contains("INSERT INTO planwright.entries"));
    for canary in CANARIES.iter().chain(&["canary-waits"]) {
        let digest = Digest::of_bytes(canary.as_bytes()).hex();
        for needle in [(*canary).to_owned(), hex(canary.as_bytes()), digest] {
            assert!(!dump.contains(&needle), "{canary} as {needle}");
        }
    }
    for record in planted.chains.iter().flat_map(|chain| &chain.records) {
        assert!(
            !dump.contains(&record.hash.hex()),
            "a hash confirms a guess"
        );
    }
    // In a plain store all of it is there.
    let plain = Database::new();
    let store = Arc::new(plain.open());
    plant(&store).await;
    let dump = server().dump(plain.name());
    for canary in CANARIES {
        let found = dump.contains(canary) || dump.contains(&hex(canary.as_bytes()));
        assert!(found, "{canary} is not planted");
    }
}

#[tokio::test]
async fn only_the_passphrase_opens_it_and_a_wrong_one_changes_nothing() {
    let (store, database) = opened();
    let mut chain = Chain::of("run/r");
    chain.put(&store, "one").await;
    drop(store);
    assert_eq!(is_encrypted(&database.location()).unwrap(), Some(true));
    let refused = PostgresStore::open(database.location(), true);
    assert!(matches!(refused, Err(OpenPostgresError::Encrypted)));
    for wrong in ["correct horses", "Correct horse", " "] {
        let refused = PostgresStore::open_with(PostgresOptions {
            passphrase: Some(passphrase(wrong)),
            ..database.sealed()
        });
        let wrong_passphrase = OpenPostgresError::Unlock(UnlockError::WrongPassphrase);
        assert_eq!(
            refused.unwrap_err().to_string(),
            wrong_passphrase.to_string()
        );
    }
    let store = database.open_sealed();
    let records = store.read(&chain.stream, 0, 10).await.unwrap();
    assert_eq!(records, chain.records);
}

#[tokio::test]
async fn a_passphrase_is_not_taken_for_a_plain_store() {
    let database = Database::new();
    let store = database.open();
    Chain::of("run/r").put(&store, "one").await;
    drop(store);
    let refused = PostgresStore::open_with(database.sealed());
    assert!(matches!(refused, Err(OpenPostgresError::NotEncrypted)));
    assert_eq!(is_encrypted(&database.location()).unwrap(), Some(false));
    let untouched = Database::untouched();
    assert_eq!(is_encrypted(&untouched.location()).unwrap(), None);
    drop(untouched.open());
}

#[test]
fn a_new_store_is_not_locked_with_a_short_passphrase() {
    let database = Database::new();
    let refused = PostgresStore::open_with(PostgresOptions {
        passphrase: Some(passphrase("short")),
        ..database.sealed()
    });
    assert!(matches!(refused, Err(OpenPostgresError::Passphrase(_))));
}

#[test]
fn a_damaged_lock_is_reported_and_never_replaced() {
    let (store, database) = opened();
    drop(store);
    database.sql("CREATE TABLE planwright.kept_lock AS TABLE planwright.vault");
    for change in [
        "wrapped_key = substr(wrapped_key, 1, 20)",
        "salt = ''",
        "memory_kib = 8",
        "memory_kib = 4000000000",
        "memory_kib = 400000000000",
        "format = 2",
        "nonce = decode(repeat('00', 24), 'hex')",
        "key_id = 'x'",
    ] {
        database.sql(&format!("UPDATE planwright.vault SET {change}"));
        let refused = PostgresStore::open_with(database.sealed());
        assert!(
            matches!(refused, Err(OpenPostgresError::Unlock(_))),
            "{change}"
        );
        database.sql(
            "DELETE FROM planwright.vault; INSERT INTO planwright.vault TABLE planwright.kept_lock",
        );
    }
    database.sql("DROP TABLE planwright.kept_lock");
    drop(database.open_sealed());
}

#[tokio::test]
async fn a_process_that_opened_an_empty_store_in_plain_text_writes_nothing_when_it_is_encrypted() {
    let database = Database::new();
    let plain = database.open();
    let sealed = database.open_sealed();
    let refused = plain.append(vec![Chain::of("run/r").grow("canary")]).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("another key"), "{refused}");
    let mut chain = Chain::of("run/r");
    chain.put(&sealed, "one").await;
    assert_eq!(database.sql("SELECT count(*) FROM planwright.entries"), "1");
}

#[tokio::test]
async fn pages_are_as_full_as_in_a_plain_store() {
    let (store, _database) = opened();
    let mut chain = Chain::of("run/r");
    // Sealed they are more than a page without the last one, and in the clear all of them are less.
    let count = 500;
    let body = "x".repeat(MAX_PAGE_BYTES / count - 7);
    let mut append = chain.grow(&body);
    for _ in 1..count {
        append.records.extend(chain.grow(&body).records);
    }
    store.append(vec![append]).await.unwrap();
    let mut head = Head::EMPTY;
    let mut read = 0;
    loop {
        let page = store
            .read(&chain.stream, head.seq, count + 1)
            .await
            .unwrap();
        head = check_chain(head, &chain.stream, &page).unwrap();
        read += page.len();
        if is_last_page(&page, count + 1) {
            break;
        }
    }
    assert_eq!(read, count);
    let feed = store
        .feed(&FeedOf::All, Position(0), count + 1)
        .await
        .unwrap();
    assert_eq!(feed.len(), count);
}

#[tokio::test]
async fn large_values_that_a_journal_names_are_not_removed() {
    let (store, _database) = opened();
    let artifacts = artifacts(&store);
    let named = artifacts.put(b"named".to_vec()).await.unwrap();
    let unnamed = artifacts.put(b"unnamed".to_vec()).await.unwrap();
    let mut chain = Chain::of("run/r");
    let body = format!("{{\"digest\":\"sha256:{}\"}}", named.digest.hex());
    chain.put(&store, &body).await;
    let later = Timestamp::from_millis(i64::MAX / 2);
    let removed = store.remove_unused_artifacts(later, false).await.unwrap();
    assert_eq!(removed.files, 1);
    assert_eq!(artifacts.get(&named).await.unwrap(), b"named");
    assert!(artifacts.get(&unnamed).await.is_err());
}

#[tokio::test]
async fn a_damaged_label_does_not_keep_other_streams_from_growing() {
    let (store, database) = opened();
    let mut one = Chain::of("run/a");
    let mut other = Chain::of("run/b");
    one.put_labelled(&store, "running", "one").await;
    other.put_labelled(&store, "running", "other").await;
    database.sql("UPDATE planwright.streams SET label = 'plain text' WHERE name = 'run/a'");
    let appends: Vec<Append> = vec![other.grow("more")];
    let grown =
        futures::future::join(store.append(vec![one.grow("more")]), store.append(appends)).await;
    assert!(matches!(
        grown.0,
        Err(planwright_engine::port::AppendError::Store(
            StoreError::Failed(_)
        ))
    ));
    grown.1.unwrap();
}
