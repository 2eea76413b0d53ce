//! Results as arguments of later steps.

use super::{Besieged, LOGIN};
use crate::world::status_of;
use serde_json::{Value, json};

/// Reads a page and sends it to the team. One step is given the secret, so that there is something
/// to leak.
fn sending(page: usize) -> Value {
    json!({"id": "p", "steps": [
        {"id": LOGIN, "tool": "r.look", "args": {"value": "Bearer ${secret.KEY}"}},
        {"id": "read", "tool": "r.read", "args": {"page": page}},
        {"id": "send", "tool": "w.write", "dependsOn": [LOGIN], "args": {"to": "team@example.org", "text": "${read}"}},
        {"id": "quote", "tool": "w.write", "args": {"to": "team@example.org", "text": "They say: ${read}", "sent": "${send}"}},
    ]})
}

#[tokio::test(start_paused = true)]
async fn what_a_tool_returns_arrives_as_it_is_and_is_never_expanded() {
    for page in 0..Besieged::cases() {
        let besieged = Besieged::new();
        let injected = besieged.corpus[page].clone();
        let run = besieged
            .run(sending(page), &[("send", "any"), ("quote", "any")])
            .await;
        assert_eq!(run.status().as_str(), "completed", "{}", injected.attack);
        let send = json!({"to": "team@example.org", "text": injected.text});
        let quote = json!({"to": "team@example.org", "text": format!("They say: {}", injected.text), "sent": "send"});
        assert_eq!(besieged.made().0.len(), 2);
        besieged.holds(&injected, &[("w.write", send), ("w.write", quote)]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_tool_returns_agrees_to_nothing() {
    for page in 0..Besieged::cases() {
        let besieged = Besieged::new();
        let injected = besieged.corpus[page].clone();
        let run = besieged
            .run(sending(page), &[("send", "ask"), ("quote", "ask")])
            .await;
        assert_eq!(
            (run.status().as_str(), status_of(&run, "send")),
            ("waiting", "awaiting_approval"),
            "{}",
            injected.attack
        );
        besieged.holds(&injected, &[]);
    }
}
