//! What a client of Postgres sends, read as far as is needed to see which of it commits.

use std::collections::BTreeSet;

/// The longest message that is looked into. Of a longer one only the beginning is.
const LOOKED_INTO: usize = 64 << 10;
/// What a client sends that asks for encryption.
const SSL_REQUEST: [u8; 4] = 80_877_103_u32.to_be_bytes();

/// Reads what one client sends.
#[derive(Debug, Default)]
pub(crate) struct SentCommits {
    /// What was read of the message that is not whole yet.
    begun: Vec<u8>,
    /// The bytes that are missing of it.
    missing: usize,
    has_started: bool,
    is_in_transaction: bool,
    /// The statements with a name that write.
    writing: BTreeSet<Vec<u8>>,
}

impl SentCommits {
    /// Reads what follows, and returns whether a commit is sent with it: the end of a transaction, or a statement that writes
    /// and is a transaction of its own.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) -> bool {
        let mut commits = false;
        while !bytes.is_empty() {
            bytes = self.read_some(bytes);
            if self.missing == 0 && self.has_length() {
                let message = std::mem::take(&mut self.begun);
                commits |= self.judge(&message);
            }
        }
        commits
    }

    /// The first message has no kind.
    fn header(&self) -> usize {
        if self.has_started { 5 } else { 4 }
    }

    fn has_length(&self) -> bool {
        self.begun.len() >= self.header()
    }

    /// Takes what belongs to the message that is being read, and returns the rest.
    fn read_some<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        if !self.has_length() {
            let wanted = (self.header() - self.begun.len()).min(bytes.len());
            let (taken, rest) = bytes.split_at(wanted);
            self.begun.extend_from_slice(taken);
            if self.has_length() {
                let length = &self.begun[self.header() - 4..];
                let length = u32::from_be_bytes(length.try_into().unwrap());
                self.missing = usize::try_from(length).unwrap().saturating_sub(4);
            }
            return rest;
        }
        let (taken, rest) = bytes.split_at(self.missing.min(bytes.len()));
        let room = LOOKED_INTO.saturating_sub(self.begun.len());
        self.begun
            .extend_from_slice(&taken[..taken.len().min(room)]);
        self.missing -= taken.len();
        rest
    }

    fn judge(&mut self, message: &[u8]) -> bool {
        if !self.has_started {
            // Whether the server encrypts is asked before everything else.
            self.has_started = message[4..] != SSL_REQUEST;
            return false;
        }
        let body = &message[5..];
        match message[0] {
            b'Q' => self.judge_query(&first_text(body).to_ascii_uppercase()),
            b'P' => {
                let name = first_text(body);
                let sql = first_text(&body[name.len() + 1..]);
                let writes = writes(&sql.to_ascii_uppercase());
                if name.is_empty() {
                    return writes && !self.is_in_transaction;
                }
                if writes {
                    self.writing.insert(name.to_vec());
                }
                false
            }
            b'B' => {
                let portal = first_text(body);
                let name = first_text(&body[portal.len() + 1..]);
                self.writing.contains(name) && !self.is_in_transaction
            }
            _ => false,
        }
    }

    /// Judges statements without values.
    fn judge_query(&mut self, sql: &[u8]) -> bool {
        let ends = [&b"COMMIT"[..], b"ROLLBACK"]
            .iter()
            .any(|word| sql.ends_with(word));
        if ends {
            self.is_in_transaction = false;
            return sql.ends_with(b"COMMIT");
        }
        if sql.starts_with(b"BEGIN") {
            self.is_in_transaction = true;
        }
        false
    }
}

/// The text before the next zero.
fn first_text(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0);
    &bytes[..end.unwrap_or_else(|| bytes.len().saturating_sub(1))]
}

fn writes(sql: &[u8]) -> bool {
    let has = |word: &[u8]| sql.windows(word.len()).any(|part| part == word);
    sql.starts_with(b"UPDATE ")
        || sql.starts_with(b"DELETE ")
        || has(b"INSERT INTO ")
        || has(b"(UPDATE ")
        || has(b"(DELETE ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind][..], &length.to_be_bytes(), body].concat()
    }

    fn started() -> SentCommits {
        let mut sent = SentCommits::default();
        assert!(!sent.read(&[0, 0, 0, 9, 0, 3, 0, 0, 0]));
        sent
    }

    #[test]
    fn the_end_of_a_transaction_is_a_commit_and_what_is_in_it_is_none() {
        let mut sent = started();
        assert!(!sent.read(&message(b'Q', b"BEGIN; SET LOCAL x = 1\0")));
        assert!(!sent.read(&message(b'P', b"\0INSERT INTO t VALUES ($1)\0\0\0")));
        assert!(sent.read(&message(b'Q', b"SET LOCAL statement_timeout = 0; COMMIT\0")));
        assert!(!sent.read(&message(b'P', b"\0SELECT 1\0\0\0")));
    }

    #[test]
    fn a_statement_that_writes_by_itself_is_a_commit_by_its_text_and_by_its_name() {
        let mut sent = started();
        assert!(sent.read(&message(b'P', b"\0UPDATE t SET a = 1\0\0\0")));
        assert!(!sent.read(&message(
            b'P',
            b"s1\0WITH a AS (SELECT 1) INSERT INTO t\0\0\0"
        )));
        assert!(!sent.read(&message(b'P', b"s2\0SELECT 1\0\0\0")));
        assert!(sent.read(&message(b'B', b"\0s1\0\0\0\0\0\0\0")));
        assert!(!sent.read(&message(b'B', b"\0s2\0\0\0\0\0\0\0")));
    }

    #[test]
    fn messages_may_come_in_pieces() {
        let mut sent = started();
        let begin = message(b'Q', b"BEGIN\0");
        let commit = message(b'Q', b"COMMIT\0");
        let bytes = [begin, commit].concat();
        let found: Vec<bool> = bytes.iter().map(|byte| sent.read(&[*byte])).collect();
        assert_eq!(found.iter().filter(|commits| **commits).count(), 1);
        assert!(found[bytes.len() - 1], "with its last byte");
    }
}
