//! Addresses in predicates that decide what is allowed are judged on the host that would be asked.
//!
//! `args.url.startsWith("https://api.example.com")` is about a host, and as text it is also true of
//! `https://api.example.com.evil.example` and of `https://api.example.com@evil.example`.

use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue};
use serde_json::Value;
use url::Url;

/// The beginnings of addresses in a predicate that end within the host.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct HostPrefixes(Vec<String>);

impl HostPrefixes {
    pub(super) fn of(tree: &IdedExpr) -> Self {
        let mut found = Vec::new();
        collect(tree, &mut found);
        Self(found)
    }

    /// Returns whether an argument begins like one of them and would ask another host.
    pub(crate) fn mistake(&self, args: &Value) -> bool {
        if self.0.is_empty() {
            return false;
        }
        match args {
            Value::String(text) => self.0.iter().any(|prefix| leads_elsewhere(prefix, text)),
            Value::Array(list) => list.iter().any(|item| self.mistake(item)),
            Value::Object(map) => map.values().any(|value| self.mistake(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
}

fn leads_elsewhere(prefix: &str, text: &str) -> bool {
    let begins = text
        .get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    if !begins {
        return false;
    }
    let (Ok(meant), Ok(asked)) = (Url::parse(prefix), Url::parse(text)) else {
        return true;
    };
    // The usual port of a scheme is not kept by the parser.
    let names_port = prefix.rsplit_once(':').is_some_and(|(_, port)| {
        !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    let same_port = !names_port || meant.port_or_known_default() == asked.port_or_known_default();
    meant.host_str() != asked.host_str() || !same_port
}

/// Returns whether a text is the beginning of an address that ends within the host.
fn is_host_prefix(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && !rest.is_empty() && !rest.contains(['/', '\\', '?', '#'])
    })
}

fn collect(expression: &IdedExpr, found: &mut Vec<String>) {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) if is_host_prefix(text.inner()) => {
            found.push(text.inner().to_owned());
        }
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
        Expr::Select(select) => collect(&select.operand, found),
        Expr::Call(call) => {
            for part in call.target.as_deref().into_iter().chain(&call.args) {
                collect(part, found);
            }
        }
        Expr::List(list) => list.elements.iter().for_each(|part| collect(part, found)),
        Expr::Map(map) => collect_entries(&map.entries, found),
        Expr::Struct(structure) => collect_entries(&structure.entries, found),
        Expr::Comprehension(parts) => {
            for part in [
                &parts.iter_range,
                &parts.accu_init,
                &parts.loop_cond,
                &parts.loop_step,
                &parts.result,
            ] {
                collect(part, found);
            }
        }
    }
}

fn collect_entries(entries: &[IdedEntryExpr], found: &mut Vec<String>) {
    for entry in entries {
        match &entry.expr {
            EntryExpr::StructField(field) => collect(&field.value, found),
            EntryExpr::MapEntry(entry) => {
                collect(&entry.key, found);
                collect(&entry.value, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Condition;
    use serde_json::json;

    #[test]
    fn what_begins_like_a_host_is_allowed_only_for_that_host() {
        let bounded = Condition::parse("args.url.startsWith('https://api.example.com')").unwrap();
        for (url, allowed) in [
            ("https://api.example.com", true),
            ("https://api.example.com/x?y=1", true),
            ("https://api.example.com:8443/x", true),
            ("https://api.example.com.evil.example/", false),
            ("https://api.example.com@evil.example/", false),
            ("https://api.example.com:x@evil.example/", false),
            ("https://api.example.comx/", false),
            ("https://api.example.com\\@evil.example/", true),
            ("https://evil.example/", false),
        ] {
            let held = bounded.holds_for_args(&json!({ "url": url }));
            assert_eq!(held, Ok(allowed), "{url}");
        }
        let with_slash = Condition::parse("args.url.startsWith('https://a.example/docs/')");
        let with_slash = with_slash.unwrap();
        for (url, allowed) in [
            ("https://a.example/docs/x", true),
            ("https://a.example/docs/../admin", false),
            ("https://a.example/docs/%2e%2e/admin", false),
            ("https://a.example/docs/..\\admin", false),
        ] {
            let held = with_slash.holds_for_args(&json!({ "url": url }));
            assert_eq!(held, Ok(allowed), "{url}");
        }
        let ported = Condition::parse("args.url.startsWith('http://a.example:80')").unwrap();
        let held = |url: &str| ported.holds_for_args(&json!({ "url": url }));
        assert_eq!(held("http://a.example:8080/"), Ok(false));
    }
}
