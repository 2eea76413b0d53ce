//! One tool call as it would be sent, and what it does in words.

use super::effect::{Effect, EffectKind};
use super::file_change::{CurrentFile, FileChange};
use super::model::CallBriefing;
use crate::json::pointer_token;
use crate::plan::LatePart;
use crate::text::{reveal_around_words, reveal_hidden, spell_brackets};
use crate::tool::KnownTool;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The server of the tools that come with Planwright, whose arguments are understood.
const LOCAL: &str = "local";

/// What a call writes, runs or asks for, as far as that is understood.
enum Meaning<'a> {
    WritesFile {
        path: &'a str,
        content: Option<&'a Value>,
        appends: bool,
    },
    RunsCommand,
    Requests {
        url: &'a str,
    },
    Other,
}

/// A call and its effect.
pub(super) struct BriefedCall {
    pub(super) call: CallBriefing,
    pub(super) effect: Effect,
}

/// Describes a call of a tool, by the name the plan uses if the tool is not known.
pub(super) fn describe_call(
    name: &str,
    tool: Option<&KnownTool>,
    args: Value,
    late: &[LatePart],
    files: &BTreeMap<String, CurrentFile>,
) -> BriefedCall {
    let full_name = tool.map_or_else(|| name.to_owned(), |tool| tool.name.to_string());
    let general = tool.map_or_else(
        || {
            Effect::new(
                EffectKind::Unknown,
                "is not known here, so it cannot be called",
            )
        },
        Effect::of_tool,
    );
    let is_late = |key: &str| late.iter().any(|part| is_within(&part.pointer, key));
    let mut call = CallBriefing {
        tool: full_name,
        late: late_pointers(late),
        command: None,
        file: None,
        args: Value::Null,
    };
    let effect = match meaning(tool, &args) {
        Meaning::WritesFile {
            path,
            content,
            appends,
        } => {
            let now = if is_late("path") {
                None
            } else {
                files.get(path)
            };
            let text = content.filter(|_| !is_late("content")).map(written_text);
            let change = FileChange::new(path, now, text.as_deref(), appends);
            let shown = if is_late("path") {
                reveal_around_words(path)
            } else {
                reveal_hidden(path)
            };
            let effect = file_effect(&change, &one_line(&shown), general);
            call.file = Some(change);
            effect
        }
        Meaning::RunsCommand => {
            call.command = args.as_object().map(|args| typed_command(args, &call.late));
            let words = "runs a program on this machine, which can do everything you can";
            Effect::new(EffectKind::Destroys, words)
        }
        Meaning::Requests { url } => {
            let words = format!("sends a request to {}", host_of(url));
            Effect::new(EffectKind::Sends, words)
        }
        Meaning::Other => general,
    };
    call.args = args;
    BriefedCall { call, effect }
}

/// The path that a call would write in the workspace, if that is understood and known.
pub(super) fn written_path<'a>(
    tool: &KnownTool,
    args: &'a Value,
    late: &[LatePart],
) -> Option<&'a str> {
    match meaning(Some(tool), args) {
        Meaning::WritesFile { path, .. }
            if !late.iter().any(|part| is_within(&part.pointer, "path")) =>
        {
            Some(path)
        }
        Meaning::WritesFile { .. }
        | Meaning::RunsCommand
        | Meaning::Requests { .. }
        | Meaning::Other => None,
    }
}

fn meaning<'a>(tool: Option<&KnownTool>, args: &'a Value) -> Meaning<'a> {
    let Some(tool) = tool else {
        return Meaning::Other;
    };
    let text = |key: &str| args.get(key).and_then(Value::as_str);
    if tool.name.server != LOCAL {
        // Servers of files name their arguments alike; what they do with them is their word.
        let writes = !tool.is_read_only() && args.get("content").is_some();
        return match text("path").filter(|_| writes) {
            Some(path) => Meaning::WritesFile {
                path,
                content: args.get("content"),
                appends: false,
            },
            None => Meaning::Other,
        };
    }
    match tool.name.tool.as_str() {
        name @ ("write_file" | "append_file") => match text("path") {
            Some(path) => Meaning::WritesFile {
                path,
                content: args.get("content"),
                appends: name == "append_file",
            },
            None => Meaning::Other,
        },
        "run_command" => Meaning::RunsCommand,
        "http_get" => text("url").map_or(Meaning::Other, |url| Meaning::Requests { url }),
        _ => Meaning::Other,
    }
}

/// Describes what happens to the file. What another server does with a path is said by its
/// annotations too.
fn file_effect(change: &FileChange, path: &str, general: Effect) -> Effect {
    let verb = match (change.appends, change.exists) {
        (true, _) => "appends to",
        (false, Some(true)) => "overwrites",
        (false, Some(false)) => "creates",
        (false, None) => "writes",
    };
    let kind = match change.exists {
        Some(false) => EffectKind::Changes.max(general.kind),
        Some(true) | None if change.appends => EffectKind::Changes,
        Some(true) | None => general.kind,
    };
    let place = change.resolved.as_deref().map(|resolved| {
        let resolved = reveal_hidden(resolved);
        format!(", which is {}", one_line(&resolved))
    });
    Effect::new(kind, format!("{verb} {path}{}", place.unwrap_or_default()))
}

fn one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

fn is_within(pointer: &str, key: &str) -> bool {
    let rest = pointer
        .strip_prefix('/')
        .and_then(|rest| rest.strip_prefix(key));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(super) fn late_pointers(late: &[LatePart]) -> Vec<String> {
    let mut pointers: Vec<String> = late.iter().map(|part| part.pointer.clone()).collect();
    pointers.dedup();
    pointers
}

/// The text that the file tools write for a value.
fn written_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_)) => format!("{other:#}"),
    }
}

/// The command as one would type it into a shell. Our brackets stand only around words that are
/// known later: in the plan's own words they are spelt out.
fn typed_command(args: &Map<String, Value>, late: &[String]) -> String {
    let word = |text: &str, pointer: String| {
        if late.contains(&pointer) {
            quote(text)
        } else {
            quote(&spell_brackets(text))
        }
    };
    let mut words = Vec::new();
    if let Some(directory) = args.get("cwd").and_then(Value::as_str) {
        words.push(format!("cd {} &&", word(directory, "/cwd".to_owned())));
    }
    let variables = args.get("env").and_then(Value::as_object);
    for (name, value) in variables.into_iter().flatten() {
        let pointer = format!("/env/{}", pointer_token(name));
        let value = word(value.as_str().unwrap_or_default(), pointer);
        words.push(format!("{}={value}", spell_brackets(name)));
    }
    let command = args.get("command").and_then(Value::as_str);
    words.extend(command.map(|command| word(command, "/command".to_owned())));
    let typed = args.get("args").and_then(Value::as_array);
    for (index, argument) in typed.into_iter().flatten().enumerate() {
        let pointer = format!("/args/{index}");
        words.push(match argument.as_str() {
            Some(text) => word(text, pointer),
            None => word(&argument.to_string(), pointer),
        });
    }
    if args.contains_key("stdin") {
        words.push("< stdin".to_owned());
    }
    words.join(" ")
}

/// Quotes a word for a shell. What is only known later keeps its brackets, unquoted.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if word.starts_with('‹') && word.ends_with('›') {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The part of a URL that says where a request goes; the whole text if there is none.
fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or(rest);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    reveal_hidden(&one_line(host)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn commands_are_shown_as_one_would_type_them() {
        let late = ["/args/1".to_owned()];
        let typed = |args: Value| typed_command(args.as_object().unwrap(), &late);
        assert_eq!(
            typed(
                json!({"command": "sh", "args": ["-c", "echo 'a b' > x; rm -rf y"], "cwd": "sub dir", "env": {"A": "1 2"}})
            ),
            r"cd 'sub dir' && A='1 2' sh -c 'echo '\''a b'\'' > x; rm -rf y'"
        );
        assert_eq!(
            typed(json!({"command": "cat", "args": ["", "‹content of step a›"], "stdin": "x"})),
            "cat '' ‹content of step a› < stdin"
        );
    }

    #[test]
    fn requests_name_the_host_they_really_go_to() {
        assert_eq!(
            host_of("https://good.example@evil.example/x?y"),
            "evil.example"
        );
        assert_eq!(
            host_of("http://evil.example\\@good.example/"),
            "evil.example"
        );
        assert_eq!(host_of("https://p\u{430}ypal.com/"), "p\\u{430}ypal.com");
    }
}
