//! SHA-256 digests and the canonical JSON they are taken over.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};
use sha2::{Digest as _, Sha256};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// How every digest begins.
const PREFIX: &str = "sha256:";

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
///
/// The library does this for everything that can be serialized, at ten times the cost. Of a value that is
/// there, only numbers are left to it, and of these not the usual ones: small integers are written in
/// one way.
pub fn canonical_json(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    write_canonical(value, &mut bytes);
    bytes
}

fn write_canonical(value: &Value, bytes: &mut Vec<u8>) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_unstable_by(|(one, _), (other, _)| compare_keys(one, other));
            bytes.push(b'{');
            for (at, (key, value)) in fields.into_iter().enumerate() {
                if at > 0 {
                    bytes.push(b',');
                }
                write_text(key, bytes);
                bytes.push(b':');
                write_canonical(value, bytes);
            }
            bytes.push(b'}');
        }
        Value::Array(elements) => {
            bytes.push(b'[');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    bytes.push(b',');
                }
                write_canonical(element, bytes);
            }
            bytes.push(b']');
        }
        Value::String(text) => write_text(text, bytes),
        Value::Number(number) => match small_integer(number) {
            Some(integer) => bytes.extend_from_slice(integer.to_string().as_bytes()),
            None => bytes
                .extend(serde_json_canonicalizer::to_vec(number).expect("a JSON number is finite")),
        },
        Value::Bool(true) => bytes.extend_from_slice(b"true"),
        Value::Bool(false) => bytes.extend_from_slice(b"false"),
        Value::Null => bytes.extend_from_slice(b"null"),
    }
}

fn write_text(text: &str, bytes: &mut Vec<u8>) {
    serde_json::to_writer(bytes, text).expect("memory takes any text");
}

/// Compares keys by their UTF-16 units, as the standard says. For ASCII that is the order of the bytes.
fn compare_keys(one: &str, other: &str) -> Ordering {
    if one.is_ascii() && other.is_ascii() {
        one.cmp(other)
    } else {
        one.encode_utf16().cmp(other.encode_utf16())
    }
}

/// An integer that a floating-point number holds exactly, together with its neighbours.
fn small_integer(number: &Number) -> Option<i64> {
    const EXACT: u64 = 1 << 53;
    number
        .as_i64()
        .filter(|integer| integer.unsigned_abs() < EXACT)
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        f.write_str(HEXLOWER.encode_mut_str(&self.0, &mut [0; 64]))
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
        let hex = text.strip_prefix(PREFIX).ok_or(ParseDigestError)?;
        // Capital letters are read as well: people paste digests from other programs.
        let bytes = HEXLOWER_PERMISSIVE.decode(hex.as_bytes());
        let bytes = bytes.map_err(|_| ParseDigestError)?;
        bytes.try_into().map(Self).map_err(|_| ParseDigestError)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(PREFIX.len() + 64);
        text.push_str(PREFIX);
        HEXLOWER.encode_append(&self.0, &mut text);
        serializer.serialize_str(&text)
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
    use proptest::prelude::*;
    use serde_json::json;

    /// Values with everything that the standard has a rule for.
    fn any_value() -> impl Strategy<Value = Value> {
        let key = prop_oneof!["[a-c]{0,3}", "[\u{0}-\u{7f}]{0,4}", ".{0,4}"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-10_i64..10).prop_map(|near| json!((1_i64 << 53) + near)),
            (-10_i64..10).prop_map(|near| json!(near - (1_i64 << 53))),
            any::<f64>().prop_map(Value::from),
            (-100_i32..100).prop_map(|tenths| json!(f64::from(tenths) / 10.0)),
            Just(json!(-0.0)),
            ".{0,8}".prop_map(Value::from),
            "[\u{0}-\u{7f}]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((key.clone(), inner), 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_canonical_form_is_that_of_the_library(value in any_value()) {
            let written = String::from_utf8(canonical_json(&value)).unwrap();
            prop_assert_eq!(written, serde_json_canonicalizer::to_string(&value).unwrap());
        }
    }

    #[test]
    fn keys_are_in_the_order_of_their_utf_16_units() {
        // U+10000 comes after U+FB01, and its first unit before.
        let value = json!({"\u{fb01}": 1, "\u{10000}": 2, "z": 3, "": 4});
        let written = String::from_utf8(canonical_json(&value)).unwrap();
        assert_eq!(written, "{\"\":4,\"z\":3,\"\u{10000}\":2,\"\u{fb01}\":1}");
    }

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
