//! Where a store is: `postgres://user:password@host:port/database?option=value`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

const DEFAULT_CONNECTIONS: usize = 8;
const MAX_CONNECTIONS: usize = 200;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A machine that is gone without a word is noticed after this time.
const UNANSWERED: Duration = Duration::from_secs(15);

/// The reason an address of a store cannot be used. Never contains the password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// It does not begin as the address of a Postgres database does.
    #[error("the address of the store must begin with postgres:// or postgresql://")]
    Scheme,
    /// An option or a part of it is wrong.
    #[error("the address of the store cannot be used: {0}")]
    Invalid(String),
}

/// The encryption of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Encryption {
    /// None: the address says so, or the server is this machine.
    None,
    /// The certificate must be of the host and be signed by an authority of this file, or of the system.
    Verified { authorities: Option<PathBuf> },
}

/// The connection that news and signs of life need.
#[derive(Debug, Clone)]
pub(super) enum Direct {
    /// The server itself is where the others go.
    Same,
    /// A pooler is in between; the server itself is here.
    At(Box<Config>),
    /// There is none: the store is polled, and dead processes are known by their silence.
    None,
}

/// The address of a store in Postgres.
#[derive(Clone)]
pub struct Location {
    pub(super) config: Config,
    pub(super) direct: Direct,
    pub(super) encryption: Encryption,
    pub(super) connections: usize,
    shown: String,
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Location").field(&self.shown).finish()
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Options of ours, and those that the client library does not know.
#[derive(Default)]
struct OwnOptions {
    sslmode: Option<String>,
    sslrootcert: Option<String>,
    listen: Option<String>,
    connections: Option<String>,
}

impl Location {
    /// Returns whether a text is meant as such an address.
    pub fn is_one(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Reads an address. `password` is used if the address has none.
    pub fn parse(text: &str, password: Option<&str>) -> Result<Self, LocationError> {
        if !Self::is_one(text) {
            return Err(LocationError::Scheme);
        }
        let (address, own) = take_own_options(text);
        let mut config: Config = address
            .parse()
            .map_err(|error| LocationError::Invalid(describe(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(LocationError::Invalid("it names no host".to_owned()));
        }
        if config.get_password().is_none()
            && let Some(password) = password
        {
            config.password(password);
        }
        let encryption = choose_encryption(&config, &own)?;
        config.ssl_mode(match encryption {
            Encryption::None => SslMode::Disable,
            Encryption::Verified { .. } => SslMode::Require,
        });
        if config.get_target_session_attrs() == TargetSessionAttrs::Any {
            // After a failover the old address may lead to a standby.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        set_session(&mut config);
        let connections = match &own.connections {
            None => DEFAULT_CONNECTIONS,
            Some(text) => text
                .parse()
                .ok()
                .filter(|count| (2..=MAX_CONNECTIONS).contains(count))
                .ok_or_else(|| {
                    LocationError::Invalid(format!(
                        "connections must be a number from 2 to {MAX_CONNECTIONS}"
                    ))
                })?,
        };
        let direct = choose_direct(&config, own.listen.as_deref())?;
        Ok(Self {
            shown: show(&config),
            config,
            direct,
            encryption,
            connections,
        })
    }
}

/// Splits the options off that the client library would refuse.
fn take_own_options(text: &str) -> (String, OwnOptions) {
    let mut own = OwnOptions::default();
    let Some((address, query)) = text.split_once('?') else {
        return (text.to_owned(), own);
    };
    let mut rest = Vec::new();
    for option in query.split('&') {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let place = match name {
            "sslmode" => &mut own.sslmode,
            "sslrootcert" => &mut own.sslrootcert,
            "listen" => &mut own.listen,
            "connections" => &mut own.connections,
            _ => {
                rest.push(option);
                continue;
            }
        };
        *place = Some(decode(value));
    }
    match rest.is_empty() {
        true => (address.to_owned(), own),
        false => (format!("{address}?{}", rest.join("&")), own),
    }
}

/// Decodes `%2F` and the like.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let escaped = escaped.and_then(|hex| std::str::from_utf8(hex).ok());
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A connection is either verified or, on this machine or where the address says so, plain: a mode that
/// encrypts without knowing for whom does not protect against a server that pretends to be another.
fn choose_encryption(config: &Config, own: &OwnOptions) -> Result<Encryption, LocationError> {
    let authorities = own.sslrootcert.as_deref().filter(|file| *file != "system");
    let verified = Encryption::Verified {
        authorities: authorities.map(PathBuf::from),
    };
    match own.sslmode.as_deref() {
        None if is_local(config) && authorities.is_none() => Ok(Encryption::None),
        None | Some("verify-full" | "verify-ca" | "require") => Ok(verified),
        Some("disable") => Ok(Encryption::None),
        Some(mode) => Err(LocationError::Invalid(format!(
            "sslmode={mode} would go on without encryption: use verify-full or disable"
        ))),
    }
}

fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1" | "[::1]"),
        Host::Unix(_) => true,
    })
}

fn choose_direct(config: &Config, listen: Option<&str>) -> Result<Direct, LocationError> {
    match listen {
        None => Ok(Direct::Same),
        Some("off") => Ok(Direct::None),
        Some(places) => {
            let mut direct = with_same_session(config);
            for place in places.split(',') {
                let (host, port) = place.rsplit_once(':').unwrap_or((place, "5432"));
                let port: u16 = port.parse().map_err(|_| {
                    LocationError::Invalid("listen must be off or host:port".to_owned())
                })?;
                direct.host(host).port(port);
            }
            Ok(Direct::At(Box::new(direct)))
        }
    }
}

/// Each host of an address by itself.
pub(super) fn single_hosts(config: &Config) -> Vec<Config> {
    let addresses = config.get_hostaddrs();
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate();
    let single = hosts.map(|(place, host)| {
        let mut single = with_same_session(config);
        match host {
            Host::Tcp(name) => single.host(name),
            Host::Unix(path) => single.host_path(path),
        };
        if let Some(address) = addresses.get(place) {
            single.hostaddr(*address);
        }
        if let Some(port) = ports.get(place).or_else(|| ports.first()) {
            single.port(*port);
        }
        single
    });
    single.collect()
}

/// Everything of an address but where it is.
fn with_same_session(config: &Config) -> Config {
    let mut same = Config::new();
    if let Some(user) = config.get_user() {
        same.user(user);
    }
    if let Some(password) = config.get_password() {
        same.password(password);
    }
    if let Some(name) = config.get_dbname() {
        same.dbname(name);
    }
    if let Some(options) = config.get_options() {
        same.options(options);
    }
    same.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding())
        .target_session_attrs(config.get_target_session_attrs());
    set_session(&mut same);
    same
}

/// What every connection of ours says and waits for.
fn set_session(config: &mut Config) {
    config
        .application_name("planwright")
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_user_timeout(UNANSWERED)
        .keepalives_idle(UNANSWERED)
        .keepalives_interval(UNANSWERED / 3)
        .keepalives_retries(3);
}

/// The address without the password.
fn show(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(place, host)| {
            let port = ports.get(place).or_else(|| ports.first());
            let port = port.copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        })
        .collect();
    let user = config.get_user().map(|user| format!("{user}@"));
    let database = config.get_dbname().or_else(|| config.get_user());
    format!(
        "postgres://{}{}/{}",
        user.unwrap_or_default(),
        hosts.join(","),
        database.unwrap_or_default()
    )
}

/// An error of the library with its cause, which names options and never values.
fn describe(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Location, LocationError> {
        Location::parse(text, None)
    }

    #[test]
    fn a_password_is_never_shown() {
        let location = parse("postgres://ada:hunter2@db.example:6432/plans").unwrap();
        assert_eq!(location.to_string(), "postgres://ada@db.example:6432/plans");
        for text in [
            format!("{location:?}"),
            format!("{:?}", location.config),
            parse("postgres://ada:hunter2@db/plans?port=x")
                .unwrap_err()
                .to_string(),
        ] {
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn a_connection_to_another_machine_is_verified_unless_the_address_says_otherwise() {
        let of = |text: &str| parse(text).map(|location| location.encryption);
        let verified = |authorities: Option<&str>| {
            Ok(Encryption::Verified {
                authorities: authorities.map(PathBuf::from),
            })
        };
        assert_eq!(of("postgres://a@db/x"), verified(None));
        assert_eq!(of("postgres://a@db/x?sslmode=require"), verified(None));
        assert_eq!(
            of("postgres://a@db/x?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem"),
            verified(Some("/etc/ca.pem"))
        );
        assert_eq!(of("postgres://a@127.0.0.1/x"), Ok(Encryption::None));
        assert_eq!(
            of("postgres://a@db/x?sslmode=disable"),
            Ok(Encryption::None)
        );
        assert!(of("postgres://a@db/x?sslmode=prefer").is_err());
    }

    #[test]
    fn wrong_addresses_say_what_is_wrong() {
        assert_eq!(parse("mysql://db").unwrap_err(), LocationError::Scheme);
        for (text, word) in [
            ("postgres://a@db/x?connections=1", "connections"),
            ("postgres://a@db/x?listen=db:port", "listen"),
            ("postgres://a@db/x?colour=red", "colour"),
            ("postgres:///x", "host"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn several_hosts_are_kept() {
        let location = parse("postgres://a:b@one:5433,two:5434/x?options=-cjit%3Doff").unwrap();
        assert_eq!(location.to_string(), "postgres://a@one:5433,two:5434/x");
        let single = single_hosts(&location.config);
        let shown: Vec<String> = single.iter().map(show).collect();
        assert_eq!(
            shown,
            ["postgres://a@one:5433/x", "postgres://a@two:5434/x"]
        );
        assert_eq!(single[1].get_password(), Some(&b"b"[..]));
        assert_eq!(single[1].get_options(), Some("-cjit=off"));
        assert_eq!(
            single[1].get_target_session_attrs(),
            TargetSessionAttrs::ReadWrite
        );
    }
}
