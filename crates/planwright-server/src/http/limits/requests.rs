//! Limits on requests: at once for the whole service, and per second for each principal. Decisions of
//! people are always admitted: approve, reject, answer, resolve, pause and cancel.

use super::answer_bytes::{AnswerBytes, Held, HeldAnswer, SMALL};
use super::rates::Rates;
use crate::http::auth::{Caller, is_always_admitted};
use crate::http::problem::{Problem, ProblemCode};
use crate::http::settings::Settings;
use crate::http::state::Http;
use axum::body::HttpBody as _;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use planwright_engine::port::{OwnerId, RequestRates};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

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
    rates: Arc<Rates>,
}

impl Limits {
    pub(crate) fn new(settings: &Settings, shared_rates: Option<Arc<dyn RequestRates>>) -> Self {
        Self {
            in_flight: Arc::new(Semaphore::new(settings.max_in_flight)),
            each_in_flight: Arc::default(),
            most_in_flight_each: settings.max_in_flight_per_principal.max(1),
            answers: AnswerBytes::default(),
            rates: Arc::new(Rates::new(
                (settings.requests_per_second, settings.burst),
                shared_rates,
            )),
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
    async fn take(&self, caller: &Caller) -> Result<(), u64> {
        self.rates.take(principal_key(caller)).await
    }

    /// Counts the services of the store until this one stops.
    pub(crate) fn count_services(
        &self,
        service: OwnerId,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + use<> {
        Arc::clone(&self.rates).count_services(service, stop)
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
        Some(caller) if !always => http.limits.take(caller).await,
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
