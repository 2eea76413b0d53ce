//! What holds when the server goes away, and when it comes back with nothing.

use crate::outside::remove_queue;
use crate::scene::{Scene, next, until};
use planwright_adapters::broker::open;
use planwright_engine::port::{BrokerError, NoticeEnd};

crate::on_both_brokers!(alone:
    a_server_that_is_killed_and_returns_is_used_again,
    a_server_that_lost_everything_is_used_again,
    a_queue_that_is_removed_is_made_again,
    an_address_that_leads_nowhere_is_named_without_its_password,
);

async fn a_server_that_is_killed_and_returns_is_used_again(scene: Scene) {
    let mut notices = scene.receive(4).await;
    scene.publish(1..3).await;
    assert_eq!(next(&mut notices).await.notice.attempt, 1);
    scene.server.kill();
    let away = scene.broker.publish(&scene.notice(9)).await;
    assert!(matches!(away, Err(BrokerError::Unreachable(_))), "{away:?}");
    scene.server.resume();
    // Nothing that was confirmed is lost.
    until(async || scene.broker.publish(&scene.notice(3)).await.ok()).await;
    let mut missing = vec![2, 3];
    while !missing.is_empty() {
        let received = next(&mut notices).await;
        missing.retain(|attempt| *attempt != received.notice.attempt);
        let done = notices.settle(&received.delivery, NoticeEnd::Done);
        drop(done.await);
    }
}

async fn a_server_that_lost_everything_is_used_again(scene: Scene) {
    let mut notices = scene.receive(4).await;
    scene.publish(1..2).await;
    let held = next(&mut notices).await;
    scene.server.kill();
    scene.server.empty();
    scene.server.resume();
    until(async || scene.broker.publish(&scene.notice(2)).await.ok()).await;
    assert_eq!(next(&mut notices).await.notice.attempt, 2);
    // It knows nothing of this one any more.
    drop(notices.settle(&held.delivery, NoticeEnd::Done).await);
    scene.publish(3..4).await;
    assert_eq!(next(&mut notices).await.notice.attempt, 3);
}

async fn a_queue_that_is_removed_is_made_again(scene: Scene) {
    let mut notices = scene.receive(4).await;
    scene.publish(1..2).await;
    let first = next(&mut notices).await;
    let done = notices.settle(&first.delivery, NoticeEnd::Done);
    done.await.unwrap();
    remove_queue(scene.server, &scene.capability).await;
    scene.publish(2..3).await;
    assert_eq!(next(&mut notices).await.notice.attempt, 2);
}

async fn an_address_that_leads_nowhere_is_named_without_its_password(scene: Scene) {
    let wrong = scene.server.url().replace("hunter2", "secret1");
    let wrong = wrong.replace("guest:guest", "guest:secret1");
    let refused = open(&wrong, None).unwrap();
    let refused = refused.publish(&scene.notice(1)).await.unwrap_err();
    assert!(matches!(refused, BrokerError::Refused(_)), "{refused:?}");
    let nowhere = wrong.replace(&scene.server.port().to_string(), "1");
    let nowhere = open(&nowhere, None).unwrap();
    let away = nowhere.publish(&scene.notice(1)).await.unwrap_err();
    assert!(matches!(away, BrokerError::Unreachable(_)), "{away:?}");
    let capabilities = [scene.capability.clone()];
    let worker = nowhere.receive(&capabilities, "worker", 1).await;
    assert!(matches!(worker, Err(BrokerError::Unreachable(_))));
    for error in [refused.to_string(), away.to_string()] {
        assert!(error.contains("127.0.0.1"), "{error}");
        assert!(!error.contains("secret1"), "{error}");
    }
}
