//! What servers log during the calls of a run, as lines of JSON: a file for each run, and at most one
//! before it.

use super::atomic::{create_directory, nofollow};
use planwright_core::id::{RunId, StepId};
use planwright_core::time::Timestamp;
use planwright_engine::port::{BoxFuture, KeptLine, LogLevel, LoggedLine, StepLogs};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The file and the one before it together hold at most 1 MiB.
const MAX_FILE_BYTES: u64 = 512 << 10;

/// The files of all runs. When there are more, or they hold more, the oldest go, down to three
/// quarters of it: so that this is not done for every run.
const MAX_FILES: usize = 1_000;
const MAX_FOLDER_BYTES: u64 = 64 << 20;

/// The logs of steps, in a folder of their own among the other logs.
#[derive(Debug)]
pub struct FileStepLogs {
    logs: PathBuf,
    folder: PathBuf,
    /// One line at a time: two of them could find the file full at once.
    writing: Mutex<()>,
}

/// A line as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    at: Timestamp,
    step: StepId,
    level: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    logger: Option<String>,
    text: String,
}

impl FileStepLogs {
    /// Keeps logs in `runs` below the folder of logs. Both are made when the first line comes.
    pub fn new(logs: impl Into<PathBuf>) -> Self {
        let logs = logs.into();
        Self {
            folder: logs.join("runs"),
            logs,
            writing: Mutex::new(()),
        }
    }

    fn append(&self, run: &RunId, line: KeptLine) -> io::Result<()> {
        let KeptLine { at, step, line } = line;
        let row = Row {
            at,
            step,
            level: line.level.as_str().to_owned(),
            logger: line.logger,
            text: line.text,
        };
        let mut bytes = serde_json::to_vec(&row)?;
        bytes.push(b'\n');
        let path = latest(&self.folder, run);
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // They may have come with a clone: what leads elsewhere is neither written to nor cleared.
        for folder in [&self.logs, &self.folder] {
            create_directory(folder).map_err(io::Error::other)?;
        }
        if !path.try_exists()? {
            make_room(&self.folder)?;
        }
        let mut file = open_to_append(&path)?;
        if file.metadata()?.len() + bytes.len() as u64 > MAX_FILE_BYTES {
            std::fs::rename(&path, earlier(&self.folder, run))?;
            file = open_to_append(&path)?;
        }
        file.write_all(&bytes)?;
        drop(writing);
        Ok(())
    }
}

impl StepLogs for FileStepLogs {
    fn keep(&self, run: &RunId, line: KeptLine) {
        if let Err(error) = self.append(run, line) {
            tracing::debug!(%run, %error, "a line of a server's log is not kept");
        }
    }

    fn read(&self, run: &RunId) -> BoxFuture<'static, Vec<KeptLine>> {
        let paths = [earlier(&self.folder, run), latest(&self.folder, run)];
        Box::pin(async move {
            let read =
                tokio::task::spawn_blocking(move || paths.iter().flat_map(read_file).collect());
            read.await.unwrap_or_default()
        })
    }
}

/// Removes the files that were written to longest ago, if there are too many.
fn make_room(folder: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata()?;
        if !found.is_file() {
            continue;
        }
        files.push((found.modified()?, found.len(), entry.path()));
    }
    let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    if files.len() < MAX_FILES && bytes < MAX_FOLDER_BYTES {
        return Ok(());
    }
    files.sort();
    let mut left = files.len();
    for (_, size, path) in files {
        if left <= MAX_FILES / 4 * 3 && bytes <= MAX_FOLDER_BYTES / 4 * 3 {
            break;
        }
        std::fs::remove_file(path)?;
        left -= 1;
        bytes -= size;
    }
    Ok(())
}

fn latest(folder: &Path, run: &RunId) -> PathBuf {
    folder.join(format!("{run}.jsonl"))
}

fn earlier(folder: &Path, run: &RunId) -> PathBuf {
    folder.join(format!("{run}.1.jsonl"))
}

fn open_to_append(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(nofollow())
        .open(path)
}

/// Reads what a file has, and no more than was ever written into one.
fn read_file(path: &PathBuf) -> Vec<KeptLine> {
    let mut text = Vec::new();
    let mut options = File::options();
    let file = options.read(true).custom_flags(nofollow()).open(path);
    if file.is_ok_and(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut text).is_err()) {
        return Vec::new();
    }
    let lines = text.split(|byte| *byte == b'\n');
    lines.filter_map(read_row).collect()
}

fn read_row(line: &[u8]) -> Option<KeptLine> {
    let row: Row = serde_json::from_slice(line).ok()?;
    Some(KeptLine {
        at: row.at,
        step: row.step,
        line: LoggedLine {
            level: LogLevel::from_word(&row.level)?,
            logger: row.logger,
            text: row.text,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> KeptLine {
        KeptLine {
            at: Timestamp::from_millis(1_767_323_045_000),
            step: "fetch".parse().unwrap(),
            line: LoggedLine {
                level: LogLevel::Warning,
                logger: Some("http".to_owned()),
                text: text.to_owned(),
            },
        }
    }

    fn run() -> RunId {
        "run_1".parse().unwrap()
    }

    #[tokio::test]
    async fn lines_come_back_in_their_order_and_what_is_no_line_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let logs = FileStepLogs::new(folder.path().join("logs"));
        assert!(logs.read(&run()).await.is_empty());
        logs.keep(&run(), line("first\nof two"));
        let path = latest(&logs.folder, &run());
        let mut file = open_to_append(&path).unwrap();
        file.write_all(b"{\"no\": \"line\"}\n\xff\n").unwrap();
        logs.keep(&run(), line("second"));
        let kept = logs.read(&run()).await;
        assert_eq!(kept, [line("first\nof two"), line("second")]);
    }

    #[tokio::test]
    async fn the_latest_lines_are_kept_within_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let logs = FileStepLogs::new(folder.path());
        let text = "x".repeat(100 << 10);
        for number in 0..30 {
            logs.keep(&run(), line(&format!("{number} {text}")));
        }
        let kept = logs.read(&run()).await;
        assert!(kept.last().unwrap().line.text.starts_with("29 "));
        let files = std::fs::read_dir(&logs.folder).unwrap();
        let bytes: u64 = files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum();
        assert!(bytes <= 2 * MAX_FILE_BYTES, "{bytes}");
        assert!(kept.len() > 4, "{}", kept.len());
    }

    #[tokio::test]
    async fn the_runs_that_logged_longest_ago_make_room() {
        let folder = tempfile::tempdir().unwrap();
        let logs = FileStepLogs::new(folder.path());
        fill(&logs.folder);
        logs.keep(&run(), line("new"));
        assert_eq!(logs.read(&run()).await.len(), 1);
        let left = std::fs::read_dir(&logs.folder).unwrap().count();
        assert_eq!(left, MAX_FILES / 4 * 3 + 1);
        assert!(!logs.folder.join("run_old0.jsonl").exists());
        assert!(logs.folder.join("run_old999.jsonl").exists());
    }

    /// As many files as there may be, the first of them the oldest.
    fn fill(folder: &Path) {
        std::fs::create_dir(folder).unwrap();
        for number in 0..MAX_FILES {
            let path = folder.join(format!("run_old{number}.jsonl"));
            let file = File::create(path).unwrap();
            let age = std::time::Duration::from_secs(5_000 - number as u64);
            file.set_modified(std::time::SystemTime::now() - age)
                .unwrap();
        }
    }

    #[tokio::test]
    async fn what_leads_elsewhere_is_neither_written_to_nor_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        fill(&elsewhere);
        let link = |name: &str| {
            let path = folder.path().join(name);
            std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
            path
        };
        let logs = link("logs");
        let beside = folder.path().join("beside");
        std::fs::create_dir(&beside).unwrap();
        link("beside/runs");
        for logs in [logs, beside] {
            let logs = FileStepLogs::new(logs);
            logs.keep(&run(), line("theirs"));
            assert!(logs.read(&run()).await.is_empty());
        }
        let left = std::fs::read_dir(&elsewhere).unwrap().count();
        assert_eq!(left, MAX_FILES);
    }

    #[tokio::test]
    async fn a_file_that_is_a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let logs = FileStepLogs::new(folder.path());
        std::fs::create_dir(&logs.folder).unwrap();
        let elsewhere = folder.path().join("elsewhere");
        std::fs::write(&elsewhere, "mine").unwrap();
        std::os::unix::fs::symlink(&elsewhere, latest(&logs.folder, &run())).unwrap();
        logs.keep(&run(), line("theirs"));
        assert!(logs.read(&run()).await.is_empty());
        assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "mine");
    }
}
