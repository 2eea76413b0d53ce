//! An attacker who can write to the tables of an encrypted store, and does not know the key.

use crate::chains::{CANARIES, Chain, artifacts, offer, passkey, plant, session};
use crate::databases::Database;
use planwright_adapters::postgres::PostgresStore;
use planwright_core::digest::Digest;
use planwright_core::journal::{Head, check_chain};
use planwright_core::policy::{Role, Roles};
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use planwright_engine::access::{Grant, create, recognise};
use planwright_engine::port::{
    Artifacts as _, Journal as _, Mailbox as _, Offers as _, PassKind, Passes, Passkeys,
    StoreError, StreamIndex as _, Tokens as _,
};
use planwright_testing::dice::Dice;
use std::sync::Arc;

/// A store with two runs of three entries, with labels.
async fn two_runs(store: &PostgresStore) -> [Chain; 2] {
    let mut chains = [Chain::of("run/a"), Chain::of("run/b")];
    for chain in &mut chains {
        chain.put(store, "opened").await;
        for label in ["first", "second"] {
            let text = format!("{label} {}", chain.stream);
            chain.put_labelled(store, label, &text).await;
        }
    }
    chains
}

/// Whether reading everything, and following the chain, finds fault.
async fn is_noticed(store: &PostgresStore, chains: &[Chain]) -> bool {
    let mut noticed = false;
    for chain in chains {
        match store.read(&chain.stream, 0, 100).await {
            Err(_) => noticed = true,
            Ok(records) => match check_chain(Head::EMPTY, &chain.stream, &records) {
                Ok(head) if head == chain.head => assert_eq!(records, chain.records),
                // The end of a chain is known from elsewhere.
                Ok(_) | Err(_) => noticed = true,
            },
        }
        match store.info(&chain.stream).await {
            Ok(Some(info)) => {
                let expected = format!("{} {}", info.status.status, chain.stream);
                assert_eq!(info.status.label, expected);
            }
            Ok(None) | Err(_) => noticed = true,
        }
    }
    noticed
}

/// Finds the entry of a stream.
fn entry(stream: &str, seq: u64) -> String {
    format!("stream = (SELECT id FROM planwright.streams WHERE name = '{stream}') AND seq = {seq}")
}

const COLUMNS: &str = "at, epoch, hash, key, body";

#[tokio::test]
async fn rows_that_were_swapped_copied_or_rolled_back_are_noticed() {
    let a2 = entry("run/a", 2);
    let a3 = entry("run/a", 3);
    let b2 = entry("run/b", 2);
    let copy = |columns: &str, to: &str, from: &str| {
        format!(
            "UPDATE planwright.entries SET ({columns}) = (SELECT {columns} FROM planwright.entries WHERE {from}) WHERE {to}"
        )
    };
    let change = |what: &str| format!("UPDATE planwright.entries SET {what} WHERE {a2}");
    let of_stream =
        |what: &str| format!("UPDATE planwright.streams SET {what} WHERE name = 'run/a'");
    let attacks = [
        copy("at, body", &a2, &b2),
        copy("at, body", &a3, &a2),
        copy(COLUMNS, &a2, &b2),
        copy(COLUMNS, &a3, &a2),
        "UPDATE planwright.streams SET name = 'run/x' WHERE name = 'run/a'; \
         UPDATE planwright.streams SET name = 'run/a' WHERE name = 'run/b'; \
         UPDATE planwright.streams SET name = 'run/b' WHERE name = 'run/x'"
            .to_owned(),
        format!("DELETE FROM planwright.entries WHERE {a3}"),
        change("at = at + 1"),
        change("epoch = 7"),
        change("hash = decode(repeat('00', 32), 'hex')"),
        change("key = 'x'"),
        change("body = '{}'"),
        of_stream("label = (SELECT label FROM planwright.streams WHERE name = 'run/b')"),
        of_stream("status = 'first'"),
        of_stream("label = 'plain text'"),
        of_stream("updated_at = updated_at + 1"),
        of_stream("plan = 'q'"),
    ];
    let database = Database::new();
    let store = database.open_sealed();
    let chains = two_runs(&store).await;
    database.sql(
        "CREATE TABLE planwright.kept_entries AS TABLE planwright.entries; \
         CREATE TABLE planwright.kept_streams AS TABLE planwright.streams",
    );
    assert!(!is_noticed(&store, &chains).await);
    for attack in attacks {
        database.sql(&attack);
        assert!(is_noticed(&store, &chains).await, "{attack}");
        database.sql(
            "DELETE FROM planwright.entries; INSERT INTO planwright.entries TABLE planwright.kept_entries; \
             DELETE FROM planwright.streams; \
             INSERT INTO planwright.streams OVERRIDING SYSTEM VALUE TABLE planwright.kept_streams",
        );
        assert!(
            !is_noticed(&store, &chains).await,
            "everything is as it was"
        );
    }
    database.sql("DROP TABLE planwright.kept_entries, planwright.kept_streams");
}

#[tokio::test]
async fn flipped_bits_never_change_a_journal_silently() {
    let database = Database::new();
    let store = database.open_sealed();
    let chains = two_runs(&store).await;
    for number in 0..60 {
        let mut dice = Dice::congruential(number);
        let column = ["body", "body", "body", "hash"][dice.below(4)];
        let chain = &chains[dice.below(2)];
        let seq = 1 + dice.below(3) as u64;
        let place = entry(&chain.stream.to_string(), seq);
        let bit = dice.below(32 * 8);
        let flip = format!(
            "UPDATE planwright.entries SET {column} = set_bit({column}, {bit}, 1 - get_bit({column}, {bit})) WHERE {place}"
        );
        database.sql(&flip);
        match store.read(&chain.stream, 0, 100).await {
            Err(StoreError::Damaged { .. }) => {}
            Err(other) => panic!("{number}: {other}"),
            Ok(records) => {
                let followed = check_chain(Head::EMPTY, &chain.stream, &records);
                assert!(followed.is_err(), "{number}: {column} of {seq}");
            }
        }
        database.sql(&flip);
    }
    assert!(
        !is_noticed(&store, &chains).await,
        "everything is as it was"
    );
}

#[tokio::test]
async fn a_message_that_was_changed_or_moved_is_refused() {
    let database = Database::new();
    let store = database.open_sealed();
    for attack in [
        "run = 'b'",
        "body = (SELECT body FROM planwright.messages WHERE run = 'b')",
        "body = ''",
        "hash = decode(repeat('00', 32), 'hex')",
    ] {
        for run in ["a", "b"] {
            let run = run.parse().unwrap();
            store.send(&run, b"cancel".to_vec()).await.unwrap();
        }
        assert_eq!(store.mail().await.unwrap().len(), 2);
        database.sql(&format!(
            "UPDATE planwright.messages SET {attack} WHERE run = 'a'"
        ));
        let refused = store.mail().await;
        assert!(matches!(refused, Err(StoreError::Failed(_))), "{attack}");
        assert!(!store.odd_rows().await.unwrap().is_empty(), "{attack}");
        database.sql("DELETE FROM planwright.messages");
    }
}

#[tokio::test]
async fn a_session_that_was_raised_or_prolonged_opens_nothing() {
    let database = Database::new();
    let store = database.open_sealed();
    for attack in [
        "role = 'admin'",
        "name = 'ada'",
        "assurance = 'terminal'",
        "proof = NULL",
        "token = NULL",
        "expires_at = expires_at + 1",
        "mark = NULL",
    ] {
        let session = session();
        let now = Timestamp::from_millis(1);
        assert!(Passes::add(&store, &session, 10, now).await.unwrap());
        let until = Timestamp::from_millis(2_000);
        assert!(Passes::extend(&store, &session.hash, until).await.unwrap());
        let found = Passes::find(&store, PassKind::Session, &session.hash).await;
        assert_eq!(found.unwrap().unwrap().expires_at, until);
        database.sql(&format!("UPDATE planwright.passes SET {attack}"));
        let found = Passes::find(&store, PassKind::Session, &session.hash).await;
        assert!(found.is_err(), "{attack}");
        let extended = Passes::extend(&store, &session.hash, until).await;
        assert!(extended.is_err(), "{attack}");
        assert!(!store.odd_rows().await.unwrap().is_empty(), "{attack}");
        database.sql("DELETE FROM planwright.passes");
    }
}

#[tokio::test]
async fn a_passkey_that_was_given_to_another_or_exchanged_confirms_nothing() {
    let database = Database::new();
    let store = database.open_sealed();
    for attack in [
        "name = 'ada'",
        "key = '\\x09'",
        "id = '\\x09'",
        "counter = 0",
        "mark = NULL",
    ] {
        let passkey = passkey();
        assert!(Passkeys::add(&store, &passkey, 10).await.unwrap());
        let used = Passkeys::note_use(&store, &passkey.id, (4, 5), Timestamp::from_millis(2));
        assert!(used.await.unwrap());
        let found = Passkeys::list(&store, &passkey.owner).await.unwrap();
        assert_eq!(found[0].counter, 5);
        database.sql(&format!("UPDATE planwright.passkeys SET {attack}"));
        for name in ["bob", "ada"] {
            let found = Passkeys::list(&store, &Principal::person(name)).await;
            assert!(found.is_err() || found.unwrap().is_empty(), "{attack}");
        }
        assert!(!store.odd_rows().await.unwrap().is_empty(), "{attack}");
        database.sql("DELETE FROM planwright.passkeys");
    }
}

#[tokio::test]
async fn a_token_that_was_raised_revived_or_forged_opens_nothing() {
    let now = Timestamp::from_millis(1);
    let database = Database::new();
    let store = database.open_sealed();
    for attack in [
        "role = 'admin'",
        "kind = 'person'",
        "name = 'ada'",
        "expires_at = NULL",
        "revoked_at = NULL",
        "mark = NULL, revoked_at = NULL",
        "mark = decode(repeat('00', 40), 'hex'), revoked_at = NULL",
    ] {
        let grant = Grant {
            to: Principal::agent("bot"),
            role: Role::Author,
            lifetime: Some(std::time::Duration::from_secs(1)),
        };
        let by = Principal::person("ada");
        let minted = create(&store, &Roles::default(), &by, &grant, now).await;
        let minted = minted.unwrap();
        assert!(store.revoke(&minted.token.id, now).await.unwrap());
        database.sql(&format!("UPDATE planwright.tokens SET {attack}"));
        let recognised = recognise(&store, minted.text.expose(), now).await;
        assert!(recognised.is_err(), "{attack}");
        assert!(!store.odd_rows().await.unwrap().is_empty(), "{attack}");
        database.sql("DELETE FROM planwright.tokens");
    }
}

#[tokio::test]
async fn an_offer_or_answer_that_was_changed_or_moved_is_not_carried_out() {
    let database = Database::new();
    let store = Arc::new(database.open_sealed());
    let planted = plant(&store).await;
    let run = planted.chains[0].run();
    database.sql("CREATE TABLE planwright.kept_offers AS TABLE planwright.offers");
    for attack in [
        "call = (SELECT call FROM planwright.offers WHERE id = 2) WHERE id = 1",
        "call = '{}' WHERE id = 1",
        "capability = 'mail' WHERE id = 1",
        "class = 'safe' WHERE id = 1",
        "attempt = 2 WHERE id = 1",
        "answer = '{}' WHERE id = 1",
        "state = 'answered', answer = (SELECT answer FROM planwright.offers WHERE id = 1) WHERE id = 2",
    ] {
        assert_eq!(store.offers(run).await.unwrap().len(), 2);
        database.sql(&format!("UPDATE planwright.offers SET {attack}"));
        assert!(store.offers(run).await.is_err(), "{attack}");
        database.sql(
            "DELETE FROM planwright.offers; \
             INSERT INTO planwright.offers OVERRIDING SYSTEM VALUE TABLE planwright.kept_offers",
        );
    }
    database.sql("DROP TABLE planwright.kept_offers");
    assert_eq!(
        store.offers(run).await.unwrap()[0].0,
        offer(run, CANARIES[14])
    );
}

#[tokio::test]
async fn a_large_value_under_the_name_of_another_is_not_taken_for_it() {
    let database = Database::new();
    let store = Arc::new(database.open_sealed());
    let artifacts = artifacts(&store);
    let one = artifacts.put(b"one".to_vec()).await.unwrap();
    let other = artifacts.put(b"two".to_vec()).await.unwrap();
    database.sql(
        "CREATE TABLE planwright.kept AS SELECT digest FROM planwright.artifacts ORDER BY asked_at LIMIT 1; \
         UPDATE planwright.artifacts SET bytes = (SELECT bytes FROM planwright.artifacts WHERE digest NOT IN (TABLE planwright.kept)) \
         WHERE digest IN (TABLE planwright.kept); DROP TABLE planwright.kept",
    );
    let got = [artifacts.get(&one).await, artifacts.get(&other).await];
    let changed = got.iter().filter(|got| got.is_err()).count();
    assert_eq!(changed, 1, "{got:?}");
    assert_ne!(one.digest, Digest::of_bytes(b"two"));
}
