//! What an executor says: lines of JSON. All but the last are progress, the last is the result.

use planwright_core::text::sanitize_line;
use planwright_engine::port::{Progress, ProgressSink};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// A longer line is a mistake.
const MAX_LINE: usize = 1 << 20;
/// More than this is a runaway.
const MAX_TOTAL: usize = 16 << 20;
/// The characters shown of one line.
const SHOWN: usize = 200;

/// Reads to the end and returns the last line that says anything.
pub(super) async fn read(
    mut stream: impl AsyncRead + Unpin,
    progress: &ProgressSink,
) -> Result<Option<String>, String> {
    let mut buffer = vec![0; 16 << 10];
    let mut line = Vec::new();
    let mut last = None::<String>;
    let mut total = 0;
    let mut count = 0;
    while let Ok(n @ 1..) = stream.read(&mut buffer).await {
        total += n;
        if total > MAX_TOTAL {
            return Err(format!("it said more than {MAX_TOTAL} bytes"));
        }
        for &byte in &buffer[..n] {
            if byte != b'\n' {
                line.push(byte);
                if line.len() > MAX_LINE {
                    return Err(format!("it said a line of more than {MAX_LINE} bytes"));
                }
                continue;
            }
            take(&mut line, &mut last, progress, &mut count);
        }
    }
    take(&mut line, &mut last, progress, &mut count);
    Ok(last)
}

/// Reads to the end and returns all of it.
pub(super) async fn read_all(mut stream: impl AsyncRead + Unpin) -> Result<Option<String>, String> {
    let mut buffer = vec![0; 16 << 10];
    let mut all = Vec::new();
    while let Ok(n @ 1..) = stream.read(&mut buffer).await {
        if all.len() + n > MAX_TOTAL {
            return Err(format!("it said more than {MAX_TOTAL} bytes"));
        }
        all.extend_from_slice(&buffer[..n]);
    }
    Ok(Some(String::from_utf8_lossy(&all).into_owned()))
}

/// Takes a whole line in. The one before it turns out not to be the last.
fn take(line: &mut Vec<u8>, last: &mut Option<String>, progress: &ProgressSink, count: &mut u32) {
    let text = String::from_utf8_lossy(&std::mem::take(line))
        .trim()
        .to_owned();
    if text.is_empty() {
        return;
    }
    if let Some(before) = last.replace(text) {
        *count += 1;
        progress.report(Progress {
            done: f64::from(*count),
            total: None,
            message: Some(shown(&before)),
        });
    }
}

/// A line as people see it.
fn shown(line: &str) -> String {
    let said = match serde_json::from_str::<Value>(line) {
        Ok(Value::Object(fields)) => match fields.get("progress").or_else(|| fields.get("message"))
        {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => line.to_owned(),
        },
        Ok(Value::String(text)) => text,
        Ok(_) | Err(_) => line.to_owned(),
    };
    sanitize_line(&said).chars().take(SHOWN).collect()
}

/// The result that the last line is: JSON, or else its text.
pub(super) fn result(last: Option<String>) -> Value {
    match last {
        None => Value::Null,
        Some(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::{Arc, Mutex};

    #[tokio::test]
    async fn all_lines_but_the_last_are_progress() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = {
            let told = Arc::clone(&told);
            ProgressSink::new(move |progress: Progress| {
                told.lock().unwrap().push(progress.message.unwrap());
            })
        };
        let said = b"{\"progress\":\"half\"}\n\nplain\n{\"n\":1}\n{\"answer\":42}\n" as &[u8];
        let last = read(said, &sink).await.unwrap();
        assert_eq!(result(last), json!({"answer": 42}));
        assert_eq!(*told.lock().unwrap(), ["half", "plain", "{\"n\":1}"]);
        assert_eq!(
            result(read(b"done, no JSON" as &[u8], &sink).await.unwrap()),
            json!("done, no JSON")
        );
        assert_eq!(
            result(read(b"" as &[u8], &sink).await.unwrap()),
            Value::Null
        );
    }

    #[tokio::test]
    async fn a_line_that_never_ends_is_refused() {
        let endless = vec![b'x'; MAX_LINE + 1];
        assert!(read(&endless[..], &ProgressSink::default()).await.is_err());
    }
}
