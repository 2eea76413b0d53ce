//! What is too large to be kept in a plan's document: moved to artifacts when it comes in, and back
//! when it goes out.

use crate::review::plans::Plans;
use crate::review::plans::ReviewError;
use planwright_core::plan::{Code, Context, Document, Finding};

impl Plans {
    /// Moves the largest parts of a large context to artifacts. References that are there already
    /// must hold: a plan that names an artifact that is not stored would have lost it.
    pub(crate) async fn settle_context(&self, document: &mut Document) -> Result<(), ReviewError> {
        self.whole_context(&document.context).await?;
        let oversized = document.context.oversized_parts();
        if oversized.is_empty() {
            return Ok(());
        }
        // An id that is made from the content must not depend on where the content is kept.
        document.number_steps();
        document.identify();
        for (name, bytes) in oversized {
            let artifact = self.context.ports.artifacts.put(bytes).await?;
            document.context.replace_with_reference(&name, artifact);
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
