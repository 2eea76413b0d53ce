//! Every command line that a document, a hint or a message names is one that the program takes.

use super::args::{Cli, describe_all_commands};
use clap::error::ErrorKind;
use clap::{ArgAction, Command, Parser as _};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Words after the program's name in sentences about it, which are no commands.
const PROSE: [&str; 9] = [
    "and", "can", "does", "is", "itself", "key", "may", "sealed", "would",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn collect(folder: &Path, ending: &str, files: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().unwrap().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "node_modules" && name != "target" {
            collect(&path, ending, files);
        } else if path.extension().is_some_and(|found| found == ending) {
            files.push(path);
        }
    }
}

/// Where a command is named, and its words after the program's name.
struct Mention {
    place: String,
    text: String,
}

/// Spans of code and lines of blocks that begin with the program's name.
fn in_documents() -> Vec<Mention> {
    let mut files = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    for folder in ["docs", "examples", "skills", "integrations"] {
        collect(&root().join(folder), "md", &mut files);
    }
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let place = file.display().to_string();
        let mut add = |text: &str| {
            let named = text.strip_prefix("planwright ");
            if let Some(text) = named.filter(|text| text.starts_with(char::is_alphabetic)) {
                let place = place.clone();
                found.push(Mention {
                    place,
                    text: text.replace('\n', " "),
                });
            }
        };
        // What is printed in a transcript is no command.
        let mut block: Option<&str> = None;
        let mut prose = String::new();
        let mut above = "";
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                block = block.is_none().then_some("");
            } else if let Some(prompt) = &mut block {
                if above.trim_start().starts_with("```") && line.starts_with("$ ") {
                    *prompt = "$ ";
                }
                let line = line.split(" #").next().unwrap_or_default();
                line.strip_prefix(*prompt).into_iter().for_each(&mut add);
            } else {
                prose.push_str(line);
                prose.push('\n');
            }
            above = line;
        }
        // Every second piece between backticks is code.
        prose.split('`').skip(1).step_by(2).for_each(&mut add);
    }
    found
}

/// What stands in texts of the program's source after its name.
fn in_source() -> Vec<Mention> {
    let mut files = Vec::new();
    collect(&root().join("crates"), "rs", &mut files);
    let mut found = Vec::new();
    for file in files {
        let place = file.display().to_string();
        if place.contains("/tests/") || place.contains("testing") || place.ends_with("mentioned.rs")
        {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let code: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with("//"))
            .collect();
        // A text goes on in the next line after a backslash.
        let code = code.join("\n").replace("\\\n", "");
        for (at, name) in code.match_indices("planwright ") {
            let before = code[..at].chars().last().unwrap_or(' ');
            if before.is_alphanumeric() || "-_/.$<".contains(before) {
                continue;
            }
            let rest = &code[at + name.len()..];
            let end = rest.find(['"', '`', '\n', ';', '(']).unwrap_or(rest.len());
            found.push(Mention {
                place: place.clone(),
                text: rest[..end].to_owned(),
            });
        }
    }
    found
}

/// Whether a word stands for something that the reader knows.
fn is_placeholder(word: &str) -> bool {
    let letters = word.trim_matches(|c: char| !c.is_alphanumeric());
    let capitals = !letters.is_empty() && letters.chars().all(|c| !c.is_lowercase());
    word.contains(['{', '…', '<']) || capitals
}

/// The words of a command as a shell splits them, without what marks them as optional.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for letter in text.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, '[' | ']')
                if !word.contains('[') && !word.starts_with(char::is_alphanumeric) => {}
            (None, ']') if !word.contains('[') => {}
            (None, _) if letter.is_whitespace() => words.push(std::mem::take(&mut word)),
            _ => word.push(letter),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// How many words belong to the command, if a sentence goes on behind it: its name, options with
/// their values, and placeholders.
fn length(all: &Command, words: &[String]) -> usize {
    let mut command = all.clone();
    let mut count = 0;
    while let Some(next) = words.get(count).and_then(|word| {
        let word = word.trim_end_matches([',', ')', '.', ':']);
        command.find_subcommand(word).cloned()
    }) {
        let ends = words[count].ends_with([',', ')', '.', ':']);
        command = next;
        count += 1;
        if ends {
            return count;
        }
    }
    let mut takes_value = false;
    for word in &words[count..] {
        let is_option = word.starts_with('-') && word.len() > 1;
        let looks_like_one = word.contains(['=', '/']) || word.ends_with(".json");
        if !(is_option || takes_value || is_placeholder(word) || looks_like_one) {
            break;
        }
        takes_value = is_option && option(&command, word) == Some(true);
        count += 1;
        if word.ends_with([',', ')', '.', ':']) {
            break;
        }
    }
    count
}

/// Whether an option takes a value; `None` if there is none of that name.
fn option(command: &Command, word: &str) -> Option<bool> {
    let name = word
        .trim_start_matches('-')
        .split('=')
        .next()
        .unwrap_or_default();
    let found = command.get_arguments().find(|argument| {
        argument.get_long() == Some(name)
            || argument.get_short().map(String::from).as_deref() == Some(name)
    })?;
    let is_flag = matches!(
        found.get_action(),
        ArgAction::SetTrue | ArgAction::SetFalse | ArgAction::Count | ArgAction::Help
    );
    Some(!is_flag && !word.contains('='))
}

/// What is wrong with a command line.
fn complaint(words: &[String]) -> Option<String> {
    let filled = words.iter().map(|word| {
        let word = word.trim_end_matches([',', ')', '.', ':', '…']);
        let first = word.split('|').next().unwrap_or_default();
        match first.contains('{') || first.is_empty() {
            true => "x".to_owned(),
            false => first.to_owned(),
        }
    });
    let line: Vec<String> = std::iter::once("planwright".to_owned())
        .chain(filled)
        .collect();
    let error = Cli::try_parse_from(&line).err()?;
    let stands_for_another = words.iter().any(|word| is_placeholder(word));
    let only_named = !words
        .iter()
        .any(|word| word.starts_with('-') && word != "--json");
    let is_fine = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::InvalidSubcommand => {
            let group = describe_all_commands().find_subcommand(&words[0]).cloned();
            group.is_some_and(|group| group.has_subcommands())
                && words.get(1).is_some_and(|word| is_placeholder(word))
        }
        // An option may be named without its value.
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            stands_for_another || words.last().is_some_and(|last| last.starts_with("--"))
        }
        // The name of a command, in a sentence about it.
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => only_named,
        _ => false,
    };
    let text = error.render().to_string();
    let first = text.lines().next().unwrap_or_default();
    (!is_fine).then(|| format!("planwright {}: {first}", words.join(" ")))
}

#[test]
fn every_command_in_the_documents_is_one() {
    let mentions = in_documents();
    assert!(mentions.len() > 300, "{} were found", mentions.len());
    let mut wrong = String::new();
    for mention in mentions {
        for part in mention.text.split([';', '&']).take(1) {
            let words = words(part);
            let prose = words
                .first()
                .is_none_or(|first| PROSE.contains(&first.as_str()));
            if let (false, Some(complaint)) = (prose, complaint(&words)) {
                writeln!(wrong, "{}: {complaint}", mention.place).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_command_in_a_message_is_one() {
    let mentions = in_source();
    assert!(mentions.len() > 150, "{} were found", mentions.len());
    let all = describe_all_commands();
    let mut wrong = String::new();
    for mention in mentions {
        let words = words(&mention.text);
        let Some(first) = words.first() else {
            continue;
        };
        if PROSE.contains(&first.as_str()) || is_placeholder(first) {
            continue;
        }
        let known = length(&all, &words);
        if let Some(complaint) = complaint(&words[..known.max(1)]) {
            writeln!(wrong, "{}: {complaint}", mention.place).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_command_that_is_none_is_found_out() {
    let of = |text: &str| complaint(&words(text));
    assert_eq!(of("run ID --yes --late ask"), None);
    assert_eq!(of("policy explain PLAN [--json]"), None);
    for wrong in [
        "setup claude",
        "run ID --no-such",
        "no-such ID",
        "diff ID 1 2 3",
    ] {
        assert!(of(wrong).is_some(), "{wrong}");
    }
    let all = describe_all_commands();
    let said = words("show {id} shows the whole plan");
    assert_eq!(length(&all, &said), 2);
    assert_eq!(
        length(&all, &words("approve {id} --digest {digest} approves it")),
        4
    );
    assert_eq!(length(&all, &words("trust shows it, and asks")), 1);
}
