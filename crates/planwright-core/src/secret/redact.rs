//! Finds secrets in everything that comes back, and masks them.

use super::forms::{self, Form};
use super::text::{is_blank, is_hidden};
use super::view::{Escape, View};
use super::{SecretName, SecretText};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Masks secrets by value. Without secrets it does nothing and costs nothing.
#[derive(Default)]
pub struct Redactor {
    /// The text put in place of each secret.
    masks: Vec<String>,
    /// Finds spellings as they stand.
    exact: Option<Finder>,
    /// Finds the spellings of long secrets where all white space is left out.
    squeezed: Option<Finder>,
    reach: usize,
}

struct Finder {
    automaton: AhoCorasick,
    /// By pattern: whose it is, and what of its surroundings it takes along.
    forms: Vec<(usize, Form, bool)>,
}

/// A place that must not be shown, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) range: Range<usize>,
    secret: usize,
}

/// Masking can only bring a secret into being if the secret is a piece of a mask. Even that ends
/// here.
const MAX_PASSES: usize = 4;
/// Texts are searched piece by piece, so that views of them stay small.
const WINDOW: usize = 1 << 20;
/// The most characters that spell one byte: `&#x0000041;`.
const LONGEST_ESCAPE: usize = 12;

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} secrets)", self.masks.len())
    }
}

impl Redactor {
    /// Looks for all of these. A name may come with several values, when a secret was changed on
    /// the way.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a SecretName, &'a SecretText)>) -> Self {
        let mut exact = BTreeMap::new();
        let mut squeezed = BTreeMap::new();
        let mut masks = Vec::new();
        let mut longest = 0;
        for (index, (name, secret)) in secrets.into_iter().enumerate() {
            for text in forms::searched_texts(secret.expose()) {
                longest = longest.max(text.len());
                let long = forms::is_long(text);
                exact.extend(
                    forms::exact_forms(text)
                        .into_iter()
                        .map(|form| (form, (index, long))),
                );
                if long {
                    squeezed.extend(
                        forms::squeezed_forms(text)
                            .into_iter()
                            .map(|form| (form, (index, long))),
                    );
                }
            }
            masks.push(format!("[secret {name}]"));
        }
        let mut redactor = Self {
            masks: Vec::new(),
            exact: Finder::new(exact),
            squeezed: Finder::new(squeezed),
            reach: longest * LONGEST_ESCAPE,
        };
        // A mask that holds a secret would give it away.
        redactor.masks = masks
            .into_iter()
            .map(|mask| redactor.harmless_mask(mask))
            .collect();
        redactor
    }

    /// Returns whether there are no secrets to look for.
    pub fn is_empty(&self) -> bool {
        self.exact.is_none()
    }

    /// The longest stretch of a text that a secret can take up.
    pub(super) fn reach(&self) -> usize {
        self.reach
    }

    /// Returns whether a secret is in there.
    pub fn finds(&self, bytes: &[u8]) -> bool {
        !self.find(bytes, false).is_empty()
    }

    /// Masks secrets in a text.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = Cow::Borrowed(text);
        for _ in 0..MAX_PASSES {
            let found = self.find(masked.as_bytes(), false);
            if found.is_empty() {
                return masked;
            }
            masked = Cow::Owned(self.mask_text(&masked, &found));
        }
        Cow::Owned(self.harmless_mask("[hidden]".to_owned()))
    }

    /// Masks secrets in bytes.
    pub fn bytes(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        for _ in 0..MAX_PASSES {
            let found = self.find(&bytes, false);
            if found.is_empty() {
                return bytes;
            }
            bytes = self.mask(&bytes, &found);
        }
        self.harmless_mask("[hidden]".to_owned()).into_bytes()
    }

    /// Masks texts, keys and numbers, also where a secret is spread over neighbouring ones.
    pub fn value(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        for _ in 0..MAX_PASSES {
            let found = self.find_in_leaves(&leaves(value));
            if found.iter().all(Vec::is_empty) {
                return;
            }
            let mut masked = LeafMasker {
                redactor: self,
                found: found.into_iter(),
            };
            masked.value(value);
        }
        *value = Value::String(self.harmless_mask("[hidden]".to_owned()));
    }

    fn harmless_mask(&self, mask: String) -> String {
        [mask, "[hidden]".to_owned()]
            .into_iter()
            .find(|mask| !self.finds(mask.as_bytes()))
            .unwrap_or_default()
    }

    /// All places, in order and apart from each other. With `joined`, the text is made of pieces,
    /// and only what chance does not produce counts.
    pub(super) fn find(&self, bytes: &[u8], joined: bool) -> Vec<Found> {
        let mut found = Vec::new();
        if self.is_empty() {
            return found;
        }
        let mut start = 0;
        loop {
            let end = bytes.len().min(start + WINDOW + 2 * self.reach);
            let window = &bytes[start..end];
            let offset = |found: Found| Found {
                range: found.range.start + start..found.range.end + start,
                ..found
            };
            let mut inside = Vec::new();
            self.find_in_window(window, joined, &mut inside);
            found.extend(inside.into_iter().map(offset));
            if end == bytes.len() {
                return merge_overlapping(found);
            }
            start += WINDOW;
        }
    }

    fn find_in_window(&self, window: &[u8], joined: bool, found: &mut Vec<Found>) {
        const NESTED: [Escape; 3] = [Escape::Percent, Escape::Backslash, Escape::Entity];
        let whole = View::new(window);
        self.find_in_view(&whole, window, joined, found);
        for first in NESTED {
            let Some(once) = whole.unescape(first) else {
                continue;
            };
            self.find_in_view(&once, window, joined, found);
            for twice in NESTED
                .into_iter()
                .filter_map(|second| once.unescape(second))
            {
                self.find_in_view(&twice, window, joined, found);
            }
        }
        if let Some(view) = whole.unescape(Escape::Printable) {
            self.find_in_view(&view, window, joined, found);
        }
    }

    fn find_in_view(&self, view: &View, window: &[u8], joined: bool, found: &mut Vec<Found>) {
        if let Some(exact) = &self.exact {
            exact.find(view, window, joined, found);
            if let Some(visible) = view.without_chars(is_hidden) {
                exact.find(&visible, window, joined, found);
            }
        }
        if let Some(squeezed) = &self.squeezed {
            let dense = view.without_chars(is_blank);
            squeezed.find(dense.as_ref().unwrap_or(view), window, joined, found);
        }
    }

    /// Per leaf, what must not be shown of it.
    fn find_in_leaves(&self, leaves: &[Leaf<'_>]) -> Vec<Vec<Found>> {
        let mut found: Vec<Vec<Found>> = leaves
            .iter()
            .map(|leaf| self.find(leaf.text.as_bytes(), false))
            .collect();
        if leaves.len() > 1 && self.squeezed.is_some() {
            self.find_across(leaves, |_| true, &mut found);
            if leaves.iter().any(|leaf| leaf.is_key) {
                self.find_across(leaves, |leaf| !leaf.is_key, &mut found);
                self.find_across(leaves, |leaf| leaf.is_key, &mut found);
            }
        }
        found.into_iter().map(merge_overlapping).collect()
    }

    /// Reads the leaves that are meant as one text.
    fn find_across(
        &self,
        leaves: &[Leaf<'_>],
        meant: fn(&Leaf<'_>) -> bool,
        found: &mut [Vec<Found>],
    ) {
        let mut text = String::new();
        let mut starts = Vec::new();
        for (index, leaf) in leaves.iter().enumerate().filter(|(_, leaf)| meant(leaf)) {
            starts.push((text.len(), index));
            text.push_str(&leaf.text);
        }
        for Found { range, secret } in self.find(text.as_bytes(), true) {
            let first = starts
                .partition_point(|&(start, _)| start <= range.start)
                .saturating_sub(1);
            for &(start, index) in starts[first..]
                .iter()
                .take_while(|&&(start, _)| start < range.end)
            {
                let end = start + leaves[index].text.len();
                let inside = range.start.max(start) - start..range.end.min(end).max(start) - start;
                if !inside.is_empty() {
                    found[index].push(Found {
                        range: inside,
                        secret,
                    });
                }
            }
        }
    }

    fn mask_text(&self, text: &str, found: &[Found]) -> String {
        let mut masked = String::with_capacity(text.len());
        let mut at = 0;
        for Found { range, secret } in found {
            let start = text.floor_char_boundary(range.start).max(at);
            masked.push_str(&text[at..start]);
            masked.push_str(&self.masks[*secret]);
            at = text.ceil_char_boundary(range.end).max(start);
        }
        masked.push_str(&text[at..]);
        masked
    }

    pub(super) fn mask(&self, bytes: &[u8], found: &[Found]) -> Vec<u8> {
        let mut masked = Vec::with_capacity(bytes.len());
        let mut at = 0;
        for Found { range, secret } in found {
            masked.extend_from_slice(&bytes[at..range.start]);
            masked.extend_from_slice(self.masks[*secret].as_bytes());
            at = range.end;
        }
        masked.extend_from_slice(&bytes[at..]);
        masked
    }
}

impl Finder {
    fn new(forms: BTreeMap<Form, (usize, bool)>) -> Option<Self> {
        if forms.is_empty() {
            return None;
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(forms.keys().map(|form| &form.bytes))
            .expect("the number and the length of secrets are bounded");
        let forms = forms
            .into_iter()
            .map(|(form, (secret, long))| (secret, form, long))
            .collect();
        Some(Self { automaton, forms })
    }

    fn find(&self, view: &View, window: &[u8], joined: bool, found: &mut Vec<Found>) {
        for hit in self.automaton.find_overlapping_iter(&view.bytes) {
            let (secret, form, long) = &self.forms[hit.pattern().as_usize()];
            if joined && !long {
                continue;
            }
            let mut range = view.source_range(hit.start()..hit.end());
            if form.ragged_start && range.start > 0 && is_digit(window[range.start - 1]) {
                range.start -= 1;
            }
            if form.ragged_end {
                range.end += usize::from(window.get(range.end).is_some_and(|&byte| is_digit(byte)));
                range.end += window[range.end..]
                    .iter()
                    .take(6)
                    .take_while(|&&byte| byte == b'=')
                    .count();
            }
            found.push(Found {
                range,
                secret: *secret,
            });
        }
    }
}

/// Returns whether a byte is a digit of base64 or base32.
fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// The places in order, those that overlap made one.
fn merge_overlapping(mut found: Vec<Found>) -> Vec<Found> {
    // Of two that begin together, the longer one says whose the place is.
    found.sort_by_key(|found| (found.range.start, std::cmp::Reverse(found.range.end)));
    let mut apart: Vec<Found> = Vec::with_capacity(found.len());
    for next in found {
        match apart.last_mut() {
            Some(last) if next.range.start < last.range.end => {
                last.range.end = last.range.end.max(next.range.end);
            }
            Some(_) | None => apart.push(next),
        }
    }
    apart
}

/// A piece of text in a value.
struct Leaf<'a> {
    text: Cow<'a, str>,
    is_key: bool,
}

/// The texts, numbers and keys of a value, in the order they are written.
fn leaves(value: &Value) -> Vec<Leaf<'_>> {
    fn collect<'a>(value: &'a Value, leaves: &mut Vec<Leaf<'a>>) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => leaves.push(Leaf {
                text: number.to_string().into(),
                is_key: false,
            }),
            Value::String(text) => leaves.push(Leaf {
                text: text.into(),
                is_key: false,
            }),
            Value::Array(list) => list.iter().for_each(|element| collect(element, leaves)),
            Value::Object(map) => map.iter().for_each(|(key, element)| {
                leaves.push(Leaf {
                    text: key.into(),
                    is_key: true,
                });
                collect(element, leaves);
            }),
        }
    }
    let mut collected = Vec::new();
    collect(value, &mut collected);
    collected
}

/// Goes through a value as [`leaves`] does and masks what was found in each.
struct LeafMasker<'a, F> {
    redactor: &'a Redactor,
    found: F,
}

impl<F: Iterator<Item = Vec<Found>>> LeafMasker<'_, F> {
    fn text(&mut self, text: &str) -> Option<String> {
        let found = self.found.next().unwrap_or_default();
        (!found.is_empty()).then(|| self.redactor.mask_text(text, &found))
    }

    fn value(&mut self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                if let Some(masked) = self.text(&number.to_string()) {
                    *value = Value::String(masked);
                }
            }
            Value::String(text) => {
                if let Some(masked) = self.text(text) {
                    *text = masked;
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|element| self.value(element)),
            Value::Object(map) => self.object(map),
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>) {
        let entries = std::mem::take(map);
        for (key, mut element) in entries {
            let mut key = self.text(&key).unwrap_or(key);
            self.value(&mut element);
            // Two keys may look the same once they are masked; nothing is lost by that.
            while map.contains_key(&key) {
                key.push('\'');
            }
            map.insert(key, element);
        }
    }
}
