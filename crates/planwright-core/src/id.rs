//! The names of things. An id that exists is valid: it can be a file name, a URL segment and a log
//! field.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

const MAX_LEN: usize = 64;

/// The reason a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseIdError {
    /// The text is empty.
    #[error("an id must not be empty")]
    Empty,
    /// The text has this many characters.
    #[error("an id has at most {MAX_LEN} characters, this one has {0}")]
    TooLong(usize),
    /// The first character cannot begin an id.
    #[error("an id must start with a letter or a digit{1}, not {0:?}")]
    BadStart(char, &'static str),
    /// This character cannot stand in an id.
    #[error("an id must not contain {0:?}: use letters, digits{1}")]
    BadCharacter(char, &'static str),
    /// The text ends with a dot.
    #[error("an id must not end with a dot")]
    TrailingDot,
}

fn check_id(text: &str, inside: &[char], start_underscore: bool) -> Result<(), ParseIdError> {
    let (may_start, may_contain) = if start_underscore {
        (" or `_`", ", `_` and `-`")
    } else {
        ("", ", `.`, `_` and `-`")
    };
    let first = text.chars().next().ok_or(ParseIdError::Empty)?;
    let length = text.chars().count();
    if length > MAX_LEN {
        return Err(ParseIdError::TooLong(length));
    }
    if !(first.is_ascii_alphanumeric() || start_underscore && first == '_') {
        return Err(ParseIdError::BadStart(first, may_start));
    }
    if let Some(bad) = text
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && !inside.contains(c))
    {
        return Err(ParseIdError::BadCharacter(bad, may_contain));
    }
    if text.ends_with('.') {
        return Err(ParseIdError::TrailingDot);
    }
    Ok(())
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $inside:expr, $start_underscore:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                check_id(text, $inside, $start_underscore)?;
                Ok(Self(text.into()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::parse_stored(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

id! {
    /// Names a plan in every store, file and URL.
    PlanId, &['.', '_', '-'], false
}
id! {
    /// Names one run of one plan version, `run_` and twelve random characters.
    RunId, &['.', '_', '-'], false
}
id! {
    /// Names a step within its plan. It has no dot, so that `${step.field}` is unambiguous.
    StepId, &['_', '-'], true
}

id! {
    /// Names one comment on a plan.
    CommentId, &['_', '-'], false
}

/// Folders and files that lie beside those of plans.
const RESERVED: [&str; 5] = ["archive", "artifacts", "logs", "prompts", "templates"];

/// The beginning of the names of the store's files.
const STORE: &str = "planwright.db";

impl PlanId {
    /// The id that a title makes: its letters and digits in lower case, with dashes between them.
    /// None if nothing is left of the title, or if other things of ours go by that name.
    pub fn from_title(title: &str) -> Option<Self> {
        const LONGEST: usize = 48;
        let mut id = String::new();
        for c in title.nfkd().filter(|c| !is_combining_mark(*c)) {
            match c {
                _ if c.is_ascii_alphanumeric() => id.push(c.to_ascii_lowercase()),
                _ if id.ends_with('-') || id.is_empty() => {}
                _ => id.push('-'),
            }
            if id.len() == LONGEST {
                break;
            }
        }
        let id: Self = id.trim_end_matches('-').parse().ok()?;
        (!id.is_reserved()).then_some(id)
    }

    /// Returns whether something else of ours has this name where the files of plans are kept. No
    /// plan can be given such an id; one that has it from earlier has no files.
    pub fn is_reserved(&self) -> bool {
        // Some file systems do not tell upper from lower case.
        let name = self.0.to_ascii_lowercase();
        RESERVED.contains(&name.as_str()) || name.starts_with(STORE)
    }

    fn parse_stored(text: &str) -> Result<Self, ParseIdError> {
        text.parse()
    }
}

impl RunId {
    fn parse_stored(text: &str) -> Result<Self, ParseIdError> {
        text.parse()
    }
}

impl CommentId {
    fn parse_stored(text: &str) -> Result<Self, ParseIdError> {
        text.parse()
    }

    /// Makes an id for a comment. The caller brings the randomness.
    pub fn mint(entropy: u64) -> Self {
        Self(mint_text("c-", entropy, 8).into())
    }
}

impl StepId {
    /// Parses an id that a journal may name: a step of the plan, or an instance that a run made of
    /// it. Authors cannot write the latter, so the two never meet.
    fn parse_stored(text: &str) -> Result<Self, ParseIdError> {
        match split_instance(text) {
            Some((step, index)) => Ok(step.parse::<Self>()?.instance(index)),
            None => text.parse(),
        }
    }

    /// Names the instance of this step for one element of the list it runs over.
    #[must_use]
    pub fn instance(&self, index: u32) -> Self {
        Self(format!("{self}[{index}]").into())
    }
}

/// The step and the element's number in `step[3]`. Written in one way only: no sign, no leading
/// zeros.
pub fn split_instance(text: &str) -> Option<(&str, u32)> {
    let (step, digits) = text.strip_suffix(']')?.split_once('[')?;
    let index: u32 = digits.parse().ok()?;
    (index.to_string() == digits).then_some((step, index))
}

/// Reads the id of a step as authors may write it.
pub(crate) fn deserialize_step_id<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<StepId, D::Error> {
    String::deserialize(deserializer)?
        .parse()
        .map_err(serde::de::Error::custom)
}

/// Reads ids of steps as authors may write them.
pub(crate) mod deserialize_step_ids {
    use super::{Deserialize as _, Deserializer, StepId, Written};

    pub(crate) fn optional<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<StepId>, D::Error> {
        Ok(Option::<Written>::deserialize(deserializer)?.map(|written| written.0))
    }

    pub(crate) fn list<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<StepId>, D::Error> {
        Ok(Vec::<Written>::deserialize(deserializer)?
            .into_iter()
            .map(|written| written.0)
            .collect())
    }
}

#[derive(Deserialize)]
struct Written(#[serde(deserialize_with = "deserialize_step_id")] StepId);

/// The lower-case base32 alphabet of RFC 4648: no character is mistaken for another in a path or a
/// URL.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

fn mint_text(prefix: &str, entropy: u64, characters: u32) -> String {
    let tail = (0..characters).map(|i| char::from(ALPHABET[(entropy >> (5 * i) & 31) as usize]));
    prefix.chars().chain(tail).collect()
}

impl PlanId {
    /// Makes an id for a plan that came without one. The caller brings the randomness.
    pub fn mint(entropy: u64) -> Self {
        Self(mint_text("plan-", entropy, 8).into())
    }
}

impl RunId {
    /// Makes an id for a run. The caller brings the randomness.
    pub fn mint(entropy: u64) -> Self {
        Self(mint_text("run_", entropy, 12).into())
    }
}

/// Counts the attempts of a step from 1.
pub type AttemptNo = u32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_makes_an_id_or_none() {
        let id = |title: &str| PlanId::from_title(title).map(|id| id.to_string());
        assert_eq!(id("My first plan").as_deref(), Some("my-first-plan"));
        assert_eq!(id("  Éxito: 2024/07! ").as_deref(), Some("exito-2024-07"));
        assert_eq!(id("计划"), None);
        assert_eq!(id("Archive"), None);
        let long = id(&"word ".repeat(40)).unwrap();
        assert!(long.len() <= 48 && !long.ends_with('-'), "{long}");
    }

    #[test]
    fn hostile_plan_ids_are_rejected() {
        for bad in [
            "",
            "../escaped",
            "a/../../b",
            "a\0",
            ".hidden",
            "-flag",
            "a b",
            "é",
            "trailing.",
            "a\\b",
        ] {
            assert!(bad.parse::<PlanId>().is_err(), "{bad:?} was accepted");
        }
        assert_eq!(
            "x".repeat(65).parse::<PlanId>(),
            Err(ParseIdError::TooLong(65))
        );
        for good in ["PLAN-a1b2c3d4", "refactor-auth-001", "1", "a.b_c-d"] {
            assert!(good.parse::<PlanId>().is_ok(), "{good:?} was rejected");
        }
    }

    #[test]
    fn step_ids_have_no_dots() {
        assert!("a.b".parse::<StepId>().is_err());
        assert!("step_1".parse::<StepId>().is_ok());
        assert!("_private".parse::<StepId>().is_ok());
    }

    #[test]
    fn an_instance_is_named_in_one_way_and_by_no_author() {
        let step: StepId = "fetch".parse().unwrap();
        assert_eq!(step.instance(12).as_str(), "fetch[12]");
        assert_eq!(split_instance("fetch[12]"), Some(("fetch", 12)));
        assert!("fetch[12]".parse::<StepId>().is_err());
        assert_eq!(
            serde_json::from_str::<StepId>("\"fetch[12]\"").unwrap(),
            step.instance(12)
        );
        for bad in [
            "fetch[01]",
            "fetch[-1]",
            "fetch[+1]",
            "fetch[]",
            "fetch[1",
            "fetch[1][2]",
            "[1]",
            "../x[1]",
        ] {
            assert!(
                serde_json::from_value::<StepId>(bad.into()).is_err(),
                "{bad:?} was read"
            );
        }
    }

    #[test]
    fn minted_ids_are_valid() {
        assert_eq!(PlanId::mint(0).as_str(), "plan-aaaaaaaa");
        assert!(PlanId::mint(u64::MAX).as_str().parse::<PlanId>().is_ok());
        assert!(RunId::mint(u64::MAX).as_str().parse::<RunId>().is_ok());
    }
}
