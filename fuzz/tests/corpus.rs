//! Every input of the corpus, tried: what the fuzzer found stays found.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

use planwright_fuzz::{Target, try_input};
use std::path::{Path, PathBuf};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
/// The most bytes of all inputs together: everyone who clones the repository gets them.
const MAX_BYTES: u64 = 2 << 20;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_input_of_the_corpus_is_read_or_refused() {
    for target in Target::ALL {
        let files = files(&Path::new(CORPUS).join(target.name));
        assert!(files.len() >= 5, "{} has no corpus", target.name);
        for file in files {
            println!("{}", file.display());
            try_input(&target, &std::fs::read(&file).unwrap());
        }
    }
}

#[test]
fn the_corpus_is_small_and_belongs_to_the_targets() {
    let mut bytes = 0;
    for folder in files(Path::new(CORPUS)) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        assert!(Target::find(name).is_some(), "{name} is no target");
        let files = files(&folder).into_iter();
        bytes += files
            .map(|file| file.metadata().unwrap().len())
            .sum::<u64>();
    }
    assert!(bytes <= MAX_BYTES, "the corpus has {bytes} bytes");
}
