//! A text as it reads once some of its escapes are decoded or some of its characters are left out,
//! with the way back.

use std::ops::Range;

/// A text derived from another one. Each of its bytes knows where it comes from.
#[derive(Debug)]
pub(super) struct View {
    pub(super) bytes: Vec<u8>,
    /// The range of each byte in the text it comes from. Views are of windows, which are small.
    from: Vec<(u32, u32)>,
}

/// A way of writing characters with other characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// `%41`, `%u0041`
    Percent,
    /// `\"`, `\n`, `\u0041`, `\u{41}`, `\x41`, `\101`
    Backslash,
    /// `&amp;`, `&#65;`, `&#x41;`
    Entity,
    /// `=41`
    Printable,
}

impl View {
    /// The text as it is.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let end = u32::try_from(bytes.len()).expect("windows are small");
        Self {
            bytes: bytes.to_vec(),
            from: (0..end).map(|at| (at, at + 1)).collect(),
        }
    }

    /// Returns the source of a range of this view.
    pub(super) fn source_range(&self, range: Range<usize>) -> Range<usize> {
        self.from[range.start].0 as usize..self.from[range.end - 1].1 as usize
    }

    /// The view with one kind of escape decoded, or nothing if there is none in it.
    pub(super) fn unescape(&self, escape: Escape) -> Option<Self> {
        let marker = escape.marker();
        if !self.bytes.contains(&marker) {
            return None;
        }
        let mut view = Self {
            bytes: Vec::with_capacity(self.bytes.len()),
            from: Vec::with_capacity(self.bytes.len()),
        };
        let mut at = 0;
        let mut changed = false;
        while at < self.bytes.len() {
            let decoded = if self.bytes[at] == marker {
                escape.decode(&self.bytes[at..])
            } else {
                None
            };
            if let Some((character, length)) = decoded {
                let from = (self.from[at].0, self.from[at + length - 1].1);
                for byte in character.bytes() {
                    view.push(byte, from);
                }
                at += length;
                changed = true;
            } else {
                view.push(self.bytes[at], self.from[at]);
                at += 1;
            }
        }
        changed.then_some(view)
    }

    /// The view without some characters, or nothing if it has none of them.
    pub(super) fn without_chars(&self, dropped: fn(char) -> bool) -> Option<Self> {
        let mut view = Self {
            bytes: Vec::new(),
            from: Vec::new(),
        };
        let mut at = 0;
        let mut changed = false;
        for chunk in self.bytes.utf8_chunks() {
            for character in chunk.valid().chars() {
                let length = character.len_utf8();
                if dropped(character) {
                    changed = true;
                } else {
                    (at..at + length).for_each(|at| view.push(self.bytes[at], self.from[at]));
                }
                at += length;
            }
            for _ in chunk.invalid() {
                view.push(self.bytes[at], self.from[at]);
                at += 1;
            }
        }
        changed.then_some(view)
    }

    fn push(&mut self, byte: u8, from: (u32, u32)) {
        self.bytes.push(byte);
        self.from.push(from);
    }
}

/// The byte or character an escape stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decoded {
    /// `%c3` is a byte, which may be a part of a character.
    Byte(u8),
    Character(char),
}

impl Decoded {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Byte(byte) => vec![byte],
            Self::Character(character) => character.to_string().into_bytes(),
        }
    }
}

impl Escape {
    fn marker(self) -> u8 {
        match self {
            Self::Percent => b'%',
            Self::Backslash => b'\\',
            Self::Entity => b'&',
            Self::Printable => b'=',
        }
    }

    /// Decodes the escape at the beginning of `text`; returns its meaning and its length.
    fn decode(self, text: &[u8]) -> Option<(Decoded, usize)> {
        match self {
            Self::Percent if text.get(1) == Some(&b'u') => {
                decode_code_unit(text, 2, 4).map(|(c, length)| (Decoded::Character(c), length))
            }
            Self::Percent | Self::Printable => Some((
                Decoded::Byte(u8::try_from(parse_digits(text.get(1..3)?, 16)?).ok()?),
                3,
            )),
            Self::Backslash => decode_backslash(text),
            Self::Entity => decode_entity(text),
        }
    }
}

fn decode_backslash(text: &[u8]) -> Option<(Decoded, usize)> {
    let short = |character| Some((Decoded::Character(character), 2));
    match *text.get(1)? {
        b'n' => short('\n'),
        b't' => short('\t'),
        b'r' => short('\r'),
        b'b' => short('\u{8}'),
        b'f' => short('\u{c}'),
        plain @ (b'"' | b'\'' | b'\\' | b'/' | b'`' | b'$') => short(char::from(plain)),
        b'x' => Some((
            Decoded::Byte(u8::try_from(parse_digits(text.get(2..4)?, 16)?).ok()?),
            4,
        )),
        b'u' if text.get(2) == Some(&b'{') => {
            let length = text.iter().take(10).position(|&byte| byte == b'}')?;
            Some((
                Decoded::Character(char::from_u32(parse_digits(&text[3..length], 16)?)?),
                length + 1,
            ))
        }
        b'u' => decode_surrogates(text)
            .or_else(|| decode_code_unit(text, 2, 4))
            .map(|(c, length)| (Decoded::Character(c), length)),
        b'0'..=b'3' => Some((
            Decoded::Byte(u8::try_from(parse_digits(text.get(1..4)?, 8)?).ok()?),
            4,
        )),
        _ => None,
    }
}

/// One code unit that is a character by itself.
fn decode_code_unit(text: &[u8], from: usize, digits: usize) -> Option<(char, usize)> {
    let end = from + digits;
    Some((
        char::from_u32(parse_digits(text.get(from..end)?, 16)?)?,
        end,
    ))
}

/// Two escapes that make one character.
fn decode_surrogates(text: &[u8]) -> Option<(char, usize)> {
    if text.get(6..8)? != b"\\u" {
        return None;
    }
    let units = [
        parse_digits(text.get(2..6)?, 16)?,
        parse_digits(text.get(8..12)?, 16)?,
    ];
    let units = units.map(|unit| u16::try_from(unit).unwrap_or(u16::MAX));
    let mut characters = char::decode_utf16(units);
    match (characters.next(), characters.next()) {
        (Some(Ok(character)), None) => Some((character, 12)),
        (_, _) => None,
    }
}

fn decode_entity(text: &[u8]) -> Option<(Decoded, usize)> {
    const LONGEST: usize = 12;
    let end = text.iter().take(LONGEST).position(|&byte| byte == b';')?;
    let character = match &text[1..end] {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(parse_digits(digits, 16)?)?,
        [b'#', digits @ ..] => char::from_u32(parse_digits(digits, 10)?)?,
        _ => return None,
    };
    Some((Decoded::Character(character), end + 1))
}

/// Digits and nothing else, no sign either.
fn parse_digits(digits: &[u8], radix: u32) -> Option<u32> {
    if digits.is_empty()
        || !digits
            .iter()
            .all(|&digit| char::from(digit).is_digit(radix))
    {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str, escape: Escape) -> String {
        let view = View::new(text.as_bytes());
        String::from_utf8(view.unescape(escape).map_or(view.bytes, |view| view.bytes)).unwrap()
    }

    #[test]
    fn every_escape_is_undone_once() {
        assert_eq!(
            decoded("a%41%c3%A9%u0042%zz%4%2541", Escape::Percent),
            "aAéB%zz%4%41"
        );
        assert_eq!(
            decoded(
                r#"\n\"\\\u0041\ud83d\ude00\x41\101\u{1F600}\q\ud83d\u00"#,
                Escape::Backslash
            ),
            "\n\"\\A😀AA😀\\q\\ud83d\\u00"
        );
        assert_eq!(
            decoded(
                "&amp;&#65;&#x41;&#X41;&;&#;&#xffffffff;&copy;&lt",
                Escape::Entity
            ),
            "&AAA&;&#;&#xffffffff;&copy;&lt"
        );
        assert_eq!(decoded("=41=4", Escape::Printable), "A=4");
        assert_eq!(decoded("%+1%-1", Escape::Percent), "%+1%-1");
    }

    #[test]
    fn a_range_leads_back_to_where_it_comes_from() {
        let new = View::new("x%41 \u{200b}%42y".as_bytes());
        let view = new
            .unescape(Escape::Percent)
            .unwrap()
            .without_chars(super::super::text::is_blank)
            .unwrap();
        assert_eq!(view.bytes, b"xABy");
        assert_eq!(view.source_range(1..2), 1..4);
        assert_eq!(view.source_range(1..3), 1..11);
        assert_eq!(view.source_range(0..4), 0..12);
    }
}
