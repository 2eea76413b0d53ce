//! Secrets in the keyring of the operating system. Only in builds with the feature `keyring`.

use super::unreadable;
use planwright_core::secret::SecretName;
use planwright_engine::port::SecretError;
use zeroize::Zeroizing;

#[cfg(feature = "keyring")]
pub(super) fn read(
    name: &SecretName,
    service: &str,
    user: &str,
) -> Result<Zeroizing<String>, SecretError> {
    use ::keyring::{Entry, Error};
    let found = Entry::new(service, user).and_then(|entry| entry.get_password());
    found.map(Zeroizing::new).map_err(|error| match error {
        Error::NoEntry => {
            super::missing(name, format!("the keyring has no entry {service}/{user}"))
        }
        // Some errors carry the bytes that could not be read, so only its kind is told.
        Error::BadEncoding(_) => unreadable(
            name,
            format!("the entry {service}/{user} is not UTF-8 text"),
        ),
        other => unreadable(name, format!("the keyring: {other}")),
    })
}

#[cfg(not(feature = "keyring"))]
pub(super) fn read(name: &SecretName, _: &str, _: &str) -> Result<Zeroizing<String>, SecretError> {
    let reason = "this build has no keyring: build it with the feature `keyring`, or use a file or a variable";
    Err(unreadable(name, reason.to_owned()))
}
