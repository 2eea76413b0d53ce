//! The reasons a change cannot be made.

/// A change that cannot be made. The document is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("there is no step `{name}`")]
    NoSuchStep {
        name: String,
        suggestion: Option<String>,
    },
    #[error("`{path}` is not a path: {reason}")]
    BadPath { path: String, reason: &'static str },
    #[error("there is nothing at `{path}`")]
    NothingThere {
        path: String,
        suggestion: Option<String>,
    },
    #[error("`{path}` cannot be set: {reason}")]
    CannotHold {
        path: String,
        reason: String,
        suggestion: Option<String>,
    },
    #[error("the id of a plan cannot be changed: it is what its journal goes by")]
    FixedId,
    #[error("step `{step}` cannot be removed: {} it", needed_by(.by))]
    Needed { step: String, by: Vec<String> },
    #[error(
        "step `{step}` cannot stand there: it needs step `{dependency}`, which would come after it"
    )]
    BeforeDependency { step: String, dependency: String },
    #[error(
        "step `{step}` cannot stand there: step `{dependant}` needs it and would come before it"
    )]
    AfterDependant { step: String, dependant: String },
    #[error("there is a step `{0}` already")]
    DuplicateStep(String),
    #[error("{0}")]
    BadPlace(String),
    #[error("the edit has {found} changes, at most {limit} are made at once")]
    TooMany { found: usize, limit: usize },
    #[error("the edited plan would be too large: {0}")]
    TooLarge(String),
}

impl EditError {
    /// Returns a suggestion for the author.
    pub fn hint(&self) -> Option<String> {
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
