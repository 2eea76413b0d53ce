//! An attacker who can write the files of an encrypted store, and does not know the key.

use crate::scene::{Chain, LONG, Scene};
use planwright_adapters::sqlite::SqliteStore;
use planwright_core::digest::Digest;
use planwright_core::journal::{Head, check_chain};
use planwright_core::policy::{Role, Roles};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::time::Timestamp;
use planwright_engine::access::{Grant, create, recognise};
use planwright_engine::port::{
    Append, Journal as _, Mailbox as _, Pass, PassKind, Passes, Passkey, Passkeys, StoreError,
    StreamIndex as _, StreamStatus, Tokens as _,
};
use planwright_testing::dice::Dice;
use rusqlite::Connection;

/// A store with two runs of three entries, with labels.
async fn two_runs(scene: &Scene) -> [Chain; 2] {
    let store = scene.open_sealed();
    let mut chains = [Chain::of("run/a"), Chain::of("run/b")];
    for chain in &mut chains {
        chain.open(&store, "owner", LONG).await;
        for label in ["first", "second"] {
            let status = StreamStatus {
                plan: "p".parse().unwrap(),
                status: label.into(),
                label: format!("{label} {}", chain.stream),
            };
            let append = Append {
                status: Some(status),
                ..chain.grow(label.as_bytes())
            };
            store.append(vec![append]).await.unwrap();
        }
    }
    chains
}

/// Changes the file behind the store's back, triggers or not.
fn tamper(scene: &Scene, sql: &str) {
    let db = Connection::open(scene.path()).unwrap();
    db.execute_batch(
        "DROP TRIGGER entries_are_never_changed; DROP TRIGGER entries_are_never_removed;",
    )
    .unwrap();
    db.execute_batch(sql).unwrap();
}

/// Whether reading everything, and following the chain, finds fault.
async fn is_noticed(store: &SqliteStore, chains: &[Chain]) -> bool {
    let mut noticed = !store.damage().await.is_ok_and(|losses| losses.is_empty());
    noticed |= !store
        .odd_rows()
        .await
        .is_ok_and(|problems| problems.is_empty());
    for chain in chains {
        match store.read(&chain.stream, 0, 100).await {
            Err(_) => noticed = true,
            Ok(records) if check_chain(Head::EMPTY, &chain.stream, &records).is_err() => {
                noticed = true;
            }
            Ok(records) => assert_eq!(records, chain.records, "{} differs silently", chain.stream),
        }
        if let Ok(Some(info)) = store.info(&chain.stream).await {
            assert_eq!(
                info.status.label,
                format!("{} {}", info.status.status, chain.stream)
            );
        }
    }
    noticed
}

const A: i64 = 1 << 32;
const B: i64 = 2 << 32;

#[tokio::test]
async fn rows_that_were_swapped_copied_or_rolled_back_are_noticed() {
    let body_of = |to: i64, from: i64| {
        format!(
            "UPDATE entries SET body = (SELECT body FROM entries WHERE position = {from}) WHERE position = {to}"
        )
    };
    let whole_of = |to: i64, from: i64| {
        format!(
            "UPDATE entries SET (at, epoch, hash, key, body) =
             (SELECT at, epoch, hash, key, body FROM entries WHERE position = {from}) WHERE position = {to}"
        )
    };
    let attacks = [
        body_of(A + 2, B + 2),
        body_of(A + 3, A + 2),
        whole_of(A + 2, B + 2),
        whole_of(A + 3, A + 2),
        format!(
            "UPDATE entries SET position = -position WHERE position IN ({0}, {1});
                 UPDATE entries SET position = {0} WHERE position = -{1};
                 UPDATE entries SET position = {1} WHERE position = -{0};",
            A + 2,
            A + 3
        ),
        "UPDATE streams SET id = CASE id WHEN 1 THEN 2 ELSE 1 END WHERE id = 99; \
         UPDATE streams SET name = 'run/x' WHERE id = 1; UPDATE streams SET name = 'run/a' WHERE id = 2; \
         UPDATE streams SET name = 'run/b' WHERE id = 1;"
            .to_owned(),
        format!("DELETE FROM entries WHERE position = {}", A + 3),
        format!("UPDATE entries SET at = at + 1 WHERE position = {}", A + 2),
        format!("UPDATE entries SET epoch = 7 WHERE position = {}", A + 2),
        format!("UPDATE entries SET hash = zeroblob(32) WHERE position = {}", A + 2),
        format!("UPDATE entries SET key = 'x' WHERE position = {}", A + 2),
        format!("UPDATE entries SET body = x'7b7d' WHERE position = {}", A + 2),
        "UPDATE streams SET label = (SELECT label FROM streams WHERE id = 2) WHERE id = 1".to_owned(),
        "UPDATE streams SET status = 'first' WHERE id = 1".to_owned(),
        "UPDATE streams SET label = 'plain text' WHERE id = 1".to_owned(),
        "UPDATE streams SET updated_at = updated_at + 1 WHERE id = 1".to_owned(),
    ];
    for attack in attacks {
        let scene = Scene::new();
        let chains = two_runs(&scene).await;
        assert!(!is_noticed(&scene.open_sealed(), &chains).await);
        tamper(&scene, &attack);
        assert!(is_noticed(&scene.open_sealed(), &chains).await, "{attack}");
    }
}

#[tokio::test]
async fn a_label_of_an_earlier_moment_is_noticed() {
    let scene = Scene::new();
    let store = scene.open_sealed();
    let mut chain = Chain::of("plan/p");
    let mut kept = Vec::new();
    for number in 0..2 {
        let status = StreamStatus {
            plan: "p".parse().unwrap(),
            status: "draft".into(),
            label: format!("{number}"),
        };
        let append = chain.grow(b"x");
        store
            .append(vec![Append {
                status: Some(status),
                ..append
            }])
            .await
            .unwrap();
        let db = Connection::open(scene.path()).unwrap();
        let label: String = db
            .query_row("SELECT label FROM streams", [], |row| row.get(0))
            .unwrap();
        kept.push(label);
    }
    // Both were written in the same instant by the journal's clock, which is the best an attacker
    // can hope for.
    let db = Connection::open(scene.path()).unwrap();
    db.execute("UPDATE streams SET label = ?1, updated_at = 2", [&kept[0]])
        .unwrap();
    assert!(store.info(&chain.stream).await.is_err());
}

#[tokio::test]
async fn a_row_that_was_tampered_with_is_left_out_and_hides_no_other() {
    for attack in [
        "UPDATE streams SET label = 'plain text' WHERE id = 1",
        "UPDATE streams SET label = NULL WHERE id = 1",
        "UPDATE streams SET updated_at = updated_at + 1 WHERE id = 1",
        "UPDATE streams SET plan = 'q' WHERE id = 1",
        "UPDATE streams SET name = 'nonsense' WHERE id = 1",
        // What is moved to where it is looked for is no more trusted than what is moved away.
        "UPDATE streams SET status = 'waiting' WHERE id = 1; UPDATE streams SET status = 'waiting' WHERE id = 2",
    ] {
        let scene = Scene::new();
        two_runs(&scene).await;
        tamper(&scene, attack);
        let store = scene.open_sealed();
        let before = ["first", "second", "third", "waiting"].map(Into::into);
        let found = store.runs_in(&before).await.unwrap();
        let left: Vec<_> = found.iter().map(|info| info.stream.to_string()).collect();
        let both = attack.contains("id = 2");
        assert_eq!(left, if both { vec![] } else { vec!["run/b"] }, "{attack}");
    }
}

#[tokio::test]
async fn a_message_that_was_changed_or_moved_is_refused() {
    for attack in [
        "UPDATE messages SET run = 'b' WHERE id = 1",
        "UPDATE messages SET body = (SELECT body FROM messages WHERE id = 2) WHERE id = 1",
        "UPDATE messages SET body = x'00' WHERE id = 1",
        "UPDATE messages SET hash = zeroblob(32) WHERE id = 1",
    ] {
        let scene = Scene::new();
        let store = scene.open_sealed();
        let runs = ["a", "b"].map(|run| run.parse().unwrap());
        for run in &runs {
            store.send(run, b"cancel".to_vec()).await.unwrap();
        }
        Connection::open(scene.path())
            .unwrap()
            .execute(attack, [])
            .unwrap();
        assert!(
            matches!(store.mail().await, Err(StoreError::Failed(_))),
            "{attack}"
        );
    }
}

#[tokio::test]
async fn a_session_that_was_raised_or_prolonged_opens_nothing() {
    let now = Timestamp::from_millis(1);
    for attack in [
        "UPDATE passes SET role = 'admin'",
        "UPDATE passes SET name = 'ada'",
        "UPDATE passes SET assurance = 'terminal'",
        "UPDATE passes SET proof = NULL",
        "UPDATE passes SET token = NULL",
        "UPDATE passes SET expires_at = expires_at + 1",
        "UPDATE passes SET kind = 'invitation'",
        "UPDATE passes SET mark = NULL",
    ] {
        let scene = Scene::new();
        let store = scene.open_sealed();
        let session = Pass {
            kind: PassKind::Session,
            hash: Digest::of_bytes(b"cookie"),
            proof: Some(Digest::of_bytes(b"proof")),
            token: Some(Digest::of_bytes(b"token")),
            principal: Principal::person("bob"),
            role: Role::Viewer,
            assurance: Assurance::Token,
            created_at: now,
            expires_at: Timestamp::from_millis(1_000),
        };
        assert!(Passes::add(&store, &session, 10, now).await.unwrap());
        let found = Passes::find(&store, PassKind::Session, &session.hash).await;
        assert_eq!(found.unwrap(), Some(session.clone()));
        Connection::open(scene.path())
            .unwrap()
            .execute(attack, [])
            .unwrap();
        let found = Passes::find(&store, PassKind::Session, &session.hash).await;
        assert!(found.is_err(), "{attack}");
        assert!(!store.odd_rows().await.unwrap().is_empty(), "{attack}");
    }
}

#[tokio::test]
async fn a_passkey_that_was_given_to_another_or_exchanged_confirms_nothing() {
    let now = Timestamp::from_millis(1);
    for attack in [
        "UPDATE passkeys SET name = 'ada'",
        "UPDATE passkeys SET key = x'09'",
        "UPDATE passkeys SET id = x'09'",
        "UPDATE passkeys SET counter = 0",
        "UPDATE passkeys SET mark = NULL",
    ] {
        let scene = Scene::new();
        let store = scene.open_sealed();
        let passkey = Passkey {
            id: b"id".to_vec(),
            owner: Principal::person("bob"),
            label: "key".to_owned(),
            key: vec![1],
            counter: 4,
            created_at: now,
            used_at: None,
        };
        assert!(Passkeys::add(&store, &passkey, 10).await.unwrap());
        let found = Passkeys::list(&store, &passkey.owner).await;
        assert_eq!(found.unwrap(), std::slice::from_ref(&passkey));
        Connection::open(scene.path())
            .unwrap()
            .execute(attack, [])
            .unwrap();
        for name in ["bob", "ada"] {
            let found = Passkeys::list(&store, &Principal::person(name)).await;
            assert!(found.is_err() || found.unwrap().is_empty(), "{attack}");
        }
        assert!(!store.odd_rows().await.unwrap().is_empty(), "{attack}");
    }
}

#[tokio::test]
async fn a_token_that_was_raised_revived_or_forged_opens_nothing() {
    let now = Timestamp::from_millis(1);
    for attack in [
        "UPDATE tokens SET role = 'admin'",
        "UPDATE tokens SET kind = 'person'",
        "UPDATE tokens SET name = 'ada'",
        "UPDATE tokens SET expires_at = NULL",
        "UPDATE tokens SET revoked_at = NULL",
        "UPDATE tokens SET mark = NULL, revoked_at = NULL",
        "UPDATE tokens SET mark = zeroblob(40), revoked_at = NULL",
    ] {
        let scene = Scene::new();
        let store = scene.open_sealed();
        let grant = Grant {
            to: Principal::agent("bot"),
            role: Role::Author,
            lifetime: Some(std::time::Duration::from_secs(1)),
        };
        let by = Principal::person("ada");
        let minted = create(&store, &Roles::default(), &by, &grant, now)
            .await
            .unwrap();
        store.revoke(&minted.token.id, now).await.unwrap();
        Connection::open(scene.path())
            .unwrap()
            .execute(attack, [])
            .unwrap();
        assert!(
            recognise(&store, minted.text.expose(), now).await.is_err(),
            "{attack}"
        );
        assert!(!store.odd_rows().await.unwrap().is_empty(), "{attack}");
    }
}

#[tokio::test]
async fn two_thousand_flipped_bits_never_change_a_journal_silently() {
    let scene = Scene::new();
    let chains = two_runs(&scene).await;
    let db = Connection::open(scene.path()).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    db.execute_batch(
        "DROP TRIGGER entries_are_never_changed; DROP TRIGGER entries_are_never_removed;",
    )
    .unwrap();
    let store = scene.open_sealed();
    let positions = [A + 1, A + 2, A + 3, B + 1, B + 2, B + 3];
    for number in 0..2_000 {
        let mut dice = Dice::congruential(number);
        let column = ["body", "body", "body", "hash"][dice.below(4)];
        let position = positions[dice.below(positions.len())];
        let select = format!("SELECT {column} FROM entries WHERE position = {position}");
        let update = format!("UPDATE entries SET {column} = ?1 WHERE position = {position}");
        let whole: Vec<u8> = db.query_row(&select, [], |row| row.get(0)).unwrap();
        let mut flipped = whole.clone();
        let at = dice.below(flipped.len());
        flipped[at] ^= 1 << dice.below(8);
        db.execute(&update, [&flipped]).unwrap();
        let chain = &chains[usize::from(position >= B)];
        match store.read(&chain.stream, 0, 100).await {
            Err(StoreError::Damaged { .. }) => {}
            Err(other) => panic!("{number}: {other}"),
            Ok(records) => {
                assert!(
                    check_chain(Head::EMPTY, &chain.stream, &records).is_err(),
                    "{number}: {column} {position}"
                );
            }
        }
        db.execute(&update, [&whole]).unwrap();
    }
    assert!(
        !is_noticed(&store, &chains).await,
        "everything is as it was"
    );
}
