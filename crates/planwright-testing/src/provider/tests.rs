//! The provider itself: the tests that use it rely on it.

use super::{Provider, ScriptedReply};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Asks as a program without any library would, and gives back everything that came.
fn post(provider: &Provider, path: &str, body: &Value) -> String {
    let mut stream =
        TcpStream::connect(provider.url().trim_start_matches("http://")).expect("it listens");
    let body = body.to_string();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers text");
    answer
}

#[test]
fn the_provider_speaks_three_formats_streamed_and_whole() {
    let paths = [
        ("/v1/chat/completions", "/v1/chat/completions", "[DONE]"),
        ("/v1/messages", "/v1/messages", "message_stop"),
        (
            "/v1beta/models/m:generateContent",
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            "STOP",
        ),
    ];
    for (whole, streamed, end) in paths {
        let provider = Provider::answering(|asked| match asked.text().contains("tool") {
            true => ScriptedReply::calls([("demo__echo", json!({"value": 1}))]).saying("I call."),
            false => ScriptedReply::text("Grüße aus dem Skript").using(7, 3, 2),
        });
        let answer = post(&provider, whole, &json!({"model": "m"}));
        assert!(answer.contains("Grüße aus dem Skript"), "{answer}");
        let answer = post(&provider, streamed, &json!({"model": "m", "stream": true}));
        assert!(answer.contains("Gr") && answer.contains(end), "{answer}");
        let answer = post(
            &provider,
            streamed,
            &json!({"model": "m", "stream": true, "tool": 1}),
        );
        assert!(
            answer.contains("demo__echo") && answer.contains("I c"),
            "{answer}"
        );
        assert_eq!(provider.asked().len(), 3);
        assert_eq!(provider.asked()[0].path, whole);
        assert_eq!(provider.asked()[0].headers["host"], "x");
    }
}

#[test]
fn the_provider_misbehaves_as_it_is_told() {
    let short = Duration::from_millis(1);
    let provider = Provider::scripted([
        ScriptedReply::limited(2),
        ScriptedReply::loading().after(short),
        ScriptedReply::text("a whole answer").cut(2).slowly(short),
        ScriptedReply::fenced(&json!({"a": 1}))
            .too_long()
            .without_usage(),
        ScriptedReply::json(json!({"b": 2})),
    ]);
    let ask = || post(&provider, "/v1/chat/completions", &json!({"stream": true}));
    assert!(ask().contains("retry-after: 2"));
    assert!(ask().contains("Loading model"));
    assert!(!ask().contains("[DONE]"));
    let fenced = ask();
    assert!(
        fenced.contains("```json")
            && fenced.contains("length")
            && !fenced.contains("prompt_tokens")
    );
    let forced = json!({"stream": true, "tool_choice": {"function": {"name": "answer"}}});
    assert!(post(&provider, "/v1/chat/completions", &forced).contains("call_answer_0"));
    assert!(ask().contains("the script is used up"));
    assert!(provider.config().contains(&provider.url()));
}

#[test]
fn a_hanging_answer_ends_when_nobody_waits_any_more() {
    let provider = Provider::scripted([ScriptedReply::text("never whole").hanging(1)]);
    let address = provider.url();
    let mut stream = TcpStream::connect(address.trim_start_matches("http://")).expect("it listens");
    let body = json!({"stream": true}).to_string();
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("it reads");
    let mut begun = [0; 64];
    stream.read_exact(&mut begun).expect("it begins");
    drop(stream);
}
