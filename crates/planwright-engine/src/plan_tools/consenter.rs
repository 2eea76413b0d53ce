//! The traits that the plan tools need from the face that offers them.

use crate::port::BoxFuture;
use crate::review::given_approval::GivenApproval;
use crate::review::plans::Candidate;
use planwright_core::principal::Principal;
use planwright_core::review::Review;
use planwright_core::run::Run;
use planwright_core::trace::TraceId;
use std::fmt;
use tokio_util::sync::CancellationToken;

/// The plan that a model wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanWish {
    /// The goal to be achieved.
    pub goal: String,
    /// What its conversation has found out, in its words: data, like everything a model writes.
    pub context: Option<String>,
}

/// Makes a proposed plan of a goal, with all that its face knows of the workspace.
pub trait PlanMaker: Send + Sync + fmt::Debug {
    /// The plan, stored as proposed by `by`; or why there is none, in words for the model.
    fn make(
        &self,
        wish: PlanWish,
        by: Principal,
        trace: TraceId,
        cancelled: CancellationToken,
    ) -> BoxFuture<'static, Result<Review, String>>;
}

/// Reaches the person a model works for, where they are. What it returns is a person's word or
/// nothing.
pub trait Consenter: Send + Sync + fmt::Debug {
    /// Shows the plan as it would run and asks the person. Without a yes, no person was asked, or
    /// the person did not agree.
    fn agree<'a>(
        &'a self,
        review: &'a Review,
        candidate: &'a Candidate,
    ) -> BoxFuture<'a, Consented>;

    /// Asks about everything that a run waits for. Whether anything was decided.
    fn decide<'a>(&'a self, run: &'a Run) -> BoxFuture<'a, bool>;
}

/// The outcome of asking.
#[derive(Debug, Clone)]
pub enum Consented {
    /// The person agreed.
    Yes(Box<GivenApproval>),
    /// The person said no, or not clearly yes.
    No,
    /// There was no person to ask.
    NotAsked,
}

/// No person is there: what needs a person waits for one.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPersonToAsk;

impl Consenter for NoPersonToAsk {
    fn agree<'a>(&'a self, _: &'a Review, _: &'a Candidate) -> BoxFuture<'a, Consented> {
        Box::pin(std::future::ready(Consented::NotAsked))
    }

    fn decide<'a>(&'a self, _: &'a Run) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(false))
    }
}
