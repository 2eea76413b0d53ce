//! The processes of this machine, as `/proc` shows them.

use planwright_testing::wait::wait_until;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;

/// A process that is there at this moment.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) id: u32,
    parent: u32,
    pub(crate) command: String,
}

fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(read).collect()
}

/// Reads a process, unless it has just ended.
fn read(id: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name is in brackets, and may have anything in it.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let command = fs::read(format!("/proc/{id}/cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    (state != "Z").then_some(Process {
        id,
        parent,
        command,
    })
}

/// The processes that this one started, and those that they started.
pub(crate) fn descendants(root: u32) -> Vec<Process> {
    let all = all();
    let mut found: Vec<Process> = Vec::new();
    let mut roots = vec![root];
    while let Some(root) = roots.pop() {
        let children = all.iter().filter(|process| process.parent == root);
        for child in children {
            roots.push(child.id);
            found.push(child.clone());
        }
    }
    found
}

/// Kills a process, if it is still there.
pub(crate) fn kill(id: u32) {
    let id = i32::try_from(id).ok().and_then(Pid::from_raw);
    if let Some(id) = id {
        // It may just have ended.
        let _ = kill_process(id, Signal::KILL);
    }
}

/// Processes that work in this folder.
pub(crate) fn working_in(folder: &Path) -> Vec<Process> {
    let folder = folder.canonicalize().unwrap();
    let mut found = all();
    found.retain(|process| {
        fs::read_link(format!("/proc/{}/cwd", process.id)).is_ok_and(|cwd| cwd == folder)
    });
    found
}

/// Waits until no process works in this folder: what a service started ends with it.
pub(crate) fn expect_no_orphans(folder: &Path) {
    wait_until("the last process of the workspace to end", || {
        working_in(folder).is_empty()
    });
}

/// Memory of a process in KiB, and its open files.
pub(crate) fn measure(id: u32) -> Option<(u64, usize)> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let memory = line.split_whitespace().nth(1)?.parse().ok()?;
    let files = fs::read_dir(format!("/proc/{id}/fd")).ok()?.count();
    Some((memory, files))
}

/// Bytes of the files below a folder that this is true of.
pub(crate) fn bytes_below(folder: &Path, counts: fn(&Path) -> bool) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => bytes_below(&entry.path(), counts),
            Ok(data) if counts(&entry.path()) => data.len(),
            Ok(_) | Err(_) => 0,
        })
        .sum()
}
