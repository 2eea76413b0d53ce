//! A person who can be asked while a call waits.

use super::BoxFuture;
use planwright_core::run::{Asked, Reply};
use std::fmt;
use std::sync::Arc;

type Ask = dyn Fn(Asked) -> BoxFuture<'static, Option<Vec<Reply>>> + Send + Sync;

/// Takes what a server asks in the middle of a call to a person. The call is held meanwhile, within
/// its own time.
#[derive(Clone)]
pub struct PersonLine(Arc<Ask>);

impl PersonLine {
    /// Makes a line of a function that asks.
    pub fn new(
        ask: impl Fn(Asked) -> BoxFuture<'static, Option<Vec<Reply>>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(ask))
    }

    /// Asks, and waits for the replies, one per question. Nothing if there will be none.
    pub async fn ask(&self, asked: Asked) -> Option<Vec<Reply>> {
        (self.0)(asked).await
    }
}

impl fmt::Debug for PersonLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PersonLine")
    }
}
