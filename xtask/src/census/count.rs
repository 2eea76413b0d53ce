//! Small arithmetic over counts.

use std::path::PathBuf;

/// A part of a whole, shown as a percentage.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    pub(super) part: usize,
    pub(super) whole: usize,
}

impl Share {
    pub(super) fn percent(self) -> f64 {
        per(self.part, self.whole, 100.0)
    }
}

/// How many `part` there are for each `unit` of `whole`.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of source code fit into a float exactly"
)]
pub(super) fn per(part: usize, whole: usize, unit: f64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 * unit / whole as f64
}

/// Lengths of files, in lines.
#[derive(Debug, Clone, Default)]
pub(super) struct FileLengths {
    pub(super) median: usize,
    pub(super) ninth_decile: usize,
    pub(super) largest: usize,
    pub(super) largest_path: PathBuf,
}

impl FileLengths {
    pub(super) fn of(mut files: Vec<(usize, PathBuf)>) -> Self {
        files.sort();
        let at = |index: usize| files.get(index).map_or(0, |(lines, _)| *lines);
        let last = files.last();
        Self {
            median: at(files.len() / 2),
            ninth_decile: at(files.len() * 9 / 10),
            largest: last.map_or(0, |(lines, _)| *lines),
            largest_path: last.map(|(_, path)| path.clone()).unwrap_or_default(),
        }
    }
}
