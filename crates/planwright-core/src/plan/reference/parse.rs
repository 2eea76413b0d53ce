//! `${name.field[0]["odd key"]}`: one reference, parsed once when the plan is loaded.

use crate::plan::StepIx;

/// A parsed reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// Origin of the value.
    pub root: Root,
    /// Path into the value.
    pub path: Vec<PathSegment>,
    /// The text between the braces, for messages.
    pub source: Box<str>,
}

/// The origin of a reference's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Root {
    /// A variable or an input.
    Variable(Box<str>),
    /// The value of a step.
    Step(StepIx),
    /// Resolved only when the call is sent; never stored or shown.
    Secret(Box<str>),
}

/// One part of a path into a value.
#[derive(Debug, Clone, PartialEq)]
pub enum PathSegment {
    /// `.name`: a field, or an index when it is a number and the value is a list.
    Field(Box<str>),
    /// `[0]`
    Index(usize),
}

/// The first name of a reference, before it is known what it stands for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Head {
    Name(Box<str>),
    /// `${steps.<id>}`
    Step(Box<str>),
    /// `${secret.<NAME>}`
    Secret(Box<str>),
}

/// A reference as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Written {
    pub(crate) head: Head,
    pub(crate) path: Vec<PathSegment>,
    pub(crate) source: Box<str>,
}

/// The reason a reference cannot be read. The offset counts bytes from the start of the string it
/// stands in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (character {})", .offset + 1)]
pub struct ParseReferenceError {
    /// Bytes from the start of the string.
    pub offset: usize,
    /// Description of the problem.
    pub problem: &'static str,
}

/// A piece of a string: text that is sent as it is, or a reference.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    /// `$${`
    Escaped,
    Reference(Written),
}

/// Returns whether `name` can be the first name of a reference.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_name_character)
}

fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// Returns how the reference around this place of a text was probably meant: with keys that are no
/// names in quotes.
pub(crate) fn suggest_spelling(text: &str, offset: usize) -> Option<String> {
    let start = text.get(..offset)?.rfind("${")? + 2;
    let length = text[start..].find('}')?;
    let mut parts = text[start..start + length].split('.').map(str::trim);
    let mut spelt = parts.next().filter(|name| is_name(name))?.to_owned();
    for part in parts {
        if is_name(part) {
            spelt.push('.');
            spelt.push_str(part);
        } else {
            let key = serde_json::Value::from(part.trim_matches(['\'', '"', '[', ']']));
            spelt.push('[');
            spelt.push_str(&key.to_string());
            spelt.push(']');
        }
    }
    let spelt = format!("${{{spelt}}}");
    split(&spelt).is_ok().then_some(spelt)
}

/// Splits a string at its references. One pass: what stands in the pieces is not looked at again.
pub(crate) fn split(text: &str) -> Result<Vec<Piece<'_>>, ParseReferenceError> {
    let mut pieces = Vec::new();
    let mut plain_from = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find("${") {
        let start = at + found;
        if text[plain_from..start].ends_with('$') {
            if start - 1 > plain_from {
                pieces.push(Piece::Text(&text[plain_from..start - 1]));
            }
            pieces.push(Piece::Escaped);
            at = start + 2;
        } else {
            if start > plain_from {
                pieces.push(Piece::Text(&text[plain_from..start]));
            }
            let (written, end) = Parser {
                text,
                at: start + 2,
                start: start + 2,
            }
            .reference()?;
            pieces.push(Piece::Reference(written));
            at = end;
        }
        plain_from = at;
    }
    if plain_from < text.len() {
        pieces.push(Piece::Text(&text[plain_from..]));
    }
    Ok(pieces)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    start: usize,
}

impl Parser<'_> {
    /// Reads up to and including the closing brace; returns the offset after it.
    fn reference(mut self) -> Result<(Written, usize), ParseReferenceError> {
        let first = self.name("a name must follow `${`")?;
        let head = match &*first {
            "steps" => Head::Step(self.second_name("`${steps` must go on with `.` and a step id")?),
            "secret" => {
                Head::Secret(self.second_name("`${secret` must go on with `.` and a name")?)
            }
            _ => Head::Name(first),
        };
        let mut path = Vec::new();
        loop {
            match self.next() {
                Some('}') => break,
                Some('.') => {
                    path.push(PathSegment::Field(
                        self.name("a field name must follow the dot")?,
                    ));
                }
                Some('[') => path.push(self.bracket()?),
                Some(_) => return Err(self.problem_before("this cannot stand in a reference")),
                None => return Err(self.problem("the reference is never closed with `}`")),
            }
        }
        let source = self.text[self.start..self.at - 1].into();
        Ok((Written { head, path, source }, self.at))
    }

    fn second_name(&mut self, problem: &'static str) -> Result<Box<str>, ParseReferenceError> {
        if self.next() != Some('.') {
            return Err(self.problem_before(problem));
        }
        self.name(problem)
    }

    fn name(&mut self, problem: &'static str) -> Result<Box<str>, ParseReferenceError> {
        let rest = &self.text[self.at..];
        let length = rest.find(|c| !is_name_character(c)).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.problem(problem));
        }
        self.at += length;
        Ok(rest[..length].into())
    }

    /// Reads what follows `[`: a number, or a JSON string for keys that are no names.
    fn bracket(&mut self) -> Result<PathSegment, ParseReferenceError> {
        let rest = &self.text[self.at..];
        let segment = if rest.starts_with('"') {
            let length = end_of_string(rest)
                .ok_or_else(|| self.problem("the key is never closed with `\"`"))?;
            let key: String = serde_json::from_str(&rest[..length])
                .map_err(|_| self.problem("the key between the brackets is not a JSON string"))?;
            self.at += length;
            PathSegment::Field(key.into())
        } else {
            let length = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            let index = rest[..length].parse().map_err(|_| {
                self.problem("between brackets stands a number from 0 or a key in double quotes")
            })?;
            self.at += length;
            PathSegment::Index(index)
        };
        if self.next() == Some(']') {
            Ok(segment)
        } else {
            Err(self.problem_before("`]` is missing"))
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.text[self.at..].chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn problem(&self, problem: &'static str) -> ParseReferenceError {
        ParseReferenceError {
            offset: self.at,
            problem,
        }
    }

    /// The problem is the character just read.
    fn problem_before(&self, problem: &'static str) -> ParseReferenceError {
        let read = self.text[..self.at]
            .chars()
            .next_back()
            .map_or(0, char::len_utf8);
        ParseReferenceError {
            offset: self.at - read,
            problem,
        }
    }
}

fn end_of_string(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Written {
        let mut pieces = split(text).unwrap();
        assert_eq!(pieces.len(), 1, "{pieces:?}");
        let Some(Piece::Reference(written)) = pieces.pop() else {
            panic!("{text} is no reference")
        };
        written
    }

    #[test]
    fn every_form_is_read() {
        assert_eq!(one("${a}").head, Head::Name("a".into()));
        let long = one(r#"${a.list[0]["odd \"key}"].0}"#);
        let field = |name: &str| PathSegment::Field(name.into());
        assert_eq!(
            long.path,
            [
                field("list"),
                PathSegment::Index(0),
                field("odd \"key}"),
                field("0")
            ]
        );
        assert_eq!(one("${steps.s-1.x}").head, Head::Step("s-1".into()));
        assert_eq!(one("${secret.TOKEN}").head, Head::Secret("TOKEN".into()));
        assert_eq!(&*one("${a.b[1]}").source, "a.b[1]");
    }

    #[test]
    fn a_doubled_dollar_is_text() {
        assert_eq!(
            split("a$${b}").unwrap(),
            [Piece::Text("a"), Piece::Escaped, Piece::Text("b}")]
        );
        assert_eq!(split("$${").unwrap(), [Piece::Escaped]);
        assert_eq!(split("$5 {x} $").unwrap(), [Piece::Text("$5 {x} $")]);
        let mixed = split("$${a}${b}").unwrap();
        assert!(
            matches!(
                mixed[..],
                [Piece::Escaped, Piece::Text("a}"), Piece::Reference(_)]
            ),
            "{mixed:?}"
        );
    }

    #[test]
    fn a_key_that_is_no_name_is_spelt_as_it_has_to_be() {
        for (text, spelling) in [
            ("${a.Exchange Rate}", Some("${a[\"Exchange Rate\"]}")),
            ("x ${a.b c.d} y", Some("${a[\"b c\"].d}")),
            ("${ a.b }", Some("${a.b}")),
            ("${a.'k v'}", Some("${a[\"k v\"]}")),
            ("${}", None),
            ("${a b}", None),
            ("${a", None),
        ] {
            let offset = split(text).unwrap_err().offset;
            let suggested = suggest_spelling(text, offset);
            assert_eq!(suggested.as_deref(), spelling, "{text}");
        }
    }

    #[test]
    fn malformed_references_are_placed() {
        for (text, offset) in [
            ("${", 2),
            ("x ${}", 4),
            ("${a..b}", 4),
            ("${a", 3),
            ("${a[}", 4),
            ("${a[-1]}", 4),
            ("${a[0}", 5),
            ("${a[\"x}", 4),
            ("${a b}", 3),
            ("${a${b}}", 3),
            ("${steps}", 7),
            ("${secret.}", 9),
            ("${a[99999999999999999999999]}", 4),
        ] {
            assert_eq!(split(text).unwrap_err().offset, offset, "{text}");
        }
    }
}
