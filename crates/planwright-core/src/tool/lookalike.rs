//! Folds tool names so that look-alikes become equal.
//!
//! A rule that forbids `delete_file` must not be got around by a server that calls its tool
//! `Delete-Fіle`. Names are folded before they are compared with what is forbidden, asked about or
//! counted; never to allow anything, because folding makes different names equal.

use super::ToolName;
use crate::text::is_invisible;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;
use unicode_security::confusable_detection::skeleton;

/// A tool's name together with its folded form. Folded once and compared with every pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldedName {
    pub(crate) server: FoldedText,
    pub(crate) tool: FoldedText,
}

/// A text and its folded form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoldedText {
    pub(crate) exact: String,
    pub(crate) folded: String,
}

impl FoldedName {
    /// Folds both parts of a tool's name.
    pub fn new(name: &ToolName) -> Self {
        Self {
            server: FoldedText::new(&name.server),
            tool: FoldedText::new(&name.tool),
        }
    }
}

impl FoldedText {
    fn new(text: &str) -> Self {
        Self {
            exact: text.to_owned(),
            folded: fold_name(text),
        }
    }
}

/// Returns the form in which look-alikes are equal: without case, width, accents, invisible characters,
/// spaces and separators, and with every letter replaced by the one it looks like.
pub(crate) fn fold_name(name: &str) -> String {
    let mut folded = fold_once(name);
    // One pass can make a letter that the next one replaces. The replacements only go one way, so
    // few passes do.
    for _ in 0..3 {
        let next = fold_once(&folded);
        if next == folded {
            break;
        }
        folded = next;
    }
    folded
}

fn fold_once(name: &str) -> String {
    let letters: String = match name.is_ascii() {
        true => plain_letters(name).collect(),
        false => letters_like(name),
    };
    match letters.contains("rn") || letters.contains("vv") {
        true => letters.replace("rn", "m").replace("vv", "w"),
        false => letters,
    }
}

/// The letters of a name that is ASCII, which decomposes into itself and looks like itself.
fn plain_letters(name: &str) -> impl Iterator<Item = char> {
    name.chars()
        .filter(|c| !(c.is_ascii_control() || matches!(c, ' ' | '-' | '_')))
        .map(|c| same_shape(c.to_ascii_lowercase()))
}

/// The letters that those of any name look like.
fn letters_like(name: &str) -> String {
    let seen = name.nfkd().filter(|&c| !is_dropped(c));
    let mut like = String::with_capacity(name.len());
    seen.for_each(|c| push_like(c, &mut like));
    let small = like
        .nfkd()
        .flat_map(char::to_lowercase)
        .filter(|&c| !is_dropped(c));
    small.map(same_shape).collect()
}

/// Pushes what a character looks like. Some look like a plain letter only as a capital, or only as
/// a small one. The case is not folded before, because a capital I looks like an l and a small one
/// does not.
fn push_like(c: char, like: &mut String) {
    if c.is_ascii() {
        like.push(c);
        return;
    }
    let plain = |text: &String| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '|' | '.' | '_' | '-'))
    };
    let itself = skeleton_of(&c.to_string());
    let found = if plain(&itself) {
        itself
    } else {
        let cased = [c.to_uppercase().to_string(), c.to_lowercase().to_string()];
        cased
            .iter()
            .map(|text| skeleton_of(text))
            .find(plain)
            .unwrap_or(itself)
    };
    like.push_str(&found);
}

fn skeleton_of(text: &str) -> String {
    skeleton(text).filter(|&c| !is_dropped(c)).collect()
}

/// Not a part of what a name says.
fn is_dropped(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || is_invisible(c)
        || is_combining_mark(c)
        || matches!(c, '-' | '_' | '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe00}'..='\u{fe0f}' | '\u{2800}')
}

/// Maps signs that pass for each other in some typeface, in either case.
fn same_shape(c: char) -> char {
    match c {
        'i' | 'j' | 'l' | '1' | '|' | '!' | 'ı' | 'ȷ' => 'l',
        '0' | 'o' | 'q' => 'o',
        '5' | 's' | '$' => 's',
        'ß' => 'b',
        // Small capitals, which have no other case.
        'ᴀ' => 'a',
        'ʙ' => 'b',
        'ᴄ' => 'c',
        'ᴅ' => 'd',
        'ᴇ' => 'e',
        'ꜰ' => 'f',
        'ɢ' => 'g',
        'ʜ' => 'h',
        'ɪ' | 'ʟ' | 'ᴊ' => 'l',
        'ᴋ' => 'k',
        'ᴍ' => 'm',
        'ɴ' => 'n',
        'ᴏ' => 'o',
        'ᴘ' => 'p',
        'ʀ' => 'r',
        'ꜱ' => 's',
        'ᴛ' => 't',
        'ᴜ' => 'u',
        'ᴠ' => 'v',
        'ᴡ' => 'w',
        'ʏ' => 'y',
        'ᴢ' => 'z',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_fold_to_the_same() {
        let plain = fold_name("delete_file");
        for name in [
            "Delete-File",
            "DELETE_FILE",
            "delete file",
            "ｄｅｌｅｔｅ＿ｆｉｌｅ",
            "dеlеte_file",
            "de\u{200b}lete_file",
            "deIete_fiIe",
            "de1ete_fi1e",
            "délété_fïle",
            "𝐝𝐞𝐥𝐞𝐭𝐞_𝐟𝐢𝐥𝐞",
            "delete\u{2010}file",
            "deleteﬁle",
            "\u{202e}delete_file\u{202c}",
        ] {
            assert_eq!(fold_name(name), plain, "{name}");
        }
    }

    #[test]
    fn plain_names_fold_like_any_other() {
        for one in '\0'..='\x7f' {
            for other in '\0'..='\x7f' {
                let name = format!("{one}{other}");
                let plain: String = plain_letters(&name).collect();
                assert_eq!(plain, letters_like(&name), "{name:?}");
            }
        }
    }

    #[test]
    fn different_words_stay_different() {
        assert_ne!(fold_name("delete_file"), fold_name("read_file"));
        assert_ne!(fold_name("write"), fold_name("read"));
        assert_eq!(fold_name("m"), fold_name("rn"));
    }
}
