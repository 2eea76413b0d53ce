//! Roles and their permissions.

use super::RolesTable;
use crate::principal::{Principal, PrincipalKind};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A role of a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Writes plans.
    Author,
    /// Runs plans.
    Operator,
    /// Approves plans and steps.
    Approver,
    /// Administers the service, and everything else.
    Admin,
}

/// An operation on plans, runs or the service that needs a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Read plans and runs.
    Read,
    /// Propose plans and versions.
    Propose,
    /// Delete plans.
    Delete,
    /// Start, resume, fork and pause runs.
    Run,
    /// Cancel runs.
    Cancel,
    /// Say what became of a call, or give the values a step asks for.
    Resolve,
    /// Approve and reject.
    Approve,
    /// Say something about a plan.
    Comment,
    /// See to the service itself: who has access, what it tells others.
    Administer,
}

impl Permission {
    /// Every operation.
    pub const ALL: [Self; 9] = [
        Self::Read,
        Self::Propose,
        Self::Delete,
        Self::Run,
        Self::Cancel,
        Self::Resolve,
        Self::Approve,
        Self::Comment,
        Self::Administer,
    ];
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read plans",
            Self::Propose => "propose plans",
            Self::Delete => "delete plans",
            Self::Run => "run plans",
            Self::Cancel => "cancel runs",
            Self::Resolve => "settle what a run asks a person",
            Self::Approve => "approve or reject",
            Self::Comment => "comment on plans",
            Self::Administer => "administer the service",
        })
    }
}

impl Role {
    /// All roles, from the least to the most.
    pub const ALL: [Self; 5] = [
        Self::Viewer,
        Self::Author,
        Self::Operator,
        Self::Approver,
        Self::Admin,
    ];

    /// Returns the role's word in configuration files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Author => "author",
            Self::Operator => "operator",
            Self::Approver => "approver",
            Self::Admin => "admin",
        }
    }

    /// Returns whether this role alone includes a permission. This is the whole matrix.
    pub fn includes(self, action: Permission) -> bool {
        match (self, action) {
            (Self::Admin, _) | (_, Permission::Read) => true,
            (
                Self::Author,
                Permission::Propose | Permission::Delete | Permission::Cancel | Permission::Comment,
            ) => true,
            (
                Self::Operator,
                Permission::Run | Permission::Cancel | Permission::Resolve | Permission::Comment,
            ) => true,
            (Self::Approver, Permission::Approve | Permission::Cancel | Permission::Comment) => {
                true
            }
            (Self::Viewer | Self::Author | Self::Operator | Self::Approver, _) => false,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a text that names no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no role: there are viewer, author, operator, approver and admin")]
pub struct ParseRoleError(String);

impl FromStr for Role {
    type Err = ParseRoleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| ParseRoleError(text.to_owned()))
    }
}

/// Kind and name of every principal that has a role.
type Holders = BTreeSet<(String, String)>;

/// The holders of each role. Every person holds a role that the table does not list, except
/// `admin`; without a table every person holds every role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles {
    /// Absent: every person has every role.
    table: Option<Vec<(Role, Option<Holders>)>>,
}

/// The error for a text that names no principal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no principal: write `person:NAME`, `agent:NAME` or `service:NAME`")]
pub struct ParsePrincipalError(String);

impl Roles {
    pub(super) fn read(table: &RolesTable) -> Result<Self, ParsePrincipalError> {
        let RolesTable {
            viewer,
            author,
            operator,
            approver,
            admin,
        } = table;
        let rows = [
            (Role::Viewer, viewer),
            (Role::Author, author),
            (Role::Operator, operator),
            (Role::Approver, approver),
            (Role::Admin, admin),
        ];
        let mut read = Vec::new();
        for (role, names) in rows {
            let names = match names {
                Some(names) => Some(
                    names
                        .iter()
                        .map(|name| parse_holder(name))
                        .collect::<Result<_, _>>()?,
                ),
                None => None,
            };
            read.push((role, names));
        }
        Ok(Self { table: Some(read) })
    }

    /// Returns whether `principal` may do this. What kind of principal it is comes first: no role
    /// lets an agent or a service approve, or speak for a person.
    pub fn permits(&self, principal: &Principal, action: Permission) -> bool {
        match (principal.kind, action) {
            (
                PrincipalKind::Agent | PrincipalKind::Service,
                Permission::Approve | Permission::Resolve,
            ) => false,
            (PrincipalKind::Agent, Permission::Administer) => false,
            (
                PrincipalKind::Agent | PrincipalKind::Service,
                Permission::Read | Permission::Propose | Permission::Cancel | Permission::Comment,
            ) => true,
            (PrincipalKind::Service, Permission::Administer) => {
                self.table.is_some() && self.has_role_for(principal, action, false)
            }
            // What policy approves is checked against the policy, not against a list of names.
            (PrincipalKind::Policy, Permission::Approve) => true,
            (PrincipalKind::Policy, _) => false,
            (PrincipalKind::Agent | PrincipalKind::Service, Permission::Run) => {
                self.table.is_none() || self.has_role_for(principal, action, true)
            }
            (PrincipalKind::Agent | PrincipalKind::Service, Permission::Delete) => {
                self.table.is_some() && self.has_role_for(principal, action, false)
            }
            (PrincipalKind::Person, _) => {
                self.table.is_none() || self.has_role_for(principal, action, true)
            }
        }
    }

    fn has_role_for(&self, principal: &Principal, action: Permission, unlisted: bool) -> bool {
        let key = (principal.kind.as_str().to_owned(), principal.name.clone());
        let rows = self
            .table
            .iter()
            .flatten()
            .filter(|(role, _)| role.includes(action));
        rows.into_iter().any(|(role, names)| match names {
            Some(names) => names.contains(&key),
            None => unlisted && *role != Role::Admin && is_purpose_of(*role, action),
        })
    }
}

/// Returns whether a permission is what a role exists for. An unlisted role gives every person
/// these permissions, and not the others it includes.
fn is_purpose_of(role: Role, action: Permission) -> bool {
    match action {
        Permission::Read => true,
        Permission::Propose | Permission::Delete => role == Role::Author,
        Permission::Run | Permission::Resolve => role == Role::Operator,
        Permission::Cancel => role == Role::Operator,
        Permission::Approve => role == Role::Approver,
        Permission::Comment => role != Role::Viewer,
        Permission::Administer => false,
    }
}

fn parse_holder(text: &str) -> Result<(String, String), ParsePrincipalError> {
    match text.split_once(':') {
        Some((kind @ ("person" | "agent" | "service"), name)) if !name.trim().is_empty() => {
            Ok((kind.to_owned(), name.to_owned()))
        }
        Some(_) | None => Err(ParsePrincipalError(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Permission; 9] = [
        Permission::Read,
        Permission::Propose,
        Permission::Delete,
        Permission::Run,
        Permission::Cancel,
        Permission::Resolve,
        Permission::Approve,
        Permission::Comment,
        Permission::Administer,
    ];

    fn names(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|&name| name.to_owned()).collect())
    }

    #[test]
    fn without_a_table_people_do_everything() {
        let roles = Roles::default();
        assert!(
            ALL.iter()
                .all(|&action| roles.permits(&Principal::person("ada"), action))
        );
    }

    #[test]
    fn agents_and_services_never_approve_whatever_their_roles() {
        let everybody = names(&["agent:bot", "service:ci", "person:ada"]);
        let table = RolesTable {
            viewer: everybody.clone(),
            author: everybody.clone(),
            operator: everybody.clone(),
            approver: everybody.clone(),
            admin: everybody,
        };
        for roles in [Roles::default(), Roles::read(&table).unwrap()] {
            for by in [Principal::agent("bot"), Principal::service("ci")] {
                assert!(
                    !roles.permits(&by, Permission::Approve)
                        && !roles.permits(&by, Permission::Resolve)
                );
                for action in [
                    Permission::Read,
                    Permission::Propose,
                    Permission::Cancel,
                    Permission::Run,
                ] {
                    assert!(roles.permits(&by, action), "{by} {action}");
                }
            }
        }
    }

    #[test]
    fn a_named_role_is_only_theirs() {
        let table = RolesTable {
            approver: names(&["person:ada"]),
            ..RolesTable::default()
        };
        let roles = Roles::read(&table).unwrap();
        assert!(roles.permits(&Principal::person("ada"), Permission::Approve));
        assert!(!roles.permits(&Principal::person("bob"), Permission::Approve));
        assert!(roles.permits(&Principal::person("bob"), Permission::Run));
        let table = RolesTable {
            admin: names(&["person:eve"]),
            ..table
        };
        assert!(
            Roles::read(&table)
                .unwrap()
                .permits(&Principal::person("eve"), Permission::Approve)
        );
    }

    #[test]
    fn a_name_without_a_kind_is_refused() {
        for name in ["ada", "root:ada", "policy:x", "person:"] {
            let table = RolesTable {
                admin: names(&[name]),
                ..RolesTable::default()
            };
            assert!(Roles::read(&table).is_err(), "{name}");
        }
    }
}
