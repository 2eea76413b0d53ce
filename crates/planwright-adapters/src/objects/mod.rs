//! Large values in a store that speaks S3, by their content.

mod artifacts;
mod fault;
mod location;

pub use artifacts::{ObjectArtifacts, PATIENCE};
pub use location::{ObjectsLocation, ObjectsLocationError};
