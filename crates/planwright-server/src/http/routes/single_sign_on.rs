//! Signing in by way of the operator's identity provider.
//!
//! The browser is sent there and comes back with a code. What the provider says about the person becomes
//! a code of ours, which the page spends for a session as it does with every other.

use crate::http::auth::{SingleSignOn, VISIT_LIFE, own_url, set_visit, visit_of};
use crate::http::body::Params;
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use planwright_core::policy::SignInRefusal;
use planwright_core::principal::Assurance;
use planwright_engine::passes::{SignedIn, hand_over};
use planwright_engine::port::IdentityError;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

/// Where the provider sends people back to.
pub(in crate::http) const FROM_PROVIDER: &str = "/sign-in/oidc/callback";

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(sign_in_ways))
        .routes(routes!(go_to_provider))
        .routes(routes!(come_back))
}

/// How people can sign in, besides codes and tokens.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SignInWays {
    /// The words of the button that leads to `/sign-in/oidc`; absent if there is no provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    oidc: Option<String>,
}

/// Says how people can sign in.
#[utoipa::path(get, path = "/sign-in", operation_id = "signInWays", tag = "access",
    responses((status = 200, description = "The ways there are.", body = SignInWays)),
    extensions(("x-planwright-action" = json!("public"))))]
async fn sign_in_ways(State(http): State<Http>) -> Json<SignInWays> {
    let oidc = http.settings.single_sign_on.as_ref();
    Json(SignInWays {
        oidc: oidc.map(|way| way.label.clone()),
    })
}

/// The provider, if there is one.
fn provider(http: &Http) -> HttpResult<&SingleSignOn> {
    let way = http.settings.single_sign_on.as_deref();
    way.ok_or_else(|| {
        Problem::not_found("this service has no identity provider")
            .hint("[sign_in.oidc] in planwright.toml names one")
    })
}

/// Sends a browser to the identity provider.
#[utoipa::path(get, path = "/sign-in/oidc", operation_id = "goToProvider", tag = "access",
    responses((status = 303, description = "To the provider."), (status = 404, description = "There is none.", body = Problem, content_type = "application/problem+json"), (status = 503, description = "It does not answer.", body = Problem, content_type = "application/problem+json")),
    extensions(("x-planwright-action" = json!("public"))))]
async fn go_to_provider(
    State(http): State<Http>,
    uri: Uri,
    headers: HeaderMap,
) -> HttpResult<Response> {
    let way = provider(&http)?;
    let redirect = callback_url(&http, (&uri, &headers))?;
    let visits = http.visits().await?;
    let (visit, kept) = visits.begin(redirect, http.service.engine.now())?;
    let to = way.provider.address(&visit).await.map_err(|error| {
        tracing::warn!(%error, "a person cannot be sent to the identity provider");
        let words = "the identity provider does not answer";
        Problem::later(ProblemCode::NoIdentityProvider, words, 10)
    })?;
    let cookie = set_visit(&http.settings, (&uri, &headers), &kept, VISIT_LIFE);
    let mut response = see_other(&to)?;
    if let Some(cookie) = cookie {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// What a browser brings back. Providers add more, which is not read.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Returned {
    /// What the provider tells about the person to those who ask with it.
    code: Option<String>,
    /// What the browser was sent away with.
    state: Option<String>,
}

/// Receives a browser from the identity provider, and sends it to the page.
#[utoipa::path(get, path = "/sign-in/oidc/callback", operation_id = "comeBack", tag = "access",
    params(Returned),
    responses((status = 303, description = "To the page, which signs in or says why not."), (status = 404, description = "There is no provider.", body = Problem, content_type = "application/problem+json")),
    extensions(("x-planwright-action" = json!("public"))))]
async fn come_back(
    State(http): State<Http>,
    uri: Uri,
    headers: HeaderMap,
    Params(returned): Params<Returned>,
) -> HttpResult<Response> {
    let way = provider(&http)?;
    let place = (&uri, &headers);
    let recognised = recognise(&http, way, place, returned).await?;
    let fragment = match recognised {
        Ok(who) => {
            let now = http.service.engine.now();
            let code = hand_over(&*http.service.passes, who, now).await?;
            format!("sign-in={}", code.expose())
        }
        Err(why) => format!("not-signed-in={}", why.as_str()),
    };
    let mut response = see_other(&format!("/#{fragment}"))?;
    if let Some(cookie) = set_visit(&http.settings, place, "", Duration::ZERO) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// The reason a person who came back is not signed in.
#[derive(Debug, Clone, Copy)]
enum NotSignedIn {
    /// The way there and back took too long, or began in another browser.
    Expired,
    /// The provider refused.
    Refused,
    /// The provider does not answer.
    Unavailable,
    /// The operator's rules let this person not in.
    ByRules(SignInRefusal),
}

impl NotSignedIn {
    /// Returns its word in addresses.
    fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::ByRules(refusal) => refusal.as_str(),
        }
    }
}

/// Recognises the person who came back, or says why they are not let in.
async fn recognise(
    http: &Http,
    way: &SingleSignOn,
    place: (&Uri, &HeaderMap),
    returned: Returned,
) -> HttpResult<Result<SignedIn, NotSignedIn>> {
    let now = http.service.engine.now();
    let browser = visit_of(&http.settings, place);
    let (Some(state), Some(browser)) = (returned.state, browser) else {
        return Ok(Err(NotSignedIn::Expired));
    };
    let redirect = callback_url(http, place)?;
    let visits = http.visits().await?;
    let Some(visit) = visits.end(redirect, (&state, &browser), now) else {
        return Ok(Err(NotSignedIn::Expired));
    };
    let Some(code) = returned.code else {
        return Ok(Err(NotSignedIn::Refused));
    };
    let claims = match way.provider.finish(&visit, &code).await {
        Ok(claims) => claims,
        Err(error) => {
            tracing::warn!(%error, "a person was not recognised");
            return Ok(Err(match error {
                IdentityError::Unavailable(_) => NotSignedIn::Unavailable,
                IdentityError::Refused(_) => NotSignedIn::Refused,
            }));
        }
    };
    let recognised = way.rules.recognise(&claims);
    Ok(recognised
        .map(|(principal, role)| SignedIn {
            principal,
            role,
            assurance: Assurance::SingleSignOn,
            token: None,
        })
        .map_err(|refusal| {
            tracing::info!(%refusal, "a recognised person is not let in");
            NotSignedIn::ByRules(refusal)
        }))
}

fn callback_url(http: &Http, place: (&Uri, &HeaderMap)) -> HttpResult<String> {
    let own = own_url(&http.settings, place);
    let own = own.ok_or_else(|| Problem::bad_request("the request names no host"))?;
    Ok(format!("{own}{FROM_PROVIDER}"))
}

fn see_other(to: &str) -> HttpResult<Response> {
    let to = HeaderValue::from_str(to)
        .map_err(|_| Problem::bad_request("the address cannot be gone to"))?;
    Ok((StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response())
}
