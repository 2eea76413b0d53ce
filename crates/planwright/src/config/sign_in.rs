//! `[sign_in]` of `planwright.toml`.

use super::file::{FILE, OidcTable};
use crate::exit::Failure;
use planwright_adapters::oidc::{OidcOptions, OidcProvider};
use planwright_core::policy::{Role, SignInRules};
use planwright_core::secret::SecretName;
use planwright_engine::Redaction;
use planwright_engine::memory::SystemClock;
use planwright_engine::port::Secrets;
use planwright_server::http::SingleSignOn;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes the identity provider that a table describes. It is not asked yet.
pub(crate) fn read_oidc(
    table: &OidcTable,
    secrets: Arc<dyn Secrets>,
    redaction: Redaction,
) -> Result<SingleSignOn, Failure> {
    let wrong = |what: String| Failure::usage(format!("{FILE}, [sign_in.oidc]: {what}"));
    let mut roles = BTreeMap::new();
    for (value, role) in &table.roles {
        let role: Role = role
            .parse()
            .map_err(|error| wrong(format!("roles, `{value}`: {error}")))?;
        roles.insert(value.clone(), role);
    }
    if roles.is_empty() {
        return Err(wrong("no person would get a role".to_owned())
            .hint("say which groups have which role, such as roles = { staff = \"viewer\" }"));
    }
    let secret = table
        .client_secret
        .as_deref()
        .map(|name| {
            SecretName::new(name).ok_or_else(|| wrong(format!("{name:?} is no name of a secret")))
        })
        .transpose()?;
    let word =
        |said: Option<&String>, default: &str| said.cloned().unwrap_or_else(|| default.to_owned());
    let scopes = table.scopes.clone();
    let options = OidcOptions {
        issuer: table.issuer.clone(),
        client_id: table.client_id.clone(),
        secret,
        scopes: scopes.unwrap_or_else(|| vec!["email".to_owned(), "profile".to_owned()]),
    };
    let clock = Arc::new(SystemClock::new());
    let provider = OidcProvider::new(options, (secrets, redaction), clock)
        .map_err(|error| wrong(error.to_string()))?;
    Ok(SingleSignOn {
        provider: Arc::new(provider),
        rules: SignInRules {
            name_claim: word(table.name_claim.as_ref(), "email"),
            role_claim: word(table.role_claim.as_ref(), "groups"),
            roles,
            domains: table.allowed_domains.clone(),
        },
        label: word(table.label.as_ref(), "Sign in with your organisation"),
    })
}
