//! Secrets in a stream of bytes that arrives in pieces.

use super::Redactor;

/// Masks secrets in a stream, also where one is cut in two. The end of what came is held back until
/// it is certain that no secret begins there.
#[derive(Debug, Default)]
pub struct RedactedStream {
    held: Vec<u8>,
}

impl RedactedStream {
    /// Takes the next piece and returns what can be shown by now. The redactor may know more than
    /// last time.
    pub fn push(&mut self, redactor: &Redactor, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        let certain = self.held.len().saturating_sub(redactor.reach());
        if certain == 0 {
            return Vec::new();
        }
        let found = redactor.find(&self.held, false);
        // A secret that reaches over the border stays whole.
        let reaching = found
            .iter()
            .find(|found| found.range.start < certain && certain < found.range.end);
        let cut = reaching.map_or(certain, |found| found.range.start);
        let before: Vec<_> = found
            .into_iter()
            .take_while(|found| found.range.end <= cut)
            .collect();
        let shown = redactor.mask(&self.held[..cut], &before);
        self.held.drain(..cut);
        shown
    }

    /// Everything that was held back. A secret that goes on after this is not recognised.
    pub fn finish(&mut self, redactor: &Redactor) -> Vec<u8> {
        redactor.bytes(std::mem::take(&mut self.held))
    }
}
