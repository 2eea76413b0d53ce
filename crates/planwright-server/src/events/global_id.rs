//! The ids of the stream of everything.

use planwright_engine::port::Position;
use std::fmt;
use std::str::FromStr;

/// A place in the stream of everything: `17`, or `17.2` for the second of several events that one
/// record means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GlobalId {
    pub(super) position: Position,
    /// How many events of that record were given; `None` for all of them, which sorts last.
    given: Given,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Given {
    Some(u32),
    #[default]
    All,
}

impl GlobalId {
    /// After everything that is told about this record.
    pub(super) fn after(position: Position) -> Self {
        Self {
            position,
            given: Given::All,
        }
    }

    /// The id of event number `index` (from 0) of the `count` that a record means.
    pub(super) fn of(position: Position, index: usize, count: usize) -> Self {
        let given = u32::try_from(index + 1).unwrap_or(u32::MAX);
        Self {
            position,
            given: if index + 1 == count {
                Given::All
            } else {
                Given::Some(given)
            },
        }
    }

    /// Returns where reading begins: the record itself is read again if not all of it was given.
    pub(super) fn read_from(self) -> Position {
        match self.given {
            Given::All => self.position,
            Given::Some(_) => Position(self.position.0.saturating_sub(1)),
        }
    }
}

impl fmt::Display for GlobalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.given {
            Given::All => write!(f, "{}", self.position.0),
            Given::Some(given) => write!(f, "{}.{given}", self.position.0),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of an event is a number, or two with a point between them")]
pub(super) struct ParseGlobalIdError;

impl FromStr for GlobalId {
    type Err = ParseGlobalIdError;

    fn from_str(text: &str) -> Result<Self, ParseGlobalIdError> {
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse::<u64>().map_err(|_| ParseGlobalIdError),
            false => Err(ParseGlobalIdError),
        };
        let (position, given) = match text.split_once('.') {
            None => (text, Given::All),
            Some((position, given)) => (
                position,
                Given::Some(u32::try_from(number(given)?).map_err(|_| ParseGlobalIdError)?),
            ),
        };
        Ok(Self {
            position: Position(number(position)?),
            given,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_its_text_form_and_keeps_its_order() {
        let ids = [
            GlobalId::after(Position(6)),
            GlobalId::of(Position(7), 0, 3),
            GlobalId::of(Position(7), 1, 3),
            GlobalId::of(Position(7), 2, 3),
            GlobalId::of(Position(8), 0, 1),
        ];
        let texts = ids.map(|id| id.to_string());
        assert_eq!(texts, ["6", "7.1", "7.2", "7", "8"]);
        assert!(ids.is_sorted());
        for (id, text) in ids.iter().zip(texts) {
            assert_eq!(text.parse(), Ok(*id));
        }
        for bad in [
            "",
            ".",
            "7.",
            ".1",
            "-1",
            "+7",
            "7.1.2",
            "seven",
            "99999999999999999999",
        ] {
            assert_eq!(bad.parse::<GlobalId>(), Err(ParseGlobalIdError), "{bad}");
        }
    }
}
