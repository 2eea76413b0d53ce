//! What README.md, docs/ and examples/ tell people to type is typed here, and what they show is
//! compared with what the program says.
//!
//! A comment directly above a block says how it is run:
//!
//! - `<!-- run: STAGE -->`: line by line, in the workspace that `stages.rs` prepares under this name;
//!   blocks of one document with the same stage go on in the same workspace;
//! - `<!-- run each: STAGE -->`: the lines are alternatives, each has a fresh workspace;
//! - `<!-- run by test: NAME -->`: that test runs it;
//! - `<!-- not run: REASON -->`.
//!
//! A block without a comment is a mistake. Settings and plans need none: every `toml` and `json` block
//! is given to the program.

mod block;
mod fragments;
mod play;
mod stages;

use block::{Block, Mark, all_blocks, blocks, commands, documents};
pub(crate) use block::{Typed, read};
pub(crate) use fragments::assert_shown;
pub(crate) use play::Stage;
pub(crate) use stages::{git_server, model};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Plays the blocks of a document.
#[track_caller]
fn play(document: &str) {
    let mut stages: BTreeMap<String, Stage> = BTreeMap::new();
    let mut wrong = String::new();
    let typed = blocks(document, &read(document));
    for block in typed.iter().filter(|block| block.is_typed()) {
        let outcome = match &block.mark {
            Mark::Run(name) => {
                let open = || stages::stage(name).unwrap_or_else(|| panic!("no stage {name}"));
                let stage = stages.entry(name.clone()).or_insert_with(open);
                play_all(stage, block)
            }
            Mark::RunEach(name) => commands(block).iter().try_for_each(|line| {
                let stage = stages::stage(name);
                stage.ok_or_else(|| format!("no stage {name}"))?.play(line)
            }),
            Mark::Missing | Mark::ByTest(_) | Mark::NotRun(_) => Ok(()),
        };
        if let Err(why) = outcome {
            writeln!(wrong, "{}: {why}\n", block.place()).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn play_all(stage: &mut Stage, block: &Block) -> Result<(), String> {
    if block.language == "js" {
        stage.bench.write("block.js", &block.text);
        return stage.play(&Typed::of("node block.js"));
    }
    commands(block).iter().try_for_each(|line| stage.play(line))
}

macro_rules! played {
    ($($name:ident: $document:literal,)*) => {
        $(
            #[test]
            fn $name() {
                play($document);
            }
        )*
        /// Every document whose blocks are played, one test each.
        const PLAYED: &[&str] = &[$($document),*];
    };
}

played! {
    readme: "README.md",
    access: "docs/access.md",
    agents_setup: "docs/agents-setup.md",
    chat: "docs/chat.md",
    control_flow: "docs/control-flow.md",
    editing: "docs/editing.md",
    models: "docs/models.md",
    planning: "docs/planning.md",
    policy: "docs/policy.md",
    receipts: "docs/receipts.md",
    reflection: "docs/reflection.md",
    review: "docs/review.md",
    servers: "docs/servers.md",
    service: "docs/service.md",
    store: "docs/store.md",
    sub_plans: "docs/sub-plans.md",
    templates: "docs/templates.md",
    trust: "docs/trust.md",
    undo: "docs/undo.md",
    example_basics: "examples/basics/README.md",
    example_control_flow: "examples/control-flow/README.md",
    example_execution: "examples/execution/README.md",
    example_guards: "examples/guards/README.md",
    example_models: "examples/models/README.md",
    example_parallel: "examples/parallel/README.md",
    example_reuse: "examples/reuse/README.md",
}

#[test]
fn every_block_that_can_be_typed_is_run_or_says_why_not() {
    let mut wrong = String::new();
    let mut seen = BTreeSet::new();
    let tests = crate::seeds::all_tests();
    for block in all_blocks() {
        let place = block.place();
        match &block.mark {
            Mark::Missing if block.is_typed() => {
                writeln!(wrong, "{place}: neither run nor excused").unwrap();
            }
            Mark::Run(name) | Mark::RunEach(name) => {
                seen.insert(block.document.clone());
                let is_listed = PLAYED.contains(&block.document.as_str());
                if !block.is_typed() || !is_listed || commands(&block).is_empty() {
                    writeln!(wrong, "{place}: stage {name}, and nothing plays it").unwrap();
                }
            }
            Mark::ByTest(name) if !crate::seeds::is_run(&tests, name) => {
                writeln!(wrong, "{place}: no test {name} is run").unwrap();
            }
            Mark::NotRun(reason) if reason.split_whitespace().count() < 2 => {
                writeln!(wrong, "{place}: {reason:?} is no reason").unwrap();
            }
            Mark::Missing | Mark::ByTest(_) | Mark::NotRun(_) => {}
        }
    }
    for document in PLAYED {
        if !seen.contains(*document) {
            writeln!(wrong, "{document}: no block of it is run").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A mark that stands elsewhere than above a block says nothing.
#[test]
fn every_mark_belongs_to_a_block() {
    for document in documents() {
        let text = read(&document);
        let begins = ["<!-- run", "<!-- not run"];
        let marks = text
            .lines()
            .filter(|line| begins.iter().any(|begin| line.trim().starts_with(begin)))
            .count();
        let used = blocks(&document, &text)
            .iter()
            .filter(|block| block.mark != Mark::Missing)
            .count();
        assert_eq!(marks, used, "{document}");
    }
}
