//! Makes a value of any size that cannot be compressed or guessed: for trying out large results.

use super::server::SERVER;
use planwright_core::tool::{Annotations, ToolDefinition};
use planwright_engine::port::{Call, CallError, Outcome};
use serde_json::{Value, json};

pub(super) const NAME: &str = "random_bytes";

const MAX_BYTES: u64 = 64 << 20;
/// Up to here the work is shorter than moving it to another thread.
const INLINE_BYTES: usize = 16 << 10;

pub(super) fn definition() -> ToolDefinition {
    ToolDefinition::new(
        SERVER,
        NAME,
        "Returns `n` random bytes as base64 text.",
        json!({
            "type": "object",
            "properties": { "n": { "type": "integer", "minimum": 0, "maximum": MAX_BYTES } },
            "required": ["n"],
            "additionalProperties": false,
        }),
    )
    .with_output(json!({ "type": "string", "contentEncoding": "base64" }))
    .with_annotations(Annotations::read_only())
}

pub(super) async fn run(call: Call) -> Outcome {
    let n = call
        .args
        .get("n")
        .and_then(Value::as_u64)
        .unwrap_or(0)
        .min(MAX_BYTES);
    let n = usize::try_from(n).expect("64 MiB fit into every supported address space");
    if n <= INLINE_BYTES {
        return generate(n);
    }
    match tokio::task::spawn_blocking(move || generate(n)).await {
        Ok(outcome) => outcome,
        Err(error) => Err(CallError::transient(format!(
            "the work was stopped: {error}"
        ))),
    }
}

fn generate(n: usize) -> Outcome {
    let mut bytes = vec![0; n];
    getrandom::fill(&mut bytes)
        .map_err(|error| CallError::transient(format!("the system gave no randomness: {error}")))?;
    Ok(Value::String(base64(&bytes)))
}

/// RFC 4648, with padding. Twelve lines that only a demonstration needs do not earn a dependency.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().enumerate().fold(0_u32, |group, (i, byte)| {
            group | u32::from(*byte) << (16 - 8 * i)
        });
        for i in 0..4 {
            let sextet = (group >> (18 - 6 * i) & 63) as usize;
            text.push(if i <= chunk.len() {
                char::from(ALPHABET[sextet])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_agrees_with_the_vectors_of_the_standard() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in vectors {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
