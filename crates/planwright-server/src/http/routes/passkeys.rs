//! Passkeys: which ones a person has, making and removing them, and confirming a session with one.

use crate::http::auth::{Caller, PasskeyPurpose, own_origin};
use crate::http::body::JsonBody;
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::{Path, State};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::{HeaderMap, StatusCode, Uri};
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use planwright_engine::passkeys::{Holder, confirm_with_passkey, register_passkey, remove_passkey};
use planwright_engine::port::{
    Assertion, Ceremony, PassKind, Passkey, PasskeyVerifier, Passkeys, Registration,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(list_passkeys, add_passkey))
        .routes(routes!(ask_device))
        .routes(routes!(confirm_session))
        .routes(routes!(delete_passkey))
}

/// One passkey of a person.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PasskeyLine {
    /// What the device knows it by.
    id: String,
    /// What its owner calls it.
    label: String,
    created_at: String,
    /// When it was used last.
    #[serde(skip_serializing_if = "Option::is_none")]
    used_at: Option<String>,
}

impl PasskeyLine {
    fn of(passkey: &Passkey) -> Self {
        Self {
            id: encode(&passkey.id),
            label: passkey.label.clone(),
            created_at: passkey.created_at.to_string(),
            used_at: passkey.used_at.map(|at| at.to_string()),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PasskeyList {
    passkeys: Vec<PasskeyLine>,
    /// Until when the session of this request counts as confirmed, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed_until: Option<String>,
}

fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn decode(name: &str, text: &str) -> HttpResult<Vec<u8>> {
    // Some libraries fill up to four characters.
    let text = text.trim_end_matches('=');
    BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| {
        let words = format!("`{name}` is not bytes in the URL-safe form of Base64");
        Problem::of(ProblemCode::BadBody, words)
    })
}

/// The session of a browser that a request was made in.
struct BrowserSession {
    hash: Digest,
    confirmed_until: Option<Timestamp>,
}

/// Finds the session of a browser. A token has no person in front of a device.
async fn browser_session(http: &Http, caller: &Caller) -> HttpResult<BrowserSession> {
    let passes = &http.service.passes;
    let pass = passes.find(PassKind::Session, &caller.credential).await?;
    let pass = pass.filter(|pass| pass.proof.is_some()).ok_or_else(|| {
        let words = "passkeys are used in a browser that is signed in";
        Problem::of(ProblemCode::NoSession, words).hint("open the page of the service and sign in")
    })?;
    let now = http.service.engine.now();
    Ok(BrowserSession {
        confirmed_until: http.confirmations().until(&pass.hash, now).await?,
        hash: pass.hash,
    })
}

/// Says which passkeys one has.
#[utoipa::path(get, path = "/passkeys", operation_id = "passkeys", tag = "access",
    responses((status = 200, description = "The passkeys, oldest first.", body = PasskeyList)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn list_passkeys(State(http): State<Http>, caller: Caller) -> HttpResult<Json<PasskeyList>> {
    let all = http.service.passkeys.list(&caller.principal).await?;
    let now = http.service.engine.now();
    let until = http.confirmations().until(&caller.credential, now).await?;
    Ok(Json(PasskeyList {
        passkeys: all.iter().map(PasskeyLine::of).collect(),
        confirmed_until: until.map(|until| until.to_string()),
    }))
}

/// What a device is to do.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum DeviceTask {
    /// Make a passkey.
    Registration,
    /// Show that a passkey is there, and the person.
    Confirmation,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "for": "confirmation" }))]
struct DeviceQuestionRequest {
    #[serde(rename = "for")]
    task: DeviceTask,
}

/// What a page hands to `navigator.credentials`. All bytes are in the URL-safe form of Base64.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DeviceQuestion {
    /// What is to be signed, once and within five minutes.
    challenge: String,
    /// The host that passkeys are for.
    host: String,
    /// What devices know the person by.
    user_id: String,
    user_name: String,
    /// The passkeys that there are.
    known: Vec<String>,
}

/// Begins making a passkey, or confirming with one.
#[utoipa::path(post, path = "/passkeys/challenge", operation_id = "askDevice", tag = "access",
    request_body = DeviceQuestionRequest,
    responses((status = 200, description = "What the device is asked.", body = DeviceQuestion)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn ask_device(
    State(http): State<Http>,
    uri: Uri,
    headers: HeaderMap,
    caller: Caller,
    JsonBody(asked): JsonBody<DeviceQuestionRequest>,
) -> HttpResult<Json<DeviceQuestion>> {
    let session = browser_session(&http, &caller).await?;
    let (_, host) = place(&http, (&uri, &headers))?;
    let purpose = match asked.task {
        DeviceTask::Registration => PasskeyPurpose::Registration,
        DeviceTask::Confirmation => PasskeyPurpose::Confirmation,
    };
    let mut challenge = [0; 32];
    getrandom::fill(&mut challenge)
        .map_err(|_| Problem::of(ProblemCode::Internal, "the service has no randomness"))?;
    let now = http.service.engine.now();
    if !http
        .confirmations()
        .ask(session.hash, (purpose, challenge), now)
        .await?
    {
        let words = "too many devices are being asked";
        return Err(Problem::later(ProblemCode::TooBusy, words, 30));
    }
    let known = http.service.passkeys.list(&caller.principal).await?;
    let person = Digest::of_parts(&[
        caller.principal.kind.as_str().as_bytes(),
        caller.principal.name.as_bytes(),
    ]);
    Ok(Json(DeviceQuestion {
        challenge: encode(&challenge),
        host,
        user_id: encode(person.as_bytes()),
        user_name: caller.principal.name,
        known: known.iter().map(|passkey| encode(&passkey.id)).collect(),
    }))
}

/// The origin of the page, and its host.
fn place(http: &Http, place: (&Uri, &HeaderMap)) -> HttpResult<(String, String)> {
    own_origin(&http.settings, place)
        .ok_or_else(|| Problem::bad_request("the request names no host"))
}

fn not_asked() -> Problem {
    Problem::of(
        ProblemCode::Conflict,
        "the device was not asked, answered already, or took too long",
    )
    .hint("POST /passkeys/challenge asks again")
}

/// What a device said when it made a passkey. All bytes are in the URL-safe form of Base64.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(example = json!({ "label": "My phone", "clientData": "eyJ0…", "attestation": "o2Nm…" }))]
struct NewPasskey {
    /// What its owner calls it.
    #[schema(min_length = 1, max_length = 60)]
    label: String,
    /// `response.clientDataJSON`.
    client_data: String,
    /// `response.attestationObject`.
    attestation: String,
}

/// Keeps a passkey. Further ones than the first have to be confirmed with one that is there.
#[utoipa::path(post, path = "/passkeys", operation_id = "addPasskey", tag = "access",
    request_body = NewPasskey,
    responses((status = 201, description = "The passkey.", body = PasskeyLine)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn add_passkey(
    State(http): State<Http>,
    uri: Uri,
    headers: HeaderMap,
    caller: Caller,
    JsonBody(new): JsonBody<NewPasskey>,
) -> HttpResult<(StatusCode, Json<PasskeyLine>)> {
    let session = browser_session(&http, &caller).await?;
    let said = Registration {
        client_data: decode("clientData", &new.client_data)?,
        attestation: decode("attestation", &new.attestation)?,
    };
    let (origin, host) = place(&http, (&uri, &headers))?;
    let now = http.service.engine.now();
    let purpose = PasskeyPurpose::Registration;
    let challenge = http
        .confirmations()
        .answer(&session.hash, purpose, now)
        .await?;
    let challenge = challenge.ok_or_else(not_asked)?;
    let holder = Holder {
        principal: &caller.principal,
        confirmed: session.confirmed_until.is_some(),
    };
    let ceremony = Ceremony {
        challenge: &challenge,
        origin: &origin,
        host: &host,
    };
    let kept = register_passkey(ports(&http), holder, (ceremony, &said), &new.label, now).await?;
    tracing::info!(person = %caller.principal, "a passkey was registered");
    // The device has just checked who is in front of it.
    http.confirmations().note(session.hash, now).await?;
    Ok((StatusCode::CREATED, Json(PasskeyLine::of(&kept))))
}

fn ports(http: &Http) -> (&dyn Passkeys, &dyn PasskeyVerifier) {
    (&*http.service.passkeys, &*http.service.passkey_verifier)
}

/// What a device said when a passkey was used. All bytes are in the URL-safe form of Base64.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(example = json!({ "id": "kX2b…", "clientData": "eyJ0…", "authenticatorData": "SZYN…", "signature": "MEUC…" }))]
struct PasskeyUse {
    /// The passkey.
    id: String,
    /// `response.clientDataJSON`.
    client_data: String,
    /// `response.authenticatorData`.
    authenticator_data: String,
    /// `response.signature`.
    signature: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Confirmed {
    /// Until when the session counts as confirmed.
    confirmed_until: String,
}

/// Confirms the session of this request with a passkey. What is approved in it then is approved with assurance `passkey`,
/// for 15 minutes.
#[utoipa::path(post, path = "/passkeys/confirm", operation_id = "confirmSession", tag = "access",
    request_body = PasskeyUse,
    responses((status = 200, description = "It is confirmed.", body = Confirmed)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn confirm_session(
    State(http): State<Http>,
    uri: Uri,
    headers: HeaderMap,
    caller: Caller,
    JsonBody(used): JsonBody<PasskeyUse>,
) -> HttpResult<Json<Confirmed>> {
    let session = browser_session(&http, &caller).await?;
    let id = decode("id", &used.id)?;
    let said = Assertion {
        client_data: decode("clientData", &used.client_data)?,
        authenticator_data: decode("authenticatorData", &used.authenticator_data)?,
        signature: decode("signature", &used.signature)?,
    };
    let (origin, host) = place(&http, (&uri, &headers))?;
    let now = http.service.engine.now();
    let purpose = PasskeyPurpose::Confirmation;
    let challenge = http
        .confirmations()
        .answer(&session.hash, purpose, now)
        .await?;
    let challenge = challenge.ok_or_else(not_asked)?;
    let ceremony = Ceremony {
        challenge: &challenge,
        origin: &origin,
        host: &host,
    };
    let checked =
        confirm_with_passkey(ports(&http), &caller.principal, (ceremony, &said), &id, now).await;
    checked.inspect_err(
        |error| tracing::warn!(person = %caller.principal, %error, "a passkey did not confirm"),
    )?;
    let until = http.confirmations().note(session.hash, now).await?;
    Ok(Json(Confirmed {
        confirmed_until: until.to_string(),
    }))
}

/// Removes a passkey. It has to be confirmed with one, which may be the same.
#[utoipa::path(delete, path = "/passkeys/{passkey}", operation_id = "deletePasskey", tag = "access",
    params(("passkey" = String, Path, description = "What the device knows it by.")),
    responses((status = 204, description = "It is gone.")),
    extensions(("x-planwright-action" = json!("read"))))]
async fn delete_passkey(
    State(http): State<Http>,
    caller: Caller,
    Path(passkey): Path<String>,
) -> HttpResult<StatusCode> {
    let session = browser_session(&http, &caller).await?;
    let unreadable = |_| Problem::of(ProblemCode::BadId, "this cannot be the id of a passkey");
    let id = BASE64_URL_SAFE_NO_PAD
        .decode(&passkey)
        .map_err(unreadable)?;
    let holder = Holder {
        principal: &caller.principal,
        confirmed: session.confirmed_until.is_some(),
    };
    remove_passkey(&*http.service.passkeys, holder, &id).await?;
    tracing::info!(person = %caller.principal, "a passkey was removed");
    Ok(StatusCode::NO_CONTENT)
}
