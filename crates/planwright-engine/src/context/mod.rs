//! Everything the rooms of the engine share: ports, settings, and the runs in progress.
//!
//! It is the lowest room: it imports ports and values, and never a room that uses it. A settings
//! type that the context holds therefore lives here and not beside the code that obeys it.

mod active;
mod claimed;
mod clients;
pub mod crash;
mod families;
mod grouped_store;
mod isolation;
mod joint_commit;
mod kept_overview;
mod kept_times;
mod limiter;
mod observer;
mod offer_desk;
pub(crate) mod offered_talk;
mod pauses;
mod ports;
mod recent_reviews;
mod settings;
mod shared;
mod step_claims;
pub mod telemetry;
mod tenure;
mod worker_tools;

pub(crate) use active::{ActiveRuns, Decided, Reply, Request, Verdict};
pub use claimed::for_request;
pub(crate) use claimed::{current_claim, for_same_request};
pub(crate) use clients::{
    BegunCall, BegunRun, CallExecution, ClientCalls, ClientEars, ClientOutcome, ClientWork, Clients,
};
pub(crate) use families::{RunFamilies, RunFamily};
pub(crate) use grouped_store::{GroupedStore, LateRecord};
pub(crate) use isolation::{Presence, Waiting, isolation_span};
pub(crate) use joint_commit::{JointOpening, JointPart, JointWriter, JointWritten, joint_commit};
pub use kept_overview::PlanSummary;
pub(crate) use kept_overview::{KeptOverview, SeenRun};
pub(crate) use kept_times::KeptTimes;
pub use limiter::ConcurrencyLimits;
pub(crate) use limiter::{Demand, Limiter, Permit};
pub(crate) use observer::{LogKeeper, Observers};
pub use observer::{Observer, on_step_complete, on_step_start};
pub use offer_desk::DispatchSettings;
pub(crate) use offer_desk::{OfferDesk, OfferSight, WatchedOffer};
pub use pauses::Pauses;
pub(crate) use ports::{Ports, RetentionPorts};
pub(crate) use recent_reviews::RecentReviews;
pub(crate) use settings::Settings;
pub use settings::{AgentSettings, Retention};
pub(crate) use shared::Context;
pub use step_claims::StepClaims;
pub(crate) use step_claims::StepEnd;
pub(crate) use tenure::Tenure;
pub(crate) use worker_tools::{ToolsWithWorkers, WorkerTools};
