//! Everything that goes into packages, gathered once for all of them.

use crate::dist::archive::Entry;
use crate::dist::crates::{self, Crate};
use crate::dist::description::{ITEMS, Item, Part, VERSION};
use crate::dist::platform::Platform;
use crate::dist::{notices, program};
use anyhow::{Context as _, Result};
use flate2::Compression;
use std::collections::BTreeMap;
use std::path::Path;

pub(super) struct Contents {
    pub(super) platform: &'static Platform,
    pub(super) crates: Vec<Crate>,
    pub(super) level: Compression,
    parts: BTreeMap<Part, Vec<u8>>,
}

/// A file that is handed to people.
pub(super) struct Product {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl Contents {
    /// Gathers what belongs to a program. It is asked for its version and its completions, so it has
    /// to run on this machine.
    pub(super) fn gather(program: &Path, level: Compression) -> Result<Self> {
        program::check_version(program)?;
        let stripped = program::strip(program)?;
        let platform = Platform::of_program(&stripped)
            .with_context(|| format!("cannot package {}", program.display()))?;
        let crates = crates::read_linked(platform.triple)?;
        let completions = |shell| program::ask(program, &["completions", shell]);
        let parts = BTreeMap::from([
            (Part::Program, stripped),
            (Part::Readme, read("README.md")?),
            (Part::License, read("LICENSE")?),
            (Part::Notices, notices::write(&crates)?.into_bytes()),
            (Part::BashCompletions, completions("bash")?),
            (Part::ZshCompletions, completions("zsh")?),
            (Part::FishCompletions, completions("fish")?),
        ]);
        Ok(Self {
            platform,
            crates,
            level,
            parts,
        })
    }

    pub(super) fn part(&self, part: Part) -> &[u8] {
        self.parts.get(&part).map_or(&[], Vec::as_slice)
    }

    pub(super) fn size(&self) -> usize {
        self.parts.values().map(Vec::len).sum()
    }

    /// The parts that a kind of package has, each at its place below a folder.
    pub(super) fn entries(
        &self,
        folder: &str,
        place: impl Fn(&Item) -> Option<&'static str>,
    ) -> Vec<Entry<'_>> {
        let entry = |item: &Item| {
            let path = place(item)?.replace("VERSION", VERSION);
            Some(Entry {
                path: format!("{folder}{path}"),
                bytes: self.part(item.part),
                is_executable: item.part.is_executable(),
            })
        };
        ITEMS.iter().filter_map(entry).collect()
    }
}

fn read(name: &str) -> Result<Vec<u8>> {
    let path = program::root().join(name);
    std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::dist::platform::tests::elf;

    /// Contents with a program that is none, of a static program for x86-64.
    pub(in crate::dist) fn example() -> Contents {
        let program = elf(62, 1);
        let mut parts: BTreeMap<Part, Vec<u8>> = ITEMS
            .iter()
            .map(|item| (item.part, format!("{:?}\n", item.part).into_bytes()))
            .collect();
        let platform = Platform::of_program(&program).unwrap();
        parts.insert(Part::Program, program);
        Contents {
            platform,
            crates: crates::tests::example(),
            level: Compression::fast(),
            parts,
        }
    }

    impl Contents {
        pub(in crate::dist) fn replace(&mut self, part: Part, bytes: &[u8]) {
            self.parts.insert(part, bytes.to_owned());
        }
    }

    #[test]
    fn every_part_is_described_once() {
        let contents = example();
        assert_eq!(contents.parts.len(), ITEMS.len());
        let entries = contents.entries("x/", |item| item.npm);
        assert_eq!(entries[0].path, "x/bin/planwright");
        assert!(entries[0].is_executable && !entries[1].is_executable);
        let wheel = contents.entries("", |item| item.wheel);
        assert!(wheel.iter().all(|entry| entry.path.contains(VERSION)));
    }
}
