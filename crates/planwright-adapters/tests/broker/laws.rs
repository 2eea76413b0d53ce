//! What holds while the server works.

use crate::scene::{LIMITS, Scene, next, open, until};
use planwright_engine::port::{BrokerError, NoticeEnd};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

crate::on_both_brokers!(beside:
    a_notice_arrives_as_it_was_sent_and_is_gone_when_it_is_settled,
    a_worker_gets_no_more_than_it_asked_for,
    a_notice_of_a_worker_that_is_gone_goes_to_another,
    a_notice_that_is_returned_goes_to_another,
    a_notice_that_is_returned_too_often_is_dead,
    a_notice_whose_workers_always_go_away_is_dead,
    dead_notices_are_listed_sent_again_and_forgotten,
    messages_from_elsewhere_are_put_aside,
    eight_workers_share_the_notices,
    a_worker_receives_for_all_its_capabilities,
    a_full_queue_refuses_more,
    a_wait_that_is_given_up_loses_no_notice,
);

async fn a_notice_arrives_as_it_was_sent_and_is_gone_when_it_is_settled(scene: Scene) {
    scene.publish(1..2).await;
    assert_eq!(scene.state().await.waiting, 1);
    let mut notices = scene.receive(4).await;
    let received = next(&mut notices).await;
    assert_eq!(received.notice, scene.notice(1));
    assert!(!received.redelivered);
    let done = notices.settle(&received.delivery, NoticeEnd::Done);
    done.await.unwrap();
    until(async || {
        let state = scene.state().await;
        let is_empty = state.waiting == 0 && state.held.unwrap_or(0) == 0 && state.dead == 0;
        is_empty.then_some(())
    })
    .await;
    drop(notices);
    // What is settled does not come back: the next one to arrive is the next one that was sent.
    let mut notices = scene.receive(4).await;
    scene.publish(2..3).await;
    assert_eq!(next(&mut notices).await.notice.attempt, 2);
}

async fn a_worker_gets_no_more_than_it_asked_for(scene: Scene) {
    scene.publish(1..6).await;
    let mut first = scene.receive(2).await;
    let one = next(&mut first).await;
    let two = next(&mut first).await;
    // The others are for another worker, though the first one is still there.
    let mut second = scene.receive(3).await;
    let mut attempts = BTreeSet::from([one.notice.attempt, two.notice.attempt]);
    for _ in 0..3 {
        attempts.insert(next(&mut second).await.notice.attempt);
    }
    assert_eq!(attempts, BTreeSet::from([1, 2, 3, 4, 5]));
    scene.publish(6..7).await;
    let done = first.settle(&one.delivery, NoticeEnd::Done);
    done.await.unwrap();
    assert_eq!(next(&mut first).await.notice.attempt, 6);
}

async fn a_notice_of_a_worker_that_is_gone_goes_to_another(scene: Scene) {
    scene.publish(1..2).await;
    // The worker has a runtime of its own, which ends as a process does.
    let capabilities = [scene.capability.clone()];
    let server = scene.server;
    let taken = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let received = runtime.block_on(async {
            let broker = open(server);
            let mut notices = broker.receive(&capabilities, "gone", 4).await.unwrap();
            let received = next(&mut notices).await;
            std::mem::forget(notices);
            received
        });
        runtime.shutdown_background();
        received
    });
    let taken = taken.join().unwrap();
    let mut notices = scene.receive(4).await;
    let received = next(&mut notices).await;
    assert_eq!(received.notice, taken.notice);
    assert!(received.redelivered);
}

async fn a_notice_that_is_returned_goes_to_another(scene: Scene) {
    scene.publish(1..2).await;
    let mut first = scene.receive(1).await;
    let received = next(&mut first).await;
    let returned = first.settle(&received.delivery, NoticeEnd::Returned);
    returned.await.unwrap();
    drop(first);
    let mut second = scene.receive(1).await;
    let again = next(&mut second).await;
    assert_eq!(again.notice, received.notice);
    assert!(again.redelivered);
    let done = second.settle(&again.delivery, NoticeEnd::Done);
    done.await.unwrap();
}

async fn a_notice_that_is_returned_too_often_is_dead(scene: Scene) {
    scene.publish(1..2).await;
    let mut notices = scene.receive(1).await;
    for _ in 0..LIMITS.deliveries {
        let received = next(&mut notices).await;
        let returned = notices.settle(&received.delivery, NoticeEnd::Returned);
        returned.await.unwrap();
    }
    let dead = scene.await_dead(1).await;
    assert_eq!(dead[0].notice, Some(scene.notice(1)));
    assert!(
        dead[0].deliveries >= Some(LIMITS.deliveries.into()),
        "{dead:?}"
    );
    assert!(dead[0].since.is_some());
    // The worker goes on with others.
    scene.publish(2..3).await;
    assert_eq!(next(&mut notices).await.notice.attempt, 2);
}

async fn a_notice_whose_workers_always_go_away_is_dead(scene: Scene) {
    scene.publish(1..2).await;
    // The last one only looks on: it gets nothing, and the server gives the notice up.
    let mut deliveries = 0;
    while scene.list_dead().await.is_empty() {
        let mut notices = scene.receive(1).await;
        tokio::select! {
            received = next(&mut notices) => {
                assert_eq!(received.notice.attempt, 1);
                deliveries += 1;
            }
            _ = scene.await_dead(1) => {}
        }
        drop(notices);
    }
    assert!(deliveries >= LIMITS.deliveries, "{deliveries}");
    assert_eq!(scene.await_dead(1).await[0].notice, Some(scene.notice(1)));
    until(async || (scene.state().await.dead == 1).then_some(())).await;
}

async fn dead_notices_are_listed_sent_again_and_forgotten(scene: Scene) {
    let mut notices = scene.receive(8).await;
    scene.publish(1..4).await;
    let mut returned = 0;
    while returned < 3 * LIMITS.deliveries {
        let received = next(&mut notices).await;
        let end = notices.settle(&received.delivery, NoticeEnd::Returned);
        end.await.unwrap();
        returned += 1;
    }
    let dead = scene.await_dead(3).await;
    let broker = &scene.broker;
    // Looking does not take them away, and a look can be limited.
    assert_eq!(scene.await_dead(3).await.len(), 3);
    let two = broker.list_dead(&scene.capability, 2).await.unwrap();
    assert_eq!(two.len(), 2);
    assert_eq!(scene.await_dead(3).await.len(), 3);

    let chosen = &dead[1];
    let name = scene.capability.as_str();
    assert_eq!(broker.requeue(name, "17-0").await, Ok(false));
    assert_eq!(broker.requeue(name, "../x").await, Ok(false));
    assert_eq!(broker.requeue(name, &chosen.id).await, Ok(true));
    let again = next(&mut notices).await;
    assert_eq!(Some(again.notice), chosen.notice);
    let done = notices.settle(&again.delivery, NoticeEnd::Done);
    done.await.unwrap();

    let left = broker.list_dead(&scene.capability, 100).await.unwrap();
    let ids = |dead: &[planwright_engine::port::DeadNotice]| {
        dead.iter().map(|it| it.id.clone()).collect::<BTreeSet<_>>()
    };
    let expected = BTreeSet::from([dead[0].id.clone(), dead[2].id.clone()]);
    assert_eq!(ids(&left), expected);
    assert_eq!(broker.purge_dead(&scene.capability).await, Ok(2));
    assert_eq!(broker.purge_dead(&scene.capability).await, Ok(0));
}

async fn messages_from_elsewhere_are_put_aside(scene: Scene) {
    scene.publish(1..2).await;
    for junk in [&b""[..], b"\xff\xfe", b"{\"v\":1}", &[b'x'; 100_000]] {
        scene.inject(junk).await;
    }
    scene.publish(2..3).await;
    let mut notices = scene.receive(1).await;
    for attempt in [1, 2] {
        let received = next(&mut notices).await;
        assert_eq!(received.notice.attempt, attempt);
        let done = notices.settle(&received.delivery, NoticeEnd::Done);
        done.await.unwrap();
    }
    let dead = scene.await_dead(4).await;
    assert!(dead.iter().all(|it| it.notice.is_none()), "{dead:?}");
    let requeued = scene.broker.requeue(&scene.capability, &dead[0].id).await;
    assert!(
        matches!(requeued, Err(BrokerError::Unreadable(_))),
        "{requeued:?}"
    );
    assert_eq!(scene.await_dead(4).await.len(), 4);
}

async fn eight_workers_share_the_notices(scene: Scene) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let mut notices = scene.receive(2).await;
        let seen = seen.clone();
        workers.spawn(async move {
            loop {
                let received = next(&mut notices).await;
                seen.lock().unwrap().push(received.notice.attempt);
                let done = notices.settle(&received.delivery, NoticeEnd::Done);
                done.await.unwrap();
            }
        });
    }
    // More than the queue may hold: it is emptied meanwhile.
    for attempt in 0..120 {
        until(async || scene.broker.publish(&scene.notice(attempt)).await.ok()).await;
    }
    until(async || {
        let seen = seen.lock().unwrap();
        (seen.iter().collect::<BTreeSet<_>>().len() == 120).then_some(())
    })
    .await;
    workers.shutdown().await;
    assert_eq!(seen.lock().unwrap().len(), 120, "each one arrived once");
}

async fn a_worker_receives_for_all_its_capabilities(scene: Scene) {
    let others: Vec<String> = (0..3)
        .map(|it| format!("{} {it}", scene.capability))
        .collect();
    let receive = scene.broker.receive(&others, "worker", 2);
    let mut notices = receive.await.unwrap();
    for (attempt, capability) in (0..12).zip(others.iter().cycle()) {
        let notice = planwright_engine::port::StepNotice {
            capability: capability.clone(),
            ..scene.notice(attempt)
        };
        scene.broker.publish(&notice).await.unwrap();
    }
    let mut seen = BTreeSet::new();
    while seen.len() < 12 {
        let received = next(&mut notices).await;
        seen.insert(received.notice.attempt);
        let done = notices.settle(&received.delivery, NoticeEnd::Done);
        done.await.unwrap();
    }
    let none = scene.broker.receive(&[], "worker", 2).await;
    assert!(matches!(none, Err(BrokerError::Refused(_))));
}

async fn a_full_queue_refuses_more(scene: Scene) {
    let mut error = None;
    for attempt in 0..LIMITS.waiting + 20 {
        error = scene.broker.publish(&scene.notice(attempt)).await.err();
        if error.is_some() {
            break;
        }
    }
    let error = error.expect("the queue is full").to_string();
    assert!(error.contains("is full"), "{error}");
    // RabbitMQ takes no more until a fifth is gone.
    let mut notices = scene.receive(1).await;
    for _ in 0..LIMITS.waiting / 2 {
        let received = next(&mut notices).await;
        let done = notices.settle(&received.delivery, NoticeEnd::Done);
        done.await.unwrap();
    }
    until(async || scene.broker.publish(&scene.notice(0)).await.ok()).await;
}

async fn a_wait_that_is_given_up_loses_no_notice(scene: Scene) {
    let mut notices = scene.receive(16).await;
    let mut seen = BTreeSet::new();
    for attempt in 0..10 {
        scene.publish(attempt..attempt + 1).await;
        tokio::select! {
            biased;
            received = notices.next() => { seen.insert(received.unwrap().notice.attempt); }
            () = tokio::task::yield_now() => {}
        }
    }
    while seen.len() < 10 {
        seen.insert(next(&mut notices).await.notice.attempt);
    }
}
