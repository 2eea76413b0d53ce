//! Sealing and opening, or neither: the one border between what is known and what is kept.

use super::locked_key::{DataKey, KEY_BYTES, NONCE_BYTES};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use chacha20poly1305::aead::AeadInOut as _;
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac as _};
use planwright_core::digest::Digest;
use sha2::Sha256;
use std::borrow::Cow;
use std::fmt;
use zeroize::Zeroizing;

/// Part of everything that is sealed: a later format cannot be taken for this one.
const FORMAT: &[u8] = b"planwright sealed 1";

/// The place of a value. A value that was sealed for one place does not open in another.
#[derive(Debug, Clone, Copy)]
pub struct SealedPlace<'a> {
    /// The table, or other container, that it is kept in.
    pub table: &'static str,
    pub column: &'static str,
    /// The parts that tell the row from all others.
    pub row: &'a [&'a [u8]],
}

impl SealedPlace<'_> {
    /// The parts with their lengths, so that no two places are the same bytes.
    fn bytes(&self) -> Vec<u8> {
        let fixed = [FORMAT, self.table.as_bytes(), self.column.as_bytes()];
        let parts = fixed.iter().chain(self.row);
        let mut bytes = Vec::with_capacity(128);
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part);
        }
        bytes
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error("the operating system gives no random numbers: {0}")]
    Random(String),
    #[error("it is too large to be sealed")]
    TooLarge,
}

#[derive(Debug, thiserror::Error)]
#[error("it does not open: it was changed on disk, or belongs elsewhere")]
pub struct OpenSealedError;

/// Seals what is kept, or leaves it as it is.
pub enum Cipher {
    /// Nothing is encrypted, and nothing costs anything.
    Plain,
    Sealed(Box<Keys>),
}

/// One key per use, all derived from the data key.
pub struct Keys {
    seal: Zeroizing<[u8; KEY_BYTES]>,
    mask: Zeroizing<[u8; KEY_BYTES]>,
    name: Zeroizing<[u8; KEY_BYTES]>,
    id: String,
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_sealed() { "Sealed" } else { "Plain" })
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[keys]")
    }
}

impl Cipher {
    /// The bytes by which a value grows when it is sealed.
    pub const OVERHEAD: usize = NONCE_BYTES + 16;

    pub(crate) fn sealed(key: &DataKey) -> Self {
        let derive =
            |use_of_it: &str| Zeroizing::new(prf(&key.0, &[b"planwright", use_of_it.as_bytes()]));
        let id = Digest::from_bytes(*derive("id")).short();
        Self::Sealed(Box::new(Keys {
            seal: derive("seal"),
            mask: derive("mask"),
            name: derive("name"),
            id,
        }))
    }

    pub fn is_sealed(&self) -> bool {
        matches!(self, Self::Sealed(_))
    }

    /// Names the key without saying anything about it; `None` if there is none.
    pub fn key_id(&self) -> Option<&str> {
        match self {
            Self::Plain => None,
            Self::Sealed(keys) => Some(&keys.id),
        }
    }

    /// Seals `bytes` for a place: a random nonce, the ciphertext, the tag.
    pub fn seal<'a>(
        &self,
        place: SealedPlace<'_>,
        bytes: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, SealError> {
        let Self::Sealed(keys) = self else {
            return Ok(Cow::Borrowed(bytes));
        };
        let mut sealed = Vec::with_capacity(bytes.len() + Self::OVERHEAD);
        sealed.resize(NONCE_BYTES, 0);
        getrandom::fill(&mut sealed).map_err(|error| SealError::Random(error.to_string()))?;
        let nonce = XNonce::try_from(sealed.as_slice()).expect("made with this length");
        sealed.extend_from_slice(bytes);
        let tag = keys.aead().encrypt_inout_detached(
            &nonce,
            &place.bytes(),
            (&mut sealed[NONCE_BYTES..]).into(),
        );
        sealed.extend_from_slice(&tag.map_err(|_| SealError::TooLarge)?);
        Ok(Cow::Owned(sealed))
    }

    /// Opens a value that was sealed for this place.
    pub fn open(&self, place: SealedPlace<'_>, kept: Vec<u8>) -> Result<Vec<u8>, OpenSealedError> {
        let Self::Sealed(keys) = self else {
            return Ok(kept);
        };
        let mut kept = kept;
        let (nonce, _) = kept
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or(OpenSealedError)?;
        let nonce = XNonce::from(*nonce);
        let mut rest = kept.split_off(NONCE_BYTES);
        keys.aead()
            .decrypt_in_place(&nonce, &place.bytes(), &mut rest)
            .map_err(|_| OpenSealedError)?;
        Ok(rest)
    }

    /// As [`Cipher::seal`], for columns that hold text.
    pub fn seal_text<'a>(
        &self,
        place: SealedPlace<'_>,
        text: &'a str,
    ) -> Result<Cow<'a, str>, SealError> {
        if !self.is_sealed() {
            return Ok(Cow::Borrowed(text));
        }
        Ok(Cow::Owned(
            STANDARD_NO_PAD.encode(self.seal(place, text.as_bytes())?),
        ))
    }

    pub fn open_text(
        &self,
        place: SealedPlace<'_>,
        kept: String,
    ) -> Result<String, OpenSealedError> {
        if !self.is_sealed() {
            return Ok(kept);
        }
        let bytes = STANDARD_NO_PAD.decode(kept).map_err(|_| OpenSealedError)?;
        String::from_utf8(self.open(place, bytes)?).map_err(|_| OpenSealedError)
    }

    /// Hides the hash of something that could be guessed, or shows it again: the same call does
    /// both.
    pub fn mask(&self, row: &[&[u8]], hash: Digest) -> Digest {
        let Self::Sealed(keys) = self else {
            return hash;
        };
        let mut bytes = prf(&keys.mask, row);
        for (byte, other) in bytes.iter_mut().zip(hash.as_bytes()) {
            *byte ^= other;
        }
        Digest::from_bytes(bytes)
    }

    /// A name that stands for these parts, always the same and saying nothing about them; `None` if
    /// nothing is hidden.
    pub fn name(&self, parts: &[&[u8]]) -> Option<String> {
        match self {
            Self::Plain => None,
            Self::Sealed(keys) => Some(Digest::from_bytes(prf(&keys.name, parts)).hex()),
        }
    }
}

impl Cipher {
    /// As [`Cipher::name`], for a digest that is looked for: itself if nothing is hidden.
    pub(crate) fn hidden_digest(&self, of: &[u8], digest: &Digest) -> Digest {
        match self {
            Self::Plain => *digest,
            Self::Sealed(keys) => Digest::from_bytes(prf(&keys.name, &[of, digest.as_bytes()])),
        }
    }
}

impl Keys {
    fn aead(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new_from_slice(&*self.seal).expect("a key has this length")
    }
}

/// A keyed function of the parts, with their lengths.
fn prf(key: &[u8; KEY_BYTES], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
    for part in parts {
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> Cipher {
        Cipher::sealed(&DataKey::random().unwrap())
    }

    fn place<'a>(row: &'a [&'a [u8]]) -> SealedPlace<'a> {
        SealedPlace {
            table: "entries",
            column: "body",
            row,
        }
    }

    #[test]
    fn what_was_sealed_opens_in_its_place_and_nowhere_else() {
        let cipher = sealed();
        for bytes in [b"".as_slice(), b"x", &[7; 100_000]] {
            let kept = cipher
                .seal(place(&[b"run/a", b"1"]), bytes)
                .unwrap()
                .into_owned();
            assert_eq!(kept.len(), bytes.len() + Cipher::OVERHEAD);
            assert_eq!(
                cipher.open(place(&[b"run/a", b"1"]), kept.clone()).unwrap(),
                bytes
            );
            let rows: [&[&[u8]]; 5] = [
                &[b"run/a", b"2"],
                &[b"run/b", b"1"],
                &[b"run/a1"],
                &[b"run/a", b"", b"1"],
                &[],
            ];
            for row in rows {
                assert!(cipher.open(place(row), kept.clone()).is_err());
            }
            let other = SealedPlace {
                column: "label",
                ..place(&[b"run/a", b"1"])
            };
            assert!(cipher.open(other, kept.clone()).is_err());
            assert!(
                sealed().open(place(&[b"run/a", b"1"]), kept).is_err(),
                "another key"
            );
        }
    }

    #[test]
    fn the_same_text_is_never_sealed_the_same() {
        let cipher = sealed();
        let one = cipher.seal(place(&[]), b"text").unwrap();
        assert_ne!(one, cipher.seal(place(&[]), b"text").unwrap());
        assert_eq!(cipher.name(&[b"text"]), cipher.name(&[b"text"]));
        assert_ne!(cipher.name(&[b"te", b"xt"]), cipher.name(&[b"text"]));
    }

    #[test]
    fn two_thousand_flips_and_cuts_are_noticed() {
        let cipher = sealed();
        let kept = cipher
            .seal(place(&[b"run/a"]), &[42; 300])
            .unwrap()
            .into_owned();
        let mut dice: u64 = 1;
        for number in 0..2_000 {
            dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let at = usize::try_from(dice >> 33).unwrap() % kept.len();
            let mut changed = kept.clone();
            if number % 4 == 0 {
                changed.truncate(at);
            } else {
                changed[at] ^= 1 << (dice >> 20 & 7);
            }
            assert!(
                cipher.open(place(&[b"run/a"]), changed).is_err(),
                "{number} at {at}"
            );
        }
    }

    #[test]
    fn a_hash_is_hidden_and_shown_again() {
        let cipher = sealed();
        let hash = Digest::of_bytes(b"guessable");
        let masked = cipher.mask(&[b"run/a", b"1"], hash);
        assert_ne!(masked, hash);
        assert_ne!(masked, cipher.mask(&[b"run/a", b"2"], hash));
        assert_eq!(cipher.mask(&[b"run/a", b"1"], masked), hash);
    }

    #[test]
    fn texts_survive_and_a_plain_cipher_changes_nothing() {
        let cipher = sealed();
        let kept = cipher.seal_text(place(&[]), "Größe").unwrap().into_owned();
        assert!(!kept.contains("Gr"));
        assert_eq!(cipher.open_text(place(&[]), kept).unwrap(), "Größe");
        assert!(cipher.open_text(place(&[]), "Größe".to_owned()).is_err());
        let plain = Cipher::Plain;
        assert!(matches!(
            plain.seal(place(&[]), b"x").unwrap(),
            Cow::Borrowed(b"x")
        ));
        assert_eq!(plain.open(place(&[]), b"x".to_vec()).unwrap(), b"x");
        let hash = Digest::of_bytes(b"x");
        assert_eq!(plain.mask(&[], hash), hash);
        assert_eq!((plain.name(&[b"x"]), plain.key_id()), (None, None));
    }
}
