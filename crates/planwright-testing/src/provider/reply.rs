//! What the provider says next.

use serde_json::Value;
use std::time::Duration;

/// One answer of the script.
#[derive(Debug, Clone, Default)]
pub struct ScriptedReply {
    pub(super) text: String,
    /// Name and arguments; text where they shall be no JSON.
    pub(super) calls: Vec<(String, Value)>,
    /// The text is JSON: a provider that is made to call one tool gives it as that tool's
    /// arguments.
    pub(super) structured: Option<Value>,
    /// Input, output, cached.
    pub(super) usage: Option<(u64, u64, u64)>,
    pub(super) length: bool,
    /// A status and a body in place of an answer.
    pub(super) refused: Option<(u16, String)>,
    pub(super) headers: Vec<(&'static str, String)>,
    /// Before anything is said.
    pub(super) delay: Duration,
    /// Before each event.
    pub(super) pause: Duration,
    /// So many events at the end of the stream are never sent, and then the connection breaks.
    pub(super) withheld: usize,
    /// The connection stays open and silent instead.
    pub(super) hangs: bool,
}

impl ScriptedReply {
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            usage: Some((100, 20, 0)),
            ..Self::default()
        }
    }

    /// An answer to a question for JSON.
    pub fn json(value: Value) -> Self {
        Self {
            structured: Some(value.clone()),
            ..Self::text(value.to_string())
        }
    }

    /// JSON in a fence, with talk around it.
    pub fn fenced(value: &Value) -> Self {
        Self::text(format!(
            "Sure, here it is:\n\n```json\n{value:#}\n```\nTell me if you want it changed."
        ))
    }

    /// Calls of tools. Arguments that are text are sent as they are, JSON or not.
    pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let calls = calls
            .into_iter()
            .map(|(name, args)| (name.to_owned(), args))
            .collect();
        Self {
            calls,
            ..Self::text("")
        }
    }

    /// No answer.
    pub fn status(status: u16, body: impl Into<String>) -> Self {
        Self {
            refused: Some((status, body.into())),
            ..Self::default()
        }
    }

    /// The rate is limited; ask again in so many seconds.
    pub fn limited(seconds: u64) -> Self {
        Self::status(
            429,
            r#"{"error": {"message": "slow down", "type": "rate_limit_error"}}"#,
        )
        .header("retry-after", seconds.to_string())
    }

    /// As llama.cpp answers until its model is in memory.
    pub fn loading() -> Self {
        Self::status(
            503,
            r#"{"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}"#,
        )
    }

    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    #[must_use]
    pub fn saying(self, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..self
        }
    }

    /// Nothing is said for this long.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Nothing is said for this long before each piece.
    #[must_use]
    pub fn slowly(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// The connection breaks before the last events are sent.
    #[must_use]
    pub fn cut(self, withheld: usize) -> Self {
        Self { withheld, ..self }
    }

    /// The last events never come, and the connection stays open.
    #[must_use]
    pub fn hanging(self, withheld: usize) -> Self {
        Self {
            withheld,
            hangs: true,
            ..self
        }
    }

    /// The answer reached the limit of tokens.
    #[must_use]
    pub fn too_long(self) -> Self {
        Self {
            length: true,
            ..self
        }
    }

    #[must_use]
    pub fn using(self, input: u64, output: u64, cached: u64) -> Self {
        Self {
            usage: Some((input, output, cached)),
            ..self
        }
    }

    #[must_use]
    pub fn without_usage(self) -> Self {
        Self {
            usage: None,
            ..self
        }
    }

    /// What is called, if a provider was made to call this tool: the arguments are the answer.
    pub(super) fn calls_with(&self, forced: Option<&str>) -> Vec<(String, Value)> {
        match (&self.structured, forced) {
            (Some(value), Some(tool)) => vec![(tool.to_owned(), value.clone())],
            _ => self.calls.clone(),
        }
    }

    /// What is said beside the calls.
    pub(super) fn text_with(&self, forced: Option<&str>) -> &str {
        if self.structured.is_some() && forced.is_some() {
            ""
        } else {
            &self.text
        }
    }
}

/// Two pieces of a text, so that they have to be put together.
pub(super) fn halves(text: &str) -> Vec<&str> {
    let middle = (text.len() / 2..=text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len());
    let (one, other) = text.split_at(middle);
    [one, other]
        .into_iter()
        .filter(|piece| !piece.is_empty())
        .collect()
}

/// Arguments as text.
pub(super) fn written(args: &Value) -> String {
    args.as_str()
        .map_or_else(|| args.to_string(), str::to_owned)
}
