//! Comments and lines, read as text.

use super::count::{FileLengths, Share, per};
use super::source::{CrateSource, SourceFile};
use std::path::PathBuf;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

const NAMELESS: &[&str] = &["somebody", "nobody", "whoever", "whatever"];
const QUESTION_WORDS: &[&str] = &["what", "whether", "how", "who"];
/// A line of this many characters or more is long.
const LONG_LINE: usize = 90;

/// Counts of the text of many files.
#[derive(Debug, Clone, Default)]
pub(super) struct TextCounts {
    /// Lines that are neither empty nor comments.
    pub(super) code: usize,
    pub(super) lines: usize,
    pub(super) long_lines: usize,
    words: usize,
    nameless: usize,
    doc_comments: usize,
    doc_questions: usize,
    inner_comments: usize,
    files: Vec<(usize, PathBuf)>,
}

impl TextCounts {
    pub(super) fn of<'a>(files: impl IntoIterator<Item = &'a SourceFile>) -> Self {
        let mut counts = Self::default();
        files.into_iter().for_each(|file| counts.add(file));
        counts
    }

    pub(super) fn of_sources(crates: &[CrateSource]) -> Self {
        Self::of(crates.iter().flat_map(|krate| &krate.src))
    }

    /// Words that say of a person only that there is one, for each 1,000 words of comments.
    pub(super) fn nameless_per_thousand_words(&self) -> f64 {
        per(self.nameless, self.words, 1000.0)
    }

    /// Doc comments that open with a question word.
    pub(super) fn doc_questions(&self) -> Share {
        Share {
            part: self.doc_questions,
            whole: self.doc_comments,
        }
    }

    /// Comments inside functions, for each 100 lines of code.
    pub(super) fn inner_comments_per_hundred_lines(&self) -> f64 {
        per(self.inner_comments, self.code, 100.0)
    }

    pub(super) fn long_lines(&self) -> Share {
        Share {
            part: self.long_lines,
            whole: self.lines,
        }
    }

    pub(super) fn file_lengths(&self) -> FileLengths {
        FileLengths::of(self.files.clone())
    }

    fn add(&mut self, file: &SourceFile) {
        let bodies = function_bodies(&file.syntax);
        let mut previous = LineKind::Code;
        let mut lines = 0;
        for (index, line) in file.text.lines().enumerate() {
            lines += 1;
            self.long_lines += usize::from(line.chars().count() >= LONG_LINE);
            let (kind, comment) = read_line(line);
            match kind {
                LineKind::Code => self.code += 1,
                LineKind::Doc | LineKind::Plain => self.read_comment(comment),
                LineKind::Empty => {}
            }
            // A comment of several lines is one comment.
            if kind == LineKind::Doc && previous != LineKind::Doc {
                self.doc_comments += 1;
                self.doc_questions += usize::from(opens_with_question(comment));
            }
            let is_inside = bodies
                .iter()
                .any(|(from, to)| (*from..=*to).contains(&(index + 1)));
            if kind == LineKind::Plain && previous != LineKind::Plain && is_inside {
                self.inner_comments += 1;
            }
            previous = kind;
        }
        self.lines += lines;
        self.files.push((lines, file.path.clone()));
    }

    fn read_comment(&mut self, comment: &str) {
        for word in comment.split(|letter: char| !letter.is_alphanumeric() && letter != '\'') {
            let word = word.to_lowercase();
            self.words += usize::from(!word.is_empty());
            self.nameless += usize::from(NAMELESS.contains(&word.as_str()));
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    Code,
    Doc,
    Plain,
    Empty,
}

fn read_line(line: &str) -> (LineKind, &str) {
    let line = line.trim_start();
    if line.is_empty() {
        return (LineKind::Empty, line);
    }
    let doc = line
        .strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"));
    if let Some(comment) = doc {
        return (LineKind::Doc, comment);
    }
    match line.strip_prefix("//") {
        Some(comment) => (LineKind::Plain, comment),
        None => (LineKind::Code, line),
    }
}

fn opens_with_question(comment: &str) -> bool {
    let word = comment.split_whitespace().next().unwrap_or_default();
    QUESTION_WORDS.contains(&word.to_lowercase().as_str())
}

/// Lists the first and last line of every function's body.
fn function_bodies(file: &syn::File) -> Vec<(usize, usize)> {
    #[derive(Default)]
    struct Bodies(Vec<(usize, usize)>);
    impl Bodies {
        fn add(&mut self, block: &syn::Block) {
            let span = block.span();
            self.0.push((span.start().line, span.end().line));
        }
    }
    impl<'a> Visit<'a> for Bodies {
        fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
            self.add(&function.block);
            visit::visit_item_fn(self, function);
        }
        fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
            self.add(&function.block);
            visit::visit_impl_item_fn(self, function);
        }
        fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
            if let Some(block) = &function.default {
                self.add(block);
            }
            visit::visit_trait_item_fn(self, function);
        }
    }
    let mut bodies = Bodies::default();
    bodies.visit_file(file);
    bodies.0
}
