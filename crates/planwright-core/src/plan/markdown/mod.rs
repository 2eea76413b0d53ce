//! A plan as a Markdown file, both ways: frontmatter for programs, sections for people.
//!
//! A written plan can be read back without loss, and an edit of what people see is taken. Blocks
//! of JSON hold what the visible text does not say. A text that prose cannot carry (control
//! characters, line breaks in a list) is kept exactly in such a block besides; it counts only while
//! the prose still reads as that text would, so that an edit of the prose wins. Plans of other
//! programs are read too: lists of tasks, and `*.plan.md` files with todos.

mod blocks;
mod cursor;
mod exact;
mod fence;
mod form;
mod frontmatter;
mod prose;
mod read;
mod section;
mod sections;
mod step;
mod stored;
mod tasks;
mod text;
mod write;

pub use cursor::to_cursor;
pub use form::{MarkdownForm, ReadMarkdown, from_markdown, from_markdown_as};
pub use prose::{plan_of_prose, steps_of_markdown};
pub use write::{MarkdownMeta, MarkdownRejection, to_markdown};
