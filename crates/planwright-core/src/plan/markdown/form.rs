//! Detects the kind of a Markdown file and reads it.

use super::blocks::{BlockKind, Blocks};
use super::cursor::read_cursor;
use super::frontmatter::{self, CURSOR_KEYS, Frontmatter, Split};
use super::read::{Reading, read_plan};
use super::section;
use super::tasks::read_tasks;
use crate::json::parse_strict;
use crate::plan::{Bounds, Code, Document, ReadPlanError, SourceLocation};

/// The kinds of Markdown a plan can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkdownForm {
    /// A plan file of ours: frontmatter and sections.
    Plan,
    /// A `*.plan.md` file: todos in the frontmatter.
    Cursor,
    /// A list of tasks.
    Tasks,
}

/// A plan read from Markdown.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadMarkdown {
    /// The document that was read.
    pub document: Document,
    /// The kind of Markdown it was read as.
    pub form: MarkdownForm,
    /// The version of the plan that the file was written from. Nothing else of what the frontmatter
    /// says about the plan's life is read.
    pub version: Option<u32>,
    /// Notices about parts that were left out or could be a surprise.
    pub notices: Vec<String>,
}

/// Reads a plan in any kind of Markdown.
pub fn from_markdown(text: &[u8], bounds: &Bounds) -> Result<ReadMarkdown, ReadPlanError> {
    read(text, None, bounds)
}

/// Reads a plan in Markdown of this kind.
pub fn from_markdown_as(
    text: &[u8],
    form: MarkdownForm,
    bounds: &Bounds,
) -> Result<ReadMarkdown, ReadPlanError> {
    read(text, Some(form), bounds)
}

fn read(
    text: &[u8],
    form: Option<MarkdownForm>,
    bounds: &Bounds,
) -> Result<ReadMarkdown, ReadPlanError> {
    let text = plain_text(text, bounds)?;
    let Split {
        yaml,
        body,
        body_line,
    } = frontmatter::split(&text)?;
    let keys = yaml.map_or_else(|| Ok(Vec::new()), |yaml| frontmatter::keys(yaml, bounds))?;
    let blocks = Blocks::of(body, body_line);
    let form = form.unwrap_or_else(|| detect(yaml.is_some(), &keys, &blocks));
    if form != MarkdownForm::Cursor {
        frontmatter::check_keys(yaml.unwrap_or_default(), &keys)?;
    }
    let matter = yaml.map_or_else(
        || Ok(Frontmatter::default()),
        |yaml| frontmatter::read(yaml, bounds),
    )?;
    let version = matter.version;
    let Reading { document, notices } = match form {
        MarkdownForm::Plan => read_plan(matter, &blocks, bounds)?,
        MarkdownForm::Cursor => read_cursor(matter, &keys, &blocks, bounds)?,
        MarkdownForm::Tasks => read_tasks(matter, &blocks, bounds)?,
    };
    Ok(ReadMarkdown {
        document,
        form,
        version,
        notices,
    })
}

/// The text with one kind of line break, if it is text and not too long.
pub(super) fn plain_text(text: &[u8], bounds: &Bounds) -> Result<String, ReadPlanError> {
    if text.len() > bounds.max_document_bytes {
        let message = format!(
            "the plan has {} bytes, at most {} are read",
            text.len(),
            bounds.max_document_bytes
        );
        return Err(ReadPlanError::at(Code::TooLarge, "", message));
    }
    let Ok(plain) = std::str::from_utf8(text) else {
        // The strict parser finds the place.
        return Err(match parse_strict(text) {
            Err(error) => error.into(),
            Ok(_) => ReadPlanError::at(Code::Syntax, "", "the text is not UTF-8"),
        });
    };
    let plain = plain.strip_prefix('\u{feff}').unwrap_or(plain);
    Ok(if plain.contains('\r') {
        plain.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        plain.to_owned()
    })
}

fn detect(has_frontmatter: bool, keys: &[String], blocks: &Blocks<'_>) -> MarkdownForm {
    if keys.iter().any(|key| CURSOR_KEYS.contains(&key.as_str())) {
        return MarkdownForm::Cursor;
    }
    let is_steps =
        |kind: &BlockKind| matches!(kind, BlockKind::Heading(2, name) if name == section::STEPS);
    let has_tasks = blocks.list.iter().any(|block| match &block.kind {
        BlockKind::List(items) => items.iter().any(|item| item.done.is_some()),
        BlockKind::Heading(..) | BlockKind::Fence(_) | BlockKind::Html | BlockKind::Text => false,
    });
    let has_steps = blocks.list.iter().any(|block| is_steps(&block.kind));
    if has_frontmatter || (has_steps && !has_tasks) {
        MarkdownForm::Plan
    } else {
        MarkdownForm::Tasks
    }
}

impl ReadPlanError {
    /// The line of the text, where it is known.
    pub fn line(&self) -> Option<usize> {
        match self.place {
            SourceLocation::Text { line, .. } => Some(line),
            SourceLocation::Pointer(_) => None,
        }
    }
}
