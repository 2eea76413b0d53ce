//! The operator's settings of an endpoint, and the faults they may have.

use super::body::Format;
use crate::outbound::{Refused, check_target};
use planwright_core::secret::SecretName;
use planwright_engine::webhooks::KINDS;
use reqwest::Url;

/// One endpoint.
#[derive(Debug, Clone)]
pub struct WebhookOptions {
    /// Its place in the feed is kept under this name.
    pub name: String,
    pub url: String,
    /// Every one of them signs, so that one can be replaced by another without a gap.
    pub secrets: Vec<SecretName>,
    /// Globs over the kinds of notices; `*` stands for any text.
    pub events: Vec<String>,
    pub format: Format,
    /// Also private and loopback addresses, and plain http.
    pub allow_private: bool,
    /// The address at which people find the service; links in notices begin with it.
    pub service_url: Option<String>,
}

/// A fault that keeps an endpoint from being used as it is configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWebhook {
    #[error("the name {0:?} is not made of 1 to 64 letters, digits, `_`, `-` and `.`")]
    Name(String),
    #[error("the URL cannot be read: {0}")]
    Url(String),
    #[error("{0}")]
    Refused(String),
    #[error("it has no secret: notices are always signed")]
    NoSecret,
    #[error("it names {0} secrets; at most {MAX_SECRETS} sign at once")]
    TooManySecrets(usize),
    #[error("`{0}` matches nothing that can happen; there are {list}", list = KINDS.join(", "))]
    UnknownEvent(String),
}

const MAX_SECRETS: usize = 4;

impl WebhookOptions {
    /// Says what is wrong, before anything is sent.
    pub fn validate(&self) -> Result<(), InvalidWebhook> {
        self.check().map(drop)
    }

    /// Reads the URL, and says what is wrong with the rest.
    pub(super) fn check(&self) -> Result<Url, InvalidWebhook> {
        let named = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if self.name.is_empty() || self.name.len() > 64 || !self.name.bytes().all(named) {
            return Err(InvalidWebhook::Name(self.name.clone()));
        }
        if self.secrets.is_empty() {
            return Err(InvalidWebhook::NoSecret);
        }
        if self.secrets.len() > MAX_SECRETS {
            return Err(InvalidWebhook::TooManySecrets(self.secrets.len()));
        }
        let unknown = self
            .events
            .iter()
            .find(|glob| !KINDS.iter().any(|kind| matches(glob, kind)));
        if let Some(unknown) = unknown {
            return Err(InvalidWebhook::UnknownEvent(unknown.clone()));
        }
        let url = Url::parse(&self.url).map_err(|error| InvalidWebhook::Url(error.to_string()))?;
        check_target(&url, self.allow_private)
            .map_err(|refused| InvalidWebhook::Refused(explain(&refused)))?;
        Ok(url)
    }

    /// Returns whether the endpoint wants to be told of this. Without a word about it, of
    /// everything.
    pub(super) fn wants(&self, kind: &str) -> bool {
        self.events.is_empty() || self.events.iter().any(|glob| matches(glob, kind))
    }
}

/// Explains why an address is not used, and what would change that.
pub(super) fn explain(refused: &Refused) -> String {
    match refused {
        Refused::NotPublic(host) => {
            format!(
                "the host {host} has no public address (`allow_private = true` allows private ones)"
            )
        }
        Refused::Unencrypted => {
            "only https URLs are used (`allow_private = true` allows http)".to_owned()
        }
        Refused::Scheme | Refused::NoHost | Refused::Credentials | Refused::NotListed(_) => {
            refused.to_string()
        }
    }
}

/// Returns whether a glob matches. `*` stands for any text, also an empty one.
fn matches(glob: &str, text: &str) -> bool {
    let Some((start, rest)) = glob.split_once('*') else {
        return glob == text;
    };
    let Some(mut left) = text.strip_prefix(start) else {
        return false;
    };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some(at) = left.find(piece) else {
            return false;
        };
        left = &left[at + piece.len()..];
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(url: &str, events: &[&str]) -> WebhookOptions {
        WebhookOptions {
            name: "ops".into(),
            url: url.into(),
            secrets: vec![SecretName::new("HOOK").unwrap()],
            events: events.iter().map(|&event| event.to_owned()).collect(),
            format: Format::Standard,
            allow_private: false,
            service_url: None,
        }
    }

    #[test]
    fn globs_match_whole_kinds() {
        assert!(
            matches("run.ended", "run.ended")
                && matches("*", "run.ended")
                && matches("run.*", "run.ended")
        );
        assert!(
            matches("*.ended", "run.ended")
                && matches("r*.e*d", "run.ended")
                && matches("run.ended*", "run.ended")
        );
        assert!(
            !matches("run", "run.ended")
                && !matches("", "run.ended")
                && !matches("*.start*", "run.ended")
        );
        assert!(!matches("run.*ended*ended", "run.ended"));
    }

    #[test]
    fn an_endpoint_is_checked_when_it_is_read() {
        assert!(
            options("https://example.com/hook", &["approval.*"])
                .check()
                .is_ok()
        );
        let refused =
            |url: &str, events: &[&str]| options(url, events).check().unwrap_err().to_string();
        assert!(refused("http://example.com/", &[]).contains("only https"));
        assert!(refused("https://127.1/", &[]).contains("no public address"));
        assert!(refused("nowhere", &[]).contains("cannot be read"));
        assert!(refused("https://example.com/", &["run.finished"]).contains("matches nothing"));
        let nameless = WebhookOptions {
            name: "a b".into(),
            ..options("https://example.com/", &[])
        };
        assert!(matches!(nameless.check(), Err(InvalidWebhook::Name(_))));
        let unsigned = WebhookOptions {
            secrets: Vec::new(),
            ..options("https://example.com/", &[])
        };
        assert_eq!(unsigned.check(), Err(InvalidWebhook::NoSecret));
    }

    #[test]
    fn without_a_list_everything_is_told() {
        assert!(options("https://example.com/", &[]).wants("run.ended"));
        assert!(!options("https://example.com/", &["approval.*"]).wants("run.ended"));
    }
}
