//! What the engine needs from the outside, as traits. Adapters implement them; the engine knows no
//! vendor.

mod answers;
mod artifacts;
mod broker;
mod call_client;
mod clock;
mod error_chain;
mod error_kind;
mod executor;
mod identity_provider;
mod leftovers;
mod model;
mod offers;
mod outbox;
mod passes;
mod passkeys;
mod person_line;
mod plan_files;
mod progress;
mod published_tool;
mod request_rates;
mod retention_store;
mod secrets;
mod server_sign_ins;
mod servers;
mod service_notes;
mod sign_in_store;
mod step_logs;
mod store;
mod surroundings;
mod tokens;
mod tools;

pub use answers::{
    ANSWER_LIFE, Answers, Asking, Claim, MAX_ANSWERS, MAX_DECISIONS, RequestClaim, says_more,
};
pub use artifacts::{ArtifactError, ArtifactFile, ArtifactRef, Artifacts};
pub use broker::{
    Broker, BrokerError, DeadNotice, NoticeEnd, Notices, QueueState, ReceivedNotice, StepNotice,
};
pub use call_client::CallClient;
pub use clock::{Clock, Ids};
pub use error_chain::with_causes;
pub use executor::{DelegateError, Delegated, Delegation, Executors, Gateway, GatewayTool};
pub use identity_provider::{IdentityError, IdentityProvider, ProviderVisit};
pub use leftovers::{Leftovers, StillRunning};
pub(crate) use model::offer_tool;
pub use model::{KeyState, Model, ModelAnswer, ModelError, ModelInfo, ModelRequest, TextSink};
pub use offers::{
    CallNews, ClaimError, ClaimStanding, ClaimedOffer, ListedWorker, OfferChange, OfferClaim,
    OfferKey, OfferLook, OfferQuestion, OfferReport, OfferState, Offers, StepOffer, WaitingOffers,
    WantedOffers, WorkerRecord,
};
pub use outbox::{Delivery, DeliveryState, EndpointStanding, Outbox, Settled};
pub use passes::{Pass, PassKind, Passes};
pub use passkeys::{
    Assertion, Ceremony, MadePasskey, Passkey, PasskeyFault, PasskeyVerifier, Passkeys,
    Registration,
};
pub use person_line::PersonLine;
pub use plan_files::PlanFiles;
pub use progress::{LogLevel, LoggedLine, Progress, ProgressSink};
pub use published_tool::PublishedTool;
pub use request_rates::{RequestRates, WantedRequests};
pub use retention_store::{
    Removed, RetainError, RetentionStore, RetentionTurn, SealCursor, SealedJournal,
};
pub use secrets::{SecretError, Secrets};
pub use server_sign_ins::{ReturnedCode, ServerSignInError, ServerSignIns, SignInServer};
pub use servers::{ClientInput, ServerError, ServerNews, ServerQuestion, Servers};
pub use service_notes::{NoteKind, ServiceNote, ServiceNotes, random_key};
pub use sign_in_store::SignInStore;
pub use step_logs::{KeptLine, StepLogs};
pub(crate) use store::failed_for_good;
pub use store::{
    AcquireError, Append, AppendError, Brought, Changes, FeedOf, Journal, Lease, LeaseRule, Leases,
    MAX_PAGE_BYTES, Mailbox, MailboxMessage, MessageId, OwnerId, Placed, Position, Store,
    StoreError, StoreHealth, StreamCounts, StreamIndex, StreamInfo, StreamStatus,
    is_last_feed_page, is_last_page,
};
pub use surroundings::Surroundings;
pub use tokens::{Token, TokenId, Tokens};
pub use tools::{AnswerSink, Call, CallError, Outcome, Tools};

/// A boxed future, so that ports can be used as `dyn`.
pub type BoxFuture<'a, T> = futures::future::BoxFuture<'a, T>;
