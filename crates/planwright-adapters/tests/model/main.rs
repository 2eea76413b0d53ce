//! Models, asked over real HTTP of a provider that answers from a script.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

#[cfg(test)]
mod answers;
#[cfg(test)]
mod dialects;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod keys;
mod scene;
