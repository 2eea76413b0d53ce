//! Files that are whole or not there: artifacts named by their content, and projections written for
//! people.

mod artifact_retention;
mod artifacts;
mod atomic;
mod projection;
mod sealed_folder;
mod snapshot;
mod step_logs;

pub use artifacts::FileArtifacts;
pub use atomic::{WriteFileError, atomic_write, lock_beside};
pub(crate) use atomic::{create_directory, create_temporary, nofollow};
pub use projection::{Draft, Projection};
pub use sealed_folder::{SealedFolder, SealedFolderError};
pub use snapshot::WorkspaceSurroundings;
pub use step_logs::FileStepLogs;
