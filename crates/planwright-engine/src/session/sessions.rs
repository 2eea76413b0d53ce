//! Opening a session, and what its client may do in it.

use super::document::session_document;
use super::open_call::{OpenCall, WantedByClient};
use crate::context::{ClientWork, Context};
use crate::journal::journals::Journals;
use crate::review::given_approval::GivenApproval;
use crate::review::inbox::Inbox;
use crate::review::plans::{Candidate, Plans, ReviewError};
use crate::run::handle::RunHandle;
use crate::run::options::RunOptions;
use crate::run::runs::Runs;
use crate::run::start::StartRunError;
use planwright_core::id::{PlanId, RunId};
use planwright_core::plan::Budget;
use planwright_core::policy::{LateChoice, Mode};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::Review;
use planwright_core::run::{ClientTerms, Shown, StepError};
use serde_json::Map;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The sessions of clients of the gateway.
#[derive(Debug, Clone)]
pub struct Sessions {
    pub(super) context: Arc<Context>,
}

/// The terms with which a session is begun.
#[derive(Debug, Clone)]
pub struct SessionTerms {
    /// The name by which people know the client.
    pub client: String,
    /// The agent that calls.
    pub agent: Principal,
    /// The fate of a call that a person would have to agree to.
    pub mode: Mode,
    /// The person whose configuration lets such calls through, in modes that do.
    pub owner: Principal,
    /// The budget of the client.
    pub budget: Budget,
    /// The servers whose tools it may call.
    pub servers: BTreeSet<String>,
}

/// Why a session did not begin. Nothing can be called without one.
#[derive(Debug, thiserror::Error)]
pub enum OpenSessionError {
    /// Its plan cannot be written down.
    #[error("the plan of the session cannot be written")]
    Document(#[from] serde_json::Error),
    /// Its plan was refused.
    #[error("the session was refused")]
    Review(#[from] ReviewError),
    /// Its run was refused.
    #[error("the session cannot begin")]
    Start(#[from] StartRunError),
    /// Policy does not agree to it.
    #[error("policy does not agree to sessions here")]
    NotAgreed,
    /// Its run ended before it could be used.
    #[error("the session ended before it began")]
    Ended,
}

impl Sessions {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self {
            context: Arc::clone(context),
        }
    }

    pub(super) fn plans(&self) -> Plans {
        Plans::new(&self.context)
    }

    pub(super) fn runs(&self) -> Runs {
        Runs::new(&self.context)
    }

    pub(super) fn inbox(&self) -> Inbox {
        Inbox::new(&self.context)
    }

    pub(super) fn journals(&self) -> Journals {
        Journals::new(&self.context)
    }

    /// Begins a session with the tools there are now.
    pub async fn open(&self, terms: SessionTerms) -> Result<Session, OpenSessionError> {
        let context = &self.context;
        let id = format!("session-{:016x}", context.ports.ids.entropy());
        let all = context.catalog();
        let tools = all
            .iter()
            .filter(|tool| terms.servers.contains(&tool.name.server));
        let tools: Vec<String> = tools.map(|tool| tool.name.to_string()).collect();
        let document = session_document(&id, &terms.client, &tools, &terms.budget)?;
        let plans = self.plans();
        let (review, _) = plans.propose(document, &terms.agent).await?;
        let runs = self.runs();
        let candidate = runs.check_runnable(&review, &Map::new()).await?;
        let options = RunOptions {
            approval: Some(self.agree(&review, &candidate, &terms)?),
            linger: true,
            ..RunOptions::new(terms.agent.clone())
        };
        let expected = context.clients.expect(review.id());
        let started = runs.start(review.id(), options).await;
        let handle = started.inspect_err(|_| {
            drop(context.clients.take(review.id()));
        })?;
        let work = expected.await.map_err(|_| OpenSessionError::Ended)?;
        context.clients.note_session(review.id());
        Ok(Session {
            context: Arc::clone(context),
            plan: review.id().clone(),
            run: handle.run_id().clone(),
            mode: terms.mode,
            agent: terms.agent,
            work: Arc::new(work),
            handle,
        })
    }

    /// Policy agrees to a session in which every call is judged by itself. One that lets calls
    /// through which a person would be asked about is the word of the person who configured it.
    fn agree(
        &self,
        review: &Review,
        candidate: &Candidate,
        terms: &SessionTerms,
    ) -> Result<GivenApproval, OpenSessionError> {
        if terms.mode == Mode::Enforce {
            let agreed = self.plans().consent_of_policy(review, candidate);
            return agreed.ok_or(OpenSessionError::NotAgreed);
        }
        let shown = Shown::Digest(candidate.digest);
        let mut given = GivenApproval::new(shown, terms.owner.clone(), Assurance::CommandLine);
        given
            .late
            .insert(super::document::STEP.to_owned(), LateChoice::Any);
        Ok(given)
    }
}

/// The session of one client. It ends when it is closed or dropped.
#[derive(Debug)]
pub struct Session {
    context: Arc<Context>,
    plan: PlanId,
    run: RunId,
    mode: Mode,
    agent: Principal,
    work: Arc<ClientWork>,
    handle: RunHandle,
}

impl Session {
    /// The plan of the session.
    pub fn plan(&self) -> &PlanId {
        &self.plan
    }

    /// The run that journals the session.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The agent whose session it is.
    pub fn agent(&self) -> &Principal {
        &self.agent
    }

    /// Returns whether nothing is called in it any more, as after a person ended its run.
    pub fn is_over(&self) -> bool {
        self.handle.is_over()
    }

    /// Has a call decided on and begins it. An error says why it is not made.
    pub async fn call(&self, wanted: WantedByClient) -> Result<OpenCall, StepError> {
        let terms = ClientTerms {
            mode: self.mode,
            attended: wanted.attended,
        };
        OpenCall::begin(&self.context, &self.work, wanted, terms).await
    }

    /// Ends the session, and waits until that is journaled. Calls under way are brought to an end.
    pub async fn close(self) {
        let mut handle = self.handle;
        drop(self.work);
        if let Err(error) = handle.wait().await {
            tracing::warn!(run = %self.run, %error, "a session did not end as it should");
        }
    }
}
