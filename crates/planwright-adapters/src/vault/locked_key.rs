//! The random key of a store, locked away under a passphrase.
//!
//! The passphrase is stretched by Argon2id into a second key that locks the first one. A new
//! passphrase locks the same key again and touches nothing else.

use super::Passphrase;
use super::cipher::Cipher;
use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use std::fmt;
use zeroize::Zeroizing;

/// The format of the lock this program writes.
const FORMAT: u32 = 1;
const SALT_BYTES: usize = 16;
pub(super) const NONCE_BYTES: usize = 24;
pub(super) const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;

/// The key that seals everything. It never prints itself.
pub(crate) struct DataKey(pub(super) Zeroizing<[u8; KEY_BYTES]>);

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

impl DataKey {
    pub(crate) fn random() -> Result<Self, UnlockError> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        fill(&mut *key)?;
        Ok(Self(key))
    }
}

fn fill(bytes: &mut [u8]) -> Result<(), UnlockError> {
    getrandom::fill(bytes).map_err(|error| UnlockError::Random(error.to_string()))
}

/// The cost of trying one passphrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StretchCost {
    pub memory_kib: u32,
    pub passes: u32,
    pub lanes: u32,
}

impl StretchCost {
    /// The cost of new locks: 64 MiB and three passes, a fifth of a second.
    pub const DEFAULT: Self = Self {
        memory_kib: 64 * 1024,
        passes: 3,
        lanes: 1,
    };
    /// The least that is accepted, by OWASP's recommendation. A lock that costs less was tampered
    /// with.
    pub const FLOOR: Self = Self {
        memory_kib: 19 * 1024,
        passes: 2,
        lanes: 1,
    };
    /// The most: an attacker who can write the file must not make us use up all memory.
    const CEILING: Self = Self {
        memory_kib: 1024 * 1024,
        passes: 64,
        lanes: 16,
    };

    fn is_acceptable(self) -> bool {
        let low = Self::FLOOR;
        let high = Self::CEILING;
        (low.memory_kib..=high.memory_kib).contains(&self.memory_kib)
            && (low.passes..=high.passes).contains(&self.passes)
            && (low.lanes..=high.lanes).contains(&self.lanes)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum UnlockError {
    #[error("the passphrase is wrong, or the lock was changed")]
    WrongPassphrase,
    #[error(
        "the lock was made by a newer version of planwright (format {0}, this one knows {FORMAT})"
    )]
    Newer(u32),
    #[error("the lock is damaged: {0}")]
    Damaged(&'static str),
    #[error("there is not enough memory to try a passphrase")]
    Memory,
    #[error("the operating system gives no random numbers: {0}")]
    Random(String),
}

/// A key that needs a passphrase. This is what is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedKey {
    pub(crate) format: u32,
    pub(crate) cost: StretchCost,
    pub(crate) salt: Vec<u8>,
    pub(crate) nonce: Vec<u8>,
    pub(crate) wrapped: Vec<u8>,
}

impl LockedKey {
    /// Locks `key` away.
    pub(crate) fn lock(
        key: &DataKey,
        passphrase: &Passphrase,
        cost: StretchCost,
    ) -> Result<Self, UnlockError> {
        if !cost.is_acceptable() {
            return Err(UnlockError::Damaged(
                "it would be too cheap or too expensive to open",
            ));
        }
        let mut salt = vec![0; SALT_BYTES];
        let mut nonce = vec![0; NONCE_BYTES];
        fill(&mut salt)?;
        fill(&mut nonce)?;
        let mut locked = Self {
            format: FORMAT,
            cost,
            salt,
            nonce,
            wrapped: Vec::new(),
        };
        let cipher = locked.stretch(passphrase)?;
        let payload = Payload {
            msg: key.0.as_slice(),
            aad: &locked.description(),
        };
        let nonce = XNonce::try_from(locked.nonce.as_slice()).expect("made with this length");
        locked.wrapped = cipher.encrypt(&nonce, payload).expect("a key is short");
        Ok(locked)
    }

    /// Opens it. Everything about the lock is checked before the passphrase is tried.
    pub(crate) fn unlock(&self, passphrase: &Passphrase) -> Result<DataKey, UnlockError> {
        if self.format > FORMAT {
            return Err(UnlockError::Newer(self.format));
        }
        if self.format == 0 {
            return Err(UnlockError::Damaged("its format is unknown"));
        }
        if !self.cost.is_acceptable() {
            return Err(UnlockError::Damaged(
                "it is too cheap or too expensive to open",
            ));
        }
        let nonce = XNonce::try_from(self.nonce.as_slice());
        let nonce = nonce.map_err(|_| UnlockError::Damaged("its nonce has the wrong length"))?;
        if self.salt.len() != SALT_BYTES || self.wrapped.len() != KEY_BYTES + TAG_BYTES {
            return Err(UnlockError::Damaged("it has the wrong length"));
        }
        let cipher = self.stretch(passphrase)?;
        let payload = Payload {
            msg: &self.wrapped,
            aad: &self.description(),
        };
        let opened = cipher
            .decrypt(&nonce, payload)
            .map_err(|_| UnlockError::WrongPassphrase)?;
        let opened = Zeroizing::new(opened);
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        key.copy_from_slice(&opened);
        Ok(DataKey(key))
    }

    /// Opens it into a cipher.
    pub fn open(&self, passphrase: &Passphrase) -> Result<Cipher, UnlockError> {
        Ok(Cipher::sealed(&self.unlock(passphrase)?))
    }

    fn stretch(&self, passphrase: &Passphrase) -> Result<XChaCha20Poly1305, UnlockError> {
        let StretchCost {
            memory_kib,
            passes,
            lanes,
        } = self.cost;
        let params = Params::new(memory_kib, passes, lanes, Some(KEY_BYTES));
        let params = params.map_err(|_| UnlockError::Damaged("its cost makes no sense"))?;
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(passphrase.bytes(), &self.salt, &mut *key)
            .map_err(|_| UnlockError::Memory)?;
        Ok(XChaCha20Poly1305::new_from_slice(&*key).expect("made with this length"))
    }

    /// Everything about the lock but what it holds: none of it can be changed unnoticed.
    fn description(&self) -> Vec<u8> {
        let StretchCost {
            memory_kib,
            passes,
            lanes,
        } = self.cost;
        let mut bytes = b"planwright key".to_vec();
        for number in [self.format, memory_kib, passes, lanes] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.salt);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passphrase(text: &str) -> Passphrase {
        Passphrase::new(text.to_owned()).unwrap()
    }

    #[test]
    fn only_the_passphrase_opens_the_lock() {
        let key = DataKey::random().unwrap();
        let locked =
            LockedKey::lock(&key, &passphrase("correct horse"), StretchCost::FLOOR).unwrap();
        assert_eq!(
            *locked.unlock(&passphrase("correct horse")).unwrap().0,
            *key.0
        );
        for wrong in ["Correct horse", "correct horse ", "x"] {
            assert!(matches!(
                locked.unlock(&passphrase(wrong)),
                Err(UnlockError::WrongPassphrase)
            ));
        }
        assert!(
            !locked
                .wrapped
                .windows(8)
                .any(|window| window == &key.0[..8])
        );
    }

    #[test]
    fn a_lock_with_any_byte_changed_or_cut_does_not_open() {
        let key = DataKey::random().unwrap();
        let word = passphrase("correct horse");
        let locked = LockedKey::lock(&key, &word, StretchCost::FLOOR).unwrap();
        type Field = fn(&mut LockedKey) -> &mut Vec<u8>;
        let fields: [Field; 3] = [
            |key| &mut key.salt,
            |key| &mut key.nonce,
            |key| &mut key.wrapped,
        ];
        for field in fields {
            let length = field(&mut locked.clone()).len();
            for at in [0, length / 2, length - 1] {
                let mut changed = locked.clone();
                field(&mut changed)[at] ^= 1;
                assert!(changed.unlock(&word).is_err());
                let mut cut = locked.clone();
                field(&mut cut).truncate(at);
                assert!(matches!(cut.unlock(&word), Err(UnlockError::Damaged(_))));
            }
        }
        let dearer = LockedKey {
            cost: StretchCost {
                passes: 3,
                ..StretchCost::FLOOR
            },
            ..locked
        };
        assert!(matches!(
            dearer.unlock(&word),
            Err(UnlockError::WrongPassphrase)
        ));
    }

    #[test]
    fn a_lock_below_the_floor_or_above_the_ceiling_is_not_tried() {
        let key = DataKey::random().unwrap();
        let word = passphrase("correct horse");
        let locked = LockedKey::lock(&key, &word, StretchCost::FLOOR).unwrap();
        let costs = [
            StretchCost {
                memory_kib: 8,
                ..StretchCost::FLOOR
            },
            StretchCost {
                passes: 1,
                ..StretchCost::FLOOR
            },
            StretchCost {
                lanes: 0,
                ..StretchCost::FLOOR
            },
            StretchCost {
                memory_kib: u32::MAX,
                ..StretchCost::FLOOR
            },
            StretchCost {
                passes: u32::MAX,
                ..StretchCost::FLOOR
            },
        ];
        for cost in costs {
            let changed = LockedKey {
                cost,
                ..locked.clone()
            };
            assert!(
                matches!(changed.unlock(&word), Err(UnlockError::Damaged(_))),
                "{cost:?}"
            );
            assert!(LockedKey::lock(&key, &word, cost).is_err());
        }
        let newer = LockedKey {
            format: 2,
            ..locked
        };
        assert!(matches!(newer.unlock(&word), Err(UnlockError::Newer(2))));
    }
}
