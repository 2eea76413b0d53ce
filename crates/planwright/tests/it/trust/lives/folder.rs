//! One folder and its life: its author changes the files, a person trusts them or not, and people
//! and agents give orders to the real program. What left is read from files and from places that
//! the program could reach.

use super::super::clone::Sink;
use super::books::{About, Books, Covered, Order};
use super::files::{ALL, Brought, Files, told};
use planwright_testing::dice::Dice;
use planwright_testing::provider::{Provider, ScriptedReply};
use planwright_testing::workbench::{Bench, Said, said};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

const MARKS: [(&str, &str); 6] = [
    ("PLANWRIGHT_AGENT", "bot"),
    ("CLAUDECODE", "1"),
    ("CODEX_SANDBOX", "seatbelt"),
    ("CURSOR_AGENT", ""),
    ("GEMINI_CLI", "1"),
    ("AGENT", "amp"),
];

/// What came of all lives, by what was seen.
pub(super) type Tally = BTreeMap<&'static str, u64>;

pub(super) struct Folder {
    bench: Bench,
    dice: Dice,
    /// Answers nothing, and keeps what arrives.
    sink: Sink,
    /// The person's own model.
    model: Provider,
    files: Files,
    books: Books,
    /// What the plan `p` writes, and whether it has a limit that no rule looks at.
    word: usize,
    limited: bool,
    /// How much was seen to leave so far, by where.
    seen: BTreeMap<&'static str, usize>,
    pub(super) tally: Tally,
}

impl Folder {
    pub(super) fn new(seed: u64) -> Self {
        let mut folder = Self {
            bench: Bench::new(),
            dice: Dice::new(seed),
            sink: Sink::start(),
            model: Provider::answering(|_| ScriptedReply::text("hello")),
            files: Files::default(),
            books: Books::default(),
            word: 0,
            limited: false,
            seen: BTreeMap::new(),
            tally: Tally::new(),
        };
        folder
            .bench
            .write_own("planwright.toml", &folder.model.config());
        let command = json!({"command": "sh", "args": ["-c", "echo ran >> command.txt"]});
        let url = format!("{}/fetched", folder.sink.url());
        folder.write(
            "c",
            &json!({"id": "a", "tool": "local.run_command", "args": command}),
        );
        folder.write(
            "g",
            &json!({"id": "a", "tool": "local.http_get", "args": {"url": url}}),
        );
        folder
            .bench
            .document(json!({"id": "e", "toolsRequired": ["demo.echo"], "steps": [
            {"id": "a", "agent": {"instruction": "work", "executor": "worker"}}]}));
        folder.propose();
        folder
    }

    fn write(&self, plan: &str, step: &Value) -> String {
        self.bench.plan(plan, json!([step]))
    }

    fn count(&mut self, what: &'static str, seen: bool) {
        *self.tally.entry(what).or_default() += u64::from(seen);
    }

    pub(super) fn live(&mut self, moves: usize) {
        for _ in 0..moves {
            match self.dice.below(20) {
                0..=3 => self.change_files(),
                4..=6 => self.trust(),
                7 => self.allow_for_good(),
                8 => self.change_plan(),
                9 | 10 => self.approve(),
                11 => self.agent_tries(),
                12 => self.start_servers(),
                13 => self.ask_models(),
                14 => self.converse(),
                15 => self.run("c"),
                16 => self.run("g"),
                17 => self.run("e"),
                _ => self.run("p"),
            }
        }
    }

    /// The program, as a person or an agent starts it.
    fn command(&mut self, agent: bool, args: &[&str]) -> Command {
        let mut command = self.bench.command(args);
        if agent {
            let (name, value) = self.dice.pick(&MARKS);
            command.env(name, value);
            if self.dice.chance(10) {
                command.env("PLANWRIGHT_TRUST_FILE", self.forge_trust());
            }
        }
        command
    }

    fn say(&mut self, agent: bool, args: &[&str]) -> Said {
        said(self.command(agent, args).output().unwrap())
    }

    /// A file that trusts everything here, at a place that an agent chose.
    fn forge_trust(&self) -> std::path::PathBuf {
        let path = self.bench.home().join("forged.json");
        let mut command = self.bench.command(&["trust", "--yes"]);
        command.env("PLANWRIGHT_TRUST_FILE", &path);
        drop(command.output().unwrap());
        path
    }

    /// The author of the folder changes something in it: what the next pull brings.
    fn change_files(&mut self) {
        let changed = 1 + self.dice.below(3);
        for _ in 0..changed {
            // Rules decide about everything else that is brought.
            let of = match self.dice.chance(30) {
                true => Brought::Policy,
                false => self.dice.pick(&ALL),
            };
            let dice = &mut self.dice;
            self.files.change(of, |ways| dice.below(ways));
        }
        let text = self.files.configuration(&self.sink.url());
        self.bench.write("planwright.toml", &text);
        for (name, text) in [
            (".mcp.json", self.files.servers()),
            (".plans/prompts/chat.md", self.files.prompt()),
        ] {
            match text {
                Some(text) => drop(self.bench.write(name, &text)),
                None => drop(std::fs::remove_file(self.bench.path(name))),
            }
        }
    }

    fn trust(&mut self) {
        let agent = self.dice.chance(35);
        let revoke = self.dice.chance(20);
        let args: &[&str] = if revoke {
            &["trust", "--revoke"]
        } else {
            &["trust", "--yes"]
        };
        let done = self.say(agent, args);
        if agent {
            assert_eq!(done.code, 3, "an agent trusted or revoked: {done:#?}");
        } else if done.code == 0 && revoke {
            self.books.revoke();
        } else if done.code == 0 {
            self.books.trust(&self.files);
        }
        self.count("agents that were to trust", agent);
        self.count("people who trusted", !agent && !revoke);
        self.count("people who took trust back", !agent && revoke);
    }

    /// A person's own rule, or none any more. A file of that name in the folder counts for nothing.
    fn allow_for_good(&mut self) {
        let folder = std::fs::canonicalize(self.bench.root()).unwrap();
        let rule = format!(
            "[[always]]\nname = \"always-1\"\nfolder = {}\ntool = \"local.append_file\"\n",
            Value::from(folder.to_str().unwrap())
        );
        if self.dice.chance(30) {
            self.bench.write("always.toml", &rule);
            return;
        }
        self.books.always = self.dice.chance(50);
        let text = if self.books.always { rule.as_str() } else { "" };
        self.bench.write_own("always.toml", text);
    }

    fn change_plan(&mut self) {
        let before = (self.word, self.limited);
        self.word = self.dice.below(2);
        self.limited = self.dice.chance(50);
        if before != (self.word, self.limited) {
            self.propose();
        }
    }

    fn propose(&mut self) {
        let content = ["one\n", "two\n"][self.word];
        let mut step = json!({"id": "a", "tool": "local.append_file",
                              "args": {"path": "effects.txt", "content": content}});
        if self.limited {
            step["timeoutSeconds"] = json!(60);
        }
        let file = self.write("p", &step);
        let agent = self.dice.chance(60);
        // Also where the tool is denied it is proposed, and waits.
        self.say(agent, &["import", &file]).ends(0);
        let about = self.about("p");
        self.books.proposed(&about, self.limited);
    }

    fn about(&self, plan: &'static str) -> About {
        let content = match plan {
            "p" => format!("{} {}", self.word, self.limited),
            "g" => format!("{}", self.books.counts(&self.files, Brought::HttpGet)),
            _ => String::new(),
        };
        self.books.about(&self.files, plan, content)
    }

    fn approve(&mut self) {
        let agent = self.dice.chance(40);
        let plan = self.dice.pick(&["p", "p", "p", "c", "e"]);
        let shown = self.bench.run(&["show", plan, "--json"]);
        let Some(digest) = (shown.code == 0).then(|| shown.json()["digest"].clone()) else {
            return;
        };
        let Some(digest) = digest.as_str() else {
            return;
        };
        let done = self.say(agent, &["approve", plan, "--digest", digest]);
        if agent {
            assert_ne!(done.code, 0, "an agent approved: {done:#?}");
        } else if done.code == 0 {
            let about = self.about(plan);
            self.books.approved(&about, self.books.policy(&self.files));
            // As often as it is good for, and once more.
            for _ in 0..self.dice.below(4) {
                self.run(plan);
            }
        }
        self.count("agents that were to approve", agent);
    }

    /// An agent tries every other door.
    fn agent_tries(&mut self) {
        let doors: [&[&str]; 7] = [
            &["store", "adopt", "--yes"],
            &["servers", "trust", "s", "--yes"],
            &["executors", "trust", "worker", "--yes"],
            &["models", "trust", "near", "--yes"],
            &["trust", "--owner", "0"],
            &[
                "token", "create", "--role", "approver", "--kind", "person", "--name", "ada",
            ],
            &["servers", "untrust", "s"],
        ];
        let door = self.dice.pick(&doors);
        let done = self.say(true, door);
        assert_ne!(done.code, 0, "an agent went through {door:?}: {done:#?}");
        self.count("other doors that agents tried", true);
    }

    fn order(&mut self) -> Order {
        Order {
            agent: self.dice.chance(45),
            yes: self.dice.chance(50),
            flag: self.dice.chance(25),
        }
    }

    /// What left through this place since the last look.
    fn new_at(&mut self, place: &'static str, total: usize) -> usize {
        let before = self.seen.insert(place, total).unwrap_or_default();
        total - before
    }

    fn new_lines(&mut self, file: &'static str) -> Vec<String> {
        let text = self.bench.read(file);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let new = self.new_at(file, lines.len());
        lines[lines.len() - new..].to_vec()
    }

    fn new_requests(&mut self, path: &str) -> usize {
        let received = self.sink.received();
        let new = self.new_at("sink", received.len());
        let new = &received[received.len() - new..];
        let stray = new.iter().find(|text| !text.contains(path));
        assert_eq!(stray, None, "something else was sent");
        new.len()
    }

    /// A principal runs a plan.
    fn run(&mut self, plan: &'static str) {
        let order = self.order();
        let file = format!("{plan}.json");
        let mut args = vec!["run", if plan == "p" { "p" } else { &file }];
        args.extend(order.yes.then_some("--yes"));
        args.extend(order.flag.then_some("--trust-project-servers"));
        let done = self.say(order.agent, &args);
        let (tool, brought, new) = match plan {
            "p" => {
                let new = self.new_lines("effects.txt");
                let word = ["one", "two"][self.word];
                assert!(new.iter().all(|line| line == word), "{new:?}: {done:#?}");
                ("local.append_file", None, new.len())
            }
            "c" => {
                let new = self.new_lines("command.txt").len();
                ("local.run_command", Some(Brought::RunCommand), new)
            }
            "g" => {
                let new = self.new_requests("GET /fetched");
                ("local.http_get", Some(Brought::HttpGet), new)
            }
            _ => {
                let new = self.new_lines("executor.txt");
                let way = self.files.way(Brought::Executor).to_string();
                assert!(new.iter().all(|line| *line == way), "{new:?}: {done:#?}");
                ("worker", Some(Brought::Executor), new.len())
            }
        };
        let there = brought.is_none_or(|of| self.books.counts_for(&self.files, of, order));
        let about = self.about(plan);
        let lost = self.books.lost_limit();
        let covered = self.books.cover(&self.files, &about, tool, order);
        let covered = covered.filter(|_| there);
        let told = || {
            format!(
                "{plan} {order:?} {:?} {:?} {about:?}: {done:#?}",
                self.files, self.books
            )
        };
        assert!(new <= 1, "{new} calls at once: {}", told());
        assert!(
            new == 0 || covered.is_some(),
            "no person agreed: {}",
            told()
        );
        let written = brought.is_some_and(|of| self.files.way(of) > 0);
        let untrusted = !self.books.counts(&self.files, Brought::Policy);
        let policy = self.books.policy(&self.files);
        if new == 1
            && let Some(how) = covered
        {
            self.books.ran(&about, how, policy);
            self.count(
                match how {
                    Covered::ByPolicy => "calls that trusted rules allow",
                    Covered::Always => "calls that are allowed for good",
                    Covered::Approved => "calls that were approved",
                    Covered::ByYes => "calls to which a person said yes",
                },
                true,
            );
            let how_there = match plan {
                "c" => "programs that a trusted folder lets plans run",
                "g" => "fetches that a trusted folder lets plans make",
                "e" => "executors of a trusted folder",
                _ => "writes",
            };
            self.count(how_there, true);
            self.count(
                "second runs on one approval",
                policy.uses() > 1 && how == Covered::Approved,
            );
        }
        self.count("what was brought and not trusted", written && !there);
        self.count(
            "allow rules that did not count",
            untrusted && covered.is_none(),
        );
        self.count(
            "yes of agents that was none",
            order.agent && order.yes && covered.is_none(),
        );
        self.count(
            "lost limits that rules did not agree to",
            plan == "p" && lost && covered.is_none(),
        );
    }

    fn flags(order: Order, words: &[&'static str]) -> Vec<&'static str> {
        let flag = order.flag.then_some("--trust-project-servers");
        words.iter().copied().chain(flag).collect()
    }

    fn start_servers(&mut self) {
        let order = self.order();
        let done = self.say(order.agent, &Self::flags(order, &["servers", "check"]));
        let new = self.new_lines("server.txt");
        let way = self.files.way(Brought::Server).to_string();
        let counts = self.books.counts_for(&self.files, Brought::Server, order);
        let right = new.iter().all(|line| *line == way);
        assert!(
            right && (counts || new.is_empty()),
            "{order:?} {new:?} {:?} {:?}: {done:#?}",
            self.files,
            self.books
        );
        self.count("servers that were started", !new.is_empty());
        self.count("servers that were not started", !counts && way != "0");
    }

    fn ask_models(&mut self) {
        let order = self.order();
        let done = self.say(
            order.agent,
            &Self::flags(order, &["models", "check", "near/x"]),
        );
        let way = self.files.way(Brought::Provider);
        let new = self.new_requests(&format!("/model-{way}/"));
        let counts = self.books.counts_for(&self.files, Brought::Provider, order);
        assert!(
            counts || new == 0,
            "{order:?} {:?} {:?}: {done:#?}",
            self.files,
            self.books
        );
        self.count("models that were asked", new > 0);
        self.count("models that were not asked", !counts && way > 0);
    }

    /// The person's own model hears what the folder's prompt says only if that is trusted.
    fn converse(&mut self) {
        let before = self.model.asked().len();
        let agent = self.dice.chance(40);
        let mut command = self.command(agent, &["chat", "--json"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdin.take().unwrap().write_all(b"hello\n"));
        let done = said(child.wait_with_output().unwrap());
        let asked = self.model.asked().split_off(before);
        let way = self.files.way(Brought::Prompt);
        let counts = way > 0 && self.books.counts(&self.files, Brought::Prompt);
        let heard = |way: usize| {
            let told = told(way);
            asked
                .iter()
                .any(|asked| asked.body.to_string().contains(&told))
        };
        let wrong = (1..3).any(|other| heard(other) && (other != way || !counts));
        assert!(!wrong, "{:?} {:?}: {done:#?}", self.files, self.books);
        let obeyed = heard(way);
        self.count("prompts of a trusted folder", obeyed);
        self.count(
            "prompts that no model heard",
            !obeyed && way > 0 && !asked.is_empty(),
        );
    }
}
