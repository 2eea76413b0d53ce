//! SHA-256 digests and the canonical JSON they are taken over.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// A SHA-256 digest, written `sha256:<64 hex digits>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// The error for a text that is not a digest.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a digest: expected `sha256:` and 64 hexadecimal digits")]
pub struct ParseDigestError;

impl Digest {
    /// The digest that stands before the first entry of a chain.
    pub const ZERO: Self = Self([0; 32]);

    /// Returns the digest of some bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Hashes the parts with their lengths, so that no two different lists of parts collide.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut writer = DigestWriter::default();
        for part in parts {
            writer.add_part(part);
        }
        writer.finish()
    }

    /// The digest of a value's RFC 8785 form: independent of the order of its keys.
    pub fn of_json(value: &Value) -> Self {
        Self::of_bytes(&canonical_json(value))
    }

    /// Wraps the 32 bytes of a digest.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes of the digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 hexadecimal digits without the prefix.
    pub fn hex(&self) -> String {
        HEXLOWER.encode(&self.0)
    }

    /// A form for people that have to compare two: never accepted as an approval.
    pub fn short(&self) -> String {
        self.hex()[..12].to_owned()
    }
}

/// Takes a digest over parts that come one by one. The same as [`Digest::of_parts`] over all of
/// them.
#[derive(Default)]
pub struct DigestWriter(Sha256);

impl DigestWriter {
    /// Adds one part with its length.
    pub fn add_part(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// Returns the digest over all parts.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Debug for DigestWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DigestWriter")
    }
}

/// RFC 8785 bytes of a JSON value.
pub fn canonical_json(value: &Value) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value)
        .expect("a JSON value has only string keys and finite numbers")
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", self.short())
    }
}

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hex = text.strip_prefix("sha256:").ok_or(ParseDigestError)?;
        // Capital letters are read as well: people paste digests from other programs.
        let bytes = HEXLOWER_PERMISSIVE.decode(hex.as_bytes());
        let bytes = bytes.map_err(|_| ParseDigestError)?;
        bytes.try_into().map(Self).map_err(|_| ParseDigestError)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_digest_survives_its_text_form() {
        let digest = Digest::of_bytes(b"abc");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(
            digest.to_string(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn key_order_does_not_change_a_digest() {
        let one: Value = serde_json::from_str(r#"{"b":1,"a":[1.0,2]}"#).unwrap();
        assert_eq!(
            Digest::of_json(&one),
            Digest::of_json(&json!({"a":[1,2],"b":1}))
        );
    }

    #[test]
    fn parts_are_separated() {
        assert_ne!(
            Digest::of_parts(&[b"ab", b"c"]),
            Digest::of_parts(&[b"a", b"bc"])
        );
    }
}
