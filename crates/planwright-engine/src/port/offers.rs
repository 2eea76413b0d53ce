//! Offers: attempts that workers carry out. The store decides which worker, and what of its answer counts.
//!
//! An offer is written with the entry that starts its attempt, and removed with the entry that ends it. In between it is
//! claimed by one worker at most, for as long as that worker renews its claim.

use super::store::{OwnerId, StoreError};
use super::{BoxFuture, PublishedTool};
use planwright_core::digest::Digest;
use planwright_core::id::{AttemptNo, RunId, StepId};
use planwright_core::time::Timestamp;
use planwright_core::tool::{EffectClass, ToolName};
use std::fmt;
use std::time::Duration;
use tokio::sync::watch;

/// Names the attempt that is offered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferKey {
    /// The run of the step.
    pub run: RunId,
    /// The step.
    pub step: StepId,
    /// The attempt.
    pub attempt: AttemptNo,
}

impl fmt::Display for OfferKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.run, self.step, self.attempt)
    }
}

/// An attempt that a worker is to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepOffer {
    /// The attempt.
    pub key: OfferKey,
    /// The capability that the worker needs.
    pub capability: String,
    /// The key of the call, the same for every attempt of the step.
    pub idempotency_key: String,
    /// The tool that is called.
    pub tool: ToolName,
    /// The tool's definition as it was judged. A worker that has another one cannot take the offer.
    pub definition: Digest,
    /// The effect class of the call.
    pub class: EffectClass,
    /// The call as JSON, with no value of a secret in it.
    pub call: Vec<u8>,
}

/// What an append changes about offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfferChange {
    /// The append starts this attempt.
    Make(Box<StepOffer>),
    /// The append ends this attempt. It is not an error if there is no such offer.
    End(OfferKey),
}

/// How an offer stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfferState {
    /// It waits for a worker.
    Offered,
    /// A worker carries it out.
    Claimed {
        /// The worker.
        by: OwnerId,
        /// The worker has not renewed its claim in time.
        is_over: bool,
    },
    /// A worker has answered.
    Answered(Vec<u8>),
    /// It is not wanted any more, and no worker has ever claimed it.
    Withdrawn,
    /// The worker that had claimed it is gone: what it did is unknown.
    Lost,
}

/// The right of a worker to carry out an attempt, while it lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferClaim {
    /// The attempt.
    pub key: OfferKey,
    /// The worker.
    pub worker: OwnerId,
    /// Tells the claims of a store apart.
    pub number: i64,
}

/// An offer that a worker may carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedOffer {
    /// What is to be done.
    pub offer: StepOffer,
    /// The right to do it.
    pub claim: OfferClaim,
}

/// What a worker takes.
#[derive(Debug, Clone)]
pub struct WantedOffers {
    /// The worker.
    pub worker: OwnerId,
    /// Its capabilities.
    pub capabilities: Vec<String>,
    /// The definitions of the tools that it can call now.
    pub definitions: Vec<Digest>,
    /// Only this one, if a notice named it.
    pub only: Option<OfferKey>,
    /// Time until a claim ends without being renewed.
    pub ttl: Duration,
}

/// Whether a claimed call is still wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimStanding {
    /// It is.
    Held,
    /// Its answer is not wanted any more: the call is to be stopped, and its outcome to be told.
    Unwanted,
}

/// Why a worker may not go on.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClaimError {
    /// The claim ran out, or the attempt is over: nothing may be done or written for it.
    #[error("the claim on {0} is over")]
    Over(OfferKey),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is asked of an offer that is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferLook {
    /// The attempt.
    pub key: OfferKey,
    /// The news of its call that were heard last.
    pub heard: u64,
}

/// How an offer stands, and what its worker says meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferReport {
    /// The attempt.
    pub key: OfferKey,
    /// How it stands.
    pub state: OfferState,
    /// What the tool asks a person, until that person replies.
    pub question: Option<OfferQuestion>,
    /// What came after the news that were heard last.
    pub news: Option<CallNews>,
}

/// What the tool of a claimed call asks a person in the middle of it. The call is held meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferQuestion {
    /// Counts the questions of the attempt from 1: a reply to one is never taken for a reply to the next one.
    pub number: u32,
    /// The question as JSON, masked.
    pub asked: Vec<u8>,
}

/// How far a claimed call is, and what its server logged. Untrusted, and worth no sync of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallNews {
    /// Counts the news of the attempt from 1.
    pub number: u64,
    /// The news as JSON, masked.
    pub told: Vec<u8>,
}

/// A worker, as it says itself.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerRecord {
    /// The name under which it claims offers and owns runs.
    pub id: OwnerId,
    /// The machine it runs on.
    pub host: String,
    /// Its process there.
    pub pid: u32,
    /// The version of its program.
    pub version: String,
    /// Its capabilities.
    pub capabilities: Vec<String>,
    /// Offers that it carries out at once.
    pub concurrency: u32,
    /// The tools that it has.
    pub tools: Vec<PublishedTool>,
}

/// A worker, and what it does.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedWorker {
    /// What it says itself.
    pub record: WorkerRecord,
    /// When it began.
    pub started_at: Timestamp,
    /// When the store last heard of it.
    pub seen_at: Timestamp,
    /// False if it is gone.
    pub is_alive: bool,
    /// True if it takes nothing any more.
    pub is_draining: bool,
    /// The attempts that it has claimed.
    pub claims: Vec<OfferKey>,
    /// The runs that it owns.
    pub runs: Vec<RunId>,
}

/// Offers of one capability that wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingOffers {
    /// The capability.
    pub capability: String,
    /// How many wait.
    pub count: u64,
    /// How long the first of them has waited.
    pub oldest: Duration,
}

/// Offers and the workers that take them.
pub trait Offers: Send + Sync + fmt::Debug {
    /// All offers of a run, with how they stand.
    fn offers<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<(StepOffer, OfferState)>, StoreError>>;

    /// How these offers stand. One that is over is left out.
    fn offer_states(
        &self,
        keys: Vec<OfferKey>,
    ) -> BoxFuture<'_, Result<Vec<(OfferKey, OfferState)>, StoreError>>;

    /// Gives the oldest offer that fits to this worker, if there is one. No other worker gets it.
    fn claim_offer(
        &self,
        wanted: WantedOffers,
    ) -> BoxFuture<'_, Result<Option<ClaimedOffer>, StoreError>>;

    /// Extends a claim, unless it is over.
    fn renew_claim<'a>(
        &'a self,
        claim: &'a OfferClaim,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<ClaimStanding, ClaimError>>;

    /// Gives an offer back that was claimed and not begun.
    fn return_offer<'a>(&'a self, claim: &'a OfferClaim) -> BoxFuture<'a, Result<(), ClaimError>>;

    /// Writes the answer of a worker, durable on return. Refused if the claim is over.
    fn answer_offer<'a>(
        &'a self,
        claim: &'a OfferClaim,
        answer: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), ClaimError>>;

    /// Says that an offer is not wanted any more, and returns how it stands then: withdrawn, if no worker had claimed it;
    /// otherwise its worker is told to stop.
    fn withdraw_offer<'a>(
        &'a self,
        key: &'a OfferKey,
    ) -> BoxFuture<'a, Result<Option<OfferState>, StoreError>>;

    /// Ends the claim of a worker that is gone, unless it has answered. Returns how the offer stands then.
    fn lose_offer<'a>(
        &'a self,
        key: &'a OfferKey,
        by: &'a OwnerId,
    ) -> BoxFuture<'a, Result<Option<OfferState>, StoreError>>;

    /// How these offers stand, and what their workers say. One that is over is left out.
    fn look_at_offers(
        &self,
        looks: Vec<OfferLook>,
    ) -> BoxFuture<'_, Result<Vec<OfferReport>, StoreError>>;

    /// Replaces the news of a claimed call. They may get lost, and are dropped if the claim is over. Those who watch the offer
    /// find them with their next look: no process is woken.
    fn tell_news<'a>(
        &'a self,
        claim: &'a OfferClaim,
        news: CallNews,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Writes what the tool of a claimed call asks, durable on return. It may be repeated. Refused if the claim is over.
    fn ask_owner<'a>(
        &'a self,
        claim: &'a OfferClaim,
        question: OfferQuestion,
    ) -> BoxFuture<'a, Result<(), ClaimError>>;

    /// Writes the replies to the question with this number, durable on return. Of several, the first count.
    fn reply_to_offer<'a>(
        &'a self,
        key: &'a OfferKey,
        number: u32,
        replies: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The replies to the question with this number, if they are there. Refused if the claim is over.
    fn find_replies<'a>(
        &'a self,
        claim: &'a OfferClaim,
        number: u32,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, ClaimError>>;

    /// Changes its value whenever there may be an offer to claim, also one that another process made.
    fn offer_news(&self) -> watch::Receiver<u64>;

    /// Changes its value whenever something may have been said of an offer, also by another process: that it is answered or not
    /// wanted any more, what its tool asks, and the reply to that. No process is woken by a claim.
    fn answer_news(&self) -> watch::Receiver<u64>;

    /// Makes a worker known, and shows that it is alive for as long as the store is open.
    fn register_worker(&self, record: WorkerRecord) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Says that a worker takes nothing any more.
    fn drain_worker<'a>(&'a self, id: &'a OwnerId) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Says that a worker is gone. What it had stays known for a while.
    fn remove_worker<'a>(&'a self, id: &'a OwnerId) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The workers that are there, and those that were there lately.
    fn workers(&self) -> BoxFuture<'_, Result<Vec<ListedWorker>, StoreError>>;

    /// Names what workers say about themselves: it differs once one came, drains, left or has other tools. Reading it costs
    /// less than reading the workers.
    fn workers_version(&self) -> BoxFuture<'_, Result<String, StoreError>>;

    /// The offers that no worker has claimed, by capability.
    fn waiting_offers(&self) -> BoxFuture<'_, Result<Vec<WaitingOffers>, StoreError>>;
}
