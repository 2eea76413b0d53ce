//! The blocks of a Markdown text, with the places they stand at. Only headings, fences and lists
//! matter; everything else is text. Texts are slices of the source: the author's text is taken as
//! it stands there.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most of what Markdown knows means nothing here"
)]

use pulldown_cmark::{
    CodeBlockKind, Event, HeadingLevel, OffsetIter, Options, Parser, Tag, TagEnd,
};
use std::ops::Range;

/// Levels of lists within lists that are read. Items below are only text.
const MAX_LIST_DEPTH: usize = 16;

/// A Markdown text and its blocks on the outermost level.
#[derive(Debug)]
pub(super) struct Blocks<'a> {
    pub(super) source: &'a str,
    pub(super) list: Vec<Block>,
    /// The number of the first line, counted from 1.
    first_line: usize,
    line_starts: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct Block {
    pub(super) range: Range<usize>,
    pub(super) kind: BlockKind,
}

#[derive(Debug)]
pub(super) enum BlockKind {
    /// Its level, and its text as it is written.
    Heading(u8, String),
    Fence(Fence),
    List(Vec<Item>),
    Html,
    Text,
}

/// A fenced block.
#[derive(Debug, Clone)]
pub(super) struct Fence {
    pub(super) start: usize,
    /// The words after the opening fence.
    pub(super) info: String,
    pub(super) content: String,
    pub(super) is_closed: bool,
}

/// An item of a list.
#[derive(Debug, Default)]
pub(super) struct Item {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Of a task, whether it is done.
    pub(super) done: Option<bool>,
    /// Its first paragraph, as it is written.
    pub(super) text: String,
    pub(super) fences: Vec<Fence>,
    pub(super) children: Vec<Self>,
    /// Offset and text of everything else in the item.
    pub(super) rest: Vec<(usize, String)>,
}

impl<'a> Blocks<'a> {
    /// `first_line` is where `source` begins in the file.
    pub(super) fn of(source: &'a str, first_line: usize) -> Self {
        let starts = source
            .bytes()
            .enumerate()
            .filter(|(_, byte)| *byte == b'\n')
            .map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(starts).collect();
        let events = Parser::new_ext(source, Options::ENABLE_TASKLISTS).into_offset_iter();
        let list = Reader { source, events }.blocks();
        Self {
            source,
            list,
            first_line,
            line_starts,
        }
    }

    /// The line of the file that `offset` is in.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.first_line + self.line_starts.partition_point(|start| *start <= offset) - 1
    }
}

struct Reader<'a> {
    source: &'a str,
    events: OffsetIter<'a>,
}

impl Reader<'_> {
    fn blocks(mut self) -> Vec<Block> {
        let mut blocks = Vec::new();
        while let Some((event, range)) = self.events.next() {
            let kind = match event {
                Event::Start(Tag::Heading { level, .. }) => {
                    self.pass_over();
                    BlockKind::Heading(number(level), heading_text(&self.source[range.clone()]))
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                    BlockKind::Fence(self.fence(&info, &range))
                }
                Event::Start(Tag::List(_)) => BlockKind::List(self.items(0)),
                Event::Start(Tag::HtmlBlock) => {
                    self.pass_over();
                    BlockKind::Html
                }
                Event::Start(_) => {
                    self.pass_over();
                    BlockKind::Text
                }
                _ => BlockKind::Text,
            };
            blocks.push(Block { range, kind });
        }
        blocks
    }

    /// Passes over the rest of what has just begun.
    fn pass_over(&mut self) {
        let mut depth = 1;
        while depth > 0 {
            match self.events.next() {
                Some((Event::Start(_), _)) => depth += 1,
                Some((Event::End(_), _)) => depth -= 1,
                Some(_) => {}
                None => return,
            }
        }
    }

    fn fence(&mut self, info: &str, range: &Range<usize>) -> Fence {
        let mut content = String::new();
        for (event, _) in self.events.by_ref() {
            match event {
                Event::Text(text) => content.push_str(&text),
                Event::End(_) => break,
                _ => {}
            }
        }
        let raw = self.source[range.clone()].trim_end();
        let mark = raw.trim_start().chars().next().unwrap_or('`');
        let last = raw.lines().skip(1).last().unwrap_or_default().trim();
        let is_closed = last.len() >= 3 && last.chars().all(|c| c == mark);
        Fence {
            start: range.start,
            info: info.trim().to_owned(),
            content,
            is_closed,
        }
    }

    /// The items of the list that has just begun.
    fn items(&mut self, depth: usize) -> Vec<Item> {
        let mut items = Vec::new();
        while let Some((event, range)) = self.events.next() {
            match event {
                Event::Start(Tag::Item) => items.push(self.item(&range, depth)),
                Event::End(TagEnd::List(_)) => break,
                _ => {}
            }
        }
        items
    }

    fn item(&mut self, range: &Range<usize>, depth: usize) -> Item {
        let mut item = Item {
            start: range.start,
            end: range.end,
            ..Item::default()
        };
        let mut text = range.start + marker_length(&self.source[range.clone()])..range.end;
        let mut ended = false;
        let mut has_paragraph = false;
        while let Some((event, child)) = self.events.next() {
            let is_block = match event {
                Event::TaskListMarker(done) => {
                    item.done = Some(done);
                    text.start = child.end;
                    false
                }
                Event::End(TagEnd::Item) => break,
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                    item.fences.push(self.fence(&info, &child));
                    true
                }
                Event::Start(Tag::List(_)) if depth < MAX_LIST_DEPTH => {
                    item.children.extend(self.items(depth + 1));
                    true
                }
                Event::Start(Tag::Paragraph) if !has_paragraph && !ended => {
                    has_paragraph = true;
                    self.paragraph(&mut item, &mut text);
                    false
                }
                Event::Start(
                    Tag::Paragraph
                    | Tag::Heading { .. }
                    | Tag::BlockQuote(_)
                    | Tag::CodeBlock(_)
                    | Tag::HtmlBlock
                    | Tag::List(_),
                ) => {
                    self.pass_over();
                    item.rest
                        .push((child.start, self.source[child.clone()].trim().to_owned()));
                    true
                }
                Event::Start(_) => {
                    self.pass_over();
                    false
                }
                Event::Rule => {
                    item.rest
                        .push((child.start, self.source[child.clone()].trim().to_owned()));
                    true
                }
                _ => false,
            };
            if is_block && !ended {
                ended = true;
                text.end = child.start.clamp(text.start.min(range.end), range.end);
            }
        }
        item.text = self.source.get(text).unwrap_or_default().trim().to_owned();
        item
    }

    /// The first paragraph of an item with empty lines in it: a task's mark is inside.
    fn paragraph(&mut self, item: &mut Item, text: &mut Range<usize>) {
        let mut depth = 1;
        while depth > 0 {
            match self.events.next() {
                Some((Event::TaskListMarker(done), range)) => {
                    item.done = Some(done);
                    text.start = range.end;
                }
                Some((Event::Start(_), _)) => depth += 1,
                Some((Event::End(_), _)) => depth -= 1,
                Some(_) => {}
                None => return,
            }
        }
    }
}

fn number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

/// Returns the text of a heading, without its marks or the line below it.
fn heading_text(raw: &str) -> String {
    let raw = raw.trim();
    if !raw.starts_with('#') {
        let above = raw.rsplit_once('\n').map_or(raw, |(above, _)| above);
        return above.trim().to_owned();
    }
    let text = raw.trim_start_matches('#').trim();
    let open = text.trim_end_matches('#');
    let text = if open.is_empty() || open.ends_with(' ') {
        open.trim_end()
    } else {
        text
    };
    text.to_owned()
}

/// Returns the length of an item's mark with the spaces after it.
fn marker_length(item: &str) -> usize {
    let digits = item.bytes().take_while(u8::is_ascii_digit).count();
    let mark = (digits + 1).min(item.len());
    let spaces = item.as_bytes()[mark..]
        .iter()
        .take_while(|byte| **byte == b' ')
        .count();
    mark + spaces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(source: &str) -> Vec<Item> {
        let blocks = Blocks::of(source, 1);
        blocks
            .list
            .into_iter()
            .find_map(|block| match block.kind {
                BlockKind::List(items) => Some(items),
                _ => None,
            })
            .unwrap()
    }

    #[test]
    fn headings_fences_and_lists_are_found_with_their_lines() {
        let source = "# One #\n\ntext\n\nTwo\n---\n\n```json exact\n{\n```\n\n- a\n- b\n";
        let blocks = Blocks::of(source, 10);
        let lines: Vec<usize> = blocks
            .list
            .iter()
            .map(|block| blocks.line(block.range.start))
            .collect();
        assert_eq!(lines, [10, 12, 14, 17, 21]);
        assert!(matches!(&blocks.list[0].kind, BlockKind::Heading(1, text) if text == "One"));
        assert!(matches!(&blocks.list[2].kind, BlockKind::Heading(2, text) if text == "Two"));
        let BlockKind::Fence(fence) = &blocks.list[3].kind else {
            panic!("{blocks:?}")
        };
        assert_eq!(
            (fence.info.as_str(), fence.content.as_str(), fence.is_closed),
            ("json exact", "{\n", true)
        );
    }

    #[test]
    fn an_item_is_its_text_its_fences_its_children_and_the_rest() {
        let source = "1. \\*a (b)\n   c\n\n   ```json\n   {}\n   ```\n\n   more\n10. [x] d\n    - e\n\n      f\n";
        let items = items(source);
        assert_eq!(items[0].text, "\\*a (b)\n   c");
        assert_eq!(items[0].fences[0].content, "{}\n");
        assert_eq!(items[0].rest[0].1, "more");
        assert_eq!((items[1].text.as_str(), items[1].done), ("d", Some(true)));
        assert_eq!(items[1].children[0].text, "e");
    }

    #[test]
    fn tasks_empty_items_and_deep_lists_are_read() {
        let read = items("- [ ] a\n-\n- **b** `c`\n");
        assert_eq!(
            read.iter()
                .map(|item| item.text.as_str())
                .collect::<Vec<_>>(),
            ["a", "", "**b** `c`"]
        );
        assert_eq!(read[0].done, Some(false));
        let deep = items(&format!("{}x", "- ".repeat(10_000)));
        assert_eq!(deep.len(), 1);
    }

    #[test]
    fn an_open_fence_is_told_from_a_closed_one() {
        for (source, closed) in [
            ("```\nx\n```\n", true),
            ("```\nx\n", false),
            ("~~~\n```\n", false),
            ("```", false),
        ] {
            let blocks = Blocks::of(source, 1);
            let BlockKind::Fence(fence) = &blocks.list[0].kind else {
                panic!("{blocks:?}")
            };
            assert_eq!(fence.is_closed, closed, "{source}");
        }
    }
}
