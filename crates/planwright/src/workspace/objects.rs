//! Where large values are, if not in the store: a bucket that the configuration or the environment names.

use crate::exit::{Exit, Failure};
use crate::workspace::app::CommandContext;
use crate::workspace::principal::refuse_agents;
use planwright_adapters::objects::{
    ObjectArtifacts, ObjectsLocation, ObjectsLocationError, PATIENCE,
};
use planwright_engine::port::Artifacts;
use std::sync::Arc;

/// The variable that names the bucket of every command.
const VARIABLE: &str = "PLANWRIGHT_OBJECTS";

impl From<ObjectsLocationError> for Failure {
    fn from(error: ObjectsLocationError) -> Self {
        Self::from_error(Exit::Usage, &error).hint(
            "s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION, with the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    }
}

/// The bucket for large values: from the environment, or from a configuration that the user wrote or trusts.
fn find_objects(context: &CommandContext) -> Result<Option<ObjectsLocation>, Failure> {
    let named = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    let configured = context.config.objects_url();
    let Some(address) = named.as_deref().or(configured) else {
        return Ok(None);
    };
    if configured != Some(address) {
        // Arguments and results would go where an agent wants them.
        refuse_agents("choose where large values are kept").map_err(|failure| {
            failure.hint("a person names the bucket in [store] objects of planwright.toml")
        })?;
    }
    Ok(Some(ObjectsLocation::parse(address, std::env::vars())?))
}

/// Lets new values be kept in the bucket that is named, if one is. `own` is the place of the store itself.
pub(crate) fn open_objects(
    context: &CommandContext,
    own: &Arc<dyn Artifacts>,
    is_encrypted: bool,
) -> Result<Option<Arc<ObjectArtifacts>>, Failure> {
    let Some(location) = find_objects(context)? else {
        return Ok(None);
    };
    if is_encrypted {
        return Err(Failure::refused(format!(
            "the store is encrypted, and {location} would hold its large values in the clear"
        ))
        .hint("remove [store] objects and PLANWRIGHT_OBJECTS: an encrypted store keeps its large values itself"));
    }
    let opened = ObjectArtifacts::new(&location, Arc::clone(own), PATIENCE)?;
    Ok(Some(Arc::new(opened)))
}
