//! The heads file: for every commit, where the touched streams ended.
//!
//! A record is written after its commit was synced, so the file never promises more than the
//! database holds. It is not synced itself: it survives the death of every process, and after a
//! power loss it may promise less, never too much. Other processes watch the file to learn about
//! commits.

use crate::files::nofollow;
use planwright_core::digest::Digest;
use planwright_core::journal::Head;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MAGIC: [u8; 4] = *b"PWh1";
const NAME_BYTES: usize = 75;
const RECORD_BYTES: usize = 128;
const SEQ_AT: usize = 5 + NAME_BYTES;
const HASH_AT: usize = SEQ_AT + 8;
const CHECK_AT: usize = HASH_AT + 32;

/// The processes that may have the file open at the same time. All that use a store share it; one
/// that replaces the whole store must be alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    Shared,
    Alone,
}

/// The file, open for appending.
#[derive(Debug)]
pub(super) struct Heads {
    file: File,
    buffer: Vec<u8>,
    seen: Arc<Seen>,
}

/// The length of the file when this process last knew everything in it, so that it is not woken by
/// its own writes.
#[derive(Debug, Default)]
pub(super) struct Seen(AtomicU64);

impl Seen {
    /// Returns whether the file holds more than was known, or was cut. Then that is known too.
    pub(super) fn differs(&self, path: &Path) -> bool {
        let found = std::fs::metadata(path).map_or(u64::MAX, |file| file.len());
        self.0.swap(found, Ordering::AcqRel) != found
    }
}

impl Heads {
    /// Opens the file and reads what it promises: the furthest head of every stream.
    pub(super) fn open(path: &Path, share: Share) -> io::Result<(Self, HashMap<String, Head>)> {
        let mut open = OpenOptions::new();
        open.read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(nofollow());
        let mut file = open.open(path)?;
        let locked = match share {
            Share::Shared => file.try_lock_shared(),
            Share::Alone => file.try_lock(),
        };
        locked?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let seen = Arc::new(Seen(AtomicU64::new(bytes.len() as u64)));
        Ok((
            Self {
                file,
                buffer: Vec::new(),
                seen,
            },
            promises(&bytes),
        ))
    }

    /// Notes where streams ended, in one write. Without streams it writes a blank record, which
    /// only wakes watchers.
    pub(super) fn note<'a>(
        &mut self,
        heads: impl IntoIterator<Item = (&'a str, Head)>,
    ) -> io::Result<()> {
        self.buffer.clear();
        for (name, head) in heads {
            push_record(&mut self.buffer, name, head);
        }
        if self.buffer.is_empty() {
            push_record(&mut self.buffer, "", Head::EMPTY);
        }
        self.file.write_all(&self.buffer)?;
        // Everything that other processes wrote before this is announced together with our own
        // commit.
        self.seen
            .0
            .store(self.file.stream_position()?, Ordering::Release);
        Ok(())
    }

    pub(super) fn seen(&self) -> Arc<Seen> {
        Arc::clone(&self.seen)
    }

    pub(super) fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    pub(super) fn clear(&self) -> io::Result<()> {
        self.file.set_len(0)
    }
}

fn push_record(buffer: &mut Vec<u8>, name: &str, head: Head) {
    let mut record = [0; RECORD_BYTES];
    record[..4].copy_from_slice(&MAGIC);
    let length = name.len();
    assert!(length <= NAME_BYTES, "stream names have at most 69 bytes");
    record[4] = u8::try_from(length).expect("checked above");
    record[5..5 + length].copy_from_slice(name.as_bytes());
    record[SEQ_AT..HASH_AT].copy_from_slice(&head.seq.to_le_bytes());
    record[HASH_AT..CHECK_AT].copy_from_slice(head.hash.as_bytes());
    let check = checksum(&record[..CHECK_AT]);
    record[CHECK_AT..].copy_from_slice(&check.to_le_bytes());
    buffer.extend_from_slice(&record);
}

/// Reads as many whole records as there are. Where a write was torn, the next whole record is
/// searched for.
fn promises(mut bytes: &[u8]) -> HashMap<String, Head> {
    let mut heads: HashMap<String, Head> = HashMap::new();
    while bytes.len() >= RECORD_BYTES {
        let Some((name, head)) = parse_record(&bytes[..RECORD_BYTES]) else {
            bytes = &bytes[1..];
            continue;
        };
        bytes = &bytes[RECORD_BYTES..];
        if name.is_empty() {
            continue;
        }
        match heads.get_mut(name) {
            Some(known) if known.seq >= head.seq => {}
            Some(known) => *known = head,
            None => {
                heads.insert(name.to_owned(), head);
            }
        }
    }
    heads
}

fn parse_record(record: &[u8]) -> Option<(&str, Head)> {
    if record[..4] != MAGIC || record[CHECK_AT..] != checksum(&record[..CHECK_AT]).to_le_bytes() {
        return None;
    }
    let name = record
        .get(5..5 + usize::from(record[4]))
        .filter(|name| name.len() <= NAME_BYTES)?;
    let seq = u64::from_le_bytes(record[SEQ_AT..HASH_AT].try_into().ok()?);
    let hash = Digest::from_bytes(record[HASH_AT..CHECK_AT].try_into().ok()?);
    Some((std::str::from_utf8(name).ok()?, Head { seq, hash }))
}

/// A fast 64-bit mix. It guards against torn and rotten records, not against forgery.
fn checksum(bytes: &[u8]) -> u64 {
    let mut sum: u64 = 0x9e37_79b9_7f4a_7c15;
    for word in bytes.chunks_exact(8) {
        let word = u64::from_le_bytes(word.try_into().expect("chunks of eight"));
        sum = (sum ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        sum ^= sum >> 32;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(seq: u64) -> Head {
        Head {
            seq,
            hash: Digest::of_bytes(&seq.to_le_bytes()),
        }
    }

    fn records(list: &[(&str, u64)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, seq) in list {
            push_record(&mut bytes, name, head(*seq));
        }
        bytes
    }

    #[test]
    fn the_furthest_head_of_every_stream_counts() {
        let bytes = records(&[
            ("run/a", 1),
            ("run/b", 7),
            ("run/a", 3),
            ("run/a", 2),
            ("", 0),
        ]);
        let found = promises(&bytes);
        assert_eq!(
            found,
            HashMap::from([("run/a".to_owned(), head(3)), ("run/b".to_owned(), head(7))])
        );
    }

    #[test]
    fn a_torn_record_loses_only_itself() {
        let whole = records(&[("run/a", 1), ("run/b", 2)]);
        for cut in 0..RECORD_BYTES {
            let mut bytes = records(&[("run/a", 1)]);
            bytes.extend_from_slice(&records(&[("run/torn", 9)])[..cut]);
            assert_eq!(promises(&bytes).len(), 1, "cut at {cut}");
            bytes.extend_from_slice(&records(&[("run/b", 2)]));
            assert_eq!(promises(&bytes), promises(&whole), "cut at {cut}");
        }
    }

    #[test]
    fn a_record_with_any_byte_changed_is_not_believed() {
        let bytes = records(&[("run/a", 1)]);
        for at in 0..RECORD_BYTES {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            assert!(promises(&bytes).is_empty(), "byte {at}");
        }
    }
}
