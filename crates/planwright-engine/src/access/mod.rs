//! Access to the service: tokens are made, recognised, replaced and taken back here.
//!
//! A token is `pwt_` and 32 random bytes. It is shown once and kept as a hash: who reads the store
//! learns nothing that opens a door. Who may be given which role is the core's to say.

pub mod passes;
pub mod passkeys;

use crate::port::{StoreError, Token, TokenId, Tokens};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use planwright_core::digest::Digest;
use planwright_core::error::{ClassifiedError, ErrorClass, ErrorKind, Hint};
use planwright_core::policy::{GrantRefusal, Role, Roles};
use planwright_core::principal::Principal;
use planwright_core::secret::SecretText;
use planwright_core::time::Timestamp;
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// The beginning of every token, so that people and scanners recognise one that lies around.
pub const PREFIX: &str = "pwt_";
const RANDOM_BYTES: usize = 32;
/// 32 bytes in base64 without padding.
const ENCODED_CHARS: usize = 43;
/// More than this many tokens are not kept: revoked ones are of no use, and lists have an end.
pub const MAX_TOKENS: usize = 10_000;

/// The access that a principal is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The principal that may use the token.
    pub to: Principal,
    /// The role it has with the token.
    pub role: Role,
    /// Counted from the moment it is made; `None` means until it is revoked.
    pub lifetime: Option<Duration>,
}

/// A token that was just made. The only moment at which its text is known.
#[derive(Debug, Clone)]
pub struct Minted {
    /// The token as it is stored, with its hash.
    pub token: Token,
    /// The token itself, to be shown once.
    pub text: SecretText,
}

/// The reason a token was not made, replaced or revoked.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The core refuses the grant.
    #[error(transparent)]
    Refused(#[from] GrantRefusal),
    /// No token has this id.
    #[error("there is no token {}", .0.0)]
    NoSuchToken(TokenId),
    /// The token has expired or was revoked, so it cannot be replaced.
    #[error("the token {} is no longer valid: it has expired or was revoked", .0.0)]
    Invalid(TokenId),
    /// The limit on stored tokens is reached.
    #[error("there are {MAX_TOKENS} tokens already")]
    TooMany,
    /// The operating system gave no randomness for a token.
    #[error("the operating system gives no random numbers: {0}")]
    Random(String),
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ClassifiedError for GrantError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Refused(refusal) => refusal.class(),
            Self::NoSuchToken(_) => ErrorKind::NotFound.with_code("unknown_token"),
            Self::Invalid(_) => ErrorKind::Conflict.with_code("token_not_valid"),
            Self::TooMany => ErrorKind::Conflict.with_code("too_many_tokens"),
            Self::Random(_) => ErrorKind::Unavailable.with_code("no_randomness"),
            Self::Store(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::NoSuchToken(_) => Some(Hint::ListTokens),
            Self::Invalid(_) => Some(Hint::CreateToken),
            Self::Store(error) => error.hint(),
            Self::Refused(_) | Self::TooMany | Self::Random(_) => None,
        }
    }
}

/// Makes a new, secret token. It opens nothing before it is added to the tokens of a service.
pub fn mint(grant: &Grant, now: Timestamp) -> Result<Minted, GrantError> {
    let random = |error: getrandom::Error| GrantError::Random(error.to_string());
    let text = random_text(PREFIX).map_err(random)?;
    let id = TokenId::mint(getrandom::u64().map_err(random)?);
    let token = Token {
        id,
        hash: Digest::of_bytes(text.expose().as_bytes()),
        principal: grant.to.clone(),
        role: grant.role,
        created_at: now,
        expires_at: grant.lifetime.map(|lifetime| now.plus(lifetime)),
        revoked_at: None,
    };
    Ok(Minted { token, text })
}

/// Makes a text that no attacker can guess: `prefix` and 256 random bits.
pub(crate) fn random_text(prefix: &str) -> Result<SecretText, getrandom::Error> {
    let mut bytes = Zeroizing::new([0; RANDOM_BYTES]);
    getrandom::fill(&mut *bytes)?;
    let mut text = Zeroizing::new(String::with_capacity(prefix.len() + ENCODED_CHARS));
    text.push_str(prefix);
    URL_SAFE_NO_PAD.encode_string(*bytes, &mut text);
    Ok(SecretText::new(text).expect("it has more than forty visible characters"))
}

/// Gives the principal of `grant` access, if `by` may.
pub async fn create(
    tokens: &dyn Tokens,
    roles: &Roles,
    by: &Principal,
    grant: &Grant,
    now: Timestamp,
) -> Result<Minted, GrantError> {
    roles.check_grant(by, &grant.to, grant.role)?;
    if tokens.list().await?.len() >= MAX_TOKENS {
        return Err(GrantError::TooMany);
    }
    let minted = mint(grant, now)?;
    tokens.add(&minted.token).await?;
    Ok(minted)
}

/// Replaces a token by a fresh one for the same principal, role and lifetime. The old one is
/// invalid afterwards.
pub async fn rotate(
    tokens: &dyn Tokens,
    roles: &Roles,
    by: &Principal,
    id: &TokenId,
    now: Timestamp,
) -> Result<Minted, GrantError> {
    let old = find(tokens, id).await?;
    if !old.is_valid(now) {
        return Err(GrantError::Invalid(id.clone()));
    }
    let lifetime = old
        .expires_at
        .map(|expires_at| expires_at.since(old.created_at));
    let grant = Grant {
        to: old.principal,
        role: old.role,
        lifetime,
    };
    let minted = create(tokens, roles, by, &grant, now).await?;
    // A crash in between leaves both valid, and the command can be repeated: the principal is not
    // locked out.
    tokens.revoke(id, now).await?;
    Ok(minted)
}

/// Takes access away for ever. Returns whether there was any.
pub async fn revoke(
    tokens: &dyn Tokens,
    roles: &Roles,
    by: &Principal,
    id: &TokenId,
    now: Timestamp,
) -> Result<bool, GrantError> {
    let token = find(tokens, id).await?;
    // A principal who may not give access may still give up their own.
    if token.principal != *by {
        roles.check_revoke(by)?;
    }
    Ok(tokens.revoke(id, now).await?)
}

/// Whose token this text is, if it is one that opens the door now.
pub async fn recognise(
    tokens: &dyn Tokens,
    text: &str,
    now: Timestamp,
) -> Result<Option<Token>, StoreError> {
    let well_formed = text
        .strip_prefix(PREFIX)
        .is_some_and(|rest| rest.len() == ENCODED_CHARS);
    if !well_formed {
        return Ok(None);
    }
    let hash = Digest::of_bytes(text.as_bytes());
    let found = tokens.find(&hash).await?;
    // The lookup is by hash, so its timing says nothing about the text. The comparison does not
    // trust the lookup.
    Ok(found.filter(|token| {
        bool::from(token.hash.as_bytes().ct_eq(hash.as_bytes())) && token.is_valid(now)
    }))
}

/// The token with this id, valid or not.
pub async fn find(tokens: &dyn Tokens, id: &TokenId) -> Result<Token, GrantError> {
    let all = tokens.list().await?;
    all.into_iter()
        .find(|token| token.id == *id)
        .ok_or_else(|| GrantError::NoSuchToken(id.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryTokens;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn grant(lifetime: Option<Duration>) -> Grant {
        Grant {
            to: Principal::agent("bot"),
            role: Role::Author,
            lifetime,
        }
    }

    #[tokio::test]
    async fn a_token_opens_the_door_until_it_expires_or_is_revoked() {
        let tokens = MemoryTokens::new();
        let roles = Roles::default();
        let ada = Principal::person("ada");
        let short = create(&tokens, &roles, &ada, &grant(Some(HOUR)), at(0))
            .await
            .unwrap();
        let long = create(&tokens, &roles, &ada, &grant(None), at(0))
            .await
            .unwrap();
        let opens = async |minted: &Minted, now| {
            recognise(&tokens, minted.text.expose(), at(now))
                .await
                .unwrap()
                == Some(minted.token.clone())
        };
        assert!(opens(&short, 3_599_999).await && opens(&long, 3_599_999).await);
        assert!(!opens(&short, 3_600_000).await && opens(&long, 3_600_000).await);
        assert!(
            revoke(&tokens, &roles, &ada, &long.token.id, at(5))
                .await
                .unwrap()
        );
        assert!(
            !revoke(&tokens, &roles, &ada, &long.token.id, at(6))
                .await
                .unwrap()
        );
        assert!(!opens(&long, 7).await);
    }

    #[tokio::test]
    async fn a_text_that_is_no_token_opens_nothing() {
        let tokens = MemoryTokens::new();
        let roles = Roles::default();
        let ada = Principal::person("ada");
        let minted = create(&tokens, &roles, &ada, &grant(None), at(0))
            .await
            .unwrap();
        let text = minted.text.expose();
        assert_eq!(text.len(), 47);
        let hash = minted.token.hash.hex();
        let cut = &text[..46];
        for wrong in [
            "",
            "pwt_",
            &text[4..],
            cut,
            &format!("{cut}!"),
            &hash,
            &format!("{text} "),
            &minted.token.id.0,
        ] {
            assert_eq!(
                recognise(&tokens, wrong, at(1)).await.unwrap(),
                None,
                "{wrong}"
            );
        }
        assert!(!format!("{minted:?}").contains(&text[4..]));
    }

    #[tokio::test]
    async fn a_rotated_token_is_replaced_with_the_same_lifetime() {
        let tokens = MemoryTokens::new();
        let roles = Roles::default();
        let ada = Principal::person("ada");
        let old = create(&tokens, &roles, &ada, &grant(Some(HOUR)), at(0))
            .await
            .unwrap();
        let new = rotate(&tokens, &roles, &ada, &old.token.id, at(1000))
            .await
            .unwrap();
        assert_eq!(new.token.expires_at, Some(at(3_601_000)));
        assert_eq!(
            recognise(&tokens, old.text.expose(), at(1001))
                .await
                .unwrap(),
            None
        );
        assert_eq!(
            recognise(&tokens, new.text.expose(), at(1001))
                .await
                .unwrap(),
            Some(new.token)
        );
        let again = rotate(&tokens, &roles, &ada, &old.token.id, at(1002)).await;
        assert!(matches!(again, Err(GrantError::Invalid(_))));
    }

    #[tokio::test]
    async fn agents_take_no_access_away_but_their_own() {
        let tokens = MemoryTokens::new();
        let roles = Roles::default();
        let ada = Principal::person("ada");
        let own = create(&tokens, &roles, &ada, &grant(None), at(0))
            .await
            .unwrap();
        let other = Grant {
            to: Principal::person("bob"),
            role: Role::Viewer,
            lifetime: None,
        };
        let other = create(&tokens, &roles, &ada, &other, at(0)).await.unwrap();
        let bot = Principal::agent("bot");
        let refused = revoke(&tokens, &roles, &bot, &other.token.id, at(1)).await;
        assert!(matches!(
            refused,
            Err(GrantError::Refused(GrantRefusal::MayNot { .. }))
        ));
        assert!(
            revoke(&tokens, &roles, &bot, &own.token.id, at(1))
                .await
                .unwrap()
        );
    }
}
