//! Random lives of a folder's file: its author rewrites it, the user trusts what it says, one thing
//! of it or nothing any more. Only what is exactly as it was trusted counts, by the books of this
//! file; what tightens counts always.

use super::Config;
use crate::config::executors::ScopeMode;
use crate::trust::{FolderTrust, Trust};
use planwright_core::policy::{AdjustmentConsent, LateChoice, Verdict};
use planwright_core::tool::EffectClass;
use planwright_testing::dice::Dice;
use std::collections::BTreeMap;
use std::path::PathBuf;

const HISTORIES: u64 = 250;
const MOVES: usize = 14;

/// What is trusted as one: its name in the user's file, and the parts that it has.
const SUBJECTS: [(&str, &[&str]); 11] = [
    ("policy rules", &["allow", "deny", "late", "adjust", "uses"]),
    ("policy roles", &["roles"]),
    ("local run_command", &["command"]),
    ("local http_get", &["fetch"]),
    ("agent scope", &["scope"]),
    ("tool git.push", &["class"]),
    ("store passphrase_file", &["passphrase"]),
    ("webhook ops", &["webhook"]),
    ("telemetry export", &["telemetry"]),
    ("service access", &["service"]),
    ("retention removal", &["removal"]),
];

/// Ways to write a part; the first is silence, or what needs no trust.
fn ways(part: &str) -> &'static [&'static str] {
    match part {
        "allow" => &[
            "",
            "then = \"allow\"\ntool = \"x.send\"\n",
            "then = \"allow\"\ntool = \"*\"\n",
        ],
        "deny" => &["", "then = \"deny\"\ntool = \"x.wipe\"\n"],
        "late" => &["", "late_bound = \"any\"\n", "late_bound = \"ask\"\n"],
        "adjust" => &["", "adjust = \"auto\"\n"],
        "uses" => &["", "[policy.approval]\nexpires_after = \"1h\"\nuses = 3\n"],
        "roles" => &[
            "",
            "[roles]\nadmin = [\"person:ada\", \"service:ci\"]\n",
            "[roles]\nadmin = [\"person:ada\", \"service:other\"]\n",
        ],
        "command" => &["", "[local]\nrun_command = true\n"],
        "fetch" => &[
            "",
            "[local.http_get]\nenabled = true\n",
            "[local.http_get]\nenabled = true\nallow = [\"10.0.0.1\"]\n",
        ],
        "scope" => &["", "[agent]\nscope = \"observe\"\n"],
        "class" => &[
            "",
            "[tools.\"git.push\"]\nclass = \"safe\"\n",
            "[tools.\"git.push\"]\nclass = \"keyed\"\nkey_argument = \"key\"\n",
            "[tools.\"git.push\"]\nclass = \"unsafe\"\n",
        ],
        "passphrase" => &[
            "",
            "[store]\npassphrase_file = \"one\"\n",
            "[store]\npassphrase_file = \"two\"\n",
        ],
        "webhook" => &[
            "",
            "[[webhooks]]\nname = \"ops\"\nurl = \"https://one.example/\"\nsecret = \"HOOK\"\n",
            "[[webhooks]]\nname = \"ops\"\nurl = \"https://two.example/\"\nsecret = \"HOOK\"\n",
        ],
        "telemetry" => &[
            "",
            "[telemetry]\notlp_endpoint = \"http://127.0.0.1:1\"\n",
            "[telemetry]\notlp_endpoint = \"http://127.0.0.1:1\"\ncontent = true\n",
        ],
        "service" => &[
            "",
            "[serve]\nmetrics_public = true\n",
            "[serve]\nallow_origins = [\"https://evil.example\"]\n",
        ],
        "removal" => &["", "[retention]\nremove_after = \"30d\"\n"],
        other => panic!("no part {other}"),
    }
}

type Written = BTreeMap<&'static str, usize>;

/// The file, with the parts in an order that TOML takes.
fn text(written: &Written, comment: u64) -> String {
    let part = |name: &str| ways(name)[written[name]];
    let mut text = format!("# {comment}\n[policy]\n{}{}", part("late"), part("adjust"));
    for rule in ["deny", "allow"] {
        if written[rule] > 0 {
            text = format!("{text}[[policy.rules]]\n{}", part(rule));
        }
    }
    let others = SUBJECTS.iter().flat_map(|(_, parts)| parts.iter());
    let others = others.filter(|name| !matches!(**name, "allow" | "deny" | "late" | "adjust"));
    others.fold(text, |text, name| text + part(name))
}

/// Whether a subject loosens as it is written.
fn loosens(subject: &str, written: &Written) -> bool {
    match subject {
        "policy rules" => {
            written["allow"] > 0
                || written["late"] == 1
                || written["adjust"] > 0
                || written["uses"] > 0
        }
        "tool git.push" => matches!(written["class"], 1 | 2),
        _ => SUBJECTS
            .iter()
            .any(|(name, parts)| *name == subject && parts.iter().any(|part| written[part] > 0)),
    }
}

/// What was trusted under a name: its parts, as they were written.
type Books = BTreeMap<&'static str, Vec<usize>>;

fn parts_of(parts: &[&'static str], written: &Written) -> Vec<usize> {
    parts.iter().map(|part| written[part]).collect()
}

/// The parts that count: others are as if they were not written.
fn counting(written: &Written, books: &Books) -> Written {
    let mut counting = written.clone();
    for (name, parts) in SUBJECTS {
        if !loosens(name, written) || books.get(name) == Some(&parts_of(parts, written)) {
            continue;
        }
        for part in parts {
            // What denies stays, and so does what asks.
            let stays = *part == "deny" || (*part == "late" && written["late"] == 2);
            if !stays {
                counting.insert(part, 0);
            }
        }
    }
    counting
}

/// Panics unless the configuration is what these parts make of it.
fn check(config: &Config, expected: &Written) {
    let rules = |verdict| {
        let rules = config.policy.rules.iter();
        rules.filter(|rule| rule.then == verdict).count() > 0
    };
    assert_eq!(rules(Verdict::Allow), expected["allow"] > 0, "allow");
    assert_eq!(rules(Verdict::Deny), expected["deny"] > 0, "deny");
    let late = match expected["late"] {
        0 => None,
        1 => Some(LateChoice::Any),
        _ => Some(LateChoice::Ask),
    };
    assert_eq!(config.policy.late_bound, late);
    let auto = config.policy.adjust == AdjustmentConsent::Auto;
    assert_eq!(auto, expected["adjust"] > 0, "adjust");
    let uses = if expected["uses"] > 0 { 3 } else { 1 };
    assert_eq!(config.policy.approval.uses(), uses);
    let admins = config
        .roles
        .iter()
        .flat_map(|roles| roles.admin.iter().flatten());
    let programs = admins.filter(|name| name.starts_with("service:")).count();
    assert_eq!(programs > 0, expected["roles"] > 0, "roles");
    assert_eq!(config.local.run_command, expected["command"] > 0, "command");
    let fetch = &config.local.http_get;
    let fetch = (fetch.enabled, fetch.allow.len());
    assert_eq!(fetch, [(false, 0), (true, 0), (true, 1)][expected["fetch"]]);
    let observes = config.agent.scope == ScopeMode::Observe;
    assert_eq!(observes, expected["scope"] > 0, "scope");
    let class = config.tools.get("git.push").and_then(|tool| tool.class);
    let classes = [
        None,
        Some(EffectClass::Safe),
        Some(EffectClass::Keyed),
        Some(EffectClass::Unsafe),
    ];
    assert_eq!(class, classes[expected["class"]]);
    let passphrase = config.store.passphrase_file.clone();
    let passphrases = [None, Some(PathBuf::from("one")), Some(PathBuf::from("two"))];
    assert_eq!(passphrase, passphrases[expected["passphrase"]]);
    let webhooks = format!("{:?}", config.webhooks);
    let told = ["one.example", "two.example"].map(|place| webhooks.contains(place));
    let expected_told = [1, 2].map(|way| expected["webhook"] == way);
    assert_eq!(told, expected_told, "webhook");
    let telemetry = &config.telemetry;
    let telemetry = (telemetry.otlp_endpoint.is_some(), telemetry.content);
    let telemetries = [(false, false), (true, false), (true, true)];
    assert_eq!(telemetry, telemetries[expected["telemetry"]]);
    let serve = (
        config.serve.metrics_public,
        config.serve.allow_origins.len(),
    );
    assert_eq!(
        serve,
        [(false, 0), (true, 0), (false, 1)][expected["service"]]
    );
    let removes = config.retention.remove_after.is_some();
    assert_eq!(removes, expected["removal"] > 0, "removal");
}

#[test]
fn whatever_the_author_of_a_file_writes_only_what_was_trusted_loosens() {
    let home = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let parts = || SUBJECTS.iter().flat_map(|(_, parts)| parts.iter().copied());
    // Parts that counted, and that did not, by name.
    let mut counted: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for seed in 0..HISTORIES {
        let mut dice = Dice::new(seed);
        let path = home.path().join(format!("trust-{seed}.json"));
        let mut written: Written = parts().map(|part| (part, 0)).collect();
        let mut books = Books::new();
        for _ in 0..MOVES {
            let config = Config::parse(&text(&written, dice.roll())).unwrap();
            let trust = Trust::read_file(Ok(path.clone()), folder.path());
            let trusted = FolderTrust::judge(trust, config.loosenings(), false);
            match dice.below(10) {
                0..=4 => {
                    for _ in 0..1 + dice.below(4) {
                        let part = dice.pick(&parts().collect::<Vec<_>>());
                        written.insert(part, dice.below(ways(part).len()));
                    }
                }
                5..=7 => {
                    trusted.grant().unwrap();
                    for (name, parts) in SUBJECTS.iter().filter(|(name, _)| loosens(name, &written))
                    {
                        books.insert(name, parts_of(parts, &written));
                    }
                }
                8 => {
                    let (name, _) = dice.pick(&SUBJECTS);
                    let was = trusted.trust().revoke(name).unwrap();
                    assert_eq!(was, books.remove(name).is_some(), "{name}");
                }
                _ => {
                    let count = trusted.trust().revoke_all().unwrap();
                    assert_eq!(count, books.len());
                    books.clear();
                }
            }
            let config = Config::parse(&text(&written, dice.roll())).unwrap();
            let trust = Trust::read_file(Ok(path.clone()), folder.path());
            let judged = FolderTrust::judge(trust, config.loosenings(), false);
            let expected = counting(&written, &books);
            check(&config.without(&judged.ignored_subjects()), &expected);
            for (name, _) in SUBJECTS.iter().filter(|(name, _)| loosens(name, &written)) {
                let same = loosens(name, &expected);
                counted.entry(name).or_default()[usize::from(same)] += 1;
            }
        }
    }
    for (name, _) in SUBJECTS {
        let [ignored, trusted] = counted[name];
        assert!(ignored > 50 && trusted > 50, "{name}: {counted:?}");
    }
}
