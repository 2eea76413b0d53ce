//! The counts as a table, as a list of what was counted, and as JSON.

use super::comments::TextCounts;
use super::count::Share;
use super::functions::{PublicFunction, public_functions};
use super::imports::import_cycles;
use super::literals::status_literals;
use super::source::{CrateSource, read_crates};
use super::tuples::tuple_bindings;
use super::types::{LargestType, largest_type, shared_names};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Counts the workspace that the arguments name and prints the result.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let mut root = PathBuf::from(".");
    let mut print: fn(&Census) = Census::print_table;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--dir" => match args.next() {
                Some(dir) => root = dir.into(),
                None => bail!("--dir needs a folder"),
            },
            "--json" => print = Census::print_json,
            "--list" => print = Census::print_lists,
            other => bail!("census does not know {other}: --dir DIR, --json, --list"),
        }
    }
    print(&Census::take(&root)?);
    Ok(())
}

struct CrateCounts {
    name: String,
    entries: usize,
    largest_type: LargestType,
    cycles: Vec<Vec<String>>,
    src: TextCounts,
    tests: TextCounts,
}

struct Census {
    crates: Vec<CrateCounts>,
    public_shared_names: BTreeMap<String, Vec<String>>,
    all_shared_names: BTreeMap<String, Vec<String>>,
    status_literals: Vec<String>,
    tuples_in_src: Vec<String>,
    tuples_in_tests: Vec<String>,
    functions: Vec<PublicFunction>,
    text: TextCounts,
}

impl Census {
    fn take(root: &Path) -> Result<Self> {
        let crates = read_crates(root)?;
        let src = crates.iter().flat_map(|krate| &krate.src);
        let tests = crates.iter().flat_map(|krate| &krate.tests);
        Ok(Self {
            public_shared_names: shared_names(&crates, true),
            all_shared_names: shared_names(&crates, false),
            status_literals: status_literals(&crates),
            tuples_in_src: src.flat_map(tuple_bindings).collect(),
            tuples_in_tests: tests.flat_map(tuple_bindings).collect(),
            functions: public_functions(&crates),
            text: TextCounts::of_sources(&crates),
            crates: crates.iter().map(CrateCounts::of).collect(),
        })
    }

    fn functions_that(&self, holds: fn(&PublicFunction) -> bool) -> Share {
        Share {
            part: self
                .functions
                .iter()
                .filter(|function| holds(function))
                .count(),
            whole: self.functions.len(),
        }
    }

    fn places_of_functions(&self, holds: fn(&PublicFunction) -> bool) -> Vec<String> {
        let found = self.functions.iter().filter(|function| holds(function));
        found
            .map(|function| format!("{} {}", function.place, function.name))
            .collect()
    }

    fn print_table(&self) {
        println!(
            "{:22}{:>8}{:>8}{:>8}{:>8}  {:>6}{:>8}{:>5}  methods of the type with most, its files",
            "crate", "entries", "cycles", "src", "tests", "public", "visible", "all"
        );
        for krate in &self.crates {
            let largest = &krate.largest_type;
            println!(
                "{:22}{:>8}{:>8}{:>8}{:>8}  {:>6}{:>8}{:>5}  {}, {}",
                krate.name,
                krate.entries,
                krate.modules_in_cycles(),
                krate.src.code,
                krate.tests.code,
                largest.methods.public,
                largest.methods.visible,
                largest.methods.all,
                largest.name,
                largest.files,
            );
        }
        println!();
        for (name, value) in self.figures() {
            println!("{name:66}{value}");
        }
    }

    fn figures(&self) -> Vec<(&'static str, String)> {
        let tests: usize = self.crates.iter().map(|krate| krate.tests.code).sum();
        let all_one_word = self.functions_that(PublicFunction::is_one_word);
        let one_word = self.functions_that(PublicFunction::is_unusual_word);
        let participles = self.functions_that(PublicFunction::is_bare_participle);
        let questions = self.text.doc_questions();
        let long_lines = self.text.long_lines();
        let files = self.text.file_lengths();
        let count = |count: usize| count.to_string();
        vec![
            (
                "names shared by several public types",
                count(self.public_shared_names.len()),
            ),
            (
                "names shared by several types of any visibility",
                count(self.all_shared_names.len()),
            ),
            (
                "status words as literals outside wire and adapters",
                count(self.status_literals.len()),
            ),
            (
                "`let (a, b) = (x, y)` in sources",
                count(self.tuples_in_src.len()),
            ),
            (
                "`let (a, b) = (x, y)` in tests",
                count(self.tuples_in_tests.len()),
            ),
            (
                "public functions with a one-word name",
                show_share(all_one_word),
            ),
            (
                "the same without `new`, `get`, `len` and the like",
                show_share(one_word),
            ),
            (
                "public functions named by a bare participle",
                show_share(participles),
            ),
            ("lines of code in sources", count(self.text.code)),
            ("lines of code in tests", count(tests)),
            (
                "somebody, nobody, whoever, whatever per 1,000 words of comments",
                format!("{:.1}", self.text.nameless_per_thousand_words()),
            ),
            (
                "doc comments that open with what, whether, how, who",
                show_share(questions),
            ),
            (
                "comments inside functions per 100 lines of code",
                format!("{:.1}", self.text.inner_comments_per_hundred_lines()),
            ),
            ("lines of 90 characters or more", show_share(long_lines)),
            (
                "lines per file: median, ninth decile, largest",
                format!(
                    "{}, {}, {} ({})",
                    files.median,
                    files.ninth_decile,
                    files.largest,
                    files.largest_path.display()
                ),
            ),
        ]
    }

    fn print_lists(&self) {
        for krate in &self.crates {
            for cycle in &krate.cycles {
                println!("import cycle in {}: {}", krate.name, cycle.join(" "));
            }
        }
        for (name, places) in &self.all_shared_names {
            let kind = if self.public_shared_names.contains_key(name) {
                "public name"
            } else {
                "name"
            };
            println!("shared {kind} {name}: {}", places.join(" "));
        }
        print_places("status word", &self.status_literals);
        print_places("tuple", &self.tuples_in_src);
        print_places("tuple", &self.tuples_in_tests);
        for function in &self.functions {
            if function.is_bare_participle() {
                println!("participle: {} {}", function.place, function.name);
            } else if function.is_unusual_word() {
                println!("one word: {} {}", function.place, function.name);
            }
        }
    }

    fn print_json(&self) {
        let crates = self.crates.iter().map(CrateCounts::to_json);
        let figures: serde_json::Map<String, Value> = self
            .figures()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        let tuples = [&self.tuples_in_src[..], &self.tuples_in_tests].concat();
        let document = json!({
            "crates": crates.collect::<Vec<_>>(),
            "workspace": figures,
            "shared_public_names": self.public_shared_names,
            "status_words": self.status_literals,
            "tuples": tuples,
            "public_functions": self.functions.len(),
            "unusual_words": self.places_of_functions(PublicFunction::is_unusual_word),
            "participles": self.places_of_functions(PublicFunction::is_bare_participle),
        });
        println!("{document:#}");
    }
}

impl CrateCounts {
    fn of(krate: &CrateSource) -> Self {
        Self {
            name: krate.name.clone(),
            entries: krate.entries,
            largest_type: largest_type(krate),
            cycles: import_cycles(krate),
            src: TextCounts::of(&krate.src),
            tests: TextCounts::of(&krate.tests),
        }
    }

    fn modules_in_cycles(&self) -> usize {
        self.cycles.iter().map(Vec::len).sum()
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "entries": self.entries,
            "modules_in_cycles": self.modules_in_cycles(),
            "cycles": self.cycles,
            "largest_type": self.largest_type.name,
            "methods_of_largest_type": {
                "public": self.largest_type.methods.public,
                "visible": self.largest_type.methods.visible,
                "all": self.largest_type.methods.all,
            },
            "files_of_largest_type": self.largest_type.files,
            "code_in_src": self.src.code,
            "code_in_tests": self.tests.code,
        })
    }
}

fn show_share(share: Share) -> String {
    let Share { part, whole } = share;
    format!("{:.1}% ({part} of {whole})", share.percent())
}

fn print_places(kind: &str, places: &[String]) {
    for place in places {
        println!("{kind}: {place}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a workspace with one crate and takes its census.
    fn take_census(files: &[(&str, &str)]) -> Census {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join("crates/one").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Census::take(root.path()).unwrap()
    }

    #[test]
    fn modules_that_reach_each_other_are_a_cycle_also_through_groups_reexports_and_super() {
        let census = take_census(&[
            (
                "src/lib.rs",
                "mod a; mod b; mod c; mod d; pub use c::Third;",
            ),
            ("src/a.rs", "use crate::{b::{x, y}, d};"),
            ("src/b/mod.rs", "fn f() { vec![crate::Third] }"),
            ("src/b/deep.rs", "use super::super::d;"),
            ("src/c.rs", "use super::a::z; pub struct Third;"),
            ("src/d.rs", "#[cfg(test)] mod tests { use crate::a; }"),
        ]);
        assert_eq!(census.crates[0].entries, 4);
        assert_eq!(census.crates[0].cycles, [["a", "b", "c"]]);
    }

    #[test]
    fn methods_of_a_type_are_added_up_over_its_files() {
        let census = take_census(&[
            (
                "src/lib.rs",
                "mod a; pub struct Big; impl Big { pub fn one(&self) {} fn two() {} }",
            ),
            (
                "src/a.rs",
                "impl crate::Big { pub fn three() {} pub(crate) fn four() {} } impl Clone for crate::Big { fn clone() {} }",
            ),
        ]);
        let largest = &census.crates[0].largest_type;
        assert_eq!((largest.name.as_str(), largest.files), ("Big", 2));
        let methods = largest.methods;
        assert_eq!((methods.public, methods.visible, methods.all), (2, 3, 4));
    }

    #[test]
    fn status_words_count_outside_wire_and_the_tables_of_their_types() {
        let census = take_census(&[(
            "src/lib.rs",
            r#"
            /// "failed"
            impl RunStatus { fn as_str() -> &'static str { "failed" } }
            fn f(word: &str) -> bool { matches!(word, "failed" | "other") || word == "paused" }
            fn g() { json!({ "failed": 1 }) }
            impl Kind { fn code(&self) -> Code { match self {
                Self::Waits(_) | Self::Rests { .. } => "waiting",
                Self::Failed => ("failed", Word::new("ready")),
                Self::Known => Kind::Conflict.with_code("blocked"),
                _ => "pending",
            } } }
            fn h(other: Kind) -> &'static str { match other { Kind::Paused => "skipped" } }
            "#,
        )]);
        let words: Vec<&str> = census
            .status_literals
            .iter()
            .filter_map(|place| place.split(' ').next_back())
            .collect();
        let expected = ["failed", "paused", "failed", "ready", "pending", "skipped"];
        assert_eq!(words, expected.map(|word| format!("\"{word}\"")));
    }

    #[test]
    fn names_of_functions_and_types_are_judged() {
        let census = take_census(&[
            (
                "src/lib.rs",
                "mod a; pub struct Same; pub fn told() {} pub fn new() {} pub fn tend() {} pub fn load_plan() {} fn kept() {}",
            ),
            (
                "src/a.rs",
                "pub enum Same {} struct Other; fn f() { let (a, b) = (1, 2); let (c, d) = pair(); }",
            ),
        ]);
        assert_eq!(
            census.public_shared_names.keys().collect::<Vec<_>>(),
            ["Same"]
        );
        let share = |share: Share| (share.part, share.whole);
        assert_eq!(
            share(census.functions_that(PublicFunction::is_one_word)),
            (3, 4)
        );
        assert_eq!(
            share(census.functions_that(PublicFunction::is_unusual_word)),
            (2, 4)
        );
        assert_eq!(
            share(census.functions_that(PublicFunction::is_bare_participle)),
            (1, 4)
        );
        assert_eq!(census.tuples_in_src, ["crates/one/src/a.rs:1"]);
    }

    #[test]
    fn comments_are_counted_once_for_each_block() {
        let census = take_census(&[(
            "src/lib.rs",
            "/// Whether somebody waits.\n/// More.\nfn f() {\n    // The order\n    // matters.\n    g();\n}\n/// Formats.\nfn g() {}\n",
        )]);
        let share = census.text.doc_questions();
        assert_eq!((share.part, share.whole), (1, 2));
        assert_eq!(census.text.code, 4);
        let close = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        assert!(close(census.text.inner_comments_per_hundred_lines(), 25.0));
        assert!(close(
            census.text.nameless_per_thousand_words(),
            1000.0 / 8.0
        ));
    }
}
