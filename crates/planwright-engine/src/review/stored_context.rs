//! What is too large to be kept in a plan's document: moved to artifacts when it comes in, and back
//! when it goes out.

use crate::review::plans::Plans;
use crate::review::plans::ReviewError;
use planwright_core::artifact::ArtifactRef;
use planwright_core::digest::Digest;
use planwright_core::plan::{Code, Context, Document, Finding};
use planwright_core::principal::Principal;
use planwright_core::review::ReviewEvent;

impl Plans {
    /// Takes the largest parts out of a large context and returns them: they become artifacts with
    /// [`Plans::keep_parts`], once the version is sure to be written. References that are there already
    /// must hold: a plan that names an artifact that is not stored would have lost it.
    pub(crate) async fn settle_context(
        &self,
        document: &mut Document,
        by: &Principal,
    ) -> Result<Vec<Vec<u8>>, ReviewError> {
        self.check_stored_bytes(by).await?;
        self.whole_context(&document.context).await?;
        let oversized = document.context.oversized_parts();
        if oversized.is_empty() {
            return Ok(Vec::new());
        }
        // An id that is made from the content must not depend on where the content is kept.
        document.number_steps();
        document.identify();
        let mut parts = Vec::new();
        for (name, bytes) in oversized {
            let artifact = ArtifactRef {
                digest: Digest::of_bytes(&bytes),
                bytes: bytes.len() as u64,
            };
            document.context.replace_with_reference(&name, artifact);
            parts.push(bytes);
        }
        Ok(parts)
    }

    /// Stores the parts of a version that is about to be written. A version that was refused, or is
    /// there already, leaves nothing behind.
    pub(crate) async fn keep_parts(
        &self,
        events: &[ReviewEvent],
        parts: Vec<Vec<u8>>,
    ) -> Result<(), ReviewError> {
        if events.is_empty() {
            return Ok(());
        }
        for bytes in parts {
            self.context.ports.artifacts.put(bytes).await?;
        }
        Ok(())
    }

    /// The document with everything that is kept elsewhere put back.
    pub async fn whole_document(&self, document: &Document) -> Result<Document, ReviewError> {
        Ok(Document {
            context: self.whole_context(&document.context).await?,
            ..document.clone()
        })
    }

    async fn whole_context(&self, context: &Context) -> Result<Context, ReviewError> {
        let mut whole = context.clone();
        for (name, artifact) in &context.stored {
            let limit = self.context.settings.bounds.max_document_bytes as u64;
            if artifact.bytes > limit {
                let message = format!(
                    "`{name}` has {} bytes, at most {limit} are read",
                    artifact.bytes
                );
                return Err(invalid(Code::TooLarge, message));
            }
            let bytes = self.context.ports.artifacts.get(artifact).await?;
            whole
                .restore(name, &bytes)
                .map_err(|error| invalid(Code::Shape, error.to_string()))?;
        }
        Ok(whole)
    }
}

fn invalid(code: Code, message: String) -> ReviewError {
    ReviewError::Invalid(vec![Finding::new(code, "/context/stored", message)])
}
