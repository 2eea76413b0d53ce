//! Passkeys in a list.

use crate::port::{BoxFuture, Passkey, Passkeys, StoreError};
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use std::future::ready;
use std::sync::{Mutex, MutexGuard};

/// Keeps passkeys until it is dropped.
#[derive(Debug, Default)]
pub struct MemoryPasskeys(Mutex<Vec<Passkey>>);

impl MemoryPasskeys {
    /// Begins without passkeys.
    pub fn new() -> Self {
        Self::default()
    }

    fn all(&self) -> MutexGuard<'_, Vec<Passkey>> {
        self.0
            .lock()
            .expect("nothing panics while it holds the passkeys")
    }

    fn add_now(&self, passkey: &Passkey, most: usize) -> Result<bool, StoreError> {
        let mut all = self.all();
        if all.iter().any(|known| known.id == passkey.id) {
            return Err(StoreError::Failed("the passkey exists already".to_owned()));
        }
        if all
            .iter()
            .filter(|known| known.owner == passkey.owner)
            .count()
            >= most
        {
            return Ok(false);
        }
        all.push(passkey.clone());
        Ok(true)
    }

    fn note_use_now(&self, id: &[u8], (before, counter): (u32, u32), at: Timestamp) -> bool {
        let mut all = self.all();
        let found = all
            .iter_mut()
            .find(|known| known.id == id && known.counter == before);
        let Some(passkey) = found else { return false };
        passkey.counter = counter;
        passkey.used_at = Some(at);
        true
    }

    fn remove_now(&self, owner: &Principal, id: &[u8]) -> bool {
        let mut all = self.all();
        let before = all.len();
        all.retain(|known| known.owner != *owner || known.id != id);
        all.len() < before
    }
}

impl Passkeys for MemoryPasskeys {
    fn add<'a>(
        &'a self,
        passkey: &'a Passkey,
        most: usize,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(ready(self.add_now(passkey, most)))
    }

    fn list<'a>(&'a self, owner: &'a Principal) -> BoxFuture<'a, Result<Vec<Passkey>, StoreError>> {
        let all = self.all();
        let listed = all.iter().filter(|passkey| passkey.owner == *owner);
        Box::pin(ready(Ok(listed.cloned().collect())))
    }

    fn note_use<'a>(
        &'a self,
        id: &'a [u8],
        counters: (u32, u32),
        at: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(ready(Ok(self.note_use_now(id, counters, at))))
    }

    fn remove<'a>(
        &'a self,
        owner: &'a Principal,
        id: &'a [u8],
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(ready(Ok(self.remove_now(owner, id))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn make() -> (Arc<dyn Passkeys>, ()) {
        (Arc::new(MemoryPasskeys::new()), ())
    }

    crate::passkey_laws!(make);
}
