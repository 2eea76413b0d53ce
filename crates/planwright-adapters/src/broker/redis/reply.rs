//! Answers about streams, read by hand: entries may come from elsewhere, and the client library refuses a whole answer for
//! one name of a field that is no text.

use super::keys::NOTICE;
use redis::Value;

/// An entry of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) fields: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Entry {
    /// Reads a field; an empty one if there is none of that name.
    pub(super) fn field(&self, name: &str) -> &[u8] {
        let mut fields = self.fields.iter();
        let found = fields.find(|(key, _)| key == name.as_bytes());
        found.map_or(&[], |(_, value)| value)
    }

    pub(super) fn notice(&self) -> &[u8] {
        self.field(NOTICE)
    }
}

/// What `XREADGROUP` says: entries by the name of their stream.
pub(super) fn read_streams(reply: &Value) -> Vec<(String, Vec<Entry>)> {
    let streams = items(reply)
        .iter()
        .filter_map(|stream| match items(stream) {
            [key, entries] => Some((text(key)?, read_entries(entries))),
            _ => None,
        });
    streams.collect()
}

/// What `XRANGE` says. Entries that were deleted meanwhile are left out.
pub(super) fn read_entries(reply: &Value) -> Vec<Entry> {
    items(reply).iter().filter_map(read_entry).collect()
}

fn read_entry(value: &Value) -> Option<Entry> {
    let [id, fields] = items(value) else {
        return None;
    };
    let fields = items(fields).chunks_exact(2).filter_map(|pair| match pair {
        [name, value] => Some((bytes(name)?, bytes(value)?)),
        _ => None,
    });
    Some(Entry {
        id: text(id)?,
        fields: fields.collect(),
    })
}

/// What `XAUTOCLAIM` says: where to continue, and the entries.
pub(super) fn read_claimed(reply: &Value) -> (String, Vec<Entry>) {
    match items(reply) {
        [next, entries, ..] => (
            text(next).unwrap_or_else(|| "0-0".to_owned()),
            read_entries(entries),
        ),
        _ => ("0-0".to_owned(), Vec::new()),
    }
}

/// What `XPENDING` says about one entry: how often it was delivered.
pub(super) fn read_delivery_count(reply: &Value) -> Option<u64> {
    match items(items(reply).first()?) {
        [_, _, _, count] => number(count),
        _ => None,
    }
}

/// What `XPENDING` says about a group: the number of entries, and that of one consumer.
pub(super) fn read_pending(reply: &Value, consumer: &str) -> (u64, u64) {
    let [count, _, _, consumers] = items(reply) else {
        return (0, 0);
    };
    let of_consumer = items(consumers).iter().find_map(|it| match items(it) {
        [name, count] if text(name).as_deref() == Some(consumer) => number(count),
        _ => None,
    });
    (number(count).unwrap_or(0), of_consumer.unwrap_or(0))
}

/// Reads one value of a list of names and values.
pub(super) fn read_named(reply: &Value, name: &str) -> Option<String> {
    let mut pairs = items(reply).chunks_exact(2);
    pairs.find_map(|pair| match pair {
        [key, value] if text(key).as_deref() == Some(name) => text(value),
        _ => None,
    })
}

pub(super) fn items(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        _ => &[],
    }
}

fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes.clone()),
        Value::SimpleString(text) => Some(text.clone().into_bytes()),
        _ => None,
    }
}

pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Int(number) => Some(number.to_string()),
        _ => String::from_utf8(bytes(value)?).ok(),
    }
}

pub(super) fn number(value: &Value) -> Option<u64> {
    text(value)?.parse().ok()
}

/// The time at which the server gave an entry its id.
pub(super) fn made_at(id: &str) -> Option<planwright_core::time::Timestamp> {
    let millis = id.split_once('-')?.0.parse().ok()?;
    Some(planwright_core::time::Timestamp::from_millis(millis))
}

/// Whether a text can be the id of an entry.
pub(super) fn is_entry_id(text: &str) -> bool {
    let is_number = |text: &str| {
        !text.is_empty() && text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    text.split_once('-')
        .is_some_and(|(millis, count)| is_number(millis) && is_number(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &[u8]) -> Value {
        Value::BulkString(text.to_vec())
    }

    #[test]
    fn entries_of_any_bytes_are_read() {
        let fields = Value::Array(vec![
            bulk(b"\xff"),
            bulk(b"\xfe"),
            bulk(b"notice"),
            bulk(b"{}"),
        ]);
        let entry = Value::Array(vec![bulk(b"7-0"), fields]);
        let deleted = Value::Array(vec![bulk(b"8-0"), Value::Nil]);
        let entries = Value::Array(vec![entry, deleted, Value::Nil]);
        let read = read_streams(&Value::Array(vec![Value::Array(vec![bulk(b"s"), entries])]));
        assert_eq!(read[0].0, "s");
        assert_eq!(read[0].1[0].notice(), b"{}");
        assert_eq!(read[0].1[1].notice(), b"");
        assert!(read_streams(&Value::Nil).is_empty());
    }

    #[test]
    fn ids_are_two_numbers() {
        assert!(is_entry_id("1700000000000-3"));
        for text in ["", "-", "1", "1-x", "1-2-3", "+"] {
            assert!(!is_entry_id(text), "{text}");
        }
    }
}
