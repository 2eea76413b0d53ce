//! Tokens in a list.

use crate::port::{BoxFuture, StoreError, Token, TokenId, Tokens};
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use std::future::ready;
use std::sync::{Mutex, MutexGuard};

/// Keeps tokens until it is dropped.
#[derive(Debug, Default)]
pub struct MemoryTokens(Mutex<Vec<Token>>);

impl MemoryTokens {
    /// Begins without tokens.
    pub fn new() -> Self {
        Self::default()
    }

    fn all(&self) -> MutexGuard<'_, Vec<Token>> {
        self.0
            .lock()
            .expect("nothing panics while it holds the tokens")
    }

    fn add_now(&self, token: &Token) -> Result<(), StoreError> {
        let mut all = self.all();
        if all
            .iter()
            .any(|known| known.id == token.id || known.hash == token.hash)
        {
            return Err(StoreError::Failed(format!(
                "the token {} exists already",
                token.id.0
            )));
        }
        all.push(token.clone());
        Ok(())
    }

    fn revoke_now(&self, id: &TokenId, at: Timestamp) -> bool {
        let mut all = self.all();
        let valid = all
            .iter_mut()
            .find(|token| token.id == *id && token.is_valid(at));
        let Some(token) = valid else { return false };
        token.revoked_at = Some(at);
        true
    }
}

impl Tokens for MemoryTokens {
    fn add<'a>(&'a self, token: &'a Token) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(ready(self.add_now(token)))
    }

    fn find<'a>(&'a self, hash: &'a Digest) -> BoxFuture<'a, Result<Option<Token>, StoreError>> {
        Box::pin(ready(Ok(self
            .all()
            .iter()
            .find(|token| token.hash == *hash)
            .cloned())))
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Token>, StoreError>> {
        Box::pin(ready(Ok(self.all().clone())))
    }

    fn revoke<'a>(
        &'a self,
        id: &'a TokenId,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(ready(Ok(self.revoke_now(id, at))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn make() -> (Arc<dyn Tokens>, ()) {
        (Arc::new(MemoryTokens::new()), ())
    }

    crate::token_laws!(make);
}
