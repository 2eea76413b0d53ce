//! The part of CBOR that devices write: whole numbers, bytes, texts, lists and maps, all with their lengths before them.

/// Deeper values are not those of a device.
const MAX_DEPTH: usize = 8;

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Number(i64),
    Bytes(Vec<u8>),
    Text(String),
    List(Vec<Self>),
    /// In the order in which it was written; no key stands twice.
    Map(Vec<(Self, Self)>),
    Bool(bool),
    Null,
}

impl Value {
    /// The value of a map under a number.
    pub(super) fn at(&self, key: i64) -> Option<&Self> {
        self.under(&Self::Number(key))
    }

    /// The value of a map under a word.
    pub(super) fn field(&self, key: &str) -> Option<&Self> {
        self.under(&Self::Text(key.to_owned()))
    }

    fn under(&self, key: &Self) -> Option<&Self> {
        let Self::Map(pairs) = self else { return None };
        let mut pairs = pairs.iter();
        pairs
            .find(|(known, _)| known == key)
            .map(|(_, value)| value)
    }

    pub(super) fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Bytes(_)
            | Self::Text(_)
            | Self::List(_)
            | Self::Map(_)
            | Self::Bool(_)
            | Self::Null => None,
        }
    }

    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Number(_)
            | Self::Text(_)
            | Self::List(_)
            | Self::Map(_)
            | Self::Bool(_)
            | Self::Null => None,
        }
    }
}

/// Reads the value that bytes begin with. Returns what follows it.
pub(super) fn read_value(bytes: &[u8]) -> Option<(Value, &[u8])> {
    read_at(bytes, MAX_DEPTH)
}

/// Reads bytes that are one value and nothing else.
pub(super) fn read_whole(bytes: &[u8]) -> Option<Value> {
    let (value, rest) = read_value(bytes)?;
    rest.is_empty().then_some(value)
}

fn read_at(bytes: &[u8], depth: usize) -> Option<(Value, &[u8])> {
    let depth = depth.checked_sub(1)?;
    let (&first, rest) = bytes.split_first()?;
    let kind = first >> 5;
    if kind == 7 {
        let value = match first & 31 {
            20 => Value::Bool(false),
            21 => Value::Bool(true),
            22 => Value::Null,
            _ => return None,
        };
        return Some((value, rest));
    }
    let (length, rest) = read_length(first & 31, rest)?;
    match kind {
        0 => Some((Value::Number(i64::try_from(length).ok()?), rest)),
        1 => {
            let number = i64::try_from(length).ok()?;
            Some((Value::Number(-1 - number), rest))
        }
        2 => {
            let (bytes, rest) = split(rest, length)?;
            Some((Value::Bytes(bytes.to_vec()), rest))
        }
        3 => {
            let (bytes, rest) = split(rest, length)?;
            let text = std::str::from_utf8(bytes).ok()?;
            Some((Value::Text(text.to_owned()), rest))
        }
        4 => read_list(rest, length, depth),
        5 => read_map(rest, length, depth),
        // Tags say something about a value that no device has to say.
        _ => None,
    }
}

fn read_length(short: u8, rest: &[u8]) -> Option<(u64, &[u8])> {
    let width = match short {
        0..=23 => return Some((u64::from(short), rest)),
        24 => 1,
        25 => 2,
        26 => 4,
        27 => 8,
        _ => return None,
    };
    let (bytes, rest) = rest.split_at_checked(width)?;
    let number = bytes
        .iter()
        .fold(0, |number: u64, byte| (number << 8) | u64::from(*byte));
    Some((number, rest))
}

fn split(bytes: &[u8], length: u64) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(usize::try_from(length).ok()?)
}

/// Every value has at least one byte, so no length makes room for more than there is.
fn read_list(mut rest: &[u8], length: u64, depth: usize) -> Option<(Value, &[u8])> {
    let mut list = Vec::new();
    for _ in 0..length {
        let (value, after) = read_at(rest, depth)?;
        list.push(value);
        rest = after;
    }
    Some((Value::List(list), rest))
}

fn read_map(mut rest: &[u8], length: u64, depth: usize) -> Option<(Value, &[u8])> {
    let mut pairs: Vec<(Value, Value)> = Vec::new();
    for _ in 0..length {
        let (key, after) = read_at(rest, depth)?;
        let (value, after) = read_at(after, depth)?;
        if pairs.iter().any(|(known, _)| *known == key) {
            return None;
        }
        pairs.push((key, value));
        rest = after;
    }
    Some((Value::Map(pairs), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_devices_write_is_read() {
        let number = |number| Value::Number(number);
        for (bytes, value) in [
            (&[0x17][..], number(23)),
            (&[0x18, 0xff], number(255)),
            (&[0x19, 0x01, 0x00], number(256)),
            (&[0x26], number(-7)),
            (&[0x39, 0x01, 0x00], number(-257)),
            (&[0x42, 1, 2], Value::Bytes(vec![1, 2])),
            (&[0x63, b'f', b'm', b't'], Value::Text("fmt".to_owned())),
            (
                &[0x82, 0x01, 0xf5],
                Value::List(vec![number(1), Value::Bool(true)]),
            ),
            (
                &[0xa1, 0x01, 0xf6],
                Value::Map(vec![(number(1), Value::Null)]),
            ),
        ] {
            assert_eq!(read_whole(bytes), Some(value), "{bytes:?}");
        }
        let (value, rest) = read_value(&[0x01, 0x02]).unwrap();
        assert_eq!((value, rest), (number(1), &[2][..]));
    }

    #[test]
    fn everything_else_is_not() {
        for bytes in [
            &[][..],
            &[0x18],
            &[0x42, 1],
            &[0x5f, 0x41, 0x00, 0xff],
            &[0x62, 0xff, 0xff],
            &[0x82, 0x01],
            &[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[
                0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x01,
            ],
            &[0xa2, 0x01, 0x01, 0x01, 0x02],
            &[0xc0, 0x01],
            &[0xf9, 0x00, 0x00],
            &[0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x81, 0x81, 0x81, 0x81, 0x81, 0x81, 0x81, 0x81, 0x81, 0x01],
            &[0x01, 0x01],
        ] {
            assert_eq!(read_whole(bytes), None, "{bytes:?}");
        }
    }
}
