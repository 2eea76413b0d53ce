//! What a provider says about a person, and whether it holds.
//!
//! Two algorithms are taken, which every provider has one of. That a token is not signed, or signed with a
//! secret that is shared, is never good enough.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use subtle::ConstantTimeEq as _;

/// Clocks differ by so many seconds.
const LEEWAY: i64 = 60;

/// A token that was made longer ago than this was not made for this visit.
const OLDEST: i64 = 600;

/// More keys than a provider has.
const MAX_KEYS: usize = 100;

/// What a token has to be about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
    /// Seconds since 1970.
    pub(super) now: i64,
}

/// The reason a token is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenFault {
    /// It has not the form of one.
    #[error("it is no token that can be read")]
    Unreadable,
    /// It names an extension that has to be understood.
    #[error("it asks for something that is not known here")]
    Critical,
    /// It is signed by no means that is good enough, or not at all.
    #[error("it is not signed as it has to be")]
    Algorithm,
    /// Its key is none that the provider has told.
    #[error("it names a key that the provider does not have")]
    UnknownKey,
    /// Its key did not sign it.
    #[error("no key of the provider has signed it")]
    Signature,
    /// It is of another provider.
    #[error("it is of another provider")]
    Issuer,
    /// It is for another service.
    #[error("it is for another service")]
    Audience,
    /// It is over, not valid yet, or does not say until when it is.
    #[error("it is not valid at this time")]
    Time,
    /// It was not made just now, or does not say when.
    #[error("it was not made just now")]
    Age,
    /// It is of another visit.
    #[error("it is of another visit")]
    Nonce,
    /// It names no person.
    #[error("it names no person")]
    Subject,
}

/// The keys of a provider.
#[derive(Debug, Deserialize)]
pub(super) struct KeySet {
    keys: Vec<Value>,
}

/// A key as providers publish it.
#[derive(Debug, Deserialize)]
struct Key {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// The ways of signing that are taken. A key is used in the one way that its kind has, whichever the token names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Es256,
}

impl Algorithm {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            _ => None,
        }
    }

    /// The kind of key that signs in this way.
    fn kind(self) -> &'static str {
        match self {
            Self::Rs256 => "RSA",
            Self::Es256 => "EC",
        }
    }
}

#[derive(Debug, Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

/// Checks a token and returns its claims.
pub(super) fn check_token(
    token: &str,
    keys: &KeySet,
    expected: Expected<'_>,
) -> Result<Map<String, Value>, TokenFault> {
    let mut parts = token.split('.');
    let (Some(header), Some(claims), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(TokenFault::Unreadable);
    };
    let signed = format!("{header}.{claims}");
    let signature = decode(signature).ok_or(TokenFault::Unreadable)?;
    let header: Header = read(header).ok_or(TokenFault::Unreadable)?;
    if header.crit.is_some() {
        return Err(TokenFault::Critical);
    }
    let algorithm = Algorithm::parse(&header.alg).ok_or(TokenFault::Algorithm)?;
    let candidates = keys.keys.iter().take(MAX_KEYS);
    let candidates = candidates.filter_map(|key| Key::deserialize(key).ok());
    let named: Vec<Key> = candidates
        .filter(|key| key.may_have_signed(&header))
        .collect();
    if named.is_empty() {
        return Err(TokenFault::UnknownKey);
    }
    let mut named = named.iter();
    if !named.any(|key| key.verifies(algorithm, signed.as_bytes(), &signature)) {
        return Err(TokenFault::Signature);
    }
    let claims: Map<String, Value> = read(claims).ok_or(TokenFault::Unreadable)?;
    check_claims(&claims, expected)?;
    Ok(claims)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

fn read<T: for<'de> Deserialize<'de>>(part: &str) -> Option<T> {
    serde_json::from_slice(&decode(part)?).ok()
}

impl Key {
    fn may_have_signed(&self, header: &Header) -> bool {
        let named = header.kid.is_none() || self.kid == header.kid;
        named
            && self
                .purpose
                .as_deref()
                .is_none_or(|purpose| purpose == "sig")
    }

    /// Returns whether this key made the signature, by the one algorithm that its kind has here.
    fn verifies(&self, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> bool {
        let verified = match algorithm {
            _ if self.kty != algorithm.kind() => None,
            Algorithm::Rs256 => self.verify_rsa(signed, signature),
            Algorithm::Es256 => self.verify_ecdsa(signed, signature),
        };
        verified.is_some()
    }

    fn verify_rsa(&self, signed: &[u8], signature: &[u8]) -> Option<()> {
        let n = decode(self.n.as_deref()?)?;
        let e = decode(self.e.as_deref()?)?;
        let key = RsaPublicKeyComponents { n: &n, e: &e };
        key.verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
            .ok()
    }

    fn verify_ecdsa(&self, signed: &[u8], signature: &[u8]) -> Option<()> {
        if self.crv.as_deref() != Some("P-256") {
            return None;
        }
        let x = decode(self.x.as_deref()?)?;
        let y = decode(self.y.as_deref()?)?;
        let point = [&[4][..], &x, &y].concat();
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        key.verify(signed, signature).ok()
    }
}

fn check_claims(claims: &Map<String, Value>, expected: Expected<'_>) -> Result<(), TokenFault> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let number = |name: &str| claims.get(name).and_then(Value::as_i64);
    if text("iss") != Some(expected.issuer) {
        return Err(TokenFault::Issuer);
    }
    let several = match claims.get("aud") {
        Some(Value::String(one)) if one == expected.client_id => false,
        Some(Value::Array(all)) if all.contains(&Value::from(expected.client_id)) => all.len() > 1,
        Some(_) | None => return Err(TokenFault::Audience),
    };
    match claims.get("azp") {
        Some(party) if party.as_str() != Some(expected.client_id) => {
            return Err(TokenFault::Audience);
        }
        None if several => return Err(TokenFault::Audience),
        Some(_) | None => {}
    }
    let expires = number("exp").ok_or(TokenFault::Time)?;
    let made = number("iat").ok_or(TokenFault::Age)?;
    let early = number("nbf").is_some_and(|from| from > expected.now.saturating_add(LEEWAY));
    if expires <= expected.now.saturating_sub(LEEWAY) || early {
        return Err(TokenFault::Time);
    }
    if made > expected.now.saturating_add(LEEWAY) || made < expected.now.saturating_sub(OLDEST) {
        return Err(TokenFault::Age);
    }
    let nonce = text("nonce").unwrap_or_default();
    if !bool::from(nonce.as_bytes().ct_eq(expected.nonce.as_bytes())) {
        return Err(TokenFault::Nonce);
    }
    if text("sub").is_none_or(str::is_empty) {
        return Err(TokenFault::Subject);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::TokenFault as Fault;
    use super::*;
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
    };
    use serde_json::json;

    const NOW: i64 = 1_800_000_000;

    /// A key that signs, of either kind.
    enum Signer {
        Curve(Box<EcdsaKeyPair>),
        Rsa(Box<RsaKeyPair>),
    }

    fn encode(bytes: impl AsRef<[u8]>) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    impl Signer {
        fn curve() -> Self {
            let random = SystemRandom::new();
            let signing = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let made = EcdsaKeyPair::generate_pkcs8(signing, &random).unwrap();
            let pair = EcdsaKeyPair::from_pkcs8(signing, made.as_ref(), &random).unwrap();
            Self::Curve(Box::new(pair))
        }

        /// A key that was made for these tests and opens nothing.
        fn rsa() -> Self {
            let made = include_bytes!("test_rsa_key.der");
            Self::Rsa(Box::new(RsaKeyPair::from_pkcs8(made).unwrap()))
        }

        /// The key as the provider publishes it, under this name.
        fn public(&self, kid: &str) -> Value {
            match self {
                Self::Curve(pair) => {
                    let point = pair.public_key().as_ref();
                    json!({ "kty": "EC", "crv": "P-256", "kid": kid, "use": "sig",
                        "x": encode(&point[1..33]), "y": encode(&point[33..]) })
                }
                Self::Rsa(pair) => {
                    let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                    let RsaPublicKeyComponents { n, e } = public;
                    json!({ "kty": "RSA", "kid": kid, "use": "sig", "n": encode(n), "e": encode(e) })
                }
            }
        }

        fn signature(&self, signed: &[u8]) -> Vec<u8> {
            let random = SystemRandom::new();
            match self {
                Self::Curve(pair) => pair.sign(&random, signed).unwrap().as_ref().to_vec(),
                Self::Rsa(pair) => {
                    let mut signature = vec![0; pair.public().modulus_len()];
                    pair.sign(&RSA_PKCS1_SHA256, &random, signed, &mut signature)
                        .unwrap();
                    signature
                }
            }
        }

        fn sign(&self, header: &Value, claims: &Value) -> String {
            let signed = unsigned(header, claims);
            let signature = encode(self.signature(signed.as_bytes()));
            format!("{signed}.{signature}")
        }
    }

    fn unsigned(header: &Value, claims: &Value) -> String {
        format!(
            "{}.{}",
            encode(header.to_string()),
            encode(claims.to_string())
        )
    }

    fn claims(changes: &Value) -> Value {
        let mut claims = json!({ "iss": "https://id.example", "aud": "us", "sub": "ada",
            "exp": NOW + 300, "iat": NOW - 5, "nonce": "n", "groups": ["staff"] });
        for (name, value) in changes.as_object().unwrap() {
            if *value == json!("(absent)") {
                claims.as_object_mut().unwrap().remove(name);
            } else {
                claims[name] = value.clone();
            }
        }
        claims
    }

    fn check_with(keys: Vec<Value>, token: &str) -> Result<Map<String, Value>, Fault> {
        let expected = Expected {
            issuer: "https://id.example",
            client_id: "us",
            nonce: "n",
            now: NOW,
        };
        check_token(token, &KeySet { keys }, expected)
    }

    fn check(signer: &Signer, token: &str) -> Result<Map<String, Value>, Fault> {
        check_with(vec![json!({ "kty": "odd" }), signer.public("a")], token)
    }

    #[test]
    fn what_a_provider_signed_for_this_visit_is_taken() {
        for (signer, alg) in [(Signer::curve(), "ES256"), (Signer::rsa(), "RS256")] {
            let header = json!({ "alg": alg, "kid": "a" });
            for good in [
                json!({}),
                json!({ "aud": ["us"] }),
                json!({ "aud": ["us", "them"], "azp": "us" }),
                json!({ "azp": "us" }),
                json!({ "exp": NOW - 59 }),
                json!({ "iat": NOW + 59 }),
                json!({ "iat": NOW - 600 }),
                json!({ "nbf": NOW + 59 }),
            ] {
                let taken = check(&signer, &signer.sign(&header, &claims(&good)));
                assert_eq!(taken.unwrap()["groups"], json!(["staff"]), "{alg} {good}");
            }
            // A provider with one key need not name it.
            let nameless = signer.sign(&json!({ "alg": alg }), &claims(&json!({})));
            assert!(check(&signer, &nameless).is_ok());
        }
    }

    #[test]
    fn what_is_for_others_of_another_time_or_visit_is_not() {
        let signer = Signer::curve();
        let header = json!({ "alg": "ES256", "kid": "a" });
        for (wrong, fault) in [
            (json!({ "iss": "https://id.example/" }), Fault::Issuer),
            (json!({ "iss": "https://evil.example" }), Fault::Issuer),
            (json!({ "iss": ["https://id.example"] }), Fault::Issuer),
            (json!({ "iss": "(absent)" }), Fault::Issuer),
            (json!({ "aud": "them" }), Fault::Audience),
            (json!({ "aud": ["us", "them"] }), Fault::Audience),
            (json!({ "aud": ["them"] }), Fault::Audience),
            (json!({ "aud": [] }), Fault::Audience),
            (json!({ "aud": { "us": true } }), Fault::Audience),
            (json!({ "aud": "(absent)" }), Fault::Audience),
            (json!({ "azp": "them" }), Fault::Audience),
            (json!({ "azp": ["us"] }), Fault::Audience),
            (json!({ "azp": null }), Fault::Audience),
            (json!({ "exp": NOW - 60 }), Fault::Time),
            (json!({ "exp": null }), Fault::Time),
            (json!({ "exp": (NOW + 300).to_string() }), Fault::Time),
            (json!({ "exp": i64::MIN }), Fault::Time),
            (json!({ "exp": "(absent)" }), Fault::Time),
            (json!({ "nbf": NOW + 61 }), Fault::Time),
            (json!({ "iat": NOW + 61 }), Fault::Age),
            (json!({ "iat": NOW - 601 }), Fault::Age),
            (json!({ "iat": i64::MAX }), Fault::Age),
            (json!({ "iat": "(absent)" }), Fault::Age),
            (json!({ "nonce": "other" }), Fault::Nonce),
            (json!({ "nonce": "" }), Fault::Nonce),
            (json!({ "nonce": null }), Fault::Nonce),
            (json!({ "nonce": ["n"] }), Fault::Nonce),
            (json!({ "nonce": "(absent)" }), Fault::Nonce),
            (json!({ "sub": "" }), Fault::Subject),
            (json!({ "sub": 7 }), Fault::Subject),
            (json!({ "sub": "(absent)" }), Fault::Subject),
        ] {
            let token = signer.sign(&header, &claims(&wrong));
            assert_eq!(check(&signer, &token), Err(fault), "{wrong}");
        }
    }

    #[test]
    fn a_header_cannot_choose_how_it_is_believed() {
        let signer = Signer::curve();
        let good = claims(&json!({}));
        for (header, fault) in [
            (json!({ "alg": "none", "kid": "a" }), Fault::Algorithm),
            (json!({ "alg": "None" }), Fault::Algorithm),
            (json!({ "alg": "" }), Fault::Algorithm),
            (json!({ "alg": "HS256", "kid": "a" }), Fault::Algorithm),
            (json!({ "alg": "ES384", "kid": "a" }), Fault::Algorithm),
            (json!({ "alg": "PS256", "kid": "a" }), Fault::Algorithm),
            (json!({ "alg": "es256", "kid": "a" }), Fault::Algorithm),
            // The way of another kind of key.
            (json!({ "alg": "RS256", "kid": "a" }), Fault::Signature),
            (json!({ "alg": "ES256", "kid": "b" }), Fault::UnknownKey),
            (
                json!({ "alg": "ES256", "kid": "a", "crit": ["exp"] }),
                Fault::Critical,
            ),
            (json!({ "kid": "a" }), Fault::Unreadable),
            (json!(["ES256"]), Fault::Unreadable),
        ] {
            let token = signer.sign(&header, &good);
            assert_eq!(check(&signer, &token), Err(fault), "{header}");
        }
        // The header's own key, or the address of one, is not looked at.
        let thief = Signer::curve();
        let header = json!({ "alg": "ES256", "kid": "a", "jwk": thief.public("a"), "jku": "https://evil.example" });
        assert_eq!(
            check(&signer, &thief.sign(&header, &good)),
            Err(Fault::Signature)
        );
    }

    #[test]
    fn a_public_key_is_no_shared_secret() {
        let signer = Signer::rsa();
        let public = signer.public("a");
        let header = json!({ "alg": "HS256", "kid": "a" });
        let signed = unsigned(&header, &claims(&json!({})));
        // What a library that trusts the header would compare with, in each form that the key is known in.
        let modulus = decode(public["n"].as_str().unwrap()).unwrap();
        for secret in [modulus, public.to_string().into_bytes()] {
            let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &secret);
            let forged = encode(ring::hmac::sign(&key, signed.as_bytes()));
            let token = format!("{signed}.{forged}");
            assert_eq!(check(&signer, &token), Err(Fault::Algorithm));
        }
        // Nor is a secret that a provider publishes by mistake.
        let shared = json!({ "kty": "oct", "kid": "a", "k": encode("secret") });
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"secret");
        let forged = encode(ring::hmac::sign(&key, signed.as_bytes()));
        let token = format!("{signed}.{forged}");
        assert_eq!(check_with(vec![shared], &token), Err(Fault::Algorithm));
    }

    #[test]
    fn what_the_provider_did_not_sign_is_not_taken() {
        for (signer, other, alg) in [
            (Signer::curve(), Signer::curve(), "ES256"),
            (Signer::rsa(), Signer::curve(), "RS256"),
        ] {
            let good = claims(&json!({}));
            let header = json!({ "alg": alg, "kid": "a" });
            let stolen = other.sign(&header, &good);
            assert_eq!(check(&signer, &stolen), Err(Fault::Signature));
            let token = signer.sign(&header, &good);
            let (signed, signature) = token.rsplit_once('.').unwrap();
            for (forged, fault) in [
                (format!("{signed}."), Fault::Signature),
                (format!("{signed}.{}", encode([0; 64])), Fault::Signature),
                (format!("{signed}.{}", encode([0; 256])), Fault::Signature),
                (format!("{signed}.{signature}="), Fault::Unreadable),
                (signed.to_owned(), Fault::Unreadable),
                (format!("{token}.x"), Fault::Unreadable),
                (String::new(), Fault::Unreadable),
                (format!(" {token}"), Fault::Unreadable),
            ] {
                assert_eq!(check(&signer, &forged), Err(fault), "{forged}");
            }
            let mut parts = token.split('.').map(str::to_owned).collect::<Vec<_>>();
            parts[1] = encode(claims(&json!({ "sub": "eve" })).to_string());
            assert_eq!(check(&signer, &parts.join(".")), Err(Fault::Signature));
        }
    }

    #[test]
    fn a_key_for_other_things_signs_nothing() {
        let signer = Signer::curve();
        let token = signer.sign(&json!({ "alg": "ES256", "kid": "a" }), &claims(&json!({})));
        for (name, value, fault) in [
            ("use", "enc", Fault::UnknownKey),
            ("kid", "b", Fault::UnknownKey),
            ("crv", "P-384", Fault::Signature),
            ("kty", "RSA", Fault::Signature),
            ("x", "", Fault::Signature),
            ("y", "AAAA", Fault::Signature),
        ] {
            let mut key = signer.public("a");
            key[name] = json!(value);
            assert_eq!(check_with(vec![key], &token), Err(fault), "{name}");
        }
        assert_eq!(check_with(Vec::new(), &token), Err(Fault::UnknownKey));
        // A short RSA key can be taken apart.
        let rsa = Signer::rsa();
        let header = json!({ "alg": "RS256", "kid": "a" });
        let mut short = rsa.public("a");
        short["n"] = json!(encode([0xc1; 128]));
        let token = rsa.sign(&header, &claims(&json!({})));
        assert_eq!(check_with(vec![short], &token), Err(Fault::Signature));
    }
}
