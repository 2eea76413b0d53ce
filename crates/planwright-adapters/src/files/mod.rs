//! Files that are whole or not there: artifacts named by their content, and projections written for
//! people.

mod artifact_retention;
mod artifacts;
mod atomic;
mod projection;
mod snapshot;

pub use artifacts::FileArtifacts;
pub(crate) use atomic::create_temporary;
pub use atomic::{WriteFileError, atomic_write, lock_beside};
pub use projection::{Draft, Projection};
pub use snapshot::WorkspaceSurroundings;
