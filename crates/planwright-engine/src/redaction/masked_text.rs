//! Text of a model as it comes in, made fit to be shown piece by piece.

use crate::redaction::known_secrets::Redaction;
use planwright_core::secret::RedactedStream;

/// Masks secrets in text that arrives in pieces, also where one is cut in two, and never cuts a
/// character.
#[derive(Debug)]
pub struct MaskedText {
    redaction: Redaction,
    stream: RedactedStream,
    /// The beginning of a character whose end has not come yet.
    broken: Vec<u8>,
}

impl MaskedText {
    /// Begins an empty text.
    pub fn new(redaction: Redaction) -> Self {
        Self {
            redaction,
            stream: RedactedStream::default(),
            broken: Vec::new(),
        }
    }

    /// Takes the next piece and returns what can be shown by now.
    pub fn push(&mut self, piece: &str) -> String {
        let shown = self
            .stream
            .push(&self.redaction.redactor(), piece.as_bytes());
        self.broken.extend(shown);
        self.whole()
    }

    /// Everything that was held back.
    pub fn finish(&mut self) -> String {
        let shown = self.stream.finish(&self.redaction.redactor());
        self.broken.extend(shown);
        let mut text = self.whole();
        text.push_str(&String::from_utf8_lossy(&std::mem::take(&mut self.broken)));
        text
    }

    fn whole(&mut self) -> String {
        let valid = match std::str::from_utf8(&self.broken) {
            Ok(text) => text.len(),
            // A piece of a secret's surroundings may end in the middle of a character; the rest of
            // it is yet to come.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => {
                return String::from_utf8_lossy(&std::mem::take(&mut self.broken)).into_owned();
            }
        };
        let rest = self.broken.split_off(valid);
        let text = std::mem::replace(&mut self.broken, rest);
        String::from_utf8(text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_core::secret::{SecretName, SecretText};

    fn knowing(secret: &str) -> Redaction {
        let redaction = Redaction::default();
        let name = SecretName::new("KEY").unwrap();
        redaction
            .learn(&name, &SecretText::new(secret.to_owned()).unwrap())
            .unwrap();
        redaction
    }

    #[test]
    fn a_secret_in_pieces_is_masked_and_characters_stay_whole() {
        let text = "größer: tok-4f9a8b7c6d5e — 漢字 that follow are long enough to be told before the end comes";
        for size in 1..9 {
            let mut masked = MaskedText::new(knowing("tok-4f9a8b7c6d5e"));
            let characters: Vec<char> = text.chars().collect();
            let mut shown: String = characters
                .chunks(size)
                .map(|piece| masked.push(&piece.iter().collect::<String>()))
                .collect();
            shown.push_str(&masked.finish());
            assert_eq!(
                shown,
                text.replace("tok-4f9a8b7c6d5e", "[secret KEY]"),
                "{size}"
            );
        }
    }

    #[test]
    fn without_secrets_nothing_is_held_back() {
        let mut masked = MaskedText::new(Redaction::default());
        assert_eq!(
            (masked.push("grö"), masked.push("ßer"), masked.finish()),
            ("grö".into(), "ßer".into(), String::new())
        );
    }
}
