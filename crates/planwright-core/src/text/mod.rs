//! Text that people read: made safe to show, and names they may have meant.

mod nearest;
mod printable;

pub(crate) use nearest::did_you_mean;
pub use nearest::nearest_names;
pub(crate) use printable::is_invisible;
pub use printable::{escape_invisible, sanitize_line};
