//! The fenced blocks of the documents, and what the comment above each says about running it.

use std::path::{Path, PathBuf};

/// What stands in the comment directly above a block.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Mark {
    Missing,
    /// `<!-- run: STAGE -->`: its lines one after the other. Blocks of a document that name the same
    /// stage go on in its workspace.
    Run(String),
    /// `<!-- run each: STAGE -->`: alternatives. Each line in a fresh workspace.
    RunEach(String),
    /// `<!-- run by test: NAME -->`
    ByTest(String),
    /// `<!-- not run: REASON -->`
    NotRun(String),
}

/// A block of a document.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// From the root of the repository.
    pub(super) document: String,
    pub(super) line: usize,
    pub(super) language: String,
    pub(super) text: String,
    pub(super) mark: Mark,
}

impl Block {
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.document, self.line)
    }

    /// Whether it is meant to be typed: by its language, or because it begins like a command.
    pub(super) fn is_typed(&self) -> bool {
        let first = self.text.lines().next().unwrap_or_default();
        match self.language.as_str() {
            "sh" | "bash" | "shell" | "console" | "js" => true,
            "text" => first.starts_with("$ ") || first.starts_with("› "),
            "" => ["$ ", "› ", "planwright ", "curl ", "cargo "]
                .iter()
                .any(|begin| first.starts_with(begin)),
            _ => false,
        }
    }
}

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md, the pages in docs/, and the pages of the examples.
pub(super) fn documents() -> Vec<String> {
    let mut found = vec!["README.md".to_owned(), "examples/README.md".to_owned()];
    let folders = ["docs", "docs/errors", "docs/design"];
    for folder in folders {
        for entry in root().join(folder).read_dir().unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if name.ends_with(".md") {
                found.push(format!("{folder}/{name}"));
            }
        }
    }
    for entry in root().join("examples").read_dir().unwrap().flatten() {
        if entry.path().join("README.md").is_file() {
            let name = entry.file_name().into_string().unwrap();
            found.push(format!("examples/{name}/README.md"));
        }
    }
    found.sort();
    found
}

pub(crate) fn read(document: &str) -> String {
    std::fs::read_to_string(root().join(document)).unwrap()
}

pub(super) fn all_blocks() -> Vec<Block> {
    documents()
        .iter()
        .flat_map(|document| blocks(document, &read(document)))
        .collect()
}

/// The blocks of a text. A fence is closed by one that is as long.
pub(super) fn blocks(document: &str, text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<(usize, Block)> = None;
    let mut above = "";
    for (number, line) in text.lines().enumerate() {
        let ticks = line.trim_start().chars().take_while(|c| *c == '`').count();
        match &mut open {
            Some((length, _)) if ticks >= *length && line.trim().len() == ticks => {
                found.extend(open.take().map(|(_, block)| block));
            }
            Some((_, block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            None if ticks >= 3 => {
                let block = Block {
                    document: document.to_owned(),
                    line: number + 1,
                    language: line.trim_start_matches([' ', '`']).trim().to_owned(),
                    text: String::new(),
                    mark: mark(above),
                };
                open = Some((ticks, block));
            }
            None => {}
        }
        above = line;
    }
    assert!(open.is_none(), "{document}: a block without an end");
    found
}

fn mark(line: &str) -> Mark {
    let Some(words) = line
        .trim()
        .strip_prefix("<!-- ")
        .and_then(|rest| rest.strip_suffix(" -->"))
    else {
        return Mark::Missing;
    };
    let Some((verb, rest)) = words.split_once(": ") else {
        return Mark::Missing;
    };
    let rest = rest.to_owned();
    match verb {
        "run" => Mark::Run(rest),
        "run each" => Mark::RunEach(rest),
        "run by test" => Mark::ByTest(rest),
        "not run" => Mark::NotRun(rest),
        _ => Mark::Missing,
    }
}

/// A command of a block, and the lines that it is shown to print.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Typed {
    pub(super) command: String,
    pub(super) shown: Vec<String>,
}

impl Typed {
    /// A command of which it does not matter what it prints.
    pub(crate) fn of(command: &str) -> Self {
        Self {
            command: command.to_owned(),
            shown: Vec::new(),
        }
    }
}

/// The commands of a block. In a transcript they begin with `$`; elsewhere each line is one. A line
/// goes on after a backslash.
pub(super) fn commands(block: &Block) -> Vec<Typed> {
    let transcript = block.text.starts_with("$ ");
    let mut typed: Vec<Typed> = Vec::new();
    let mut goes_on = false;
    for line in block.text.lines() {
        let begins = match transcript {
            true => line.strip_prefix("$ "),
            false => Some(line).filter(|line| !line.trim().is_empty() && !line.starts_with('#')),
        };
        let belongs = goes_on || (transcript && begins.is_none());
        if let Some(last) = typed.last_mut().filter(|_| belongs) {
            match goes_on {
                true => last.command = format!("{}\n{line}", last.command),
                false => last.shown.push(line.to_owned()),
            }
        } else if let Some(command) = begins {
            typed.push(Typed::of(command));
        }
        goes_on = line.ends_with('\\');
    }
    typed
}

#[test]
fn blocks_are_found_with_their_marks() {
    let text = "<!-- run: a -->\n```sh\nplanwright list \\\n  --json\n```\n\n````markdown\n```json\n{}\n```\n````\n\
                <!-- not run: it asks -->\n```console\n$ one\nsaid\n$ two\n```\n";
    let found = blocks("x.md", text);
    let marks: Vec<&Mark> = found.iter().map(|block| &block.mark).collect();
    assert_eq!(
        marks,
        [
            &Mark::Run("a".to_owned()),
            &Mark::Missing,
            &Mark::NotRun("it asks".to_owned())
        ]
    );
    assert_eq!(
        commands(&found[0])[0].command,
        "planwright list \\\n  --json"
    );
    let typed = commands(&found[2]);
    assert_eq!(
        (typed.len(), typed[0].shown.as_slice()),
        (2, &["said".to_owned()][..])
    );
}
