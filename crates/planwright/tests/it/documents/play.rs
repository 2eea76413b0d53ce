//! A person at a terminal who types what a document says, answers what is asked, and compares.

use super::block::Typed;
use crate::screens::mask;
use planwright_testing::provider::Provider;
use planwright_testing::terminal::Terminal;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, program_path};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The address in the documents. The tests take a free port.
const SERVICE: &str = "127.0.0.1:7526";

/// How long one command may take, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// What can be asked. A person says yes, unless the document or the stage says otherwise.
const QUESTIONS: [&str; 6] = [
    "Approve and run?",
    "Approve?",
    "Trust them? [y] trust  [n] continue without them  [d] details",
    "[y/N]",
    "[Y/n]",
    "[y/n]",
];

/// Where a block is played: a workspace, what its placeholders mean, and who else is there.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) bench: Bench,
    words: Vec<(String, String)>,
    variables: Vec<(String, String)>,
    /// Commands, by how they begin, that do not end with 0.
    codes: Vec<(&'static str, i32)>,
    /// Questions of this stage, and what is typed.
    answers: Vec<(&'static str, &'static str)>,
    /// What a command must have said, by how it begins.
    says: Vec<(&'static str, &'static str)>,
    columns: u16,
    /// A program runs the commands, and reads what they print on stdout.
    is_program: bool,
    /// What other programs the stage needs; they end with it.
    pub(crate) provider: Option<Provider>,
    service: Option<Terminal>,
    /// What a command reads in place of what a person types.
    input: Option<String>,
    /// What the last command said.
    said: String,
}

impl Stage {
    pub(crate) fn new(bench: Bench) -> Self {
        let bin = bench.home().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        if !bin.join("planwright").exists() {
            std::os::unix::fs::symlink(program_path(), bin.join("planwright")).unwrap();
        }
        // An answer that refuses is a failure of the command.
        std::fs::write(
            bench.home().join(".curlrc"),
            "fail-with-body\nsilent\nshow-error\nmax-time = 60\n",
        )
        .unwrap();
        Self {
            bench,
            words: Vec::new(),
            variables: Vec::new(),
            codes: Vec::new(),
            answers: Vec::new(),
            says: Vec::new(),
            columns: 160,
            is_program: false,
            provider: None,
            service: None,
            input: None,
            said: String::new(),
        }
    }

    /// What a word of the document means here.
    pub(crate) fn word(mut self, name: &str, meaning: impl Into<String>) -> Self {
        self.words.retain(|(known, _)| known != name);
        self.words.push((name.to_owned(), meaning.into()));
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn ends(mut self, command: &'static str, code: i32) -> Self {
        self.codes.push((command, code));
        self
    }

    pub(crate) fn answers(mut self, question: &'static str, answer: &'static str) -> Self {
        self.answers.push((question, answer));
        self
    }

    pub(crate) fn says(mut self, command: &'static str, words: &'static str) -> Self {
        self.says.push((command, words));
        self
    }

    pub(super) fn columns(mut self, columns: u16) -> Self {
        self.columns = columns;
        self
    }

    pub(crate) fn provider(mut self, provider: Provider) -> Self {
        self.provider = Some(provider);
        self
    }

    /// A program runs the commands of this stage: there is no terminal, and stdout is data.
    pub(crate) fn program(mut self) -> Self {
        self.is_program = true;
        self
    }

    /// Commands of this stage read this, and not what a person types.
    pub(crate) fn input(mut self, text: &str) -> Self {
        self.input = Some(text.to_owned());
        self
    }

    /// What the last command said.
    pub(crate) fn said(&self) -> &str {
        &self.said
    }

    /// Where the service of the stage listens.
    pub(crate) fn service(&self) -> &str {
        let found = self.words.iter().find(|(name, _)| name == SERVICE);
        &found.expect("the service was started").1
    }

    /// Kills the service of the stage, as a crash would.
    pub(crate) fn kill_service(&mut self) {
        self.service = None;
        self.words.retain(|(name, _)| name != SERVICE);
    }

    /// A shell that goes on where the one before it ended, with its folder and its variables.
    fn shell(&self, line: &str) -> Command {
        let script = format!(
            "[ -f ~/.session ] && . ~/.session\n{line}\ncode=$?\n\
             {{ export -p; echo \"cd '$PWD'\"; }} > ~/.session\nexit $code\n"
        );
        let home = self.bench.home();
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", &script])
            .current_dir(self.bench.root())
            .env_clear()
            .env("PATH", format!("{}/bin:/usr/bin:/bin", home.display()))
            .env("HOME", home)
            .env("NO_COLOR", "1")
            .env("TERM", "dumb")
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Types a command, and says what is wrong with what came of it.
    pub(crate) fn play(&mut self, typed: &Typed) -> Result<(), String> {
        let mut line = typed.command.clone();
        for (name, meaning) in &self.words {
            line = replace_word(&line, name, meaning);
        }
        if let Some(input) = &self.input {
            std::fs::write(self.bench.home().join("input.txt"), input).unwrap();
            line.push_str(" < ~/input.txt");
        }
        let (code, seen) = if line.split_whitespace().nth(1) == Some("serve") {
            self.serve(&line)
        } else if self.is_program {
            let said = self.shell(&line).stdin(Stdio::null()).output().unwrap();
            let out = String::from_utf8(said.stdout).unwrap();
            (said.status.code(), out)
        } else {
            self.type_line(&line, typed)
        };
        self.said.clone_from(&seen);
        let known = self
            .codes
            .iter()
            .find(|(begin, _)| typed.command.starts_with(begin));
        let expected = known.map_or(0, |(_, code)| *code);
        if code != Some(expected) {
            return Err(format!(
                "`{line}` ended with {code:?} instead of {expected}:\n{seen}"
            ));
        }
        for (begin, words) in &self.says {
            if typed.command.starts_with(begin) && !seen.contains(words) {
                return Err(format!("`{line}` does not say {words:?}:\n{seen}"));
            }
        }
        self.bind(typed, &seen);
        self.compare(typed, &seen)
    }

    /// Starts the service and lets it go on. Its address has another port than the documents'.
    fn serve(&mut self, line: &str) -> (Option<i32>, String) {
        let line = line.split(" #").next().unwrap_or_default().trim_end();
        let command = self.shell(&format!("exec {line} --listen 127.0.0.1:0"));
        let mut terminal = Terminal::wide(command, self.columns);
        wait_until("the service to listen", || {
            let seen = terminal.seen();
            let signs_in = seen.contains("#sign-in=") && seen.ends_with('\n');
            signs_in || terminal.is_over()
        });
        let seen = terminal.seen();
        let Some((_, address)) = seen.split_once("listening on http://") else {
            return (terminal.ends(), seen);
        };
        let address = address.lines().next().unwrap_or_default().trim().to_owned();
        self.words.push((SERVICE.to_owned(), address));
        self.service = Some(terminal);
        (Some(0), seen)
    }

    fn type_line(&self, line: &str, typed: &Typed) -> (Option<i32>, String) {
        let mut told = told_answers(&typed.shown).into_iter();
        let mut terminal = Terminal::wide(self.shell(line), self.columns);
        let mut read = 0;
        let since = Instant::now();
        while !terminal.is_over() {
            let seen = terminal.seen();
            if let Some((end, own)) = self.asked(&seen[read..]) {
                read += end;
                let answer = own.map_or_else(
                    || format!("{}\n", told.next().unwrap_or_else(|| "y".to_owned())),
                    str::to_owned,
                );
                terminal.types(&answer);
            }
            assert!(
                since.elapsed() < PATIENCE,
                "`{line}` does not end:\n{}",
                terminal.seen()
            );
            std::thread::sleep(Duration::from_millis(3));
        }
        let code = terminal.ends();
        (code, terminal.seen().replace('\r', ""))
    }

    /// The first question in what was said since the last answer: where it ends, and the stage's own
    /// answer.
    fn asked(&self, seen: &str) -> Option<(usize, Option<&'static str>)> {
        let own = self
            .answers
            .iter()
            .map(|(words, answer)| (*words, Some(*answer)));
        let all = own.chain(QUESTIONS.iter().map(|words| (*words, None)));
        all.filter_map(|(words, answer)| Some((seen.find(words)? + words.len(), answer)))
            .min_by_key(|(end, _)| *end)
    }

    /// Ids are other ones every time: where the document shows one, it means the one that was said.
    fn bind(&mut self, typed: &Typed, seen: &str) {
        for id in typed.shown.iter().flat_map(|line| ids(line)) {
            let begin = id.split('-').next().unwrap_or_default();
            let real = ids(seen).into_iter().find(|real| real.starts_with(begin));
            if let (Some(real), false) = (real, self.words.iter().any(|(name, _)| *name == id)) {
                self.words.push((id, real));
            }
        }
    }

    /// Compares what was shown with what was said, if the document shows anything.
    fn compare(&self, typed: &Typed, seen: &str) -> Result<(), String> {
        if typed.shown.is_empty() {
            return Ok(());
        }
        let mut said = seen.replace('\r', "");
        let folders = [self.bench.path("notes"), self.bench.root().to_path_buf()];
        for folder in folders {
            said = said.replace(folder.to_str().unwrap(), "/home/ada/notes");
        }
        said = said.replace(self.bench.home().to_str().unwrap(), "/home/ada");
        // A program that was built without the page shows its routes there.
        said = said.replace("/docs#sign-in=", "/#sign-in=");
        let mut shown = typed.shown.join("\n");
        for (name, meaning) in &self.words {
            said = match name == SERVICE {
                true => said.replace(meaning, name),
                false => replace_word(&said, meaning, name),
            };
        }
        // A picture of a moment: what comes after the answer is on the screen for a second only.
        if let Some((before, _)) = shown.split_once("\n⠄") {
            let answered = before.rfind("Approve and run? y").unwrap_or(before.len());
            shown = format!("{}Approve and run? y…\n…", &before[..answered]);
        }
        if QUESTIONS.iter().any(|question| shown.ends_with(question)) {
            shown.push_str("…\n…");
        }
        let shown = mask(&shown);
        let said = mask(&said);
        let shown: Vec<&str> = shown.lines().map(str::trim_end).collect();
        let said: Vec<&str> = said.trim_end().lines().map(str::trim_end).collect();
        if fits(&shown, &said) {
            return Ok(());
        }
        Err(format!(
            "`{}` says something else.\n--- the document:\n{}\n--- the program:\n{}",
            typed.command,
            shown.join("\n"),
            said.join("\n")
        ))
    }
}

/// The answers that a transcript shows, in their order.
fn told_answers(shown: &[String]) -> Vec<String> {
    let answer = |line: &String| {
        let question = QUESTIONS
            .iter()
            .find(|question| line.contains(**question))?;
        let (_, answer) = line.split_once(question)?;
        Some(
            if answer.trim().is_empty() {
                "n"
            } else {
                answer.trim()
            }
            .to_owned(),
        )
    };
    shown.iter().filter_map(answer).collect()
}

/// Ids of tokens, made plans and comments in a text.
fn ids(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .filter(|word| {
            word.split_once('-').is_some_and(|(kind, id)| {
                ["tok", "plan", "c"].contains(&kind)
                    && id.len() == 8
                    && id.chars().all(|c| c.is_ascii_alphanumeric())
            })
        })
        .map(str::to_owned)
        .collect()
}

/// Replaces a word that stands alone.
pub(super) fn replace_word(text: &str, word: &str, meaning: &str) -> String {
    let belongs = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let after = &rest[at + word.len()..];
        let before = replaced.chars().chain(rest[..at].chars()).next_back();
        let joined = before.is_some_and(|c| belongs(c) && word.starts_with(belongs))
            || (word.ends_with(belongs) && after.starts_with(belongs));
        replaced.push_str(&rest[..at]);
        replaced.push_str(if joined { word } else { meaning });
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

/// `…` on a line of its own stands for any lines, within a line for any text.
pub(super) fn fits(shown: &[&str], said: &[&str]) -> bool {
    match shown.split_first() {
        None => said.is_empty(),
        Some((first, rest)) if first.trim() == "…" => {
            (0..=said.len()).any(|from| fits(rest, &said[from..]))
        }
        Some((first, rest)) => said
            .split_first()
            .is_some_and(|(line, more)| line_fits(first, line) && fits(rest, more)),
    }
}

fn line_fits(shown: &str, said: &str) -> bool {
    let Some((begin, rest)) = shown.split_once('…') else {
        return shown == said;
    };
    let Some(said) = said.strip_prefix(begin) else {
        return false;
    };
    said.char_indices()
        .map(|(at, _)| at)
        .chain([said.len()])
        .any(|at| line_fits(rest, &said[at..]))
}

#[test]
fn placeholders_and_gaps_are_understood() {
    assert_eq!(
        replace_word("show ID --step IDLE ID", "ID", "p"),
        "show p --step IDLE p"
    );
    assert_eq!(
        replace_word("log <id> --follow", "<id>", "p"),
        "log p --follow"
    );
    assert_eq!(replace_word("a D-1 D", "D", "x"), "a D-1 x");
    assert!(fits(&["a…c", "…", "z"], &["abc", "1", "2", "z"]));
    assert!(!fits(&["a…c"], &["abd"]));
    assert!(!fits(&["a"], &["a", "b"]));
    assert_eq!(told_answers(&["Approve and run? n".to_owned()]), ["n"]);
}
