//! The rate of requests of each principal, over all services of a store.
//!
//! The bucket of a principal is in the store, and each service takes a part of it in advance, so that no request waits for the
//! store. Where the store does not answer in time, a service has its share of the rate: never more, and never nothing.

use super::requests::{PrincipalKey, lock};
use planwright_core::digest::Digest;
use planwright_engine::port::{OwnerId, RequestRates, WantedRequests};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// Principals whose rate is remembered. Those who were not heard of longest are forgotten first.
const MAX_PRINCIPALS: usize = 10_000;

/// A service takes this part of what a burst may have, divided by the number of services.
const PART: u32 = 4;

/// The time the store is waited for when a service has nothing left.
const PATIENCE: Duration = Duration::from_millis(250);

/// The time a store is left alone that gave no answer.
const LEFT_ALONE: Duration = Duration::from_secs(1);

/// The time a principal whose bucket was empty is refused before the bucket is looked at again.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How often a service says that it is there.
const TURN: Duration = Duration::from_secs(5);
const TURN_PATIENCE: Duration = Duration::from_secs(2);

/// A request looks again so often after it waited for the store.
const MAX_LOOKS: u32 = 3;

/// The rates of all principals, as this service knows them.
#[derive(Debug)]
pub(super) struct Rates {
    per_second: f64,
    burst: f64,
    buckets: Mutex<HashMap<PrincipalKey, Bucket>>,
    /// What the services of a store have in common, if it can have several.
    shared: Option<Arc<dyn RequestRates>>,
    services: AtomicU32,
    /// The store is not asked before this.
    silent_until: Mutex<Option<Instant>>,
}

/// Requests that are still free here, as of an instant.
#[derive(Debug)]
struct Bucket {
    free: f64,
    at: Instant,
    /// Ends when the store has answered, or did not in time.
    asking: Option<watch::Receiver<()>>,
    /// The bucket in the store was empty: it is not looked at before this.
    ask_after: Option<Instant>,
}

/// What becomes of a request.
enum Turn {
    Admitted,
    Refused,
    /// The store is being asked.
    Waits(watch::Receiver<()>),
}

/// How requests come into the buckets of this service.
enum Source {
    /// By time: this share of the rate is its own.
    Own { share: f64 },
    /// Out of the store, this many at once.
    Store { part: u32, capacity: u32 },
}

impl Rates {
    pub(super) fn new(
        (per_second, burst): (u32, u32),
        shared: Option<Arc<dyn RequestRates>>,
    ) -> Self {
        Self {
            per_second: f64::from(per_second.max(1)),
            burst: f64::from(burst.max(1)),
            buckets: Mutex::default(),
            shared,
            services: AtomicU32::new(1),
            silent_until: Mutex::default(),
        }
    }

    /// Counts a request; says after how many seconds it may come again if there were too many.
    pub(super) async fn take(self: &Arc<Self>, key: PrincipalKey) -> Result<(), u64> {
        for _ in 0..MAX_LOOKS {
            match self.take_now(&key, Instant::now()) {
                Turn::Admitted => return Ok(()),
                Turn::Refused => break,
                // An end of the channel is the answer.
                Turn::Waits(mut answer) => drop(answer.changed().await),
            }
        }
        // The time until one is free, in whole seconds.
        Err(1)
    }

    fn source(&self, now: Instant) -> Source {
        let services = self.services.load(Ordering::Relaxed).max(1);
        let is_silent = lock(&self.silent_until).is_some_and(|until| now < until);
        if self.shared.is_none() || services == 1 || is_silent {
            return Source::Own {
                share: 1.0 / f64::from(services),
            };
        }
        let burst = whole(self.burst);
        let part = (burst / (PART * services)).max(1);
        Source::Store {
            part,
            // With the parts that the services hold, a principal has one burst.
            capacity: burst.saturating_sub(part * services).max(1),
        }
    }

    fn take_now(self: &Arc<Self>, key: &PrincipalKey, now: Instant) -> Turn {
        let source = self.source(now);
        let mut buckets = lock(&self.buckets);
        if buckets.len() >= MAX_PRINCIPALS && !buckets.contains_key(key) {
            let oldest = buckets
                .iter()
                .min_by_key(|(_, bucket)| bucket.at)
                .map(|(key, _)| key.clone());
            oldest.map(|key| buckets.remove(&key));
        }
        let bucket = buckets.entry(key.clone()).or_insert(Bucket {
            free: self.burst,
            at: now,
            asking: None,
            ask_after: None,
        });
        let elapsed = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.at = now;
        match source {
            Source::Own { share } => {
                let filled = bucket.free + elapsed * self.per_second * share;
                bucket.free = filled.min((self.burst * share).max(1.0));
                match take_one(bucket) {
                    true => Turn::Admitted,
                    false => Turn::Refused,
                }
            }
            Source::Store { part, capacity } => {
                bucket.free = bucket.free.min(f64::from(part));
                let admitted = take_one(bucket);
                let may_ask =
                    bucket.asking.is_none() && bucket.ask_after.is_none_or(|at| at <= now);
                if may_ask && bucket.free <= f64::from(part) / 2.0 {
                    // No more than it has room for: the rest would be lost.
                    let wanted = part - whole(bucket.free);
                    bucket.asking = Some(self.ask(key.clone(), wanted, capacity));
                }
                match &bucket.asking {
                    _ if admitted => Turn::Admitted,
                    Some(asking) => Turn::Waits(asking.clone()),
                    None => Turn::Refused,
                }
            }
        }
    }

    /// Asks the store for more, in the background. The channel ends with the answer.
    fn ask(self: &Arc<Self>, key: PrincipalKey, count: u32, capacity: u32) -> watch::Receiver<()> {
        let (asking, answer) = watch::channel(());
        let rates = Arc::clone(self);
        tokio::spawn(async move {
            let wanted = WantedRequests {
                principal: Digest::of_parts(&[key.0.as_bytes(), key.1.as_bytes()]),
                per_second: rates.per_second,
                capacity,
                wanted: count,
            };
            let answer = match &rates.shared {
                Some(shared) => timeout(PATIENCE, shared.take_requests(wanted)).await,
                None => Ok(Ok(0)),
            };
            rates.note_answer(&key, answer.ok().and_then(Result::ok), count);
            drop(asking);
        });
        answer
    }

    fn note_answer(&self, key: &PrincipalKey, granted: Option<u32>, wanted: u32) {
        let now = Instant::now();
        if granted.is_none() {
            tracing::debug!("the rates that services share cannot be read: this one has its share");
            *lock(&self.silent_until) = Some(now + LEFT_ALONE);
        }
        let mut buckets = lock(&self.buckets);
        let Some(bucket) = buckets.get_mut(key) else {
            return;
        };
        bucket.asking = None;
        let granted = granted.unwrap_or_default();
        bucket.free += f64::from(granted);
        bucket.ask_after = (granted < wanted).then(|| {
            // Until it is worth another look: a flood that is refused must not be one for the store.
            let pause = Duration::from_secs_f64(f64::from(wanted) / 2.0 / self.per_second);
            now + pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
        });
    }

    /// Says in the store that this service is there, and counts the services, until it stops.
    pub(super) async fn count_services(self: Arc<Self>, service: OwnerId, stop: CancellationToken) {
        let Some(shared) = &self.shared else {
            return;
        };
        loop {
            match timeout(TURN_PATIENCE, shared.note_service(&service)).await {
                Ok(Ok(services)) => self.services.store(services, Ordering::Relaxed),
                // As many as there were: more would be refused than has to be, and less would be too much.
                Ok(Err(_)) | Err(_) => tracing::debug!("the services cannot be counted"),
            }
            let pause = tokio::time::sleep(TURN);
            if stop.run_until_cancelled(pause).await.is_none() {
                break;
            }
        }
        drop(timeout(TURN_PATIENCE, shared.remove_service(&service)).await);
    }
}

fn take_one(bucket: &mut Bucket) -> bool {
    let admitted = bucket.free >= 1.0;
    if admitted {
        bucket.free -= 1.0;
    }
    admitted
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it was made of such a number"
)]
fn whole(number: f64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_engine::port::{BoxFuture, StoreError};
    use std::future::ready;
    use tokio::time::advance;

    fn key(name: &str) -> PrincipalKey {
        ("person", name.to_owned())
    }

    /// A store that counts what it is asked, for a number of services.
    #[derive(Debug)]
    struct FakeStore {
        bucket: Mutex<(f64, Instant)>,
        asked: AtomicU32,
        /// It gives no answer.
        hangs: AtomicU32,
    }

    impl FakeStore {
        fn new(full: f64) -> Arc<Self> {
            Arc::new(Self {
                bucket: Mutex::new((full, Instant::now())),
                asked: AtomicU32::default(),
                hangs: AtomicU32::default(),
            })
        }

        fn service(self: &Arc<Self>, services: u32, limits: (u32, u32)) -> Arc<Rates> {
            let rates = Rates::new(limits, Some(Arc::<Self>::clone(self)));
            rates.services.store(services, Ordering::Relaxed);
            Arc::new(rates)
        }
    }

    impl RequestRates for FakeStore {
        fn take_requests(&self, wanted: WantedRequests) -> BoxFuture<'_, Result<u32, StoreError>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if self.hangs.load(Ordering::Relaxed) > 0 {
                return Box::pin(std::future::pending());
            }
            let mut bucket = lock(&self.bucket);
            let filled = bucket.0 + bucket.1.elapsed().as_secs_f64() * wanted.per_second;
            let filled = filled.min(f64::from(wanted.capacity));
            let granted = whole(filled.min(f64::from(wanted.wanted)));
            *bucket = (filled - f64::from(granted), Instant::now());
            Box::pin(ready(Ok(granted)))
        }

        fn note_service<'a>(&'a self, _: &'a OwnerId) -> BoxFuture<'a, Result<u32, StoreError>> {
            Box::pin(ready(Ok(1)))
        }

        fn remove_service<'a>(&'a self, _: &'a OwnerId) -> BoxFuture<'a, Result<(), StoreError>> {
            Box::pin(ready(Ok(())))
        }
    }

    /// Lets a principal ask as fast as it can for some seconds, at these services in turn. Returns how many requests
    /// were admitted.
    async fn flood(services: &[Arc<Rates>], seconds: u32) -> u32 {
        let mut admitted = 0;
        for _ in 0..seconds * 100 {
            for rates in services {
                for _ in 0..10 {
                    admitted += u32::from(rates.take(key("ada")).await.is_ok());
                }
            }
            advance(Duration::from_millis(10)).await;
        }
        admitted
    }

    #[tokio::test(start_paused = true)]
    async fn a_principal_may_burst_and_then_has_a_rate_of_their_own() {
        let rates = Arc::new(Rates::new((2, 3), None));
        let mut taken = Vec::new();
        for _ in 0..5 {
            taken.push(rates.take(key("ada")).await.is_ok());
        }
        assert_eq!(taken, [true, true, true, false, false]);
        assert!(rates.take(key("bob")).await.is_ok());
        advance(Duration::from_millis(500)).await;
        assert!(rates.take(key("ada")).await.is_ok() && rates.take(key("ada")).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_at_three_services_has_one_rate_and_costs_the_store_little() {
        let store = FakeStore::new(750.0);
        let services: Vec<_> = (0..3).map(|_| store.service(3, (200, 1_000))).collect();
        let admitted = flood(&services, 10).await;
        // A burst and ten seconds of the rate: once, and not three times.
        assert!((2_800..=3_050).contains(&admitted), "{admitted}");
        let asked = store.asked.load(Ordering::Relaxed);
        assert!(
            asked < 200,
            "{asked} looks at the store for 30,000 requests"
        );
        // One that has the service for itself has the whole rate.
        let store = FakeStore::new(750.0);
        let admitted = flood(&[store.service(3, (200, 1_000))], 10).await;
        assert!((2_600..=3_050).contains(&admitted), "{admitted}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_far_below_the_rate_is_never_refused_and_hardly_costs_anything() {
        let store = FakeStore::new(750.0);
        let rates = store.service(2, (200, 1_000));
        for _ in 0..600 {
            rates.take(key("ada")).await.unwrap();
            advance(Duration::from_millis(100)).await;
        }
        let asked = store.asked.load(Ordering::Relaxed);
        assert!(asked <= 10, "{asked} looks at the store for 600 requests");
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_hangs_leaves_each_service_its_share() {
        let store = FakeStore::new(750.0);
        let rates = store.service(2, (200, 1_000));
        store.hangs.store(1, Ordering::Relaxed);
        // What it had taken before is used up first.
        let first = flood(std::slice::from_ref(&rates), 1).await;
        let began = Instant::now();
        let second = flood(&[rates], 10).await;
        let elapsed = began.elapsed().as_secs_f64();
        let most = elapsed.mul_add(100.0, 10.0);
        assert!(first >= 125, "{first}");
        assert!(
            f64::from(second) <= most && f64::from(second) >= most * 0.6,
            "{second} in {elapsed} s"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_only_service_does_not_ask_the_store() {
        let store = FakeStore::new(0.0);
        let admitted = flood(&[store.service(1, (200, 1_000))], 5).await;
        assert!((1_990..=2_010).contains(&admitted), "{admitted}");
        assert_eq!(store.asked.load(Ordering::Relaxed), 0);
    }
}
