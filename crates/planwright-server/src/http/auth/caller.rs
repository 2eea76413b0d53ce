//! Who makes a request, and what they may do.

use crate::documents::Reader;
use crate::http::problem::{Problem, ProblemCode};
use crate::observe::{TraceId, told_place};
use axum::extract::FromRequestParts;
use http::request::Parts;
use planwright_core::digest::Digest;
use planwright_core::policy::{Permission, Policy, Role};
use planwright_core::principal::{Assurance, Principal};
use std::convert::Infallible;

/// The principal that makes this request, as its token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub principal: Principal,
    pub role: Role,
    pub assurance: Assurance,
    /// The hash of the token or session that was shown: what was opened with it ends with it.
    pub credential: Digest,
}

impl Caller {
    /// The caller as the reader of a document about a plan.
    pub(crate) fn reader(&self, policy: &Policy) -> Reader {
        let refusal = authorize(self, Permission::Approve, policy).err();
        Reader {
            principal: self.principal.clone(),
            assurance: self.assurance,
            refusal: refusal.map(|problem| problem.detail),
        }
    }
}

/// The one question of authorization: the token's role and the operator's policy must both allow
/// it.
pub(crate) fn authorize(
    caller: &Caller,
    action: Permission,
    policy: &Policy,
) -> Result<(), Problem> {
    if !caller.role.includes(action) {
        return Err(Problem::of(
            ProblemCode::NotPermitted,
            format!(
                "a token with the role {} may not {action}",
                caller.role.as_str()
            ),
        ));
    }
    if !policy.roles.permits(&caller.principal, action) {
        return Err(Problem::of(
            ProblemCode::NotPermitted,
            format!("{} may not {action}", caller.principal),
        ));
    }
    Ok(())
}

/// Present on every route that is not public: the layer in front of the routes puts it there.
impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| {
            Problem::of(
                ProblemCode::Unauthorized,
                "the caller of this request is not known",
            )
        })
    }
}

/// The trace that the caller told of, if it did. What it orders belongs there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToldTrace(pub(crate) Option<TraceId>);

impl<S: Send + Sync> FromRequestParts<S> for ToldTrace {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(told_place(&parts.headers).map(|place| place.trace)))
    }
}

/// The trace this request belongs to, as it is written in answers.
#[derive(Debug, Clone)]
pub(crate) struct Trace(pub(crate) String);

/// The outermost layer gives every request one.
impl<S: Send + Sync> FromRequestParts<S> for Trace {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(
            parts
                .extensions
                .get::<TraceId>()
                .map(ToString::to_string)
                .unwrap_or_default(),
        ))
    }
}
