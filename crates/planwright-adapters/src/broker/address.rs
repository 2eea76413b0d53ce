//! Where a broker is: `amqp://user:password@host:port/vhost` or `redis://user:password@host:port/number`.

use planwright_engine::port::BrokerError;
use std::fmt;
use std::path::PathBuf;
use url::Url;

/// Which broker speaks at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    RabbitMq,
    Redis,
}

/// The address of a broker. The scheme says whether the connection is encrypted.
#[derive(Clone)]
pub struct BrokerAddress {
    pub(super) kind: Kind,
    pub(super) is_encrypted: bool,
    /// A file with the certificates of a private authority; without one those of the system count.
    pub(super) authorities: Option<PathBuf>,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    /// The virtual host, or the number of the database.
    pub(super) place: Option<String>,
}

impl BrokerAddress {
    /// Reads an address. `password` is used if the address has none.
    pub fn parse(text: &str, password: Option<&str>) -> Result<Self, BrokerError> {
        let (kind, is_encrypted, port) = match text.split_once("://").map(|(scheme, _)| scheme) {
            Some("amqp") => (Kind::RabbitMq, false, 5672),
            Some("amqps") => (Kind::RabbitMq, true, 5671),
            Some("redis") => (Kind::Redis, false, 6379),
            Some("rediss") => (Kind::Redis, true, 6379),
            Some(_) | None => {
                return Err(wrong(
                    "it must begin with amqp://, amqps://, redis:// or rediss://",
                ));
            }
        };
        // The text of this error could repeat parts of the address.
        let url = Url::parse(text).map_err(|_| wrong("it is no URL"))?;
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| wrong("it names no host"))?;
        let mut address = Self {
            kind,
            is_encrypted,
            authorities: None,
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port().unwrap_or(port),
            user: Some(decode(url.username())).filter(|user| !user.is_empty()),
            password: url.password().or(password).map(decode_password(&url)),
            place: Some(decode(url.path().trim_start_matches('/'))).filter(|it| !it.is_empty()),
        };
        for (name, value) in url.query_pairs() {
            match &*name {
                "sslrootcert" if is_encrypted => address.authorities = Some((&*value).into()),
                "sslrootcert" => {
                    return Err(wrong("sslrootcert needs amqps:// or rediss://"));
                }
                other => return Err(wrong(&format!("there is no option {other}"))),
            }
        }
        address.check_place()?;
        Ok(address)
    }

    fn check_place(&self) -> Result<(), BrokerError> {
        match (self.kind, &self.place) {
            (Kind::Redis, Some(place)) if place.parse::<u16>().is_err() => {
                Err(wrong("after the host comes the number of the database"))
            }
            (Kind::Redis | Kind::RabbitMq, Some(_) | None) => Ok(()),
        }
    }
}

/// A password of the address is encoded, one that was handed in is not.
fn decode_password(url: &Url) -> impl Fn(&str) -> String {
    let is_encoded = url.password().is_some();
    move |password| match is_encoded {
        true => decode(password),
        false => password.to_owned(),
    }
}

fn decode(text: &str) -> String {
    // The parser of forms takes `+` for a space, which an address does not mean.
    let escaped = format!("it={}", text.replace('+', "%2B").replace('&', "%26"));
    let mut pairs = url::form_urlencoded::parse(escaped.as_bytes());
    pairs
        .next()
        .map_or_else(String::new, |(_, value)| value.into_owned())
}

fn wrong(reason: &str) -> BrokerError {
    BrokerError::Refused(format!(
        "the address of the broker cannot be used: {reason}"
    ))
}

/// Without the password.
impl fmt::Display for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match (self.kind, self.is_encrypted) {
            (Kind::RabbitMq, false) => "amqp",
            (Kind::RabbitMq, true) => "amqps",
            (Kind::Redis, false) => "redis",
            (Kind::Redis, true) => "rediss",
        };
        write!(f, "{scheme}://")?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port)?,
            false => write!(f, "{}:{}", self.host, self.port)?,
        }
        match &self.place {
            Some(place) => write!(f, "/{place}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BrokerAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<BrokerAddress, BrokerError> {
        BrokerAddress::parse(text, None)
    }

    #[test]
    fn a_password_is_never_shown() {
        let address = parse("amqp://ada:hunter2@mq.example/plans").unwrap();
        assert_eq!(address.to_string(), "amqp://ada@mq.example:5672/plans");
        assert_eq!(address.password.as_deref(), Some("hunter2"));
        for text in [
            format!("{address:?}"),
            parse("mysql://ada:hunter2@db").unwrap_err().to_string(),
            parse("redis://ada:hunter2@:x/y").unwrap_err().to_string(),
            parse("redis://ada:hunter2@db/hunter2x")
                .unwrap_err()
                .to_string(),
            parse("redis://ada:hunter2@db/0?colour=red")
                .unwrap_err()
                .to_string(),
        ] {
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn a_password_from_elsewhere_is_used_if_the_address_has_none() {
        let with = |text: &str| {
            BrokerAddress::parse(text, Some("50%25+&"))
                .unwrap()
                .password
        };
        assert_eq!(with("redis://:a%20b%2B@db"), Some("a b+".to_owned()));
        assert_eq!(with("redis://db"), Some("50%25+&".to_owned()));
        assert_eq!(parse("redis://db").unwrap().password, None);
    }

    #[test]
    fn addresses_have_the_defaults_of_their_broker() {
        for (text, shown) in [
            ("amqp://mq", "amqp://mq:5672"),
            ("amqps://mq", "amqps://mq:5671"),
            ("amqp://mq/%2Fteam", "amqp://mq:5672//team"),
            ("redis://[::1]/3", "redis://[::1]:6379/3"),
            ("rediss://r:7000", "rediss://r:7000"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn wrong_addresses_say_what_is_wrong() {
        for (text, word) in [
            ("http://mq", "amqp://"),
            ("mq.example", "redis://"),
            ("redis:///1", "host"),
            ("redis://db/plans", "number"),
            ("amqp://mq?sslrootcert=x", "amqps://"),
            ("amqps://mq?verify=no", "verify"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
