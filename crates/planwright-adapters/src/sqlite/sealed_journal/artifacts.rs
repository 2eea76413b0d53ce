//! Large values that no journal names any more.
//!
//! Marking is generous: every digest that stands anywhere in a journal, sealed or not, or in a
//! command that waits, counts as a reference. What remains must also be older than the time of
//! grace: a value that was just written, or asked for again, may be named in a moment.

use super::rows;
use super::seal::check_file_with;
use crate::files::FileArtifacts;
use crate::sqlite::fault::failed;
use crate::sqlite::reader::Reader;
use crate::sqlite::store::SqliteStore;
use crate::sqlite::transaction::records_of;
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use planwright_engine::port::{ArtifactError, Removed, StoreError};
use rusqlite::Connection;
use std::collections::HashSet;
use std::sync::Arc;

const PREFIX: &[u8] = b"sha256:";
const HEX: usize = 64;
/// Records that are read at a time.
const PAGE: usize = 500;

/// Adds every digest that stands in a text.
pub(crate) fn collect_digests(text: &[u8], found: &mut HashSet<Digest>) {
    let mut rest = text;
    while let Some(at) = rest.windows(PREFIX.len()).position(|part| part == PREFIX) {
        let end = (at + PREFIX.len() + HEX).min(rest.len());
        let digest = std::str::from_utf8(&rest[at..end]).ok();
        found.extend(digest.and_then(|digest| digest.parse::<Digest>().ok()));
        rest = &rest[at + PREFIX.len()..];
    }
}

impl SqliteStore {
    pub(super) async fn remove_unused(
        &self,
        before: Timestamp,
        dry_run: bool,
    ) -> Result<Removed, StoreError> {
        let artifacts = FileArtifacts::with_cipher(
            self.options().beside("-artifacts"),
            Arc::clone(self.cipher()),
        );
        self.look(move |reader| {
            let of_files = |error: ArtifactError| match error {
                ArtifactError::Full => StoreError::Full,
                error => StoreError::Failed(error.to_string()),
            };
            // Without an old file there is nothing to look for.
            let old = artifacts.older_than(before).map_err(of_files)?;
            if old.is_empty() {
                return Ok(Removed::default());
            }
            let used = named_digests(reader)?;
            artifacts
                .remove_unused(&old, &used, before, dry_run)
                .map_err(of_files)
        })
        .await
    }
}

/// Every digest that any journal names.
fn named_digests(reader: &Reader) -> Result<HashSet<Digest>, StoreError> {
    let mut found = HashSet::new();
    let sealed = reader.with(|connection| {
        // One moment for everything in the database. What is sealed after it is still in it.
        let snapshot = connection
            .unchecked_transaction()
            .map_err(|error| failed(&error))?;
        scan_entries(&snapshot, reader, &mut found).map_err(|error| failed(&error))?;
        rows::all(&snapshot).map_err(|error| failed(&error))
    })?;
    for message in reader.messages(None)? {
        collect_digests(&message.body, &mut found);
    }
    for (name, row) in sealed {
        let path = reader.sealed_files().directory().join(&row.file);
        let read = check_file_with(&path, reader.cipher(), |record| {
            collect_digests(&record.body, &mut found);
            Ok(())
        });
        // What a damaged file named is not known, so nothing may be removed.
        read.map_err(|error| {
            StoreError::Failed(format!(
                "the sealed journal of {name} cannot be used: {error}"
            ))
        })?;
    }
    Ok(found)
}

fn scan_entries(
    connection: &Connection,
    reader: &Reader,
    found: &mut HashSet<Digest>,
) -> Result<(), rusqlite::Error> {
    let mut statement = connection.prepare("SELECT id, name FROM streams WHERE sealed = 0")?;
    let mut streams = statement.query([])?;
    while let Some(row) = streams.next()? {
        let (id, name): (i64, String) = (row.get(0)?, row.get(1)?);
        let mut after = 0;
        loop {
            let page = records_of(
                connection,
                reader.cipher(),
                &name,
                id,
                after,
                (PAGE, usize::MAX),
            )?;
            for record in &page {
                collect_digests(&record.body, found);
            }
            match page.last() {
                Some(last) if page.len() == PAGE => after = last.seq,
                Some(_) | None => break,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digest_in_a_text_is_found() {
        let (one, two) = (Digest::of_bytes(b"one"), Digest::of_bytes(b"two"));
        let text = format!("{{\"a\":\"{one}\",\"b\":[\"sha256:short\",\"x{two}y\"]}} sha256:");
        let mut found = HashSet::new();
        collect_digests(text.as_bytes(), &mut found);
        assert_eq!(found, HashSet::from([one, two]));
    }
}
