//! Labels of streams, each bound to its row.

use crate::vault::{Cipher, OpenSealedError, SealError, SealedPlace};
use std::borrow::Cow;

/// The columns of a stream's row besides its label. The label is bound to it: none can be changed
/// without the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LabelRow<'a> {
    pub(crate) stream: &'a str,
    pub(crate) plan: &'a str,
    pub(crate) status: &'a str,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

impl LabelRow<'_> {
    fn with<T>(&self, work: impl FnOnce(SealedPlace<'_>) -> T) -> T {
        let Self {
            stream,
            plan,
            status,
            created_at,
            updated_at,
        } = self;
        let times = (created_at.to_le_bytes(), updated_at.to_le_bytes());
        let row = [
            stream.as_bytes(),
            plan.as_bytes(),
            status.as_bytes(),
            &times.0,
            &times.1,
        ];
        work(SealedPlace {
            table: "streams",
            column: "label",
            row: &row,
        })
    }

    pub(crate) fn seal<'a>(
        &self,
        cipher: &Cipher,
        label: &'a str,
    ) -> Result<Cow<'a, str>, SealError> {
        self.with(|place| cipher.seal_text(place, label))
    }

    pub(crate) fn open(&self, cipher: &Cipher, kept: String) -> Result<String, OpenSealedError> {
        self.with(|place| cipher.open_text(place, kept))
    }

    /// As [`LabelRow::seal`], for a column of bytes.
    pub(crate) fn seal_bytes<'a>(
        &self,
        cipher: &Cipher,
        label: &'a str,
    ) -> Result<Cow<'a, [u8]>, SealError> {
        self.with(|place| cipher.seal(place, label.as_bytes()))
    }

    pub(crate) fn open_bytes(
        &self,
        cipher: &Cipher,
        kept: Vec<u8>,
    ) -> Result<Vec<u8>, OpenSealedError> {
        self.with(|place| cipher.open(place, kept))
    }
}
