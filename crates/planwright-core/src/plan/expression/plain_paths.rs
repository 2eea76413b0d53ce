//! Paths and addresses without detours, for predicates that decide what is allowed.
//!
//! A predicate sees arguments as text, and the tool that gets them resolves them: `notes/../Makefile`
//! begins with `notes/` and is not under it. So what allows something has to hold for the argument
//! as it is written and for the path it leads to; what forbids something, for one of them.

use serde_json::Value;
use url::Url;

/// Returns the value with every path and address in it resolved by its words alone, if that makes a
/// difference.
pub(crate) fn without_detours(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => plain_address(text)
            .or_else(|| plain_path(text))
            .map(Value::String),
        Value::Array(list) => {
            let plain: Vec<Option<Value>> = list.iter().map(without_detours).collect();
            plain.iter().any(Option::is_some).then(|| {
                let items = plain.into_iter().zip(list);
                Value::Array(
                    items
                        .map(|(plain, item)| plain.unwrap_or_else(|| item.clone()))
                        .collect(),
                )
            })
        }
        Value::Object(map) => {
            let plain: Vec<Option<Value>> = map.values().map(without_detours).collect();
            plain.iter().any(Option::is_some).then(|| {
                let fields = plain.into_iter().zip(map);
                let fields = fields.map(|(plain, (key, value))| {
                    (key.clone(), plain.unwrap_or_else(|| value.clone()))
                });
                Value::Object(fields.collect())
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The address as a client reads it, without names and passwords in it; nothing if it is written so.
fn plain_address(text: &str) -> Option<String> {
    if !text.contains(':') {
        return None;
    }
    let mut url = Url::parse(text).ok().filter(Url::has_host)?;
    let named = url.set_username("").and_then(|()| url.set_password(None));
    named.ok()?;
    let plain = String::from(url);
    let differs = plain != text && plain.strip_suffix('/') != Some(text);
    differs.then_some(plain)
}

/// The path without `.`, `..` and empty segments; nothing if it has none of them. What `..` leads
/// out of stays, so that it cannot pass for something inside.
fn plain_path(text: &str) -> Option<String> {
    let is_path = text.contains('/') && !text.contains("://") && !text.contains('\n');
    let has_detour = |segment: &str| matches!(segment, "." | "..");
    if !is_path && !has_detour(text) {
        return None;
    }
    let mut rest = text;
    let mut plain: Vec<&str> = Vec::new();
    let is_absolute = rest.starts_with('/');
    rest = rest.trim_start_matches('/');
    let mut differs = is_absolute && text.len() - rest.len() > 1;
    for segment in rest.trim_end_matches('/').split('/') {
        match segment {
            "" | "." => differs = true,
            ".." => {
                differs = true;
                match plain.last() {
                    Some(&"..") | None if !is_absolute => plain.push(".."),
                    Some(_) => {
                        plain.pop();
                    }
                    None => {}
                }
            }
            name => plain.push(name),
        }
    }
    if !differs {
        return None;
    }
    let root = if is_absolute { "/" } else { "" };
    Some(format!("{root}{}", plain.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn detours_are_taken_out_and_what_leads_outside_stays() {
        for (path, plain) in [
            ("notes/../Makefile", Some("Makefile")),
            ("notes/./a.txt", Some("notes/a.txt")),
            ("notes//a.txt", Some("notes/a.txt")),
            ("a/../../b", Some("../b")),
            ("../../b", Some("../../b")),
            ("/etc/../x", Some("/x")),
            ("/../x", Some("/x")),
            ("//x", Some("/x")),
            ("..", Some("..")),
            ("notes/a.txt", None),
            ("notes/", None),
            ("a sentence.. and a half", None),
        ] {
            assert_eq!(plain_path(path).as_deref(), plain, "{path}");
        }
        for (address, plain) in [
            ("https://a.example/../b", Some("https://a.example/b")),
            ("https://a.example@b.example/c", Some("https://b.example/c")),
            (
                "https://a.example\\@b.example",
                Some("https://a.example/@b.example"),
            ),
            ("http:/\tb.example/", Some("http://b.example/")),
            ("https://A.example:443/x", Some("https://a.example/x")),
            ("https://a.example", None),
            ("https://a.example/x?y#z", None),
            ("mailto:ada@a.example", None),
            ("note: see below", None),
        ] {
            assert_eq!(plain_address(address).as_deref(), plain, "{address}");
        }
        assert_eq!(
            without_detours(&json!({"a": ["x/../y", 1], "b": "c"})),
            Some(json!({"a": ["y", 1], "b": "c"}))
        );
        assert_eq!(without_detours(&json!({"a": ["y", 1]})), None);
    }
}
