//! Which hosts may be asked, and which addresses they may have.
//!
//! A name is resolved once, and the addresses that were checked are the ones connected to.
//! Otherwise a name could mean a public address while it is checked and this machine when it is
//! used.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Url, redirect};
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A reason not to send a request to a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("only http and https URLs are allowed")]
    Scheme,
    #[error("only https URLs are allowed")]
    Unencrypted,
    #[error("the URL has no host")]
    NoHost,
    #[error("a URL with a user name or password is not allowed: use a header")]
    Credentials,
    #[error("the host {0} is not on the allow-list of http_get")]
    NotListed(String),
    #[error("the host {0} has no public address, and is not on the allow-list of http_get")]
    NotPublic(String),
}

/// Finds the rule that refused a request on its way, if that is why it has no answer.
pub(crate) fn find_refusal(error: &reqwest::Error) -> Option<&Refused> {
    let first: &(dyn Error + 'static) = error;
    std::iter::successors(Some(first), |error| (*error).source())
        .find_map(|error| error.downcast_ref())
}

/// A client that connects to nothing but what was checked, with certificates or without any
/// encryption.
pub(crate) fn build_client(
    range: Range,
    tls: bool,
    timeout: Option<Duration>,
) -> reqwest::Result<Client> {
    crate::tls::install_provider();
    let mut client = Client::builder()
        .user_agent(concat!("planwright/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(Arc::new(CheckedResolver(range)))
        // A proxy would resolve names itself, and a redirect followed inside would go unchecked.
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT);
    if let Some(timeout) = timeout {
        client = client.timeout(timeout);
    }
    if tls {
        client.https_only(true).build()
    } else {
        client.tls_certs_only([]).build()
    }
}

/// Describes why a request has no answer, down to the first cause. The outermost message repeats
/// the URL, so it is left out.
pub(crate) fn describe_failure(error: &reqwest::Error) -> String {
    let causes: Vec<String> = std::iter::successors(error.source(), |error| (*error).source())
        .map(ToString::to_string)
        .collect();
    if causes.is_empty() {
        error.to_string()
    } else {
        causes.join(": ")
    }
}

/// The range of addresses that a permitted host may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Range {
    /// Public addresses only.
    Public,
    /// Also private and loopback addresses: the operator named the host.
    Private,
}

/// The operator's allow-list; see [`crate::local::HttpOptions::allow`].
#[derive(Debug)]
pub(crate) struct AllowList {
    hosts: Vec<String>,
    any_public: bool,
}

impl AllowList {
    pub(crate) fn new(allow: &[String]) -> Self {
        Self {
            hosts: allow
                .iter()
                .filter(|entry| *entry != "*")
                .map(|entry| entry.to_ascii_lowercase())
                .collect(),
            any_public: allow.is_empty() || allow.iter().any(|entry| entry == "*"),
        }
    }

    /// Decides about a URL by its text. Names are decided about again when they are resolved.
    pub(crate) fn check(&self, url: &Url) -> Result<Range, Refused> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refused::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::Credentials);
        }
        // The parser has brought every spelling of an address, such as `0x7f.1`, into its usual
        // form.
        let host = url.host_str().ok_or(Refused::NoHost)?;
        let port = url.port_or_known_default().unwrap_or_default();
        let with_port = format!("{host}:{port}");
        let bare = host.trim_matches(['[', ']']);
        if self
            .hosts
            .iter()
            .any(|entry| [host, bare, &with_port].contains(&entry.as_str()))
        {
            return Ok(Range::Private);
        }
        if !self.any_public {
            return Err(Refused::NotListed(with_port));
        }
        match bare.parse() {
            Ok(address) if !is_public(address) => Err(Refused::NotPublic(with_port)),
            Ok(_) | Err(_) => Ok(Range::Public),
        }
    }
}

/// Decides about a URL that the operator wrote, by its text: public addresses over https, or also
/// private ones and plain http if that was allowed. Link-local addresses are never asked: that is
/// where clouds keep credentials.
pub(crate) fn check_target(url: &Url, private: bool) -> Result<Range, Refused> {
    match (url.scheme(), private) {
        ("https", _) | ("http", true) => {}
        ("http", false) => return Err(Refused::Unencrypted),
        _ => return Err(Refused::Scheme),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused::Credentials);
    }
    let host = url
        .host_str()
        .filter(|host| !host.is_empty())
        .ok_or(Refused::NoHost)?;
    let range = if private {
        Range::Private
    } else {
        Range::Public
    };
    match host.trim_matches(['[', ']']).parse() {
        Ok(address) if !is_permitted(address, range) => Err(Refused::NotPublic(host.to_owned())),
        Ok(_) | Err(_) => Ok(range),
    }
}

/// Resolves names to addresses within a range, and to none outside it.
#[derive(Debug)]
struct CheckedResolver(Range);

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let range = self.0;
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let permitted: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| is_permitted(address.ip(), range))
                .collect();
            if permitted.is_empty() {
                return Err(Refused::NotPublic(name.as_str().to_owned()).into());
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}

/// A name never leads to a link-local address, even if the name is listed: that is where clouds
/// keep credentials. Such an address can be listed itself.
fn is_permitted(address: IpAddr, range: Range) -> bool {
    match range {
        Range::Public => is_public(address),
        Range::Private => match address.to_canonical() {
            IpAddr::V4(v4) => !v4.is_link_local() && !v4.is_multicast() && !v4.is_broadcast(),
            IpAddr::V6(v6) => !v6.is_unicast_link_local() && !v6.is_multicast(),
        },
    }
}

fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

/// The special-purpose registry of RFC 6890.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || a == 100 && (64..128).contains(&b)
        || a == 192 && b == 0 && c == 0
        || a == 192 && b == 88 && c == 99
        || a == 198 && (18..20).contains(&b))
}

/// Global unicast is `2000::/3`; what translates to or tunnels IPv4 could name any IPv4 address, so
/// it is left out.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let global = a & 0xe000 == 0x2000;
    let ietf_and_teredo = a == 0x2001 && b < 0x0200;
    let documentation = a == 0x2001 && b == 0x0db8 || a & 0xfff0 == 0x3ff0;
    let six_to_four = a == 0x2002;
    global && !ietf_and_teredo && !documentation && !six_to_four
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(allow: &[&str], url: &str) -> Result<Range, Refused> {
        let allow: Vec<String> = allow.iter().map(|entry| (*entry).to_owned()).collect();
        AllowList::new(&allow).check(&Url::parse(url).unwrap())
    }

    /// Spellings of addresses that are not public, and of names that are this machine's.
    const NOT_PUBLIC: &[&str] = &[
        "http://127.0.0.1/",
        "http://127.1/",
        "http://127.0.1/",
        "http://127.255.255.254/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0X7F000001/",
        "http://0x7f.1/",
        "http://0x7f.0.0.1/",
        "http://0x7f.0x0.0x0.0x1/",
        "http://0177.0.0.1/",
        "http://0177.0.0.01/",
        "http://00000177.0.0.1/",
        "http://017700000001/",
        "http://127.0.0.1./",
        "http://①②⑦.0.0.1/",
        "http://１２７.０.０.１/",
        "http://127。0。0。1/",
        "http://127%2e0%2e0%2e1/",
        "http://%31%32%37.0.0.1/",
        "http://0/",
        "http://0.0.0.0:8080/",
        "http://0x0/",
        "http://0.1.2.3/",
        "http://10.0.0.1/",
        "http://0xa.1/",
        "http://012.0.0.1/",
        "http://167772161/",
        "http://172.16.0.1/",
        "http://172.31.255.255/",
        "http://192.168.1.1/",
        "http://0xc0a80101/",
        "http://3232235777/",
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376/",
        "http://169.16689662/",
        "http://100.64.0.1/",
        "http://192.0.0.1/",
        "http://192.0.2.7/",
        "http://198.18.0.1/",
        "http://198.51.100.7/",
        "http://203.0.113.7/",
        "http://224.0.0.1/",
        "http://239.255.255.250/",
        "http://240.0.0.1/",
        "http://255.255.255.255/",
        "http://4294967295/",
        "http://[::]/",
        "http://[::1]/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://[0000:0000:0000:0000:0000:0000:0000:0001]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[::FFFF:a9fe:a9fe]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[64:ff9b::169.254.169.254]/",
        "http://[64:ff9b:1::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[2002:a9fe:a9fe::]/",
        "http://[2001::1]/",
        "http://[2001:db8::1]/",
        "http://[3fff::1]/",
        "http://[fc00::1]/",
        "http://[fd12:3456::1]/",
        "http://[fe80::1]/",
        "http://[fec0::1]/",
        "http://[ff02::1]/",
        "http://[100::1]/",
    ];

    #[test]
    fn no_spelling_of_a_private_address_passes() {
        for url in NOT_PUBLIC {
            assert!(
                matches!(check(&[], url), Err(Refused::NotPublic(_))),
                "{url} passed"
            );
            assert!(
                matches!(check(&["*"], url), Err(Refused::NotPublic(_))),
                "{url} passed with *"
            );
            assert!(
                matches!(check(&["example.com"], url), Err(Refused::NotListed(_))),
                "{url} passed the list"
            );
        }
    }

    #[test]
    fn public_addresses_and_names_pass_an_empty_list() {
        for url in [
            "https://93.184.216.34/",
            "http://[2606:4700::1111]/",
            "https://example.com/a?b=c",
        ] {
            assert_eq!(check(&[], url), Ok(Range::Public), "{url}");
        }
    }

    #[test]
    fn a_list_is_exhaustive_and_exact() {
        assert_eq!(
            check(&["example.com"], "https://EXAMPLE.com/"),
            Ok(Range::Private)
        );
        assert_eq!(
            check(&["Example.com:8080"], "http://example.com:8080/"),
            Ok(Range::Private)
        );
        assert_eq!(
            check(&["example.com:443"], "https://example.com/"),
            Ok(Range::Private)
        );
        assert_eq!(check(&["::1"], "http://[::1]:8080/"), Ok(Range::Private));
        assert_eq!(
            check(&["[::1]:8080"], "http://[::1]:8080/"),
            Ok(Range::Private)
        );
        assert_eq!(
            check(&["localhost", "*"], "https://example.org/"),
            Ok(Range::Public)
        );
        for url in [
            "http://example.com/",
            "https://example.com.evil.org/",
            "https://sub.example.com/",
        ] {
            assert!(
                matches!(check(&["example.com:443"], url), Err(Refused::NotListed(_))),
                "{url} passed"
            );
        }
    }

    #[test]
    fn other_schemes_and_credentials_are_refused() {
        for url in [
            "ftp://example.com/",
            "file:///etc/passwd",
            "gopher://example.com/",
            "data:text/plain,x",
        ] {
            assert_eq!(check(&[], url), Err(Refused::Scheme), "{url}");
        }
        assert_eq!(
            check(&[], "http://user:word@example.com/"),
            Err(Refused::Credentials)
        );
        assert_eq!(
            check(&[], "http://example.com@127.0.0.1/"),
            Err(Refused::Credentials)
        );
    }

    #[test]
    fn a_listed_name_still_does_not_lead_to_a_link_local_address() {
        assert!(is_permitted("127.0.0.1".parse().unwrap(), Range::Private));
        assert!(is_permitted("10.1.2.3".parse().unwrap(), Range::Private));
        assert!(!is_permitted(
            "169.254.169.254".parse().unwrap(),
            Range::Private
        ));
        assert!(!is_permitted(
            "::ffff:169.254.169.254".parse().unwrap(),
            Range::Private
        ));
        assert!(!is_permitted("fe80::1".parse().unwrap(), Range::Private));
        assert!(!is_permitted("127.0.0.1".parse().unwrap(), Range::Public));
    }

    #[test]
    fn no_spelling_of_a_private_address_is_a_target() {
        assert!(NOT_PUBLIC.len() >= 60);
        for url in NOT_PUBLIC {
            let url = Url::parse(&url.replace("http://", "https://")).unwrap();
            assert!(
                matches!(check_target(&url, false), Err(Refused::NotPublic(_))),
                "{url} passed"
            );
        }
    }

    #[test]
    fn a_target_is_encrypted_and_public_unless_that_was_allowed() {
        let check = |url: &str, private| check_target(&Url::parse(url).unwrap(), private);
        assert_eq!(check("https://example.com/hook", false), Ok(Range::Public));
        assert_eq!(
            check("http://example.com/hook", false),
            Err(Refused::Unencrypted)
        );
        assert_eq!(
            check("http://127.0.0.1:8080/hook", true),
            Ok(Range::Private)
        );
        assert_eq!(
            check("https://me:word@example.com/", false),
            Err(Refused::Credentials)
        );
        assert_eq!(check("ftp://example.com/", true), Err(Refused::Scheme));
        for url in [
            "https://169.254.169.254/",
            "http://[fe80::1]/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://224.0.0.1/",
        ] {
            assert!(
                matches!(check(url, true), Err(Refused::NotPublic(_))),
                "{url}"
            );
        }
    }
}
