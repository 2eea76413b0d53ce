//! Random lives of a folder: strangers change its files, people trust them or not, people and agents
//! run plans. Whatever they do, nothing is written that the books of this file do not find covered.

use planwright_testing::dice::Dice;
use planwright_testing::workbench::{Bench, Said, said};
use serde_json::{Value, json};

const HISTORIES: u64 = 16;
const MOVES: usize = 14;
const EFFECTS: &str = "effects.txt";

/// What `planwright.toml` may say: nothing, something that loosens, or something that tightens.
const FILES: [&str; 4] = [
    "",
    "[[policy.rules]]\ntool = \"*\"\nthen = \"allow\"\n",
    "[[policy.rules]]\nname = \"mine\"\ntool = \"local.append_file\"\nthen = \"allow\"\n",
    "[[policy.rules]]\ntool = \"local.append_file\"\nthen = \"deny\"\n",
];
const LOOSENS: [usize; 2] = [1, 2];
const DENIES: usize = 3;

/// The environment of an agent's shell; a person's has none of these.
const MARKS: [(&str, &str); 3] = [
    ("CLAUDECODE", "1"),
    ("CURSOR_AGENT", "1"),
    ("PLANWRIGHT_AGENT", "bot"),
];

/// What decides about a call: which of the files counts, and whether the person always allows it.
type Rules = (usize, bool);

/// The plan, which writes one of two words, with or without a limit that no rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Written {
    word: usize,
    limited: bool,
}

struct Folder {
    bench: Bench,
    dice: Dice,
    /// The file as it is, and the one that a person trusted.
    file: usize,
    trusted: Option<usize>,
    always: bool,
    plan: Written,
    /// What a person agreed to and no run used, with the file that counted then. What a person
    /// always allows is no part of it.
    approved: Vec<(Written, usize)>,
    /// A limit is gone since a person last agreed.
    lost: bool,
    effects: usize,
    tally: [u64; 7],
}

impl Folder {
    fn new(seed: u64) -> Self {
        let plan = Written {
            word: 0,
            limited: false,
        };
        let folder = Self {
            bench: Bench::new(),
            dice: Dice::new(seed),
            file: 0,
            trusted: None,
            always: false,
            plan,
            approved: Vec::new(),
            lost: false,
            effects: 0,
            tally: [0; 7],
        };
        folder.write_plan();
        folder.bench.run(&["propose", "p.json"]);
        folder
    }

    fn write_plan(&self) -> String {
        let Written { word, limited } = self.plan;
        let content = ["one\n", "two\n"][word];
        let mut step = json!({"id": "a", "tool": "local.append_file",
                              "args": {"path": EFFECTS, "content": content}});
        if limited {
            step["timeoutSeconds"] = json!(60);
        }
        self.bench.plan("p", json!([step]))
    }

    /// The rules that count: what loosens only if exactly that was trusted.
    fn rules(&self) -> Rules {
        let counts = !LOOSENS.contains(&self.file) || self.trusted == Some(self.file);
        (if counts { self.file } else { 0 }, self.always)
    }

    /// The program, as a person or an agent starts it.
    fn say(&mut self, agent: bool, args: &[&str]) -> Said {
        let mut command = self.bench.command(args);
        if agent {
            let (name, value) = self.dice.pick(&MARKS);
            command.env(name, value);
        }
        said(command.output().unwrap())
    }

    fn live(&mut self) {
        for _ in 0..MOVES {
            match self.dice.below(12) {
                0 | 1 => {
                    self.file = self.dice.below(FILES.len());
                    self.bench.write("planwright.toml", FILES[self.file]);
                }
                2 | 3 => self.trust(),
                4 => self.allow_for_good(),
                5 => self.change_plan(),
                6 | 7 => self.approve(),
                _ => self.run(),
            }
        }
    }

    fn trust(&mut self) {
        let agent = self.dice.chance(50);
        let done = self.say(agent, &["trust", "--yes"]);
        if agent {
            assert_ne!(done.code, 0, "an agent trusted the folder: {done:#?}");
            self.tally[0] += 1;
        } else if done.code == 0 {
            self.trusted = Some(self.file);
        }
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
        self.always = self.dice.chance(60);
        let text = if self.always { rule.as_str() } else { "" };
        self.bench.write_own("always.toml", text);
    }

    fn change_plan(&mut self) {
        let before = self.plan;
        self.plan = Written {
            word: self.dice.below(2),
            limited: self.dice.chance(50),
        };
        let file = self.write_plan();
        let agent = self.dice.chance(70);
        self.say(agent, &["propose", &file]).ends(0);
        self.lost |= before.limited && !self.plan.limited;
        // With the limit back nothing is lost.
        self.lost &= !self.plan.limited;
        let now = self.plan;
        self.approved.retain(|(plan, _)| *plan == now);
    }

    fn approve(&mut self) {
        let agent = self.dice.chance(40);
        let digest = self.bench.digest("p");
        let done = self.say(agent, &["approve", "p", "--digest", &digest]);
        if agent {
            assert_ne!(done.code, 0, "an agent approved: {done:#?}");
            self.tally[1] += 1;
        } else if done.code == 0 {
            self.approved.push((self.plan, self.rules().0));
            self.lost = false;
        }
    }

    /// Somebody runs the plan, with or without `--yes`.
    fn run(&mut self) {
        let agent = self.dice.chance(50);
        let yes = self.dice.chance(50);
        let args: &[&str] = if yes {
            &["run", "p", "--yes"]
        } else {
            &["run", "p"]
        };
        let done = self.say(agent, args);
        let written = self.bench.read(EFFECTS).lines().count();
        let new = written - self.effects;
        self.effects = written;
        let (file, always) = self.rules();
        let allowed = (LOOSENS.contains(&file) || always) && !self.lost;
        let about = (self.plan, self.rules().0);
        let agreed = self.approved.contains(&about);
        let by_person = yes && !agent;
        let covered = file != DENIES && (allowed || agreed || by_person);
        let books = format!(
            "agent {agent}, yes {yes}, rules {:?}, approved {:?}, lost {}: {done:#?}",
            self.rules(),
            self.approved,
            self.lost
        );
        assert!(new <= 1, "{new} calls at once: {books}");
        assert!(new == 0 || covered, "nobody agreed: {books}");
        let ungranted = agent && yes && !allowed && !agreed;
        let untrusted = LOOSENS.contains(&self.file) && file == 0;
        self.tally[2] += u64::from(ungranted);
        self.tally[3] += u64::from(untrusted && new == 0);
        self.tally[4] += u64::from(new == 1 && allowed && !agreed && !by_person);
        self.tally[5] += u64::from(new == 1 && (agreed || by_person));
        self.tally[6] += u64::from((LOOSENS.contains(&file) || always) && self.lost && new == 0);
        if new == 1 {
            self.approved.retain(|approved| *approved != about);
            self.lost &= !by_person;
        }
    }
}

#[test]
fn whatever_strangers_write_and_agents_say_nothing_is_written_that_no_person_let() {
    let live = |seeds: std::ops::Range<u64>| {
        let mut tally = [0; 7];
        for seed in seeds {
            let mut folder = Folder::new(seed);
            folder.live();
            for (sum, found) in tally.iter_mut().zip(folder.tally) {
                *sum += found;
            }
        }
        tally
    };
    let tally = std::thread::scope(|scope| {
        let other = scope.spawn(|| live(HISTORIES / 2..HISTORIES));
        let mut tally = live(0..HISTORIES / 2);
        match other.join() {
            Ok(other) => tally
                .iter_mut()
                .zip(other)
                .for_each(|(sum, found)| *sum += found),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        tally
    });
    let least = [5, 5, 8, 2, 3, 5, 1];
    let enough = tally
        .iter()
        .zip(least)
        .all(|(&found, least)| found >= least);
    assert!(enough, "{tally:?}");
}
