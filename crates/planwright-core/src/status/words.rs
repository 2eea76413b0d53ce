//! Enums whose variants are words that other programs know.

/// A text that is none of the words of a lifecycle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no known status")]
pub struct UnknownStatus(pub String);

/// Declares an enum together with the word of each variant, so that the two cannot drift apart:
/// `as_str`, `FromStr`, `Display` and serde all use the same word.
macro_rules! status_words {
    (
        $(#[$of_enum:meta])*
        pub enum $Name:ident {
            $($(#[$of_variant:meta])* $Variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$of_enum])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Name {
            $($(#[$of_variant])* $Variant,)+
        }

        impl $Name {
            /// Every status, in the order of a life.
            pub const ALL: &[Self] = &[$(Self::$Variant),+];

            /// Returns the word that other programs know.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $Name {
            type Err = $crate::status::UnknownStatus;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                let known = Self::ALL.iter().find(|status| status.as_str() == word);
                known
                    .copied()
                    .ok_or_else(|| $crate::status::UnknownStatus(word.to_owned()))
            }
        }

        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str>>::deserialize(from)?;
                word.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use status_words;
