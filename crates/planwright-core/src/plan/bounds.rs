//! Limits on the size of a plan. Everything has a limit.

/// The limits a document is read and checked under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of the whole document.
    pub max_document_bytes: usize,
    /// Number of steps.
    pub max_steps: usize,
    /// Edges, declared and referenced together.
    pub max_edges: usize,
    /// Levels of lists and objects within each other.
    pub max_depth: usize,
    /// Bytes of one title, note, prompt or other text for people and models. Arguments are bounded
    /// by the document.
    pub max_text: usize,
    /// Bytes of one step's arguments once its references are put in.
    pub max_resolved_bytes: usize,
}

impl Default for Bounds {
    /// For plans the operator's own people write.
    fn default() -> Self {
        Self {
            max_document_bytes: 32 << 20,
            max_steps: 100_000,
            max_edges: 1_000_000,
            max_depth: 64,
            max_text: 64 << 10,
            max_resolved_bytes: 64 << 20,
        }
    }
}

impl Bounds {
    /// For plans that come over the network or from a model.
    pub fn for_untrusted() -> Self {
        Self {
            max_document_bytes: 1 << 20,
            max_steps: 1_000,
            max_edges: 10_000,
            ..Self::default()
        }
    }
}
