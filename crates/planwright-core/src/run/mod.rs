//! The life of a run: `decide` says what may happen, `apply` notes what happened.

mod value;

pub use value::{ArtifactRef, StoredValue};
