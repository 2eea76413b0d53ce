//! Who makes a request: the agent at the other end of the pipe, or the owner of a token.

use crate::answer::Problem;
use crate::http::HttpCaller;
use crate::server::Host;
use planwright_core::policy::Permission;
use planwright_core::principal::{Principal, PrincipalKind};
use rmcp::service::{RequestContext, RoleServer};

/// Characters of a client's name.
const MAX_NAME: usize = 64;

/// Who makes a request, and who can be asked about it.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) principal: Principal,
    /// The person behind the client. `None` where there is none who could be told from an agent.
    pub(crate) person: Option<Principal>,
    /// Tells the callers of one process apart. Those on a pipe are one, by the names they give
    /// themselves too: what they may spend together is not theirs to multiply.
    pub(crate) key: String,
    /// What a token lets its owner do; absent for an agent on a pipe, about which the engine decides.
    allowed: Option<Vec<Permission>>,
}

impl Caller {
    pub(crate) fn of(host: &Host, context: &RequestContext<RoleServer>) -> Self {
        let parts = context.extensions.get::<http::request::Parts>();
        let Some(parts) = parts else {
            return Self {
                principal: agent_of(context),
                person: host.person.clone(),
                key: String::new(),
                allowed: None,
            };
        };
        match parts.extensions.get::<HttpCaller>() {
            Some(caller) => Self {
                principal: caller.principal.clone(),
                // Only a person whose token may approve is asked to.
                person: Some(caller.principal.clone()).filter(|owner| {
                    owner.kind == PrincipalKind::Person
                        && caller.allowed.contains(&Permission::Approve)
                }),
                key: caller.principal.to_string(),
                allowed: Some(caller.allowed.clone()),
            },
            // A request that the service did not recognise may do nothing.
            None => Self {
                principal: agent_of(context),
                person: None,
                key: String::new(),
                allowed: Some(Vec::new()),
            },
        }
    }

    /// Refuses what the caller's token is not for.
    pub(crate) fn check(&self, action: Permission) -> Result<(), Problem> {
        let Some(allowed) = &self.allowed else {
            return Ok(());
        };
        if allowed.contains(&action) {
            return Ok(());
        }
        let error = format!("the token of {} does not let it {action}", self.principal);
        Err(Problem::new(error).next("use a token with a role that may"))
    }
}

/// An agent, by the name its client gives itself.
fn agent_of(context: &RequestContext<RoleServer>) -> Principal {
    let name = context.client_info().map(|info| info.name);
    let name: String = name
        .unwrap_or_default()
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(*letter))
        .take(MAX_NAME)
        .collect();
    Principal::agent(if name.is_empty() {
        "mcp".to_owned()
    } else {
        name
    })
}
