//! Text that people read: made safe to show, and names they may have meant.

mod nearest;
mod printable;
mod reveal;
mod wildcard;

pub(crate) use nearest::did_you_mean;
pub use nearest::nearest_names;
pub(crate) use printable::is_invisible;
pub use printable::{escape_invisible, escape_invisible_json, sanitize_line};
pub use reveal::reveal_hidden;
pub(crate) use reveal::{reveal_around_words, spell_brackets};
pub(crate) use wildcard::{Wildcard, matches_stars};
