//! One line of the log: bounded, masked, and without anything that could steer a terminal or forge
//! another line.

use super::LogFormat;
use planwright_core::secret::Redactor;
use planwright_core::text::sanitize_line;
use serde_json::{Map, Value, json};
use tracing::Level;
use tracing::field::{Field, Visit};

/// Longer texts are cut, and more fields are left out.
const MAX_TEXT_CHARS: usize = 4096;
const MAX_FIELDS: usize = 64;

/// The fields of an event or a span.
#[derive(Debug, Default, Clone)]
pub(super) struct Fields(pub(super) Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        if self.0.len() < MAX_FIELDS {
            self.0.insert(field.name().to_owned(), value);
        }
    }

    fn text(&mut self, field: &Field, text: &str) {
        self.put(
            field,
            Value::String(text.chars().take(MAX_TEXT_CHARS).collect()),
        );
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.text(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, json!(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.text(field, &value.to_string());
    }
}

/// What a line says.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) timestamp: String,
    pub(super) level: Level,
    pub(super) target: &'a str,
    pub(super) trace: Option<String>,
    pub(super) message: String,
    pub(super) fields: Map<String, Value>,
}

impl Line<'_> {
    /// The line with its end.
    pub(super) fn render(self, format: LogFormat, redactor: Option<&Redactor>) -> String {
        match format {
            LogFormat::Text => self.text(redactor),
            LogFormat::Json => self.json(redactor),
        }
    }

    fn text(self, redactor: Option<&Redactor>) -> String {
        let mut text = format!(
            "{} {:>5} {}: {}",
            self.timestamp, self.level, self.target, self.message
        );
        for (name, value) in &self.fields {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            text.extend([" ", name, "=", &value]);
        }
        if let Some(trace) = &self.trace {
            text.extend([" trace=", trace]);
        }
        let masked = redactor.map_or_else(
            || text.clone(),
            |redactor| redactor.text(&text).into_owned(),
        );
        format!("{}\n", sanitize_line(&masked))
    }

    fn json(self, redactor: Option<&Redactor>) -> String {
        let mut line = json!({
            "timestamp": self.timestamp,
            "level": self.level.as_str().to_ascii_lowercase(),
            "target": self.target,
            "message": self.message,
        });
        if let Some(trace) = self.trace {
            line["traceId"] = Value::String(trace);
        }
        if !self.fields.is_empty() {
            line["fields"] = Value::Object(self.fields);
        }
        let Some(redactor) = redactor.filter(|redactor| !redactor.is_empty()) else {
            return written(&line);
        };
        redactor.value(&mut line);
        let text = written(&line);
        if redactor.finds(text.as_bytes()) {
            return "{\"level\":\"warn\",\"message\":\"a line that holds a secret is left out\"}\n"
                .to_owned();
        }
        text
    }
}

/// JSON on one line. What serde leaves as it is, and a terminal would act on, is escaped as well.
fn written(line: &Value) -> String {
    let mut text = String::new();
    for character in line.to_string().chars() {
        let code = u32::from(character);
        let steers = matches!(code, 0x7f..=0x9f | 0x061c | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x2069 | 0xfeff);
        if steers {
            text.extend([format!("\\u{code:04x}")]);
        } else {
            text.push(character);
        }
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_core::secret::{SecretName, SecretText};

    fn line(message: &str) -> Line<'static> {
        Line {
            timestamp: "2026-01-02T03:04:05.678Z".into(),
            level: Level::WARN,
            target: "planwright",
            trace: Some("4bf92f35-77b3-4da6-a3ce-929d0e0e4736".into()),
            message: message.into(),
            fields: Map::from_iter([
                ("reason".to_owned(), json!("x\u{1b}[31m\ny")),
                ("n".to_owned(), json!(3)),
            ]),
        }
    }

    #[test]
    fn a_text_line_stays_one_line_and_steers_nothing() {
        let text = line("a\u{9b}b\r\nERROR forged\u{202e}").render(LogFormat::Text, None);
        assert_eq!(text.lines().count(), 1);
        assert!(
            text.starts_with("2026-01-02T03:04:05.678Z  WARN planwright: ab"),
            "{text}"
        );
        assert!(
            !text
                .trim_end()
                .chars()
                .any(|character| character.is_control() || character == '\u{202e}')
        );
        assert!(
            text.contains(" n=3 ") && text.contains("trace=4bf92f35"),
            "{text}"
        );
    }

    #[test]
    fn a_json_line_is_one_object_with_everything_escaped() {
        let text = line("a\u{9b}b\nc\u{202e}").render(LogFormat::Json, None);
        assert_eq!(text.lines().count(), 1);
        assert!(
            !text
                .trim_end()
                .chars()
                .any(|character| character.is_control() || character == '\u{202e}')
        );
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["message"], "a\u{9b}b\nc\u{202e}");
        assert_eq!(
            (&value["level"], &value["fields"]["n"]),
            (&json!("warn"), &json!(3))
        );
        assert_eq!(value["traceId"], "4bf92f35-77b3-4da6-a3ce-929d0e0e4736");
    }

    #[test]
    fn secrets_are_masked_in_both() {
        let name = SecretName::new("K").unwrap();
        let secret = SecretText::new("hunter2hunter2".to_owned()).unwrap();
        let redactor = Redactor::new([(&name, &secret)]);
        for format in [LogFormat::Text, LogFormat::Json] {
            let text = line("it was hunter2hunter2").render(format, Some(&redactor));
            assert!(
                text.contains("[secret K]") && !redactor.finds(text.as_bytes()),
                "{text}"
            );
        }
    }
}
