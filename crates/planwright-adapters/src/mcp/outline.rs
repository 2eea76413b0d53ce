//! Whose a message is that is too large to be read: its outermost names, found while its bytes pass
//! by. Nothing of it is kept but the number of a request.

use rmcp::model::RequestId;

/// The longest name that is looked at. Those that matter are shorter, also with escapes.
const MAX_NAME: usize = 64;
/// The longest number of a request that is looked at.
const MAX_ID: usize = 256;

/// What a message is, as far as its outermost names say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outline {
    /// The answer to this request.
    Answer(RequestId),
    /// A request of the server.
    Request(RequestId),
    /// A notification, or no message at all: no call waits for it.
    Noise,
    /// It may be the answer to any call.
    Unknown,
}

/// Reads the outline of one message from its bytes, in order and in any portions.
#[derive(Debug, Default)]
pub(super) struct OutlineReader {
    /// `None` before the first byte that is no space; `false` if that is no brace.
    is_object: Option<bool>,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// A name of the outermost object is read next, or now.
    at_name: bool,
    /// The text of the name or number that is read now.
    text: Vec<u8>,
    /// What the text belongs to.
    field: Field,
    ids: Vec<Option<RequestId>>,
    has_method: bool,
    has_outcome: bool,
    /// More follows after the end of the object.
    is_broken: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Field {
    Id,
    #[default]
    Other,
}

impl OutlineReader {
    pub(super) fn read(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            if self.in_string && !self.escaped && !self.is_kept() {
                // Most of a large message is one long text.
                let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
                let Some(end) = end else { return };
                rest = &rest[end..];
                self.step(rest[0]);
                rest = &rest[1..];
                continue;
            }
            self.step(byte);
            rest = after;
        }
    }

    /// What the message is by all that was read of it.
    pub(super) fn outline(&self) -> Outline {
        if self.is_object != Some(true) {
            return Outline::Noise;
        }
        match (self.ids.as_slice(), self.has_method, self.has_outcome) {
            _ if self.is_broken => Outline::Unknown,
            ([Some(id)], true, _) => Outline::Request(id.clone()),
            ([], true, false) => Outline::Noise,
            ([Some(id)], false, true) => Outline::Answer(id.clone()),
            _ => Outline::Unknown,
        }
    }

    /// The bytes of names and of the number are kept, those of everything else are not.
    fn is_kept(&self) -> bool {
        self.depth == 1 && (self.at_name || self.field == Field::Id)
    }

    fn step(&mut self, byte: u8) {
        if self.is_object.is_none() {
            if byte.is_ascii_whitespace() {
                return;
            }
            self.is_object = Some(byte == b'{');
        }
        if self.is_object == Some(false) {
            return;
        }
        if self.in_string {
            self.keep(byte);
            self.in_string = self.escaped || byte != b'"';
            self.escaped = !self.escaped && byte == b'\\';
            return;
        }
        match byte {
            b'"' => {
                self.is_broken |= self.depth == 0;
                self.keep(byte);
                self.in_string = true;
            }
            b'{' | b'[' => self.open(),
            b'}' | b']' => self.close(),
            b':' if self.depth == 1 && self.at_name => self.name_ends(),
            b',' if self.depth == 1 => {
                self.value_ends();
                self.at_name = true;
            }
            _ => {
                self.is_broken |= self.depth == 0 && !byte.is_ascii_whitespace();
                self.keep(byte);
            }
        }
    }

    fn open(&mut self) {
        match self.depth {
            // A second object after the first one.
            0 if self.at_name || !self.ids.is_empty() || self.has_method || self.has_outcome => {
                self.is_broken = true;
            }
            0 => self.at_name = true,
            // A number that is a list or an object is none.
            1 if self.field == Field::Id => {
                self.ids.push(None);
                self.field = Field::Other;
            }
            _ => {}
        }
        self.depth += 1;
    }

    fn close(&mut self) {
        if self.depth == 1 {
            self.value_ends();
            self.at_name = false;
        }
        self.depth = self.depth.saturating_sub(1);
    }

    fn keep(&mut self, byte: u8) {
        // A text that is longer than any that matters stays longer than the limit, and so is none.
        if self.is_kept() && self.text.len() <= MAX_ID {
            self.text.push(byte);
        }
    }

    fn name_ends(&mut self) {
        let text = std::mem::take(&mut self.text);
        self.at_name = false;
        self.field = Field::Other;
        if text.len() > MAX_NAME {
            return;
        }
        match serde_json::from_slice::<String>(&text).as_deref() {
            Ok("id") => self.field = Field::Id,
            Ok("method") => self.has_method = true,
            Ok("result" | "error") => self.has_outcome = true,
            Ok(_) | Err(_) => {}
        }
    }

    fn value_ends(&mut self) {
        let text = std::mem::take(&mut self.text);
        if std::mem::take(&mut self.field) == Field::Id {
            let id = Some(text).filter(|text| text.len() <= MAX_ID);
            self.ids
                .push(id.and_then(|text| serde_json::from_slice(&text).ok()));
            // Two are as good as none, and more say nothing new.
            self.ids.truncate(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::NumberOrString::{Number, String as Text};

    /// The outline, which does not depend on the portions in which the bytes come.
    fn outline(text: &str) -> Outline {
        let mut whole = OutlineReader::default();
        whole.read(text.as_bytes());
        let mut single = OutlineReader::default();
        for byte in text.bytes() {
            single.read(&[byte]);
        }
        assert_eq!(whole.outline(), single.outline(), "{text}");
        whole.outline()
    }

    #[test]
    fn an_answer_is_known_by_its_number_wherever_that_stands() {
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"id":1}}"#,
            r#" {"result":[{"id":1},"\"id\":2"],"id" : 7 }"#,
            r#"{"error":{"code":1},"id":7}"#,
            r#"{"id":7,"result":"\\"}"#,
            r#"{"\u0069d":7,"result":null}"#,
            // Cut, and long enough all the same.
            r#"{"id":7,"result":"xxxxxxxx"#,
        ] {
            assert_eq!(outline(text), Outline::Answer(Number(7)), "{text}");
        }
        assert_eq!(
            outline(r#"{"id":"7","result":1}"#),
            Outline::Answer(Text("7".into()))
        );
    }

    #[test]
    fn a_request_is_no_answer_although_it_has_a_number() {
        for text in [
            r#"{"id":7,"method":"ping","params":{"result":1}}"#,
            r#"{"params":{},"method":"ping","id":7}"#,
        ] {
            assert_eq!(outline(text), Outline::Request(Number(7)), "{text}");
        }
    }

    #[test]
    fn what_no_call_waits_for_is_noise() {
        for text in [
            "",
            "xxxx",
            "[1,2]",
            r#"{"method":"notifications/message","params":{"id":7,"result":1}}"#,
        ] {
            assert_eq!(outline(text), Outline::Noise, "{text}");
        }
    }

    #[test]
    fn what_could_be_anybodys_answer_is_unknown() {
        let long = format!(r#"{{"id":"{}","result":1}}"#, "7".repeat(1_000));
        for text in [
            r#"{"result":1}"#,
            r#"{"id":7,"result":1,"id":8}"#,
            r#"{"id":7,"id":7,"result":1}"#,
            r#"{"id":[7],"result":1}"#,
            r#"{"id":{"id":7},"result":1}"#,
            r#"{"id":1.5,"result":1}"#,
            r#"{"id":null,"result":1}"#,
            r#"{"id":7}"#,
            r#"{"id":7,"result":1}{"id":8,"result":1}"#,
            r#"{"id":7,"result":1} 8"#,
            r#"{"id":7,"result":1} "8""#,
            r#"{"xxxxxx"#,
            &long,
        ] {
            assert_eq!(outline(text), Outline::Unknown, "{text}");
        }
    }

    #[test]
    fn little_of_a_large_message_is_kept() {
        let mut reader = OutlineReader::default();
        reader.read(br#"{"a"#);
        reader.read(&vec![b'a'; 1 << 20]);
        reader.read(br#"":1,"id":"#);
        reader.read(&vec![b'1'; 1 << 20]);
        assert!(reader.text.capacity() < 4 << 10);
    }
}
