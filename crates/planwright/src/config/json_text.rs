//! Edits the text of a JSON file, with or without comments, and leaves everything else as it is:
//! order, comments, indentation, line ends.

use serde_json::Value;

/// A value and where it stands.
#[derive(Debug)]
struct Node {
    start: usize,
    end: usize,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Scalar,
}

#[derive(Debug)]
struct Member {
    key: String,
    start: usize,
    value: Node,
}

/// Deeper files are a mistake, or an attack.
const MAX_DEPTH: usize = 64;

/// Sets a member of the object that `path` leads to. Objects on the way are made.
pub(crate) fn set_member(
    text: &str,
    path: &[String],
    key: &str,
    value: &Value,
) -> Result<String, String> {
    let text = with_objects(text, path)?;
    let root = parse(&text)?;
    let object = find(&root, path).ok_or("it has no such object")?;
    let Kind::Object(members) = &object.kind else {
        return Err(not_an_object(path));
    };
    match members.iter().find(|member| member.key == key) {
        Some(member) if read(&text, &member.value)? == *value => Ok(text),
        Some(member) => {
            let indent = indent_of(&text, member.start);
            let written = write(&text, value, &indent);
            Ok(splice(
                &text,
                member.value.start,
                member.value.end,
                &written,
            ))
        }
        None => {
            let places: Vec<(usize, usize)> = members
                .iter()
                .map(|member| (member.start, member.value.end))
                .collect();
            let insert =
                |indent: &str| format!("{}: {}", Value::from(key), write(&text, value, indent));
            Ok(insert_into(&text, object, &places, insert))
        }
    }
}

/// Adds an element to the list that `path` leads to, unless it is there.
pub(crate) fn add_element(text: &str, path: &[String], value: &Value) -> Result<String, String> {
    let (key, above) = path.split_last().ok_or("a list has a name")?;
    let mut text = with_objects(text, above)?;
    let known = {
        let root = parse(&text)?;
        find(&root, path).is_some()
    };
    if !known {
        text = set_member(&text, above, key, &Value::Array(Vec::new()))?;
    }
    let root = parse(&text)?;
    let list = find(&root, path).ok_or("it has no such list")?;
    let Kind::Array(items) = &list.kind else {
        return Err(format!("`{}` is not a list", path.join(".")));
    };
    for item in items {
        if read(&text, item)? == *value {
            return Ok(text);
        }
    }
    let places: Vec<(usize, usize)> = items.iter().map(|item| (item.start, item.end)).collect();
    Ok(insert_into(&text, list, &places, |indent| {
        write(&text, value, indent)
    }))
}

/// Removes a member, if it is there, and objects that only held it.
pub(crate) fn remove_member(text: &str, path: &[String], key: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let root = parse(text)?;
    let Some(object) = find(&root, path) else {
        return Ok(text.to_owned());
    };
    let Kind::Object(members) = &object.kind else {
        return Ok(text.to_owned());
    };
    let Some(index) = members.iter().position(|member| member.key == key) else {
        return Ok(text.to_owned());
    };
    let places: Vec<(usize, usize)> = members
        .iter()
        .map(|member| (member.start, member.value.end))
        .collect();
    let left = remove_place(text, object, &places, index);
    remove_if_empty(left, path)
}

/// Removes the elements that `is_it` says yes to, and what only held them.
pub(crate) fn remove_elements(
    text: &str,
    path: &[String],
    is_it: &dyn Fn(&Value) -> bool,
) -> Result<String, String> {
    let mut text = text.to_owned();
    while !text.trim().is_empty() {
        let root = parse(&text)?;
        let Some(list) = find(&root, path) else {
            return Ok(text);
        };
        let Kind::Array(items) = &list.kind else {
            return Ok(text);
        };
        let mut found = None;
        for (index, item) in items.iter().enumerate() {
            if is_it(&read(&text, item)?) {
                found = Some(index);
                break;
            }
        }
        let Some(index) = found else {
            return Ok(text);
        };
        let places: Vec<(usize, usize)> = items.iter().map(|item| (item.start, item.end)).collect();
        text = remove_place(&text, list, &places, index);
        if places.len() == 1 {
            return remove_if_empty(text, path);
        }
    }
    Ok(text)
}

/// The value that `path` leads to.
pub(crate) fn value_at(text: &str, path: &[String]) -> Result<Option<Value>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let root = parse(text)?;
    find(&root, path).map(|node| read(text, node)).transpose()
}

/// The whole value of a file, which may have comments and commas at the end of lists.
pub(crate) fn read_document(text: &str) -> Result<Value, String> {
    let root = parse(text)?;
    read(text, &root)
}

fn not_an_object(path: &[String]) -> String {
    match path {
        [] => "it is not a JSON object".to_owned(),
        path => format!("`{}` is not an object", path.join(".")),
    }
}

/// The text with an object at every place of the path.
fn with_objects(text: &str, path: &[String]) -> Result<String, String> {
    let mut text = if text.trim().is_empty() {
        "{}\n".to_owned()
    } else {
        text.to_owned()
    };
    for end in 0..path.len() {
        let root = parse(&text)?;
        match find(&root, &path[..=end]) {
            Some(node) if matches!(node.kind, Kind::Object(_)) => {}
            Some(_) => return Err(not_an_object(&path[..=end])),
            None => {
                let empty = Value::Object(serde_json::Map::new());
                text = set_member(&text, &path[..end], &path[end], &empty)?;
            }
        }
    }
    Ok(text)
}

fn remove_if_empty(text: String, path: &[String]) -> Result<String, String> {
    let Some((key, above)) = path.split_last() else {
        return Ok(text);
    };
    let root = parse(&text)?;
    let is_empty = |node: &Node| {
        let inside = &text[node.start + 1..node.end - 1];
        inside.trim().is_empty()
    };
    match find(&root, path) {
        Some(node) if is_empty(node) => remove_member(&text, above, key),
        Some(_) | None => Ok(text),
    }
}

fn find<'a>(node: &'a Node, path: &[String]) -> Option<&'a Node> {
    let Some((key, rest)) = path.split_first() else {
        return Some(node);
    };
    match &node.kind {
        Kind::Object(members) => {
            let member = members.iter().find(|member| member.key == *key)?;
            find(&member.value, rest)
        }
        Kind::Array(_) | Kind::Scalar => None,
    }
}

/// The value of a node, which may have comments inside.
fn read(text: &str, node: &Node) -> Result<Value, String> {
    match &node.kind {
        Kind::Scalar => serde_json::from_str(&text[node.start..node.end])
            .map_err(|error| format!("it is not JSON: {error}")),
        Kind::Array(items) => items.iter().map(|item| read(text, item)).collect(),
        Kind::Object(members) => members
            .iter()
            .map(|member| Ok((member.key.clone(), read(text, &member.value)?)))
            .collect::<Result<serde_json::Map<String, Value>, String>>()
            .map(Value::Object),
    }
}

fn splice(text: &str, start: usize, end: usize, new: &str) -> String {
    format!("{}{new}{}", &text[..start], &text[end..])
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// The whitespace before what begins at `at`, if nothing else stands before it on its line.
fn indent_of(text: &str, at: usize) -> String {
    let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..];
    let white = line.len() - line.trim_start_matches([' ', '\t']).len();
    line[..white].to_owned()
}

/// One step of indentation, as the file has it.
fn unit(text: &str) -> String {
    let indented = text.lines().find_map(|line| {
        let white = line.len() - line.trim_start_matches([' ', '\t']).len();
        (white > 0 && white < line.trim_end().len()).then(|| &line[..white])
    });
    match indented {
        Some(white) if white.starts_with('\t') => "\t".to_owned(),
        Some(white) if white.len() <= 8 => white.to_owned(),
        Some(_) | None => "  ".to_owned(),
    }
}

/// The value as it stands behind a key with this indentation.
fn write(text: &str, value: &Value, indent: &str) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
    let unit = unit(text);
    let end = line_end(text);
    let mut lines = pretty.lines().map(|line| {
        let plain = line.trim_start_matches(' ');
        let depth = (line.len() - plain.len()) / 2;
        format!("{}{plain}", unit.repeat(depth))
    });
    let first = lines.next().unwrap_or_default();
    lines.fold(first, |all, line| format!("{all}{end}{indent}{line}"))
}

/// Inserts something behind the last of these places inside of a container.
fn insert_into(
    text: &str,
    container: &Node,
    places: &[(usize, usize)],
    insert: impl Fn(&str) -> String,
) -> String {
    let end = line_end(text);
    let outer = indent_of(text, container.start);
    let Some(&(start, last)) = places.last() else {
        let indent = format!("{outer}{}", unit(text));
        let inside = &text[container.start + 1..container.end - 1];
        // Comments stay where they are.
        let kept = inside.trim_end();
        let at = container.start + 1 + kept.len();
        let new = format!("{end}{indent}{}{end}{outer}", insert(&indent));
        return splice(text, at, container.end - 1, &new);
    };
    let own_line = text[container.start..start].contains('\n');
    let after = skip(text, last);
    let comma = text[after..].starts_with(',');
    let at = if comma { after + 1 } else { last };
    let lead = if comma { "" } else { "," };
    // A file that ends its lists with a comma goes on doing so.
    let trail = if comma && own_line { "," } else { "" };
    let new = if own_line {
        let indent = indent_of(text, start);
        format!("{lead}{end}{indent}{}{trail}", insert(&indent))
    } else {
        format!("{lead} {}", insert(&outer))
    };
    splice(text, at, at, &new)
}

/// Removes one of the places, its comma and its line, and leaves the comments around it.
fn remove_place(text: &str, container: &Node, places: &[(usize, usize)], index: usize) -> String {
    let (start, mut end) = places[index];
    let mut text = text.to_owned();
    let after = skip(&text, end);
    let has_comma = text[after..].starts_with(',');
    if has_comma {
        end = after + 1;
    }
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let alone_before = text[line_start..start].trim().is_empty() && line_start > container.start;
    let rest = &text[end..];
    let to_line_end = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
    let ends_line = rest[to_line_end..].starts_with('\n');
    let (from, to) = if alone_before && ends_line {
        (line_start, end + to_line_end + 1)
    } else {
        let spaces = rest.len() - rest.trim_start_matches(' ').len();
        (start, if has_comma { end + spaces } else { end })
    };
    text.replace_range(from..to, "");
    // The one before is the last one now, and JSON has no comma there.
    if !has_comma && index > 0 {
        let before = places[index - 1].1;
        let comma = skip(&text, before);
        if text[comma..].starts_with(',') {
            text.remove(comma);
        }
    }
    let only = places.len() == 1;
    let close = container.end - (to - from) - 1;
    let inside = container.start + 1;
    if only && text[inside..close].trim().is_empty() {
        text.replace_range(inside..close, "");
    }
    text
}

/// Where the next thing begins that is neither space nor comment.
fn skip(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b' ' | b'\t' | b'\r' | b'\n'), _) => at += 1,
            (Some(b'/'), Some(b'/')) => {
                at = text[at..].find('\n').map_or(text.len(), |end| at + end);
            }
            (Some(b'/'), Some(b'*')) => match text[at + 2..].find("*/") {
                Some(end) => at += end + 4,
                None => return text.len(),
            },
            _ => return at,
        }
    }
}

fn parse(text: &str) -> Result<Node, String> {
    let begin = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let at = skip(text, begin);
    let node = parse_node(text, at, 0)?;
    let after = skip(text, node.end);
    if after < text.len() {
        return Err(unexpected(text, after));
    }
    match node.kind {
        Kind::Object(_) => Ok(node),
        Kind::Array(_) | Kind::Scalar => Err(not_an_object(&[])),
    }
}

fn unexpected(text: &str, at: usize) -> String {
    let line = text[..at.min(text.len())].matches('\n').count() + 1;
    format!("it is not JSON: line {line} has something that does not belong there")
}

fn parse_node(text: &str, at: usize, depth: usize) -> Result<Node, String> {
    if depth > MAX_DEPTH {
        return Err(format!("it is nested more than {MAX_DEPTH} levels deep"));
    }
    match text.as_bytes().get(at) {
        Some(b'{') => parse_object(text, at, depth),
        Some(b'[') => parse_array(text, at, depth),
        Some(_) => {
            let end = scalar_end(text, at)?;
            let scalar = &text[at..end];
            if serde_json::from_str::<Value>(scalar).is_err() {
                return Err(unexpected(text, at));
            }
            Ok(Node {
                start: at,
                end,
                kind: Kind::Scalar,
            })
        }
        None => Err(unexpected(text, at)),
    }
}

fn scalar_end(text: &str, at: usize) -> Result<usize, String> {
    let bytes = text.as_bytes();
    if bytes[at] != b'"' {
        let is_over = |c: char| c.is_whitespace() || ",]}/".contains(c);
        return Ok(text[at..].find(is_over).map_or(text.len(), |end| at + end));
    }
    let mut end = at + 1;
    loop {
        match bytes.get(end) {
            Some(b'"') => return Ok(end + 1),
            Some(b'\\') => end += 2,
            Some(_) => end += 1,
            None => return Err(unexpected(text, at)),
        }
    }
}

fn parse_object(text: &str, start: usize, depth: usize) -> Result<Node, String> {
    let mut members: Vec<Member> = Vec::new();
    let mut at = skip(text, start + 1);
    loop {
        if text[at..].starts_with('}') {
            return Ok(Node {
                start,
                end: at + 1,
                kind: Kind::Object(members),
            });
        }
        if !text[at..].starts_with('"') {
            return Err(unexpected(text, at));
        }
        let end = scalar_end(text, at)?;
        let key: String = serde_json::from_str(&text[at..end]).map_err(|_| unexpected(text, at))?;
        if members.iter().any(|member| member.key == key) {
            return Err(format!("it has the key `{key}` twice"));
        }
        let colon = skip(text, end);
        if !text[colon..].starts_with(':') {
            return Err(unexpected(text, colon));
        }
        let value = parse_node(text, skip(text, colon + 1), depth + 1)?;
        let after = skip(text, value.end);
        members.push(Member {
            key,
            start: at,
            value,
        });
        at = next_item(text, after, '}')?;
    }
}

fn parse_array(text: &str, start: usize, depth: usize) -> Result<Node, String> {
    let mut items = Vec::new();
    let mut at = skip(text, start + 1);
    loop {
        if text[at..].starts_with(']') {
            return Ok(Node {
                start,
                end: at + 1,
                kind: Kind::Array(items),
            });
        }
        let item = parse_node(text, at, depth + 1)?;
        let after = skip(text, item.end);
        items.push(item);
        at = next_item(text, after, ']')?;
    }
}

fn next_item(text: &str, after: usize, close: char) -> Result<usize, String> {
    if text[after..].starts_with(',') {
        return Ok(skip(text, after + 1));
    }
    if text[after..].starts_with(close) {
        return Ok(after);
    }
    Err(unexpected(text, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(keys: &[&str]) -> Vec<String> {
        keys.iter().map(|&key| key.to_owned()).collect()
    }

    const FILES: [&str; 8] = [
        "",
        "{}",
        "{}\n",
        "{\n}\n",
        "{\n  // nothing yet\n}\n",
        "{\"mcpServers\":{\"a\":{\"command\":\"x\"}},\"other\":[1,2]}",
        "{\n\t\"servers\": {\n\t\t/* the first */\n\t\t\"a\": { \"command\": \"x\" }, // runs x\n\t},\n\t// the end\n}\n",
        "\u{feff}{\r\n    \"mcpServers\": {\r\n        \"a\": {}\r\n    },\r\n    \"z\": null\r\n}\r\n",
    ];

    #[test]
    fn a_member_is_set_and_taken_back_and_the_rest_stays() {
        let entry = json!({ "command": "planwright", "args": ["mcp"] });
        for file in FILES {
            for key in ["mcpServers", "servers"] {
                let at = path(&[key]);
                let set = set_member(file, &at, "planwright", &entry).unwrap();
                assert_eq!(
                    value_at(&set, &path(&[key, "planwright"])).unwrap(),
                    Some(entry.clone()),
                    "{set}"
                );
                assert_eq!(set_member(&set, &at, "planwright", &entry).unwrap(), set);
                for comment in [
                    "// nothing yet",
                    "/* the first */",
                    "// runs x",
                    "// the end",
                ] {
                    assert_eq!(set.contains(comment), file.contains(comment), "{set}");
                }
                assert_eq!(set.contains("\r\n"), file.contains("\r\n"));
                assert!(!set.replace("\r\n", "").contains('\r'));
                if file.contains("\r\n") {
                    assert!(!set.replace("\r\n", "").contains('\n'), "{set:?}");
                }
                let back = remove_member(&set, &at, "planwright").unwrap();
                let (before, after) = (value_at(file, &[]).unwrap(), value_at(&back, &[]).unwrap());
                assert_eq!(after, before.or(Some(json!({}))), "{file:?} {back:?}");
                for comment in [
                    "// nothing yet",
                    "/* the first */",
                    "// runs x",
                    "// the end",
                ] {
                    assert_eq!(back.contains(comment), file.contains(comment), "{back}");
                }
            }
        }
    }

    #[test]
    fn elements_are_added_once_and_only_ours_are_removed() {
        let ours = json!({ "matcher": "*", "hooks": [{ "command": "planwright hook x" }] });
        let theirs = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": []}]}}"#;
        let at = path(&["hooks", "PreToolUse"]);
        for file in FILES.iter().copied().chain([theirs]) {
            let added = add_element(file, &at, &ours).unwrap();
            assert_eq!(add_element(&added, &at, &ours).unwrap(), added);
            let list = value_at(&added, &at).unwrap().unwrap();
            assert!(list.as_array().unwrap().contains(&ours), "{added}");
            let is_ours = |value: &Value| *value == ours;
            let back = remove_elements(&added, &at, &is_ours).unwrap();
            let (before, after) = (value_at(file, &[]).unwrap(), value_at(&back, &[]).unwrap());
            assert_eq!(after, before.or(Some(json!({}))), "{file:?} {back:?}");
        }
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        let deep = "[".repeat(1000);
        for file in [
            "[]",
            "{",
            "{]",
            "{\"a\" 1}",
            "{\"a\": 1,, }",
            "{\"a\": tru}",
            "{} x",
            "{\"a\": 1, \"a\": 2}",
            "{\"mcpServers\": []}",
            "{\"mcpServers\": 1}",
            "{\"a\": \"x}",
            "/* {}",
            &deep,
        ] {
            let set = set_member(file, &path(&["mcpServers"]), "planwright", &json!({}));
            assert!(set.is_err(), "{file}");
        }
    }

    /// Files cut off, doubled and with wrong signs in them: an edit is made or refused, and what is
    /// made can be read and taken back.
    #[test]
    fn no_file_makes_an_edit_that_cannot_be_read() {
        let signs = [
            "{", "}", "[", "]", ",", ":", "\"", "\\", "/*", "*/", "//", "\n", "ä", "1",
        ];
        let mut dice = 0x2545_f491_4f6c_dd1d_u64;
        let mut roll = |below: usize| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            usize::try_from(dice % 1_000_003).unwrap() % below.max(1)
        };
        let entry = json!({ "command": "planwright" });
        let at = path(&["mcpServers"]);
        let mut made = 0;
        for _ in 0..20_000 {
            let mut file = FILES[roll(FILES.len())].to_owned();
            for _ in 0..roll(3) {
                let places: Vec<usize> = file.char_indices().map(|(at, _)| at).collect();
                let place = places.get(roll(places.len())).copied().unwrap_or(0);
                match roll(3) {
                    0 => file.truncate(place),
                    1 => file.insert_str(place, signs[roll(signs.len())]),
                    _ if file.is_empty() => {}
                    _ => drop(file.remove(place)),
                }
            }
            let Ok(set) = set_member(&file, &at, "planwright", &entry) else {
                continue;
            };
            made += 1;
            let found = value_at(&set, &path(&["mcpServers", "planwright"])).unwrap();
            assert_eq!(found, Some(entry.clone()), "{file:?} {set:?}");
            let back = remove_member(&set, &at, "planwright").unwrap();
            value_at(&back, &[]).unwrap();
            let hooked = add_element(&set, &path(&["hooks", "x"]), &entry);
            if let Ok(hooked) = hooked {
                let is_it = |value: &Value| *value == entry;
                let back = remove_elements(&hooked, &path(&["hooks", "x"]), &is_it).unwrap();
                value_at(&back, &[]).unwrap();
            }
        }
        assert!(made > 2_000, "{made}");
    }
}
