//! People who are at the identity provider, or sign in to a server of tools, and have not come back yet.

use super::sign_in::secret;
use crate::http::problem::Problem;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use planwright_core::digest::Digest;
use planwright_core::policy::SignInRules;
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use planwright_engine::port::{IdentityProvider, ProviderVisit};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// The time a person may take there.
pub(crate) const VISIT_LIFE: Duration = Duration::from_mins(10);

/// The provider that people may sign in with, and what the operator makes of what it says.
#[derive(Debug, Clone)]
pub struct SingleSignOn {
    pub provider: Arc<dyn IdentityProvider>,
    pub rules: SignInRules,
    /// What the button says.
    pub label: String,
}

/// The name of the key of visits among those that services have in common.
pub(crate) const VISIT_KEY: &str = "visits";

/// Makes what is secret about visits, out of a key that the services of a store have in common and what the
/// browser holds: a visit that one of them began ends at any. Nothing is kept, so no number of visits that
/// never end can push out another one.
pub(crate) struct Visits(Zeroizing<String>);

/// Nothing of it is for a log.
impl fmt::Debug for Visits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Visits")
    }
}

impl Visits {
    pub(crate) fn new(key: Zeroizing<String>) -> Self {
        Self(key)
    }

    /// Begins a visit after which the browser comes back to `redirect`, and returns what the browser
    /// keeps meanwhile.
    pub(crate) fn begin(
        &self,
        redirect: String,
        now: Timestamp,
    ) -> Result<(ProviderVisit, String), Problem> {
        let until = now.plus(VISIT_LIFE).as_millis();
        let kept = format!("{}.{until}", secret("")?);
        Ok((self.visit(redirect, &kept), kept))
    }

    /// Begins a visit of a caller who is known here already, and is known again at its end.
    pub(crate) fn begin_for(
        &self,
        redirect: String,
        caller: &Principal,
        now: Timestamp,
    ) -> Result<(ProviderVisit, String), Problem> {
        let until = now.plus(VISIT_LIFE).as_millis();
        // A caller that could not be written would not be known at the end, and be refused.
        let caller = serde_json::to_vec(caller).unwrap_or_default();
        let caller = BASE64_URL_SAFE_NO_PAD.encode(caller);
        let kept = format!("{}.{caller}.{until}", secret("")?);
        Ok((self.visit(redirect, &kept), kept))
    }

    /// The visit that a browser comes back from, and the caller who began it. What the browser keeps
    /// is bound to the state, so it cannot name another caller.
    pub(crate) fn end_for(
        &self,
        redirect: String,
        (state, kept): (&str, &str),
        now: Timestamp,
    ) -> Option<(ProviderVisit, Principal)> {
        let visit = self.end(redirect, (state, kept), now);
        let caller = kept.split('.').nth(1).and_then(|caller| {
            let caller = BASE64_URL_SAFE_NO_PAD.decode(caller).ok()?;
            serde_json::from_slice(&caller).ok()
        });
        visit.zip(caller)
    }

    /// The visit that a browser comes back from with this state, if it is its own and not over.
    pub(crate) fn end(
        &self,
        redirect: String,
        (state, kept): (&str, &str),
        now: Timestamp,
    ) -> Option<ProviderVisit> {
        let until = kept.rsplit_once('.').map(|(_, until)| until.parse::<i64>());
        let in_time = matches!(until, Some(Ok(until)) if now.as_millis() < until);
        let visit = self.visit(redirect, kept);
        // Of digests: how much of them is alike says nothing.
        let same = Digest::of_bytes(state.as_bytes()) == Digest::of_bytes(visit.state.as_bytes());
        Some(visit).filter(|_| same && in_time)
    }

    fn visit(&self, redirect: String, kept: &str) -> ProviderVisit {
        // Who is sent to one place does not come back from another.
        let text = |purpose: &str| {
            let parts = [self.0.as_str(), purpose, &redirect, kept].map(str::as_bytes);
            Digest::of_parts(&parts).hex()
        };
        ProviderVisit {
            state: text("state"),
            nonce: text("nonce"),
            verifier: text("verifier"),
            redirect,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_visits(key: &str) -> Visits {
        Visits::new(Zeroizing::new(key.to_owned()))
    }

    fn now() -> Timestamp {
        Timestamp::from_millis(1_000)
    }

    fn begin(visits: &Visits) -> (ProviderVisit, String) {
        visits.begin("http://here/back".to_owned(), now()).unwrap()
    }

    #[test]
    fn a_visit_ends_in_time_and_in_the_browser_it_began_in() {
        let visits = new_visits("a");
        let (mine, kept) = begin(&visits);
        let (other, others) = begin(&visits);
        let end = |state: &str, kept: &str, at| {
            let ended = visits.end("http://here/back".to_owned(), (state, kept), at);
            ended.map(|visit| visit.verifier)
        };
        assert_eq!(end(&mine.state, &kept, now()), Some(mine.verifier.clone()));
        assert_eq!(end(&other.state, &others, now()), Some(other.verifier));
        assert_eq!(end(&mine.state, &others, now()), None);
        assert_eq!(end(&other.state, &kept, now()), None);
        assert_eq!(end(&mine.state, &kept, now().plus(VISIT_LIFE)), None);
        for kept in ["", ".", "x", "x.9999999999999", "x.y"] {
            assert_eq!(end(&mine.state, kept, now()), None, "{kept}");
        }
        // A browser cannot make its time longer.
        let longer = format!("{}.9999999999999", kept.split_once('.').unwrap().0);
        assert_eq!(end(&mine.state, &longer, now()), None);
        let elsewhere = visits.end("http://here/other".to_owned(), (&mine.state, &kept), now());
        assert!(elsewhere.is_none());
        // Another service of the store ends it too, and one of another store does not.
        let beside =
            new_visits("a").end("http://here/back".to_owned(), (&mine.state, &kept), now());
        assert!(beside.is_some());
        let ended = new_visits("b").end("http://here/back".to_owned(), (&mine.state, &kept), now());
        assert!(ended.is_none());
    }

    #[test]
    fn the_caller_who_began_a_visit_is_known_at_its_end() {
        let visits = new_visits("a");
        let place = || "http://here/back".to_owned();
        let ada = Principal::person("ada");
        let (visit, kept) = visits.begin_for(place(), &ada, now()).unwrap();
        let end = |kept: &str| {
            let ended = visits.end_for(place(), (&visit.state, kept), now());
            ended.map(|(_, caller)| caller)
        };
        assert_eq!(end(&kept), Some(ada));
        // The browser of one person cannot say that it is another's.
        let (_, bens) = visits
            .begin_for(place(), &Principal::person("ben"), now())
            .unwrap();
        let parts = |kept: &str| -> Vec<String> { kept.split('.').map(str::to_owned).collect() };
        let mut changed = parts(&kept);
        changed[1] = parts(&bens)[1].clone();
        assert_eq!(end(&changed.join(".")), None);
        assert_eq!(end(&bens), None);
        // A visit of one who is not known yet names no caller.
        let (visit, kept) = begin(&visits);
        let ended = visits.end_for(place(), (&visit.state, &kept), now());
        assert!(ended.is_none());
    }

    #[test]
    fn what_is_secret_differs_and_suits_the_provider() {
        let (visit, kept) = begin(&new_visits("a"));
        let texts = [&visit.state, &visit.nonce, &visit.verifier];
        for (at, text) in texts.iter().enumerate() {
            assert!(text.len() == 64 && !kept.contains(*text), "{text}");
            assert!(texts[..at].iter().all(|other| other != text));
        }
    }

    #[test]
    fn any_number_of_visits_that_never_end_leaves_others_alone() {
        let visits = new_visits("a");
        let (mine, kept) = begin(&visits);
        for _ in 0..5_000 {
            begin(&visits);
        }
        let back = visits.end("http://here/back".to_owned(), (&mine.state, &kept), now());
        assert!(back.is_some());
    }
}
