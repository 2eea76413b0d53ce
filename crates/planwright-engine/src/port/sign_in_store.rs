//! What people's sign-ins to the servers of tools came to, where every process of a store finds it.

use super::{BoxFuture, StoreError};
use std::fmt;
use std::time::Duration;

/// Keeps sign-ins by names that say nothing about the server or the person. What is kept is sealed like the store.
pub trait SignInStore: Send + Sync + fmt::Debug {
    /// Reads what is kept under this name.
    fn load_sign_in<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>>;

    /// Replaces what is kept under this name, durable on return. Who renews it now has lost the turn.
    fn save_sign_in<'a>(
        &'a self,
        name: &'a str,
        kept: &'a [u8],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Forgets what is kept under this name. Returns whether there was anything.
    fn forget_sign_in<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Takes the turn to renew it, for so long at most: renewing spends what is kept. Returns `false` if another process has
    /// the turn, or nothing is kept.
    fn take_renewal<'a>(
        &'a self,
        name: &'a str,
        by: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Ends the turn, and replaces what is kept if there is something new. Nothing happens if the turn was over before.
    fn end_renewal<'a>(
        &'a self,
        name: &'a str,
        by: &'a str,
        renewed: Option<&'a [u8]>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}
