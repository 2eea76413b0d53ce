//! The signature of Standard Webhooks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use planwright_core::secret::{SecretName, SecretText};
use sha2::Sha256;
use zeroize::Zeroizing;

const PREFIX: &str = "whsec_";

/// A fault of a secret that keeps it from signing. Its text never repeats the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the secret `{0}` cannot sign: it must be `{PREFIX}` and the base64 of 24 to 64 random bytes (`echo {PREFIX}$(openssl rand -base64 32)` makes one)"
)]
pub(super) struct BadSecret(SecretName);

/// The bytes that sign.
pub(super) struct Key(Zeroizing<Vec<u8>>);

impl Key {
    pub(super) fn read(name: &SecretName, secret: &SecretText) -> Result<Self, BadSecret> {
        let bad = || BadSecret(name.clone());
        let encoded = secret
            .expose()
            .trim()
            .strip_prefix(PREFIX)
            .ok_or_else(bad)?;
        let bytes = Zeroizing::new(STANDARD.decode(encoded).map_err(|_| bad())?);
        if (24..=64).contains(&bytes.len()) {
            Ok(Self(bytes))
        } else {
            Err(bad())
        }
    }

    /// One signature over exactly what is sent.
    fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key may have any length");
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// The header: one signature per key.
pub(super) fn signatures(keys: &[Key], id: &str, seconds: i64, body: &[u8]) -> String {
    let signed: Vec<String> = keys.iter().map(|key| key.sign(id, seconds, body)).collect();
    signed.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Result<Key, BadSecret> {
        Key::read(
            &SecretName::new("HOOK").unwrap(),
            &SecretText::new(text.to_owned()).unwrap(),
        )
    }

    #[test]
    fn it_signs_as_the_specification_shows() {
        let key = key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed = signatures(
            &[key],
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn several_keys_sign_side_by_side() {
        let keys = [
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
        ]
        .map(|text| key(&format!("whsec_{text}")).unwrap());
        let signed = signatures(&keys, "id", 1, b"{}");
        assert_eq!(signed.split(' ').count(), 2);
        assert!(signed.split(' ').all(|one| one.starts_with("v1,")));
    }

    #[test]
    fn a_weak_or_foreign_secret_is_refused_without_being_repeated() {
        for text in [
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_c2hvcnQ=",
            "whsec_!!!!",
            "whsk_abcdefgh",
        ] {
            let error = key(text).err().unwrap().to_string();
            assert!(
                error.contains("HOOK") && !error.contains(text.trim_start_matches("whsec_")),
                "{error}"
            );
        }
    }
}
