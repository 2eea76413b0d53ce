//! What a browser and a device say together, and whether it holds.

use super::cbor::{Value, read_value, read_whole};
use super::device_key::DeviceKey;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use planwright_core::digest::Digest;
use planwright_engine::port::{
    Assertion, Ceremony, MadePasskey, Passkey, PasskeyFault, PasskeyVerifier, Registration,
};
use serde::Deserialize;
use subtle::ConstantTimeEq as _;

/// The person touched the device.
const PRESENT: u8 = 0x01;
/// The device checked who they are: a finger, a face, a PIN.
const VERIFIED: u8 = 0x04;
/// The passkey can be copied to other devices of the person, and was.
const COPYABLE: u8 = 0x08;
const COPIED: u8 = 0x10;
/// A key follows.
const HAS_KEY: u8 = 0x40;
/// More follows, which is not read.
const HAS_MORE: u8 = 0x80;

/// Longer ids are not those of a device.
const MAX_ID: usize = 1_023;

/// Checks what browsers and devices say.
#[derive(Debug, Clone, Copy, Default)]
pub struct WebAuthn;

/// The client data, in the words of the browser.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientData {
    #[serde(rename = "type")]
    kind: String,
    challenge: String,
    origin: String,
    #[serde(default)]
    cross_origin: bool,
    top_origin: Option<serde_json::Value>,
}

/// What the device says.
#[derive(Debug)]
struct Said<'a> {
    counter: u32,
    /// The id of a passkey that was made, and its key with what follows it.
    made: Option<(&'a [u8], &'a [u8])>,
}

fn check_client_data(bytes: &[u8], ceremony: Ceremony<'_>, kind: &str) -> Result<(), PasskeyFault> {
    let data: ClientData = serde_json::from_slice(bytes).map_err(|_| PasskeyFault::Unreadable)?;
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(ceremony.challenge);
    let same = bool::from(data.challenge.as_bytes().ct_eq(challenge.as_bytes()));
    let framed = data.cross_origin || data.top_origin.is_some();
    if data.kind != kind || !same || data.origin != ceremony.origin || framed {
        return Err(PasskeyFault::OtherQuestion);
    }
    Ok(())
}

/// Reads what a device says, and checks that it is for this host and about a person it has checked.
fn read_device_data<'a>(bytes: &'a [u8], host: &str) -> Result<Said<'a>, PasskeyFault> {
    let unreadable = PasskeyFault::Unreadable;
    let (for_host, rest) = bytes.split_at_checked(32).ok_or(unreadable)?;
    let (&flags, rest) = rest.split_first().ok_or(unreadable)?;
    let (counter, rest) = rest.split_first_chunk::<4>().ok_or(unreadable)?;
    if for_host != Digest::of_bytes(host.as_bytes()).as_bytes() {
        return Err(PasskeyFault::OtherHost);
    }
    let says = |flag: u8| flags & flag != 0;
    if !says(PRESENT) || !says(VERIFIED) {
        return Err(PasskeyFault::Unverified);
    }
    if says(COPIED) && !says(COPYABLE) {
        return Err(unreadable);
    }
    let made = if says(HAS_KEY) {
        let (_make, rest) = rest.split_at_checked(16).ok_or(unreadable)?;
        let (length, rest) = rest.split_first_chunk::<2>().ok_or(unreadable)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (id, key) = rest.split_at_checked(length).ok_or(unreadable)?;
        if id.is_empty() || id.len() > MAX_ID {
            return Err(unreadable);
        }
        Some((id, key))
    } else if says(HAS_MORE) {
        read_whole(rest).ok_or(unreadable)?;
        None
    } else if rest.is_empty() {
        None
    } else {
        return Err(unreadable);
    };
    Ok(Said {
        counter: u32::from_be_bytes(*counter),
        made,
    })
}

impl PasskeyVerifier for WebAuthn {
    fn check_registration(
        &self,
        ceremony: Ceremony<'_>,
        said: &Registration,
    ) -> Result<MadePasskey, PasskeyFault> {
        check_client_data(&said.client_data, ceremony, "webauthn.create")?;
        let unreadable = PasskeyFault::Unreadable;
        let object = read_whole(&said.attestation).ok_or(unreadable)?;
        let data = object.field("authData").and_then(Value::bytes);
        let device = read_device_data(data.ok_or(unreadable)?, ceremony.host)?;
        let (id, after_id) = device.made.ok_or(unreadable)?;
        let (key, more) = read_value(after_id).ok_or(unreadable)?;
        if !more.is_empty() {
            read_whole(more).ok_or(unreadable)?;
        }
        DeviceKey::of(&key)?;
        let length = after_id.len() - more.len();
        Ok(MadePasskey {
            id: id.to_vec(),
            key: after_id[..length].to_vec(),
            counter: device.counter,
        })
    }

    fn check_assertion(
        &self,
        ceremony: Ceremony<'_>,
        passkey: &Passkey,
        said: &Assertion,
    ) -> Result<u32, PasskeyFault> {
        check_client_data(&said.client_data, ceremony, "webauthn.get")?;
        let device = read_device_data(&said.authenticator_data, ceremony.host)?;
        let about = Digest::of_bytes(&said.client_data);
        let signed = [said.authenticator_data.as_slice(), about.as_bytes()].concat();
        DeviceKey::read(&passkey.key)?.check(&signed, &said.signature)?;
        // A device that counts never says the same number twice; one that does not says 0 always.
        let counts = device.counter != 0 || passkey.counter != 0;
        if counts && device.counter <= passkey.counter {
            return Err(PasskeyFault::Counter);
        }
        Ok(device.counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_core::principal::Principal;
    use planwright_core::time::Timestamp;
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
    };
    use serde_json::json;

    const CEREMONY: Ceremony<'static> = Ceremony {
        challenge: b"once",
        origin: "https://plans.example.org",
        host: "plans.example.org",
    };

    const GOOD: u8 = PRESENT | VERIFIED;

    /// A device as it should be.
    struct Device(EcdsaKeyPair);

    impl Device {
        fn new() -> Self {
            let random = SystemRandom::new();
            let signing = &ECDSA_P256_SHA256_ASN1_SIGNING;
            let made = EcdsaKeyPair::generate_pkcs8(signing, &random).unwrap();
            Self(EcdsaKeyPair::from_pkcs8(signing, made.as_ref(), &random).unwrap())
        }

        fn key(&self) -> Vec<u8> {
            let point = self.0.public_key().as_ref();
            let mut key = vec![0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 32];
            key.extend(&point[1..33]);
            key.extend([0x22, 0x58, 32]);
            key.extend(&point[33..]);
            key
        }

        fn sign(&self, data: &[u8], client_data: &[u8]) -> Assertion {
            let signed = [data, Digest::of_bytes(client_data).as_bytes()].concat();
            let signature = self.0.sign(&SystemRandom::new(), &signed).unwrap();
            Assertion {
                client_data: client_data.to_vec(),
                authenticator_data: data.to_vec(),
                signature: signature.as_ref().to_vec(),
            }
        }

        fn passkey(&self) -> Passkey {
            passkey(self.key())
        }
    }

    fn passkey(key: Vec<u8>) -> Passkey {
        Passkey {
            id: b"id".to_vec(),
            owner: Principal::person("ada"),
            label: String::new(),
            key,
            counter: 4,
            created_at: Timestamp::from_millis(0),
            used_at: None,
        }
    }

    fn client_data(kind: &str, changes: &serde_json::Value) -> Vec<u8> {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(CEREMONY.challenge);
        let mut data = json!({ "type": kind, "challenge": challenge, "origin": CEREMONY.origin });
        for (name, value) in changes.as_object().unwrap() {
            data[name] = value.clone();
        }
        data.to_string().into_bytes()
    }

    fn device_data(host: &str, flags: u8, counter: u32) -> Vec<u8> {
        let mut data = Digest::of_bytes(host.as_bytes()).as_bytes().to_vec();
        data.push(flags);
        data.extend(counter.to_be_bytes());
        data
    }

    fn made(device: &Device, flags: u8) -> Vec<u8> {
        let mut data = device_data(CEREMONY.host, flags | HAS_KEY, 0);
        data.extend([0; 16]);
        data.extend([0, 2]);
        data.extend(b"id");
        data.extend(device.key());
        data
    }

    fn attestation(data: &[u8]) -> Vec<u8> {
        let mut object = vec![0xa3, 0x63];
        object.extend(b"fmt\x64none\x67attStmt\xa0\x68authData\x59");
        object.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        object.extend(data);
        object
    }

    fn register(data: &[u8], client_data: Vec<u8>) -> Result<MadePasskey, PasskeyFault> {
        let said = Registration {
            client_data,
            attestation: attestation(data),
        };
        WebAuthn.check_registration(CEREMONY, &said)
    }

    #[test]
    fn a_passkey_that_a_device_makes_is_taken() {
        let device = Device::new();
        let about = client_data(
            "webauthn.create",
            &json!({ "crossOrigin": false, "other": 1 }),
        );
        let taken = register(&made(&device, GOOD), about.clone()).unwrap();
        assert_eq!((taken.id, taken.key), (b"id".to_vec(), device.key()));
        // One that is synchronised, with something more said about it.
        let mut more = made(&device, GOOD | COPYABLE | COPIED | HAS_MORE);
        more.extend([0xa1, 0x01, 0xf5]);
        let taken = register(&more, about).unwrap();
        assert_eq!(taken.key, device.key());
    }

    #[test]
    fn what_was_made_for_another_page_or_unseen_is_not() {
        use PasskeyFault as Fault;
        let device = Device::new();
        let good = made(&device, GOOD);
        let challenge = BASE64_URL_SAFE_NO_PAD.encode("other");
        for (changes, fault) in [
            (json!({ "type": "webauthn.get" }), Fault::OtherQuestion),
            (json!({ "challenge": challenge }), Fault::OtherQuestion),
            (json!({ "challenge": "" }), Fault::OtherQuestion),
            (
                json!({ "origin": "https://evil.example" }),
                Fault::OtherQuestion,
            ),
            (
                json!({ "origin": "http://plans.example.org" }),
                Fault::OtherQuestion,
            ),
            (
                json!({ "origin": "https://plans.example.org:8443" }),
                Fault::OtherQuestion,
            ),
            (json!({ "crossOrigin": true }), Fault::OtherQuestion),
            (
                json!({ "topOrigin": "https://evil.example" }),
                Fault::OtherQuestion,
            ),
            (json!({ "challenge": null }), Fault::Unreadable),
        ] {
            let about = client_data("webauthn.create", &changes);
            assert_eq!(register(&good, about), Err(fault), "{changes}");
        }
        let about = client_data("webauthn.create", &json!({}));
        for flags in [0, PRESENT, VERIFIED] {
            let data = made(&device, flags);
            assert_eq!(register(&data, about.clone()), Err(Fault::Unverified));
        }
        let mut elsewhere = good.clone();
        elsewhere[0] ^= 1;
        assert_eq!(register(&elsewhere, about.clone()), Err(Fault::OtherHost));
        for cut in 0..good.len() {
            assert!(register(&good[..cut], about.clone()).is_err(), "{cut}");
        }
        let mut longer = good.clone();
        longer.extend([0xff; 3]);
        assert_eq!(register(&longer, about.clone()), Err(Fault::Unreadable));
        let keyless = device_data(CEREMONY.host, GOOD, 0);
        assert_eq!(register(&keyless, about.clone()), Err(Fault::Unreadable));
        // A curve and a way of signing that are not taken.
        for (at, byte) in [(5, 0x38), (4, 0x27)] {
            let mut other = good.clone();
            let key = other.len() - device.key().len();
            other[key + at] = byte;
            assert!(register(&other, about.clone()).is_err(), "{at}");
        }
    }

    #[test]
    fn what_a_passkey_signed_is_taken_once_per_count() {
        let device = Device::new();
        let about = client_data("webauthn.get", &json!({}));
        let check = |counter: u32, known: u32| {
            let data = device_data(CEREMONY.host, GOOD, counter);
            let passkey = Passkey {
                counter: known,
                ..device.passkey()
            };
            WebAuthn.check_assertion(CEREMONY, &passkey, &device.sign(&data, &about))
        };
        assert_eq!(check(5, 4), Ok(5));
        assert_eq!(check(0, 0), Ok(0), "a device that does not count");
        for (said, known) in [(4, 4), (3, 4), (0, 4)] {
            assert_eq!(check(said, known), Err(PasskeyFault::Counter));
        }
    }

    #[test]
    fn other_keys_other_words_and_other_hosts_are_refused() {
        use PasskeyFault as Fault;
        let device = Device::new();
        let about = client_data("webauthn.get", &json!({}));
        let data = device_data(CEREMONY.host, GOOD, 5);
        let good = device.sign(&data, &about);
        let check =
            |passkey: &Passkey, said: &Assertion| WebAuthn.check_assertion(CEREMONY, passkey, said);
        assert_eq!(check(&device.passkey(), &good), Ok(5));
        assert_eq!(
            check(&Device::new().passkey(), &good),
            Err(Fault::Signature)
        );
        let changed = |change: &dyn Fn(&mut Assertion)| {
            let mut said = good.clone();
            change(&mut said);
            check(&device.passkey(), &said)
        };
        assert_eq!(
            changed(&|said| said.signature.clear()),
            Err(Fault::Signature)
        );
        assert_eq!(
            changed(&|said| said.signature[8] ^= 1),
            Err(Fault::Signature)
        );
        assert_eq!(
            changed(&|said| said.authenticator_data[36] = 9),
            Err(Fault::Signature)
        );
        assert_eq!(
            changed(&|said| said.authenticator_data[32] = PRESENT),
            Err(Fault::Unverified)
        );
        assert_eq!(
            changed(&|said| said.authenticator_data.push(0)),
            Err(Fault::Unreadable)
        );
        assert_eq!(
            changed(&|said| said.authenticator_data.clear()),
            Err(Fault::Unreadable)
        );
        assert_eq!(
            changed(&|said| said.client_data = client_data("webauthn.get", &json!({ "a": 1 }))),
            Err(Fault::Signature)
        );
        for (kind, changes) in [
            ("webauthn.create", json!({})),
            ("webauthn.get", json!({ "origin": "https://evil.example" })),
            ("webauthn.get", json!({ "challenge": "b3RoZXI" })),
            ("webauthn.get", json!({ "crossOrigin": true })),
        ] {
            let said = device.sign(&data, &client_data(kind, &changes));
            assert_eq!(check(&device.passkey(), &said), Err(Fault::OtherQuestion));
        }
        let elsewhere = device.sign(&device_data("evil.example", GOOD, 5), &about);
        assert_eq!(check(&device.passkey(), &elsewhere), Err(Fault::OtherHost));
        let unseen = device.sign(&device_data(CEREMONY.host, PRESENT, 5), &about);
        assert_eq!(check(&device.passkey(), &unseen), Err(Fault::Unverified));
    }

    #[test]
    fn edwards_curves_are_taken_too() {
        let random = SystemRandom::new();
        let made = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap();
        let mut key = vec![0xa4, 0x01, 0x01, 0x03, 0x27, 0x20, 0x06, 0x21, 0x58, 32];
        key.extend(pair.public_key().as_ref());
        let about = client_data("webauthn.get", &json!({}));
        let data = device_data(CEREMONY.host, GOOD, 5);
        let signed = [data.as_slice(), Digest::of_bytes(&about).as_bytes()].concat();
        let said = Assertion {
            client_data: about,
            authenticator_data: data,
            signature: pair.sign(&signed).as_ref().to_vec(),
        };
        let checked = WebAuthn.check_assertion(CEREMONY, &passkey(key), &said);
        assert_eq!(checked, Ok(5));
    }
}
