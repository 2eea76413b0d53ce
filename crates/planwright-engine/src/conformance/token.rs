//! The laws of [`Tokens`].

use crate::port::{Token, TokenId, Tokens};
use planwright_core::digest::Digest;
use planwright_core::policy::Role;
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use std::sync::Arc;

type Subject = Arc<dyn Tokens>;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn token(id: &str, text: &str) -> Token {
    Token {
        id: TokenId(id.to_owned()),
        hash: Digest::of_bytes(text.as_bytes()),
        principal: Principal::person("ada"),
        role: Role::Operator,
        created_at: at(1_000),
        expires_at: None,
        revoked_at: None,
    }
}

pub async fn a_token_that_was_never_added_is_not_found(tokens: Subject) {
    assert_eq!(tokens.find(&Digest::of_bytes(b"one")).await.unwrap(), None);
    assert!(tokens.list().await.unwrap().is_empty());
    assert!(
        !tokens
            .revoke(&TokenId("tok-a".to_owned()), at(1))
            .await
            .unwrap()
    );
}

pub async fn a_token_is_found_by_its_hash_as_it_was_added(tokens: Subject) {
    let kinds = [
        Principal::person("Ada Größe"),
        Principal::agent("bot"),
        Principal::service("ci"),
    ];
    let mut added = Vec::new();
    for (number, principal) in kinds.into_iter().enumerate() {
        for role in Role::ALL {
            let name = format!("{number}{role}");
            let token = Token {
                principal: principal.clone(),
                role,
                expires_at: (number == 1).then(|| at(i64::MAX)),
                ..token(&name, &name)
            };
            tokens.add(&token).await.unwrap();
            added.push(token);
        }
    }
    for token in &added {
        assert_eq!(
            tokens.find(&token.hash).await.unwrap().as_ref(),
            Some(token)
        );
    }
    assert_eq!(tokens.list().await.unwrap(), added);
}

pub async fn tokens_come_in_the_order_they_were_added(tokens: Subject) {
    for name in ["c", "a", "b"] {
        tokens.add(&token(name, name)).await.unwrap();
    }
    let names: Vec<_> = tokens
        .list()
        .await
        .unwrap()
        .into_iter()
        .map(|token| token.id.0)
        .collect();
    assert_eq!(names, ["c", "a", "b"]);
}

pub async fn neither_an_id_nor_a_hash_is_given_twice(tokens: Subject) {
    let first = token("a", "one");
    tokens.add(&first).await.unwrap();
    assert!(tokens.add(&token("a", "two")).await.is_err());
    assert!(tokens.add(&token("b", "one")).await.is_err());
    assert_eq!(tokens.list().await.unwrap(), [first]);
}

pub async fn a_revoked_token_is_found_as_revoked_for_ever(tokens: Subject) {
    let first = token("a", "one");
    tokens.add(&first).await.unwrap();
    tokens.add(&token("b", "two")).await.unwrap();
    assert!(tokens.revoke(&first.id, at(7)).await.unwrap());
    assert!(
        !tokens.revoke(&first.id, at(9)).await.unwrap(),
        "once is enough"
    );
    let found = tokens.find(&first.hash).await.unwrap().unwrap();
    assert_eq!(
        found,
        Token {
            revoked_at: Some(at(7)),
            ..first
        }
    );
    assert!(!found.is_valid(at(8)));
    assert!(
        tokens
            .find(&Digest::of_bytes(b"two"))
            .await
            .unwrap()
            .unwrap()
            .is_valid(at(8))
    );
}

pub async fn an_expired_token_cannot_be_revoked_any_more(tokens: Subject) {
    let first = Token {
        expires_at: Some(at(5)),
        ..token("a", "one")
    };
    tokens.add(&first).await.unwrap();
    assert!(!tokens.revoke(&first.id, at(5)).await.unwrap());
    assert_eq!(tokens.find(&first.hash).await.unwrap(), Some(first));
}

/// Makes one test of every law about tokens, as [`store_laws!`](crate::store_laws) does for stores.
#[macro_export]
macro_rules! token_laws {
    ($make:ident) => {
        $crate::token_laws! { @tests $make;
            a_token_that_was_never_added_is_not_found,
            a_token_is_found_by_its_hash_as_it_was_added,
            tokens_come_in_the_order_they_were_added,
            neither_an_id_nor_a_hash_is_given_twice,
            a_revoked_token_is_found_as_revoked_for_ever,
            an_expired_token_cannot_be_revoked_any_more,
        }
    };
    (@tests $make:ident; $($law:ident),* $(,)?) => {
        $(#[tokio::test]
        async fn $law() {
            let (tokens, _keep) = $make();
            $crate::conformance::token::$law(tokens).await;
        })*
    };
}
