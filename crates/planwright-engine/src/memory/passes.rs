//! Passes in a list.

use crate::port::{BoxFuture, Pass, PassKind, Passes, StoreError};
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use std::future::ready;
use std::sync::{Mutex, MutexGuard};

/// Keeps passes until it is dropped.
#[derive(Debug, Default)]
pub struct MemoryPasses(Mutex<Vec<Pass>>);

impl MemoryPasses {
    /// Begins without passes.
    pub fn new() -> Self {
        Self::default()
    }

    fn all(&self) -> MutexGuard<'_, Vec<Pass>> {
        self.0
            .lock()
            .expect("nothing panics while it holds the passes")
    }

    fn add_now(&self, pass: &Pass, most: usize, now: Timestamp) -> Result<bool, StoreError> {
        let mut all = self.all();
        all.retain(|known| now < known.expires_at);
        if all.iter().any(|known| known.hash == pass.hash) {
            return Err(StoreError::Failed("the pass exists already".to_owned()));
        }
        if all.iter().filter(|known| known.kind == pass.kind).count() >= most {
            return Ok(false);
        }
        all.push(pass.clone());
        Ok(true)
    }

    fn take_now(&self, kind: PassKind, hash: &Digest) -> Option<Pass> {
        let mut all = self.all();
        let at = all
            .iter()
            .position(|pass| pass.kind == kind && pass.hash == *hash)?;
        Some(all.remove(at))
    }

    fn extend_now(&self, hash: &Digest, until: Timestamp) -> bool {
        let mut all = self.all();
        let found = all
            .iter_mut()
            .find(|pass| pass.kind == PassKind::Session && pass.hash == *hash);
        let Some(pass) = found else { return false };
        pass.expires_at = until;
        true
    }
}

impl Passes for MemoryPasses {
    fn add<'a>(
        &'a self,
        pass: &'a Pass,
        most: usize,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(ready(self.add_now(pass, most, now)))
    }

    fn find<'a>(
        &'a self,
        kind: PassKind,
        hash: &'a Digest,
    ) -> BoxFuture<'a, Result<Option<Pass>, StoreError>> {
        let all = self.all();
        let found = all
            .iter()
            .find(|pass| pass.kind == kind && pass.hash == *hash);
        Box::pin(ready(Ok(found.cloned())))
    }

    fn take<'a>(
        &'a self,
        kind: PassKind,
        hash: &'a Digest,
    ) -> BoxFuture<'a, Result<Option<Pass>, StoreError>> {
        Box::pin(ready(Ok(self.take_now(kind, hash))))
    }

    fn extend<'a>(
        &'a self,
        hash: &'a Digest,
        until: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(ready(Ok(self.extend_now(hash, until))))
    }

    fn list(&self, kind: PassKind) -> BoxFuture<'_, Result<Vec<Pass>, StoreError>> {
        let all = self.all();
        let listed = all.iter().filter(|pass| pass.kind == kind).cloned();
        Box::pin(ready(Ok(listed.collect())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn make() -> (Arc<dyn Passes>, ()) {
        (Arc::new(MemoryPasses::new()), ())
    }

    crate::pass_laws!(make);
}
