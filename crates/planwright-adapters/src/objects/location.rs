//! Where large values are kept: `s3://bucket/prefix?endpoint=URL&region=NAME`.

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use reqwest::Url;
use std::fmt;

const SCHEME: &str = "s3";
/// The variable that lets values be sent without encryption to another machine.
const ALLOW_HTTP: &str = "AWS_ALLOW_HTTP";
/// Counts before `AWS_ENDPOINT_URL`, as with other programs.
const ENDPOINT_OF_SERVICE: &str = "AWS_ENDPOINT_URL_S3";

/// The reason an address of an object store cannot be used. Never contains a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectsLocationError {
    /// It does not begin as such an address does.
    #[error("the address of the object store must begin with s3://")]
    Scheme,
    /// An option or a part of it is wrong.
    #[error("the address of the object store cannot be used: {0}")]
    Invalid(String),
}

/// A bucket, and the beginning of the names in it.
#[derive(Clone)]
pub struct ObjectsLocation {
    pub(super) builder: AmazonS3Builder,
    pub(super) prefix: Path,
    /// Values may be sent in the clear: to this machine, or because a variable says so.
    pub(super) allows_http: bool,
    shown: String,
}

impl fmt::Debug for ObjectsLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectsLocation").field(&self.shown).finish()
    }
}

impl fmt::Display for ObjectsLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

fn invalid(why: impl Into<String>) -> ObjectsLocationError {
    ObjectsLocationError::Invalid(why.into())
}

impl ObjectsLocation {
    /// Reads an address. Credentials, and what the address does not say, come from these variables: `AWS_ACCESS_KEY_ID`,
    /// `AWS_REGION` and the others that programs for S3 read.
    pub fn parse(
        text: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ObjectsLocationError> {
        let url = Url::parse(text).map_err(|_| ObjectsLocationError::Scheme)?;
        if url.scheme() != SCHEME {
            return Err(ObjectsLocationError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            let why = "keys are read from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
            return Err(invalid(why));
        }
        let bucket = url.host_str().filter(|host| !host.is_empty());
        let bucket = bucket.ok_or_else(|| invalid("it names no bucket"))?;
        if url.port().is_some() {
            return Err(invalid("a port is part of the option endpoint"));
        }
        let prefix = Path::from_url_path(url.path()).map_err(|error| invalid(error.to_string()))?;
        let (builder, may_send_in_the_clear) = read_variables(variables);
        let (builder, endpoint) = read_options(&url, builder)?;
        let allows_http = match &endpoint {
            Some(endpoint) => check_endpoint(endpoint, may_send_in_the_clear)?,
            None => false,
        };
        let endpoint = endpoint.map_or_else(String::new, |endpoint| format!(" at {endpoint}"));
        Ok(Self {
            builder: builder.with_bucket_name(bucket),
            allows_http,
            shown: format!("{SCHEME}://{bucket}/{prefix}{endpoint}"),
            prefix,
        })
    }
}

/// Takes what the library knows of the environment. `http` is decided about by the address.
fn read_variables(
    variables: impl IntoIterator<Item = (String, String)>,
) -> (AmazonS3Builder, bool) {
    let mut builder = AmazonS3Builder::new();
    let mut may_send_in_the_clear = false;
    let mut endpoint_of_service = None;
    for (name, value) in variables {
        if name == ALLOW_HTTP {
            may_send_in_the_clear = value == "true" || value == "1";
        } else if name == ENDPOINT_OF_SERVICE {
            endpoint_of_service = Some(value);
        } else if name.starts_with("AWS_")
            && let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>()
        {
            builder = builder.with_config(key, value);
        }
    }
    // The library would keep it apart from the endpoint that is checked below.
    if let Some(endpoint) = endpoint_of_service {
        builder = builder.with_endpoint(endpoint);
    }
    (builder, may_send_in_the_clear)
}

/// Takes the options of the address. Returns the endpoint that counts, if one is named.
fn read_options(
    url: &Url,
    mut builder: AmazonS3Builder,
) -> Result<(AmazonS3Builder, Option<Url>), ObjectsLocationError> {
    for (name, value) in url.query_pairs() {
        builder = match &*name {
            "endpoint" => builder.with_endpoint(value.trim_end_matches('/')),
            "region" => builder.with_region(value),
            other => {
                let why = format!("there is no option {other}: there are endpoint and region");
                return Err(invalid(why));
            }
        };
    }
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
    let endpoint = endpoint.map(|endpoint| Url::parse(&endpoint)).transpose();
    let endpoint = endpoint.map_err(|_| invalid("the endpoint is no URL"))?;
    Ok((builder, endpoint))
}

/// Returns whether an endpoint is asked without encryption.
fn check_endpoint(
    endpoint: &Url,
    may_send_in_the_clear: bool,
) -> Result<bool, ObjectsLocationError> {
    match endpoint.scheme() {
        "https" => Ok(false),
        "http" if may_send_in_the_clear || is_this_machine(endpoint) => Ok(true),
        "http" => Err(invalid(format!(
            "values would be sent in the clear to {endpoint}: use https, or set {ALLOW_HTTP}=true"
        ))),
        other => Err(invalid(format!("an endpoint cannot begin with {other}:"))),
    }
}

fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_matches(['[', ']']);
    let address: Result<std::net::IpAddr, _> = bare.parse();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, variables: &[(&str, &str)]) -> Result<String, String> {
        let variables = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ObjectsLocation::parse(text, variables)
            .map(|location| location.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn an_address_is_a_bucket_with_a_prefix_and_options() {
        assert_eq!(read("s3://values", &[]).unwrap(), "s3://values/");
        assert_eq!(read("s3://values/a/b/", &[]).unwrap(), "s3://values/a/b");
        let with = "s3://values/a?endpoint=http://127.0.0.1:9000&region=eu-1";
        let shown = "s3://values/a at http://127.0.0.1:9000/";
        assert_eq!(read(with, &[]).unwrap(), shown);
        let named = [("AWS_ENDPOINT_URL", "https://s3.example.org")];
        let shown = "s3://values/ at https://s3.example.org/";
        assert_eq!(read("s3://values", &named).unwrap(), shown);
        let of_service = [
            ("AWS_ENDPOINT_URL_S3", "https://s3.example.org"),
            ("AWS_ENDPOINT_URL", "https://all.example.org"),
        ];
        assert_eq!(read("s3://values", &of_service).unwrap(), shown);
        let in_the_clear = [("AWS_ENDPOINT_URL_S3", "http://s3.example.org")];
        assert!(read("s3://values", &in_the_clear).is_err());
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        for (text, words) in [
            ("postgres://a/b", "must begin with s3://"),
            ("values", "must begin with s3://"),
            ("s3:///prefix", "no bucket"),
            ("s3://key:hunter2@values", "AWS_ACCESS_KEY_ID"),
            ("s3://values:9000/a", "endpoint"),
            ("s3://values?secret=x", "no option secret"),
            ("s3://values?endpoint=values.example", "no URL"),
            ("s3://values?endpoint=ftp://values.example", "ftp"),
            ("s3://values?endpoint=http://values.example", "in the clear"),
        ] {
            let complaint = read(text, &[]).unwrap_err();
            assert!(complaint.contains(words), "{text}: {complaint}");
            assert!(!complaint.contains("hunter2"), "{complaint}");
        }
        let allowed = [(ALLOW_HTTP, "true")];
        read("s3://values?endpoint=http://values.example", &allowed).unwrap();
    }
}
