//! Principals, and the evidence for who they are.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A person, an agent or a service. Only a person's approval is a person's approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Principal {
    /// Kind of the principal.
    pub kind: PrincipalKind,
    /// Name of the principal, unique within its kind.
    pub name: String,
}

/// The kind of a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrincipalKind {
    /// A human being.
    Person,
    /// A program that acts for a person through a model. It proposes; it never approves.
    Agent,
    /// A program that acts for itself.
    Service,
    /// A rule of the operator. What policy approves is recorded as policy's.
    Policy,
}

/// The evidence that the principal is who it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assurance {
    /// Read the plan on a terminal and answered there.
    Terminal,
    /// Said so on the command line (`--yes`, `approve`) as the operating-system user.
    CommandLine,
    /// Used the library from a program.
    Program,
    /// Brought a token to the service.
    Token,
    /// Signed in to the service's web pages with a link shown on the operator's terminal.
    WebSignIn,
    /// Signed in to the service's web pages by way of the operator's identity provider.
    SingleSignOn,
    /// Signed in to the service's web pages, and has just used a passkey of their own there.
    Passkey,
    /// A program that shows questions to a person on our behalf says that the person agreed.
    HostMediated,
    /// A rule, not a person.
    Policy,
}

impl Principal {
    /// Makes a person.
    pub fn person(name: impl Into<String>) -> Self {
        Self {
            kind: PrincipalKind::Person,
            name: name.into(),
        }
    }

    /// Makes an agent.
    pub fn agent(name: impl Into<String>) -> Self {
        Self {
            kind: PrincipalKind::Agent,
            name: name.into(),
        }
    }

    /// Makes a service.
    pub fn service(name: impl Into<String>) -> Self {
        Self {
            kind: PrincipalKind::Service,
            name: name.into(),
        }
    }

    /// The rule that lets plans of read-only tools run without being asked about.
    pub fn read_only_policy() -> Self {
        Self {
            kind: PrincipalKind::Policy,
            name: "read-only".into(),
        }
    }

    /// Returns the service that looks at runs and proposes adjustments. It never approves.
    pub fn reflector() -> Self {
        Self::service("reflector")
    }

    /// An agent proposes, reads and cancels. It never approves.
    pub fn may_approve(&self) -> bool {
        match self.kind {
            PrincipalKind::Person | PrincipalKind::Policy => true,
            PrincipalKind::Agent | PrincipalKind::Service => false,
        }
    }
}

impl PrincipalKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Person, Self::Agent, Self::Service, Self::Policy];

    /// Returns the kind's word in journals.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Agent => "agent",
            Self::Service => "service",
            Self::Policy => "policy",
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}
