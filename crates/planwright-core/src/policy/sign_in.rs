//! People whom another service has recognised: their names here, and what they may do.
//!
//! That service says what it knows as claims. The operator says which of them count: a person for whom
//! there is no rule gets no role.

use super::grant::is_good_name;
use super::roles::Role;
use crate::principal::Principal;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The operator's rules for people whom a provider has recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInRules {
    /// The claim that is the person's name here.
    pub name_claim: String,
    /// The claim that roles are given by: one text, or a list of them.
    pub role_claim: String,
    /// The role of each of its values.
    pub roles: BTreeMap<String, Role>,
    /// The domains that a verified address has to be of; empty if any is good.
    pub domains: Vec<String>,
}

/// The reason a recognised person is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignInRefusal {
    /// The claim that is the name is missing, or cannot be shown.
    #[error("the provider told no name that can be used")]
    NoName,
    /// The provider does not vouch for the address.
    #[error("the provider has not verified the address")]
    Unverified,
    /// The address is of another domain.
    #[error("addresses of this domain are not let in")]
    Domain,
    /// No rule gives the person a role.
    #[error("no role is given to this person")]
    NoRole,
}

impl SignInRefusal {
    /// Returns its word in addresses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoName => "no-name",
            Self::Unverified => "unverified",
            Self::Domain => "domain",
            Self::NoRole => "no-role",
        }
    }
}

impl SignInRules {
    /// Says who the person with these claims is, and which role they have.
    pub fn recognise(
        &self,
        claims: &Map<String, Value>,
    ) -> Result<(Principal, Role), SignInRefusal> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let by_address = self.name_claim == "email" || !self.domains.is_empty();
        if by_address && claims.get("email_verified") != Some(&Value::Bool(true)) {
            return Err(SignInRefusal::Unverified);
        }
        if !self.domains.is_empty() {
            let address = text("email").and_then(|address| address.rsplit_once('@'));
            let (_, domain) = address.ok_or(SignInRefusal::Domain)?;
            let mut allowed = self.domains.iter();
            if !allowed.any(|allowed| allowed.eq_ignore_ascii_case(domain)) {
                return Err(SignInRefusal::Domain);
            }
        }
        let name = text(&self.name_claim).filter(|name| is_good_name(name));
        let mut name = name.ok_or(SignInRefusal::NoName)?.to_owned();
        // Letters of another case are not another person, who could approve what this one proposed.
        if by_address {
            name.make_ascii_lowercase();
        }
        let role = self.role_of(claims).ok_or(SignInRefusal::NoRole)?;
        Ok((Principal::person(name), role))
    }

    /// The role that the claims give; of several the last in the order of [`Role::ALL`].
    fn role_of(&self, claims: &Map<String, Value>) -> Option<Role> {
        let given: Vec<&str> = match claims.get(&self.role_claim)? {
            Value::String(one) => vec![one],
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
        };
        let roles: Vec<Role> = given
            .into_iter()
            .filter_map(|value| self.roles.get(value).copied())
            .collect();
        Role::ALL
            .into_iter()
            .rev()
            .find(|role| roles.contains(role))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rules() -> SignInRules {
        SignInRules {
            name_claim: "email".to_owned(),
            role_claim: "groups".to_owned(),
            roles: BTreeMap::from([
                ("staff".to_owned(), Role::Viewer),
                ("leads".to_owned(), Role::Approver),
            ]),
            domains: vec!["example.org".to_owned()],
        }
    }

    fn recognise(claims: Value) -> Result<(String, Role), SignInRefusal> {
        let claims = claims.as_object().unwrap();
        let found = rules().recognise(claims);
        found.map(|(principal, role)| (principal.name, role))
    }

    #[test]
    fn a_person_has_the_role_that_their_groups_give() {
        let ada = |groups: Value| json!({ "email": "ada@Example.org", "email_verified": true, "groups": groups });
        let name = "ada@example.org".to_owned();
        assert_eq!(
            recognise(ada(json!("staff"))),
            Ok((name.clone(), Role::Viewer))
        );
        assert_eq!(
            recognise(ada(json!(["leads", "staff", 3]))),
            Ok((name, Role::Approver))
        );
        for none in [
            json!([]),
            json!("others"),
            json!(null),
            json!({ "staff": true }),
        ] {
            assert_eq!(recognise(ada(none)), Err(SignInRefusal::NoRole));
        }
    }

    #[test]
    fn an_address_counts_if_it_is_verified_and_of_an_allowed_domain() {
        let with = |email: &str, verified: Value| {
            recognise(json!({ "email": email, "email_verified": verified, "groups": "staff" }))
        };
        assert!(with("a@example.org", json!(true)).is_ok());
        for verified in [json!(false), json!("true"), json!(null)] {
            assert_eq!(
                with("a@example.org", verified),
                Err(SignInRefusal::Unverified)
            );
        }
        for other in [
            "a@evil.example",
            "a@example.org.evil",
            "example.org",
            "a@sub.example.org",
        ] {
            assert_eq!(with(other, json!(true)), Err(SignInRefusal::Domain));
        }
        assert_eq!(
            with("a\u{202e}@example.org", json!(true)),
            Err(SignInRefusal::NoName)
        );
    }
}
