//! Offers to workers. The step, the tool and the call are sealed together; the columns by which offers
//! are found hold names that say nothing.

use crate::vault::{Cipher, OpenSealedError, SealError, SealedPlace};
use planwright_core::digest::Digest;
use std::borrow::Cow;

/// The columns that stay as they are. The call is bound to them: none can be changed without it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfferRow<'a> {
    pub(crate) run: &'a str,
    /// The step as the table has it.
    pub(crate) step: &'a str,
    pub(crate) attempt: i64,
    pub(crate) capability: &'a str,
    pub(crate) class: &'a str,
}

/// The columns that are sealed together in `call`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptOffer {
    pub(crate) step: String,
    pub(crate) idempotency_key: String,
    pub(crate) tool: String,
    pub(crate) definition: Digest,
    pub(crate) call: Vec<u8>,
}

/// A step as the table has it: a name of the key's, or itself.
pub(crate) fn kept_step<'a>(cipher: &Cipher, run: &str, step: &'a str) -> Cow<'a, str> {
    match cipher.name(&[b"offered step", run.as_bytes(), step.as_bytes()]) {
        Some(name) => Cow::Owned(name),
        None => Cow::Borrowed(step),
    }
}

/// The digest of a tool's definition as the table has it. It would confirm a guess of the tool.
pub(crate) fn kept_definition(cipher: &Cipher, definition: &Digest) -> Digest {
    cipher.hidden_digest(b"offered definition", definition)
}

impl OfferRow<'_> {
    fn with<T>(&self, column: &'static str, work: impl FnOnce(SealedPlace<'_>) -> T) -> T {
        let Self {
            run,
            step,
            attempt,
            capability,
            class,
        } = self;
        work(SealedPlace {
            table: "offers",
            column,
            row: &[
                run.as_bytes(),
                step.as_bytes(),
                &attempt.to_le_bytes(),
                capability.as_bytes(),
                class.as_bytes(),
            ],
        })
    }

    /// Seals everything that `offer` says.
    pub(crate) fn seal(&self, cipher: &Cipher, offer: &KeptOffer) -> Result<Vec<u8>, SealError> {
        let mut whole = Vec::with_capacity(128 + offer.call.len());
        let texts = [&offer.step, &offer.idempotency_key, &offer.tool];
        for text in texts {
            whole.extend_from_slice(&(text.len() as u64).to_le_bytes());
            whole.extend_from_slice(text.as_bytes());
        }
        whole.extend_from_slice(offer.definition.as_bytes());
        whole.extend_from_slice(&offer.call);
        self.with("call", |place| {
            cipher.seal(place, &whole).map(Cow::into_owned)
        })
    }

    /// Opens the column `call`, and compares what it says with the columns that stand for it.
    pub(crate) fn open(
        &self,
        cipher: &Cipher,
        kept: Vec<u8>,
    ) -> Result<KeptOffer, OpenSealedError> {
        let whole = self.with("call", |place| cipher.open(place, kept))?;
        let mut rest = whole.as_slice();
        let mut text = || {
            let (length, after) = rest.split_first_chunk::<8>().ok_or(OpenSealedError)?;
            let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
            let (text, after) = after.split_at_checked(length).ok_or(OpenSealedError)?;
            rest = after;
            String::from_utf8(text.to_vec()).map_err(|_| OpenSealedError)
        };
        let step = text()?;
        let idempotency_key = text()?;
        let tool = text()?;
        let (definition, call) = rest.split_first_chunk::<32>().ok_or(OpenSealedError)?;
        if kept_step(cipher, self.run, &step) != self.step {
            return Err(OpenSealedError);
        }
        Ok(KeptOffer {
            step,
            idempotency_key,
            tool,
            definition: Digest::from_bytes(*definition),
            call: call.to_vec(),
        })
    }
}

/// What is said of a call while it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallTalk {
    /// What its tool asks a person.
    Asked,
    /// The replies to that.
    Replies,
    /// How far it is.
    News,
}

impl CallTalk {
    fn place(self) -> (&'static str, &'static str) {
        match self {
            Self::Asked => ("offers", "asked"),
            Self::Replies => ("offers", "replies"),
            Self::News => ("call_news", "told"),
        }
    }
}

/// Seals what is said of an attempt under a number.
pub(crate) fn seal_call_talk<'a>(
    cipher: &Cipher,
    (talk, attempt, number): (CallTalk, AnsweredAttempt<'_>, i64),
    text: &'a [u8],
) -> Result<Cow<'a, [u8]>, SealError> {
    with_talk(talk, attempt, number, |place| cipher.seal(place, text))
}

pub(crate) fn open_call_talk(
    cipher: &Cipher,
    (talk, attempt, number): (CallTalk, AnsweredAttempt<'_>, i64),
    kept: Vec<u8>,
) -> Result<Vec<u8>, OpenSealedError> {
    with_talk(talk, attempt, number, |place| cipher.open(place, kept))
}

fn with_talk<T>(
    talk: CallTalk,
    (run, step, attempt): AnsweredAttempt<'_>,
    number: i64,
    work: impl FnOnce(SealedPlace<'_>) -> T,
) -> T {
    let (table, column) = talk.place();
    work(SealedPlace {
        table,
        column,
        row: &[
            run.as_bytes(),
            step.as_bytes(),
            &attempt.to_le_bytes(),
            &number.to_le_bytes(),
        ],
    })
}

/// Names the attempt that was answered: the run, the step as the table has it, and its number.
pub(crate) type AnsweredAttempt<'a> = (&'a str, &'a str, i64);

/// Seals what a worker answered.
pub(crate) fn seal_offer_answer<'a>(
    cipher: &Cipher,
    attempt: AnsweredAttempt<'_>,
    answer: &'a [u8],
) -> Result<Cow<'a, [u8]>, SealError> {
    with_answer(attempt, |place| cipher.seal(place, answer))
}

pub(crate) fn open_offer_answer(
    cipher: &Cipher,
    attempt: AnsweredAttempt<'_>,
    kept: Vec<u8>,
) -> Result<Vec<u8>, OpenSealedError> {
    with_answer(attempt, |place| cipher.open(place, kept))
}

fn with_answer<T>(
    (run, step, attempt): AnsweredAttempt<'_>,
    work: impl FnOnce(SealedPlace<'_>) -> T,
) -> T {
    work(SealedPlace {
        table: "offers",
        column: "answer",
        row: &[run.as_bytes(), step.as_bytes(), &attempt.to_le_bytes()],
    })
}
