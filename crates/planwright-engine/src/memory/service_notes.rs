//! Notes of the only service there is.

use crate::port::{BoxFuture, NoteKind, ServiceNote, ServiceNotes, StoreError, random_key};
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use std::collections::BTreeMap;
use std::fmt;
use std::future::ready;
use std::sync::{Mutex, MutexGuard};
use zeroize::Zeroizing;

/// Keeps notes until it is dropped.
#[derive(Default)]
pub struct MemoryNotes(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    notes: BTreeMap<(NoteKind, Digest), ServiceNote>,
    keys: BTreeMap<&'static str, Zeroizing<String>>,
}

/// Nothing of it is for a log.
impl fmt::Debug for MemoryNotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryNotes")
    }
}

impl MemoryNotes {
    /// Begins without notes.
    pub fn new() -> Self {
        Self::default()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0
            .lock()
            .expect("nothing panics while it holds the notes")
    }

    fn put_now(&self, note: &ServiceNote, most: usize, now: Timestamp) -> bool {
        let mut kept = self.kept();
        kept.notes.retain(|_, note| now < note.expires_at);
        let place = (note.kind, note.key);
        let others = kept
            .notes
            .keys()
            .filter(|known| known.0 == note.kind && **known != place);
        if others.count() >= most {
            return false;
        }
        kept.notes.insert(place, note.clone());
        true
    }
}

impl ServiceNotes for MemoryNotes {
    fn are_shared(&self) -> bool {
        false
    }

    fn put_note<'a>(
        &'a self,
        note: &'a ServiceNote,
        most: usize,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(ready(Ok(self.put_now(note, most, now))))
    }

    fn find_note<'a>(
        &'a self,
        kind: NoteKind,
        key: &'a Digest,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        let kept = self.kept();
        let found = kept.notes.get(&(kind, *key));
        let found = found.filter(|note| now < note.expires_at);
        Box::pin(ready(Ok(found.map(|note| note.value.clone()))))
    }

    fn take_note<'a>(
        &'a self,
        kind: NoteKind,
        key: &'a Digest,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        let taken = self.kept().notes.remove(&(kind, *key));
        let taken = taken.filter(|note| now < note.expires_at);
        Box::pin(ready(Ok(taken.map(|note| note.value))))
    }

    fn shared_key<'a>(
        &'a self,
        name: &'static str,
    ) -> BoxFuture<'a, Result<Zeroizing<String>, StoreError>> {
        Box::pin(async move {
            let made = random_key()?;
            Ok(self.kept().keys.entry(name).or_insert(made).clone())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn make() -> (Arc<dyn ServiceNotes>, ()) {
        (Arc::new(MemoryNotes::new()), ())
    }

    crate::note_laws!(make);
}
