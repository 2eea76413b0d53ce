//! Limits on requests: at once for the whole service, and per second for each principal. Decisions of
//! people are always admitted: approve, reject, answer, resolve, pause and cancel.

use super::answer_bytes::{AnswerBytes, Held, HeldAnswer, SMALL};
use crate::http::auth::{Caller, is_always_admitted};
use crate::http::problem::{Problem, ProblemCode};
use crate::http::settings::Settings;
use crate::http::state::Http;
use axum::body::HttpBody as _;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Principals whose rate is remembered. Those who were not heard of longest are forgotten first.
const MAX_PRINCIPALS: usize = 10_000;

/// A principal, as limits count them.
pub(super) type PrincipalKey = (&'static str, String);

fn principal_key(caller: &Caller) -> PrincipalKey {
    (
        caller.principal.kind.as_str(),
        caller.principal.name.clone(),
    )
}

/// What is under way, and how fast everybody asks.
#[derive(Debug)]
pub(crate) struct Limits {
    in_flight: Arc<Semaphore>,
    each_in_flight: Arc<Mutex<HashMap<PrincipalKey, usize>>>,
    most_in_flight_each: usize,
    answers: AnswerBytes,
    rates: Mutex<HashMap<PrincipalKey, Bucket>>,
    per_second: f64,
    burst: f64,
}

/// Requests that are still free, as of an instant.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    free: f64,
    at: Instant,
}

impl Limits {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            in_flight: Arc::new(Semaphore::new(settings.max_in_flight)),
            each_in_flight: Arc::default(),
            most_in_flight_each: settings.max_in_flight_per_principal.max(1),
            answers: AnswerBytes::default(),
            rates: Mutex::default(),
            per_second: f64::from(settings.requests_per_second.max(1)),
            burst: f64::from(settings.burst.max(1)),
        }
    }

    /// Counts a request of this principal until what is returned is dropped.
    fn begin(&self, principal: PrincipalKey, always: bool) -> Result<InFlight, Problem> {
        let busy = |code, words| Problem::later(code, words, 1);
        let permit = Arc::clone(&self.in_flight).try_acquire_owned().ok();
        if permit.is_none() && !always {
            let words = "the service has too much to do at this moment";
            return Err(busy(ProblemCode::TooBusy, words));
        }
        let mut each = lock(&self.each_in_flight);
        let own = each.entry(principal.clone()).or_default();
        if *own >= self.most_in_flight_each && !always {
            let words = "too many requests of this principal are under way";
            return Err(busy(ProblemCode::TooManyRequests, words));
        }
        *own += 1;
        drop(each);
        Ok(InFlight {
            each: Arc::clone(&self.each_in_flight),
            principal,
            _permit: permit,
        })
    }

    /// Counts the bytes of an answer before they are read, until they were sent.
    pub(crate) fn hold_answer(&self, caller: &Caller, bytes: usize) -> Result<HeldAnswer, Problem> {
        self.answers.hold(principal_key(caller), bytes)
    }

    /// Counts the bytes of an answer until they were sent, unless they are few or counted already.
    fn count_answer(&self, principal: PrincipalKey, response: Response) -> Response {
        let bytes = response.body().size_hint().exact().unwrap_or_default();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if bytes < SMALL || response.extensions().get::<Held>().is_some() {
            return response;
        }
        match self.answers.hold(principal, bytes) {
            Ok(held) => held.keep_until_sent(response),
            Err(problem) => problem.into_response(),
        }
    }

    /// Counts a request; says after how many seconds it may come again if there were too many.
    fn take(&self, caller: &Caller, now: Instant) -> Result<(), u64> {
        let mut rates = lock(&self.rates);
        let key = principal_key(caller);
        if rates.len() >= MAX_PRINCIPALS && !rates.contains_key(&key) {
            let oldest = rates
                .iter()
                .min_by_key(|(_, bucket)| bucket.at)
                .map(|(key, _)| key.clone());
            oldest.map(|key| rates.remove(&key));
        }
        let bucket = rates.entry(key).or_insert(Bucket {
            free: self.burst,
            at: now,
        });
        let elapsed = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.free = (bucket.free + elapsed * self.per_second).min(self.burst);
        bucket.at = now;
        if bucket.free >= 1.0 {
            bucket.free -= 1.0;
            return Ok(());
        }
        // The time until one is free, in whole seconds.
        Err(if self.per_second >= 1.0 { 1 } else { 60 })
    }
}

/// A request that is worked on. Dropping it makes room.
#[derive(Debug)]
struct InFlight {
    each: Arc<Mutex<HashMap<PrincipalKey, usize>>>,
    principal: PrincipalKey,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut each = lock(&self.each);
        if let Some(own) = each.get_mut(&self.principal) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                each.remove(&self.principal);
            }
        }
    }
}

pub(super) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Counts are whole after every statement that changes them.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sheds load: beyond what can be worked on at once, requests are told to come again.
pub(crate) async fn limit_in_flight(
    State(http): State<Http>,
    request: Request,
    next: Next,
) -> Response {
    let always = is_always_admitted(&http, &request);
    // Routes that need no token have nothing to wait for, and limits of their own.
    let Some(principal) = request.extensions().get::<Caller>().map(principal_key) else {
        return next.run(request).await;
    };
    let in_flight = match http.limits.begin(principal.clone(), always) {
        Ok(in_flight) => in_flight,
        Err(problem) => return problem.into_response(),
    };
    let response = next.run(request).await;
    drop(in_flight);
    if always {
        return response;
    }
    http.limits.count_answer(principal, response)
}

/// Keeps one principal from taking the service for themselves.
pub(crate) async fn limit_rate(State(http): State<Http>, request: Request, next: Next) -> Response {
    let always = is_always_admitted(&http, &request);
    let taken = match request.extensions().get::<Caller>() {
        Some(caller) if !always => http.limits.take(caller, Instant::now()),
        Some(_) | None => Ok(()),
    };
    match taken {
        Ok(()) => next.run(request).await,
        Err(seconds) => {
            let words = "too many requests of this principal";
            Problem::later(ProblemCode::TooManyRequests, words, seconds).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_core::digest::Digest;
    use planwright_core::policy::Role;
    use planwright_core::principal::{Assurance, Principal};
    use std::time::Duration;

    #[test]
    fn a_principal_may_burst_and_then_has_a_rate_of_their_own() {
        let settings = Settings {
            requests_per_second: 2,
            burst: 3,
            ..Settings::default()
        };
        let limits = Limits::new(&settings);
        let now = Instant::now();
        let caller = |name: &str| Caller {
            principal: Principal::person(name),
            role: Role::Viewer,
            assurance: Assurance::Token,
            credential: Digest::of_bytes(b"token"),
        };
        let takes = |name: &str, after: u64| {
            limits
                .take(&caller(name), now + Duration::from_millis(after))
                .is_ok()
        };
        assert_eq!(
            [0; 5].map(|after| takes("ada", after)),
            [true, true, true, false, false]
        );
        assert!(takes("bob", 0));
        assert!(takes("ada", 500) && !takes("ada", 500) && takes("ada", 1_000));
    }
}
