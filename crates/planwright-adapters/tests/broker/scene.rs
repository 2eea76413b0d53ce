//! A server, and a capability of the test's own on it.

use crate::outside;
use planwright_adapters::broker::{BrokerAddress, BrokerLimits, open_with};
use planwright_core::id::RunId;
use planwright_engine::port::{
    Broker, BrokerError, DeadNotice, Notices, QueueState, ReceivedNotice, StepNotice,
};
use planwright_testing::brokers::{self, BrokerServer};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long something may take that happens by itself.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const LIMITS: BrokerLimits = BrokerLimits {
    waiting: 40,
    dead: 1000,
    deliveries: 3,
    idle: Duration::from_secs(3),
    rest: Duration::from_millis(200),
    connect: Duration::from_secs(10),
    answer: Duration::from_secs(10),
};

/// A server that most tests share, and some have for themselves while they kill it.
pub(crate) struct Shared {
    server: fn() -> &'static BrokerServer,
    lock: RwLock<()>,
}

pub(crate) fn rabbitmq() -> &'static Shared {
    static SHARED: Shared = Shared {
        server: brokers::rabbitmq,
        lock: RwLock::new(()),
    };
    &SHARED
}

pub(crate) fn redis() -> &'static Shared {
    static SHARED: Shared = Shared {
        server: brokers::redis,
        lock: RwLock::new(()),
    };
    &SHARED
}

impl Shared {
    /// Runs a law beside others.
    pub(crate) fn beside<F: Future<Output = ()>>(&self, law: impl FnOnce(Scene) -> F) {
        let _guard = self.lock.read().unwrap_or_else(PoisonError::into_inner);
        self.run(law);
    }

    /// Runs a law while no other runs.
    pub(crate) fn alone<F: Future<Output = ()>>(&self, law: impl FnOnce(Scene) -> F) {
        let _guard = self.lock.write().unwrap_or_else(PoisonError::into_inner);
        self.run(law);
    }

    fn run<F: Future<Output = ()>>(&self, law: impl FnOnce(Scene) -> F) {
        let scene = Scene::new((self.server)());
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            Box::pin(timeout(PATIENCE * 3, law(scene)))
                .await
                .expect("the law comes to an end");
        });
        runtime.shutdown_background();
    }
}

pub(crate) struct Scene {
    pub(crate) server: &'static BrokerServer,
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) capability: String,
}

impl Scene {
    fn new(server: &'static BrokerServer) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self {
            server,
            broker: open(server),
            capability: format!("capability {number}"),
        }
    }

    pub(crate) fn notice(&self, attempt: u32) -> StepNotice {
        StepNotice {
            capability: self.capability.clone(),
            run: RunId::mint(7),
            step: "train".parse().unwrap(),
            attempt,
            idempotency_key: format!("key-{attempt}"),
            trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
                .parse()
                .ok(),
        }
    }

    pub(crate) async fn publish(&self, attempts: std::ops::Range<u32>) {
        for attempt in attempts {
            self.broker.publish(&self.notice(attempt)).await.unwrap();
        }
    }

    pub(crate) async fn receive(&self, ahead: u16) -> Box<dyn Notices> {
        let capabilities = [self.capability.clone()];
        let receive = self.broker.receive(&capabilities, "worker", ahead);
        receive.await.unwrap()
    }

    pub(crate) async fn state(&self) -> QueueState {
        let capabilities = [self.capability.clone()];
        let mut states = self.broker.states(&capabilities).await.unwrap();
        states.remove(0)
    }

    pub(crate) async fn list_dead(&self) -> Vec<DeadNotice> {
        self.broker.list_dead(&self.capability, 100).await.unwrap()
    }

    /// Waits until there are this many dead notices.
    pub(crate) async fn await_dead(&self, count: usize) -> Vec<DeadNotice> {
        until(async || {
            let dead = self.list_dead().await;
            (dead.len() == count).then_some(dead)
        })
        .await
    }

    /// Puts a message into the queue that no notice is.
    pub(crate) async fn inject(&self, body: &[u8]) {
        outside::inject(self.server, &self.capability, body).await;
    }
}

pub(crate) fn open(server: &BrokerServer) -> Arc<dyn Broker> {
    let address = BrokerAddress::parse(&server.url(), None).unwrap();
    open_with(address, LIMITS).unwrap()
}

/// The next notice. The connection may break meanwhile.
pub(crate) async fn next(notices: &mut Box<dyn Notices>) -> ReceivedNotice {
    timeout(PATIENCE, async {
        loop {
            match notices.next().await {
                Ok(received) => return received,
                Err(BrokerError::Unreachable(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    })
    .await
    .expect("a notice arrives")
}

/// Asks again and again until there is an answer.
pub(crate) async fn until<T>(ask: impl AsyncFn() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < end, "it does not happen");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
