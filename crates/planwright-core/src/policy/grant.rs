//! Granting access: which principals may grant it, and which roles a kind of principal never gets.

use super::{Permission, Role, Roles};
use crate::principal::{Principal, PrincipalKind};
use crate::text::sanitize_line;

/// The longest name of a principal that is given access, in characters.
pub const MAX_PRINCIPAL_NAME: usize = 64;

/// The reason access is not granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefusal {
    /// The principal may not administer the service.
    #[error(
        "{by} may not give or take access: that is for those who {}",
        Permission::Administer
    )]
    MayNot {
        /// The principal that tried to.
        by: Principal,
    },
    /// A kind of principal that never approves cannot be an approver.
    #[error("{} never approves, so it cannot have the role {role}: only a person can agree", with_article(*kind))]
    NeverApproves {
        /// Kind of the principal.
        kind: PrincipalKind,
        /// The role it was to get.
        role: Role,
    },
    /// An agent cannot be an administrator.
    #[error("an agent never administers, so it cannot have the role admin")]
    NeverAdministers,
    /// Policy is no principal that acts.
    #[error("policy is a rule of the operator: no principal can act as it")]
    NotAPrincipal,
    /// The name cannot be shown safely.
    #[error("`{}` is no name: 1 to {MAX_PRINCIPAL_NAME} visible characters, none of them a space at an end", sanitize_line(.0))]
    Name(String),
}

fn with_article(kind: PrincipalKind) -> &'static str {
    match kind {
        PrincipalKind::Person => "a person",
        PrincipalKind::Agent => "an agent",
        PrincipalKind::Service => "a service",
        PrincipalKind::Policy => "policy",
    }
}

impl Roles {
    /// Returns whether `by` may give `to` this role. What kind of principal it is comes first, as
    /// it does in [`Roles::permits`].
    pub fn check_grant(
        &self,
        by: &Principal,
        to: &Principal,
        role: Role,
    ) -> Result<(), GrantRefusal> {
        self.check_revoke(by)?;
        match (to.kind, role) {
            (PrincipalKind::Policy, _) => return Err(GrantRefusal::NotAPrincipal),
            (PrincipalKind::Agent | PrincipalKind::Service, Role::Approver) => {
                return Err(GrantRefusal::NeverApproves {
                    kind: to.kind,
                    role,
                });
            }
            (PrincipalKind::Agent, Role::Admin) => return Err(GrantRefusal::NeverAdministers),
            (PrincipalKind::Service, Role::Admin)
            | (
                PrincipalKind::Agent | PrincipalKind::Service,
                Role::Viewer | Role::Author | Role::Operator,
            )
            | (PrincipalKind::Person, _) => {}
        }
        // The name is what approvals show: nothing in it may be hidden or pass for another one.
        if is_good_name(&to.name) {
            Ok(())
        } else {
            Err(GrantRefusal::Name(to.name.clone()))
        }
    }

    /// Returns whether `by` may take access away.
    pub fn check_revoke(&self, by: &Principal) -> Result<(), GrantRefusal> {
        if self.permits(by, Permission::Administer) {
            return Ok(());
        }
        Err(GrantRefusal::MayNot { by: by.clone() })
    }
}

/// Returns whether a name can be shown as it is.
pub(super) fn is_good_name(name: &str) -> bool {
    (1..=MAX_PRINCIPAL_NAME).contains(&name.chars().count())
        && sanitize_line(name) == name
        && name.trim() == name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::RolesTable;

    #[test]
    fn only_people_are_given_the_right_to_approve() {
        let roles = Roles::default();
        let ada = Principal::person("ada");
        for role in Role::ALL {
            assert_eq!(
                roles.check_grant(&ada, &Principal::person("bob"), role),
                Ok(())
            );
            let agent = roles.check_grant(&ada, &Principal::agent("bot"), role);
            assert_eq!(agent.is_ok(), role < Role::Approver, "agent as {role}");
            let service = roles.check_grant(&ada, &Principal::service("ci"), role);
            assert_eq!(service.is_ok(), role != Role::Approver, "service as {role}");
            let policy = roles.check_grant(&ada, &Principal::read_only_policy(), role);
            assert_eq!(policy, Err(GrantRefusal::NotAPrincipal));
        }
    }

    #[test]
    fn who_does_not_administer_gives_nothing() {
        let to = Principal::person("bob");
        for by in [Principal::agent("bot"), Principal::service("ci")] {
            assert!(matches!(
                Roles::default().check_grant(&by, &to, Role::Viewer),
                Err(GrantRefusal::MayNot { .. })
            ));
        }
        let table = RolesTable {
            admin: Some(vec!["person:ada".to_owned()]),
            ..RolesTable::default()
        };
        let roles = Roles::read(&table).unwrap();
        assert_eq!(
            roles.check_grant(&Principal::person("ada"), &to, Role::Viewer),
            Ok(())
        );
        assert!(
            roles
                .check_grant(&Principal::person("eve"), &to, Role::Viewer)
                .is_err()
        );
    }

    #[test]
    fn a_name_hides_nothing() {
        let roles = Roles::default();
        let ada = Principal::person("ada");
        for name in [
            "",
            " ",
            " ada",
            "ada ",
            "a\u{200b}da",
            "a\nda",
            "\u{1b}[31m",
            &"x".repeat(65),
        ] {
            let refused = roles.check_grant(&ada, &Principal::person(name), Role::Viewer);
            assert_eq!(
                refused,
                Err(GrantRefusal::Name(name.to_owned())),
                "{name:?}"
            );
        }
        assert_eq!(
            roles.check_grant(&ada, &Principal::person("Ada Größe"), Role::Viewer),
            Ok(())
        );
    }
}
