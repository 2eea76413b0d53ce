//! Commands left for the owner of a run, answered once, in the commit that acts on them.

use super::fixture::{Chain, Subject, bodies};
use crate::port::{Append, AppendError, MessageId};
use planwright_core::journal::Head;

pub async fn messages_come_in_the_order_they_were_sent(store: Subject) {
    let chain = Chain::of("run/r");
    let mut sent = Vec::new();
    for body in ["pause", "resume", "cancel"] {
        sent.push((
            store.send(chain.run(), body.into()).await.unwrap(),
            body.as_bytes().to_vec(),
        ));
    }
    let found = store.messages(chain.run()).await.unwrap();
    assert!(found.iter().all(|message| message.run == *chain.run()));
    let found: Vec<_> = found
        .into_iter()
        .map(|message| (message.id, message.body))
        .collect();
    assert_eq!(found, sent);
}

pub async fn messages_of_other_runs_are_not_seen(store: Subject) {
    let one = Chain::of("run/one");
    let two = Chain::of("run/two");
    store.send(one.run(), b"pause".to_vec()).await.unwrap();
    assert!(store.messages(two.run()).await.unwrap().is_empty());
}

pub async fn an_unanswered_message_has_no_answer(store: Subject) {
    let chain = Chain::of("run/r");
    let message = store.send(chain.run(), b"pause".to_vec()).await.unwrap();
    assert_eq!(store.answer(message).await.unwrap(), None);
}

pub async fn an_answered_message_is_not_seen_again(store: Subject) {
    let mut chain = Chain::of("run/r");
    let one = store.send(chain.run(), b"pause".to_vec()).await.unwrap();
    let two = store.send(chain.run(), b"cancel".to_vec()).await.unwrap();
    store
        .append(vec![Append {
            answers: vec![(one, Ok(()))],
            ..chain.grow(&["paused"])
        }])
        .await
        .unwrap();
    assert_eq!(store.answer(one).await.unwrap(), Some(Ok(())));
    assert_eq!(store.answer(two).await.unwrap(), None);
    let left = store.messages(chain.run()).await.unwrap();
    assert_eq!(
        left.iter().map(|message| message.id).collect::<Vec<_>>(),
        [two]
    );
}

pub async fn a_refusal_keeps_its_words(store: Subject) {
    let chain = Chain::of("run/r");
    let message = store.send(chain.run(), b"approve".to_vec()).await.unwrap();
    let refusal = Err("only a person may approve: ünïcode \"quotes\" 'too'".to_owned());
    let append = Append {
        answers: vec![(message, refusal.clone())],
        ..chain.nothing()
    };
    store.append(vec![append]).await.unwrap();
    assert_eq!(store.answer(message).await.unwrap(), Some(refusal));
}

pub async fn an_empty_refusal_is_a_refusal(store: Subject) {
    let chain = Chain::of("run/r");
    let message = store.send(chain.run(), b"approve".to_vec()).await.unwrap();
    let append = Append {
        answers: vec![(message, Err(String::new()))],
        ..chain.nothing()
    };
    store.append(vec![append]).await.unwrap();
    assert_eq!(
        store.answer(message).await.unwrap(),
        Some(Err(String::new()))
    );
}

pub async fn a_message_is_answered_once(store: Subject) {
    let mut chain = Chain::of("run/r");
    let message = store.send(chain.run(), b"pause".to_vec()).await.unwrap();
    store
        .append(vec![Append {
            answers: vec![(message, Ok(()))],
            ..chain.grow(&["paused"])
        }])
        .await
        .unwrap();
    let again = Append {
        answers: vec![(message, Err("no".to_owned()))],
        ..chain.grow(&["paused again"])
    };
    let refused = store.append(vec![again]).await;
    assert!(
        matches!(refused, Err(AppendError::Duplicate { .. })),
        "{refused:?}"
    );
    assert_eq!(store.answer(message).await.unwrap(), Some(Ok(())));
    assert_eq!(bodies(&store, &chain.stream).await, ["paused"]);
}

pub async fn a_message_is_answered_once_in_one_append(store: Subject) {
    let chain = Chain::of("run/r");
    let message = store.send(chain.run(), b"pause".to_vec()).await.unwrap();
    let twice = Append {
        answers: vec![(message, Ok(())), (message, Ok(()))],
        ..chain.nothing()
    };
    let refused = store.append(vec![twice]).await;
    assert!(
        matches!(refused, Err(AppendError::Duplicate { .. })),
        "{refused:?}"
    );
    assert_eq!(store.answer(message).await.unwrap(), None);
}

pub async fn an_unknown_message_cannot_be_answered(store: Subject) {
    let mut chain = Chain::of("run/r");
    let append = Append {
        answers: vec![(MessageId(77), Ok(()))],
        ..chain.grow(&["one"])
    };
    store.append(vec![append]).await.unwrap_err();
    assert_eq!(store.head(&chain.stream).await.unwrap(), Head::EMPTY);
}

pub async fn an_unknown_message_has_no_answer(store: Subject) {
    assert_eq!(store.answer(MessageId(77)).await.unwrap(), None);
}

pub async fn a_message_keeps_its_bytes(store: Subject) {
    let chain = Chain::of("run/r");
    let body: Vec<u8> = (0..=255).collect();
    store.send(chain.run(), body.clone()).await.unwrap();
    store.send(chain.run(), Vec::new()).await.unwrap();
    let found = store.messages(chain.run()).await.unwrap();
    assert_eq!(
        found
            .into_iter()
            .map(|message| message.body)
            .collect::<Vec<_>>(),
        [body, Vec::new()]
    );
}

pub async fn a_message_can_be_answered_without_records(store: Subject) {
    let chain = Chain::of("run/r");
    let message = store.send(chain.run(), b"resume".to_vec()).await.unwrap();
    let append = Append {
        answers: vec![(message, Ok(()))],
        ..chain.nothing()
    };
    store.append(vec![append]).await.unwrap();
    assert_eq!(store.answer(message).await.unwrap(), Some(Ok(())));
    assert_eq!(store.head(&chain.stream).await.unwrap(), Head::EMPTY);
}
