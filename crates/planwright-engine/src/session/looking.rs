//! A session for a planner that looks before it plans.

use super::WantedByClient;
use super::{CallEvent, ClientAnswer, OpenSessionError, Session, SessionTerms, Sessions};
use crate::agent::messages::{failure, refusal};
use crate::context::Context;
use crate::planner::{LookError, Looking};
use crate::port::{BoxFuture, ProgressSink};
use planwright_core::id::PlanId;
use planwright_core::json::tell_value;
use planwright_core::model::WantedCall;
use planwright_core::plan::Budget;
use planwright_core::planning::MAX_LOOKS;
use planwright_core::policy::Mode;
use planwright_core::principal::Principal;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The name under which a planner's calls are journaled.
const CLIENT: &str = "planner";

/// Makes ready to look around. The session is opened with the first call.
pub(crate) fn start_looking(
    context: &Arc<Context>,
    owner: Principal,
    servers: BTreeSet<String>,
) -> Box<dyn Looking> {
    let terms = SessionTerms {
        client: CLIENT.to_owned(),
        agent: Principal::agent(CLIENT),
        mode: Mode::Enforce,
        owner,
        budget: Budget {
            calls: Some(MAX_LOOKS as u64),
            ..Budget::default()
        },
        servers,
    };
    Box::new(PlannerSession {
        sessions: Sessions::new(context),
        terms,
        session: None,
    })
}

#[derive(Debug)]
struct PlannerSession {
    sessions: Sessions,
    terms: SessionTerms,
    session: Option<Session>,
}

impl PlannerSession {
    async fn call(&mut self, call: &WantedCall) -> Result<String, OpenSessionError> {
        let session = match &self.session {
            Some(session) => session,
            None => {
                let opened = self.sessions.open(self.terms.clone()).await?;
                self.session.insert(opened)
            }
        };
        let wanted = WantedByClient {
            tool: call.name.clone(),
            args: call.args.clone(),
            attended: false,
            progress: ProgressSink::default(),
            client: None,
        };
        let open = match session.call(wanted).await {
            Ok(open) => open,
            Err(error) => return Ok(refusal(&error)),
        };
        Ok(match open.advance().await {
            CallEvent::Asks(_) => "Not called: a person would have to be asked.".to_owned(),
            CallEvent::Ended(ClientAnswer {
                outcome: Ok(value), ..
            }) => tell_value(&value),
            CallEvent::Ended(ClientAnswer {
                outcome: Err(error),
                ..
            }) => failure(&error),
        })
    }
}

impl Looking for PlannerSession {
    fn call<'a>(&'a mut self, call: &'a WantedCall) -> BoxFuture<'a, Result<String, LookError>> {
        Box::pin(async move { self.call(call).await.map_err(LookError::from) })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, Option<PlanId>> {
        Box::pin(async move {
            let session = self.session?;
            let plan = session.plan().clone();
            session.close().await;
            Some(plan)
        })
    }
}
