//! The reasons a change cannot be made.

/// A change that cannot be made. The document is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// No step has this id or position.
    #[error("there is no step `{name}`")]
    NoSuchStep {
        /// The step as the edit names it.
        name: String,
        /// A step that was probably meant.
        suggestion: Option<String>,
    },
    /// A path cannot be read.
    #[error("`{path}` is not a path: {reason}")]
    BadPath {
        /// The path as it was written.
        path: String,
        /// The problem with it.
        reason: &'static str,
    },
    /// The path leads to nothing.
    #[error("there is nothing at `{path}`")]
    NothingThere {
        /// The path as it was written.
        path: String,
        /// A key that was probably meant.
        suggestion: Option<String>,
    },
    /// The value cannot stand at this path.
    #[error("`{path}` cannot be set: {reason}")]
    CannotHold {
        /// The path as it was written.
        path: String,
        /// The reason it cannot.
        reason: String,
        /// A remedy, where one is known.
        suggestion: Option<String>,
    },
    /// The id of a plan cannot be changed.
    #[error("the id of a plan cannot be changed: it is what its journal goes by")]
    FixedId,
    /// Other steps need the step that is removed.
    #[error("step `{step}` cannot be removed: {} it", needed_by(.by))]
    Needed {
        /// The step that would be removed.
        step: String,
        /// The steps that need it.
        by: Vec<String>,
    },
    /// The step would stand before a step it needs.
    #[error(
        "step `{step}` cannot stand there: it needs step `{dependency}`, which would come after it"
    )]
    BeforeDependency {
        /// The step that is placed.
        step: String,
        /// The step it needs.
        dependency: String,
    },
    /// The step would stand after a step that needs it.
    #[error(
        "step `{step}` cannot stand there: step `{dependant}` needs it and would come before it"
    )]
    AfterDependant {
        /// The step that is placed.
        step: String,
        /// The step that needs it.
        dependant: String,
    },
    /// A step of this id exists.
    #[error("there is a step `{0}` already")]
    DuplicateStep(String),
    /// The position cannot be used, in words.
    #[error("{0}")]
    BadPlace(String),
    /// The edit has too many changes.
    #[error("the edit has {found} changes, at most {limit} are made at once")]
    TooMany {
        /// Number of changes in the edit.
        found: usize,
        /// Most changes in one edit.
        limit: usize,
    },
    /// The edited document would exceed its bounds, in words.
    #[error("the edited plan would be too large: {0}")]
    TooLarge(String),
}

impl EditError {
    /// Returns a suggestion for the author.
    pub fn suggest(&self) -> Option<String> {
        match self {
            Self::NoSuchStep { suggestion, .. }
            | Self::NothingThere { suggestion, .. }
            | Self::CannotHold { suggestion, .. } => suggestion.clone(),
            Self::BadPath { .. } => Some("write it like `steps.fetch.args.path`".to_owned()),
            Self::Needed { .. } => Some(
                "remove those steps too, change what they need, or skip the step instead"
                    .to_owned(),
            ),
            Self::BeforeDependency { .. } | Self::AfterDependant { .. } => {
                Some("steps are written in the order in which they can run".to_owned())
            }
            Self::FixedId
            | Self::DuplicateStep(_)
            | Self::BadPlace(_)
            | Self::TooMany { .. }
            | Self::TooLarge(_) => None,
        }
    }
}

/// `step a needs`, `steps a and b need`, with the rest counted.
fn needed_by(steps: &[String]) -> String {
    const SHOWN: usize = 10;
    let quoted: Vec<String> = steps
        .iter()
        .take(SHOWN)
        .map(|step| format!("`{step}`"))
        .collect();
    match steps.len() {
        1 => format!("step {} needs", quoted.join("")),
        count if count > SHOWN => format!(
            "steps {} and {} more need",
            quoted.join(", "),
            count - SHOWN
        ),
        _ => format!("steps {} need", quoted.join(", ")),
    }
}
