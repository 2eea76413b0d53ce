//! The value of a secret.

use crate::text::is_invisible;
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The value of a secret. It never prints itself, and is wiped from memory when the last copy is
/// dropped.
#[derive(Clone)]
pub struct SecretText(Arc<Zeroizing<String>>);

/// The reason a text cannot be used as a secret. The text itself is never named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretTextError {
    /// Shorter texts occur by chance: masking them would destroy results, and not masking them
    /// would leak.
    #[error(
        "it is too short to be recognised again: at least {} visible characters are needed",
        SecretText::MIN_CHARS
    )]
    TooShort,
    /// The text is longer than a secret may be.
    #[error("it is longer than {} bytes", SecretText::MAX_BYTES)]
    TooLong,
}

impl SecretText {
    /// The fewest visible characters a secret has.
    pub const MIN_CHARS: usize = 4;
    /// The longest secret, in bytes.
    pub const MAX_BYTES: usize = 16 << 10;

    /// Makes a secret, unless the text could not be recognised again.
    pub fn new(text: impl Into<Zeroizing<String>>) -> Result<Self, SecretTextError> {
        let text = text.into();
        if text.len() > Self::MAX_BYTES {
            return Err(SecretTextError::TooLong);
        }
        if text.chars().filter(|&c| !is_blank(c)).count() < Self::MIN_CHARS {
            return Err(SecretTextError::TooShort);
        }
        Ok(Self(Arc::new(text)))
    }

    /// The value, for the one place that sends it and the one that looks for it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Characters that a terminal, a line wrap or a reader would not show: a text with them in between
/// is still the text.
pub(super) fn is_blank(c: char) -> bool {
    c.is_whitespace() || is_hidden(c)
}

/// Characters that are dropped before a text reaches a terminal, so that what stands around them
/// meets.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control() && !c.is_whitespace() || is_invisible(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print_itself() {
        let secret = SecretText::new("hunter2hunter2".to_owned()).unwrap();
        assert_eq!(
            format!("{secret:?} {:#?}", Some(&secret)),
            "[secret] Some(\n    [secret],\n)"
        );
    }

    #[test]
    fn what_could_not_be_found_again_is_no_secret() {
        for short in ["", "abc", "a b c", "\n\n\n\n\n", "ab\u{200b}\u{200b}c"] {
            assert_eq!(
                SecretText::new(short.to_owned()).unwrap_err(),
                SecretTextError::TooShort,
                "{short:?}"
            );
        }
        assert!(SecretText::new("abcd".to_owned()).is_ok());
        let long = "x".repeat(SecretText::MAX_BYTES + 1);
        assert_eq!(SecretText::new(long).unwrap_err(), SecretTextError::TooLong);
    }
}
