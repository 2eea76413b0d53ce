//! The sections of a plan file, and the texts and lists in them.

use super::blocks::{Block, BlockKind, Blocks, Fence, Item};
use super::exact::{Exactly, is_exact, list_of, prose_of};
use super::fence::read_fence;
use super::section::{ARTIFACTS, CONTEXT, NOTES, TOOL_OUTPUTS};
use super::text::{read_line, read_prose, unescape};
use crate::plan::{Code, ReadPlanError, SourceLocation};
use serde_json::Value;
use std::ops::Range;

/// One section: what stands between its heading and the next.
#[derive(Debug)]
pub(super) struct Section<'a> {
    pub(super) name: String,
    /// 1 for a title, 2 for a section, 3 for a part of the context.
    pub(super) level: u8,
    pub(super) line: usize,
    range: Range<usize>,
    pub(super) blocks: &'a [Block],
}

/// Splits a file at its headings. What stands before the first is a section without a name.
pub(super) fn sections<'a>(blocks: &'a Blocks<'_>) -> Vec<Section<'a>> {
    let mut starts = vec![(0, String::new(), 2, 0..0)];
    let mut in_context = false;
    for (index, block) in blocks.list.iter().enumerate() {
        let BlockKind::Heading(level, raw) = &block.kind else {
            continue;
        };
        let name = unescape(raw);
        let is_part =
            *level == 3 && in_context && [TOOL_OUTPUTS, NOTES, ARTIFACTS].contains(&name.as_str());
        if *level <= 2 {
            in_context = name == CONTEXT;
        }
        if *level <= 2 || is_part {
            starts.push((index + 1, name, *level, block.range.clone()));
        }
    }
    let mut sections = Vec::with_capacity(starts.len());
    for (number, (first, name, level, heading)) in starts.iter().enumerate() {
        let next = starts.get(number + 1);
        let last = next.map_or(blocks.list.len(), |(index, ..)| index - 1);
        let end = next.map_or(blocks.source.len(), |(_, _, _, heading)| heading.start);
        sections.push(Section {
            name: name.clone(),
            level: *level,
            line: blocks.line(heading.start),
            range: heading.end..end,
            blocks: &blocks.list[*first..last],
        });
    }
    sections
}

impl Section<'_> {
    /// The text of the section, and whether it was edited so that its exact form no longer counts.
    pub(super) fn prose(&self, blocks: &Blocks<'_>) -> Result<Exactly<String>, ReadPlanError> {
        self.check_closed(blocks)?;
        let exact = self
            .blocks
            .iter()
            .rev()
            .find_map(|block| match &block.kind {
                BlockKind::Fence(fence) if is_exact(fence) => Some(fence),
                BlockKind::Heading(..)
                | BlockKind::Fence(_)
                | BlockKind::List(_)
                | BlockKind::Html
                | BlockKind::Text => None,
            });
        let end = exact.map_or(self.range.end, |fence| fence.start);
        let prose = read_prose(&blocks.source[self.range.start..end]);
        if let Some(fence) = exact
            && let Some(after) = self
                .blocks
                .iter()
                .find(|block| block.range.start > fence.start)
        {
            return Err(unexpected_line(
                blocks.line(after.range.start),
                "the exact text is the last of its section",
            ));
        }
        prose_of(prose, exact.map(|fence| (fence, blocks.line(fence.start))))
    }

    /// Returns whether nothing but empty lines is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// A fence or a comment that is never closed would swallow the sections below.
    fn check_closed(&self, blocks: &Blocks<'_>) -> Result<(), ReadPlanError> {
        for block in self.blocks {
            let line = blocks.line(block.range.start);
            match &block.kind {
                BlockKind::Fence(fence) if !fence.is_closed => {
                    return Err(refuse(
                        line,
                        "the block that begins here is never closed",
                        "end it with a fence",
                    ));
                }
                BlockKind::Html
                    if blocks.source[block.range.clone()]
                        .lines()
                        .any(|line| line.starts_with("## ")) =>
                {
                    return Err(refuse(
                        line,
                        "the HTML that begins here hides a section",
                        "close it before the section",
                    ));
                }
                BlockKind::Heading(..)
                | BlockKind::Fence(_)
                | BlockKind::List(_)
                | BlockKind::Html
                | BlockKind::Text => {}
            }
        }
        Ok(())
    }

    /// The items of the section's list, with those that `take` wants left out.
    pub(super) fn list(
        &self,
        blocks: &Blocks<'_>,
        mut take: impl FnMut(&str) -> bool,
    ) -> Result<Exactly<Vec<String>>, ReadPlanError> {
        let mut items = Vec::new();
        let mut exact = None;
        for block in self.blocks {
            let line = blocks.line(block.range.start);
            match &block.kind {
                BlockKind::List(list) => {
                    for item in list {
                        check_plain(item, blocks)?;
                        if !take(&item.text) {
                            items.push(boxed(item.done) + &read_line(&item.text));
                        }
                    }
                }
                BlockKind::Fence(fence) if is_exact(fence) && exact.is_none() => {
                    exact = Some((fence, line));
                }
                BlockKind::Heading(..)
                | BlockKind::Fence(_)
                | BlockKind::Html
                | BlockKind::Text => {
                    let what = format!("`{}` is a list: begin the line with `- `", self.name);
                    return Err(unexpected_line(line, &what));
                }
            }
        }
        list_of(items, exact)
    }

    /// The one block of JSON of the section, and its line.
    pub(super) fn json(
        &self,
        blocks: &Blocks<'_>,
    ) -> Result<Option<(Value, usize)>, ReadPlanError> {
        let mut found: Option<(&Fence, usize)> = None;
        for block in self.blocks {
            let line = blocks.line(block.range.start);
            match &block.kind {
                BlockKind::Fence(fence) if found.is_none() => found = Some((fence, line)),
                BlockKind::Fence(_)
                | BlockKind::Heading(..)
                | BlockKind::List(_)
                | BlockKind::Html
                | BlockKind::Text => {
                    let what = format!(
                        "`{}` is one block of JSON between ```json and ```",
                        self.name
                    );
                    return Err(unexpected_line(line, &what));
                }
            }
        }
        found
            .map(|(fence, line)| Ok((read_fence(fence, line)?, line)))
            .transpose()
    }
}

/// The box of a task, where it is only a part of the text.
fn boxed(done: Option<bool>) -> String {
    match done {
        None => String::new(),
        Some(true) => "[x] ".to_owned(),
        Some(false) => "[ ] ".to_owned(),
    }
}

fn check_plain(item: &Item, blocks: &Blocks<'_>) -> Result<(), ReadPlanError> {
    let fence = item.fences.first().map(|fence| fence.start);
    let child = item.children.first().map(|child| child.start);
    let rest = item.rest.first().map(|(start, _)| *start);
    match fence.or(child).or(rest) {
        None => Ok(()),
        Some(start) => Err(unexpected_line(
            blocks.line(start),
            "an item of this list is one paragraph",
        )),
    }
}

/// Something that would be lost.
pub(super) fn unexpected_line(line: usize, what: &str) -> ReadPlanError {
    refuse(line, "what stands here has no place in a plan", what)
}

pub(super) fn refuse(
    line: usize,
    message: impl Into<String>,
    suggestion: impl Into<String>,
) -> ReadPlanError {
    ReadPlanError {
        code: Code::Shape,
        place: SourceLocation::Text { line, column: 1 },
        message: message.into(),
        suggestion: Some(suggestion.into()),
    }
}
