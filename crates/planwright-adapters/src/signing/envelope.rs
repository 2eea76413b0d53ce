//! Signed documents: envelopes of the DSSE (`secure-systems-lab/dsse`), which other programs can
//! open with any library for Ed25519.
//!
//! What is signed is the type and the bytes of the payload, so no two programs have to agree on how
//! JSON is written.

use super::key::{PublicKey, SigningKey, verify_signature};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

#[derive(Debug, thiserror::Error)]
pub enum OpenEnvelopeError {
    #[error("it is no signed document: {0}")]
    NotAnEnvelope(String),
    #[error("it is signed as {found}, and not as {wanted}")]
    OtherType { found: String, wanted: String },
    #[error("it is signed with {found}, and not with {wanted}")]
    OtherKey { found: PublicKey, wanted: PublicKey },
    #[error("it was changed, or {0} did not sign it")]
    BadSignature(PublicKey),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Envelope {
    payload_type: String,
    /// In base64.
    payload: String,
    signatures: Vec<Signature>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signature {
    /// The public key itself.
    keyid: String,
    sig: String,
}

/// Signs a payload of this type. One line of JSON.
pub fn seal_envelope(key: &SigningKey, payload_type: &str, payload: &[u8]) -> String {
    let signature = Signature {
        keyid: key.public().to_string(),
        sig: STANDARD.encode(key.sign(&signed_bytes(payload_type, payload))),
    };
    let envelope = Envelope {
        payload_type: payload_type.to_owned(),
        payload: STANDARD.encode(payload),
        signatures: vec![signature],
    };
    serde_json::to_string(&envelope).expect("an envelope has only string keys")
}

/// Checks the signature and returns the payload with the key that signed it. With `wanted` it has to
/// be that one; without it, whose key it is remains the caller's to know.
pub fn open_envelope(
    text: &[u8],
    payload_type: &str,
    wanted: Option<&PublicKey>,
) -> Result<(Vec<u8>, PublicKey), OpenEnvelopeError> {
    let wrong =
        |reason: &dyn std::fmt::Display| OpenEnvelopeError::NotAnEnvelope(reason.to_string());
    let envelope: Envelope = serde_json::from_slice(text).map_err(|error| wrong(&error))?;
    if envelope.payload_type != payload_type {
        return Err(OpenEnvelopeError::OtherType {
            found: envelope.payload_type,
            wanted: payload_type.to_owned(),
        });
    }
    let [signature] = envelope.signatures.as_slice() else {
        return Err(wrong(&"one signature is expected"));
    };
    let found: PublicKey = signature.keyid.parse().map_err(|error| wrong(&error))?;
    if let Some(wanted) = wanted
        && *wanted != found
    {
        return Err(OpenEnvelopeError::OtherKey {
            found,
            wanted: *wanted,
        });
    }
    let payload = STANDARD
        .decode(&envelope.payload)
        .map_err(|error| wrong(&error))?;
    let sig = STANDARD
        .decode(&signature.sig)
        .map_err(|error| wrong(&error))?;
    verify_signature(&found, &signed_bytes(payload_type, &payload), &sig)
        .map_err(|_| OpenEnvelopeError::BadSignature(found))?;
    Ok((payload, found))
}

/// The pre-authentication encoding of DSSE version 1.
fn signed_bytes(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let type_bytes = payload_type.len();
    let bytes = payload.len();
    let mut signed = format!("DSSEv1 {type_bytes} {payload_type} {bytes} ").into_bytes();
    signed.extend_from_slice(payload);
    signed
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "application/vnd.planwright.test+json";

    #[test]
    fn the_encoding_is_that_of_dsse() {
        // The example of the DSSE protocol.
        assert_eq!(
            signed_bytes("http://example.com/HelloWorld", b"hello world"),
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
    }

    #[test]
    fn every_changed_byte_is_refused() {
        let key = SigningKey::random().unwrap();
        let text = seal_envelope(&key, TYPE, br#"{"a":1}"#);
        let (payload, signer) = open_envelope(text.as_bytes(), TYPE, None).unwrap();
        assert_eq!(
            (payload.as_slice(), signer),
            (&br#"{"a":1}"#[..], key.public())
        );
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut changed = text.clone().into_bytes();
                changed[at] ^= 1 << bit;
                assert!(
                    open_envelope(&changed, TYPE, None).is_err(),
                    "byte {at}, bit {bit}"
                );
            }
        }
    }

    #[test]
    fn another_type_or_key_is_refused() {
        let key = SigningKey::random().unwrap();
        let text = seal_envelope(&key, TYPE, b"{}");
        let other = SigningKey::random().unwrap().public();
        assert!(matches!(
            open_envelope(text.as_bytes(), "text/plain", None),
            Err(OpenEnvelopeError::OtherType { .. })
        ));
        assert!(matches!(
            open_envelope(text.as_bytes(), TYPE, Some(&other)),
            Err(OpenEnvelopeError::OtherKey { .. })
        ));
        assert!(open_envelope(text.as_bytes(), TYPE, Some(&key.public())).is_ok());
    }
}
