//! What bounds the queues, the messages and the waits.

use std::time::Duration;

/// The limits of a broker. All processes that share one have to agree on those of its queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokerLimits {
    /// Notices that a queue holds. More are refused, and their senders send them later.
    pub waiting: u32,
    /// Dead notices that are kept. The oldest are forgotten when there are more.
    pub dead: u32,
    /// The number of times a notice is delivered before it is dead.
    pub deliveries: u32,
    /// Redis: after this time without a sign of life of its worker, a notice goes to another one.
    /// RabbitMQ, which notices the end of a connection: a worker that has nothing connects anew.
    pub idle: Duration,
    /// The time a returned notice rests before a worker gets it again.
    pub rest: Duration,
    /// The time to connect.
    pub connect: Duration,
    /// The time for an answer, also for the confirmation of a notice.
    pub answer: Duration,
}

impl Default for BrokerLimits {
    fn default() -> Self {
        Self {
            waiting: 100_000,
            dead: 10_000,
            deliveries: 20,
            idle: Duration::from_secs(30),
            rest: Duration::from_secs(1),
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(5),
        }
    }
}

/// Bytes of all messages in one queue of RabbitMQ, which may hold messages from elsewhere.
pub(super) const MAX_QUEUE_BYTES: u32 = 256 * 1024 * 1024;
/// Dead notices that are looked through for one of them.
pub(super) const MAX_SEARCHED: usize = 10_000;
