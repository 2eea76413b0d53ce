//! Edits one mapping of a YAML file by its lines, and leaves everything else as it is. What is not
//! written in the usual way is refused: it is edited by hand.

/// Adds or replaces `name` below the mapping `above`, which stands at the left margin. The block is
/// indented by itself.
pub(super) fn set_entry(
    text: &str,
    above: &str,
    name: &str,
    block: &[String],
) -> Result<String, String> {
    let text = remove_entry(text, above, name)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let entry = |indent: &str| -> Vec<String> {
        let inner = block.iter().map(|line| format!("{indent}{indent}{line}"));
        std::iter::once(format!("{indent}{name}:"))
            .chain(inner)
            .collect()
    };
    match find_mapping(&lines, above)? {
        None => {
            lines.push(format!("{above}:"));
            lines.extend(entry("  "));
        }
        Some(at) => {
            let indent = lines[at + 1..]
                .iter()
                .find(|line| !is_blank(line))
                .map(|line| indent_of(line))
                .filter(|indent| !indent.is_empty())
                .unwrap_or_else(|| "  ".to_owned());
            lines.splice(at + 1..at + 1, entry(&indent));
        }
    }
    Ok(join(&lines, &text))
}

/// Removes `name` below the mapping `above`, if it is there, and a mapping that only held it.
pub(super) fn remove_entry(text: &str, above: &str, name: &str) -> Result<String, String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let Some(at) = find_mapping(&lines, above)? else {
        return Ok(text.to_owned());
    };
    let end = end_of_block(&lines, at);
    let Some(start) = (at + 1..end).find(|&line| {
        let text = lines[line].trim();
        text == format!("{name}:") || text.starts_with(&format!("{name}: "))
    }) else {
        return Ok(text.to_owned());
    };
    let stop = end_of_block(&lines, start);
    lines.drain(start..stop);
    let left = end - (stop - start);
    if lines[at + 1..left].iter().all(|line| is_blank(line)) {
        lines.remove(at);
    }
    Ok(join(&lines, text))
}

/// The lines of `name` below the mapping `above`, without their indentation.
pub(super) fn entry(text: &str, above: &str, name: &str) -> Result<Option<Vec<String>>, String> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let Some(at) = find_mapping(&lines, above)? else {
        return Ok(None);
    };
    let begin = format!("{name}:");
    let mut inside = at + 1..end_of_block(&lines, at);
    let Some(start) = inside.find(|&line| lines[line].trim() == begin) else {
        return Ok(None);
    };
    let block = &lines[start + 1..end_of_block(&lines, start)];
    let indent = block.iter().find(|line| !is_blank(line));
    let indent = indent.map_or(0, |line| indent_of(line).len());
    let dedented = block.iter().map(|line| {
        let line = line.get(indent..).unwrap_or_else(|| line.trim_start());
        line.to_owned()
    });
    Ok(Some(dedented.collect()))
}

/// The line with the name of a mapping at the left margin.
fn find_mapping(lines: &[String], name: &str) -> Result<Option<usize>, String> {
    if lines.iter().any(|line| line.starts_with('\t')) {
        return Err("it is indented with tabs, which YAML forbids".to_owned());
    }
    let begin = format!("{name}:");
    let mut found = None;
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("---") && at > 0 {
            return Err("it has several documents".to_owned());
        }
        let Some(rest) = line.strip_prefix(&begin) else {
            continue;
        };
        let rest = rest.trim();
        if found.is_some() {
            return Err(format!("it has `{name}` twice"));
        }
        if !rest.is_empty() && !rest.starts_with('#') {
            return Err(format!("its `{name}` is not written as a block"));
        }
        found = Some(at);
    }
    Ok(found)
}

/// The line behind the block that begins in this line.
fn end_of_block(lines: &[String], at: usize) -> usize {
    let indent = indent_of(&lines[at]).len();
    let mut end = at + 1;
    for (line, text) in lines.iter().enumerate().skip(at + 1) {
        if is_blank(text) {
            continue;
        }
        if indent_of(text).len() <= indent {
            break;
        }
        end = line + 1;
    }
    end
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

fn indent_of(line: &str) -> String {
    let white = line.len() - line.trim_start_matches(' ').len();
    line[..white].to_owned()
}

fn join(lines: &[String], like: &str) -> String {
    let end = if like.contains("\r\n") { "\r\n" } else { "\n" };
    let mut text = lines.join(end);
    if !text.is_empty() {
        text.push_str(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_an_entry_are_found() {
        let file = "extensions:\n  a:\n    type: stdio\n    envs:\n      X: 1\n\n  b:\n    type: sse\nc:\n  a:\n";
        let found = |name| entry(file, "extensions", name).unwrap();
        let lines = ["type: stdio", "envs:", "  X: 1"].map(str::to_owned);
        assert_eq!(found("a"), Some(lines.to_vec()));
        assert_eq!(found("b"), Some(vec!["type: sse".to_owned()]));
        assert_eq!(found("c"), None);
        assert_eq!(entry("", "extensions", "a"), Ok(None));
    }

    #[test]
    fn an_entry_is_set_and_taken_back_and_the_rest_stays() {
        let block = ["enabled: true".to_owned(), "cmd: planwright".to_owned()];
        for file in [
            "",
            "GOOSE_MODEL: x # the best\n",
            "extensions:\n  developer:\n    enabled: true # yes\n    type: builtin\n  # the rest\n  memory:\n    enabled: false\nGOOSE_MODEL: x\n",
            "extensions: # mine\n    developer:\n        enabled: true\n",
        ] {
            let set = set_entry(file, "extensions", "planwright", &block).unwrap();
            assert!(set.contains("planwright:\n"), "{set}");
            assert_eq!(
                set_entry(&set, "extensions", "planwright", &block).unwrap(),
                set
            );
            for line in file.lines() {
                assert!(set.contains(line), "{line}: {set}");
            }
            assert_eq!(
                remove_entry(&set, "extensions", "planwright").unwrap(),
                file
            );
        }
        for file in [
            "extensions: {}\n",
            "extensions: [a]\n",
            "a: 1\n---\nb: 2\n",
            "extensions:\nextensions:\n",
        ] {
            assert!(
                set_entry(file, "extensions", "planwright", &block).is_err(),
                "{file}"
            );
        }
    }
}
