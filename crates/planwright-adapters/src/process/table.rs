//! The processes of the system, as `/proc` shows them. Where there is none, nothing is found.

use super::children::{MARK, TOKEN_END};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

/// A process that runs. One that only waits to be reaped does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) group: i32,
    /// Ticks since the start of the system.
    pub(super) started: u64,
}

impl Process {
    /// Kills this process and no other: one that got its number meanwhile is left alone.
    pub(super) fn kill(&self) -> Result<(), Errno> {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return Ok(());
        };
        match kill_exactly(pid, || {
            read(self.pid).is_some_and(|now| now.started == self.started)
        }) {
            Err(Errno::SRCH) => Ok(()),
            done => done,
        }
    }
}

/// The handle means the same process before and after the check.
#[cfg(target_os = "linux")]
fn kill_exactly(pid: Pid, is_the_same: impl Fn() -> bool) -> Result<(), Errno> {
    use rustix::process::{PidfdFlags, kill_process, pidfd_open, pidfd_send_signal};
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) if is_the_same() => pidfd_send_signal(handle, Signal::KILL),
        // Kernels before 5.3, and sandboxes that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) if is_the_same() => kill_process(pid, Signal::KILL),
        Ok(_) | Err(Errno::NOSYS | Errno::PERM) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn kill_exactly(pid: Pid, is_the_same: impl Fn() -> bool) -> Result<(), Errno> {
    if is_the_same() {
        rustix::process::kill_process(pid, Signal::KILL)
    } else {
        Ok(())
    }
}

/// Returns what tells one start of the system from another.
pub(super) fn boot() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

/// Returns when a process was started, also of one that waits to be reaped.
pub(super) fn read_start_time(pid: i32) -> Option<u64> {
    parse(pid, &stat(pid)?).map(|(process, _)| process.started)
}

/// Returns all processes that run.
pub(super) fn all() -> Vec<Process> {
    numbers().filter_map(read).collect()
}

/// Returns the processes that run and have this mark, or one that begins with this token. Those of
/// other users cannot be looked into.
pub(super) fn find_marked(mark: &str) -> Vec<Process> {
    numbers()
        .filter(|pid| has_mark(*pid, mark))
        .filter_map(read)
        .collect()
}

fn has_mark(pid: i32, mark: &str) -> bool {
    std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
        environment.split(|byte| *byte == 0).any(|variable| {
            variable
                .strip_prefix(MARK.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"="))
                .is_some_and(|value| {
                    value == mark.as_bytes()
                        || mark.ends_with(TOKEN_END) && value.starts_with(mark.as_bytes())
                })
        })
    })
}

fn numbers() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn read(pid: i32) -> Option<Process> {
    let (process, state) = parse(pid, &stat(pid)?)?;
    (!matches!(state, 'Z' | 'X')).then_some(process)
}

fn stat(pid: i32) -> Option<String> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The name, in parentheses, may have any characters.
fn parse(pid: i32, stat: &str) -> Option<(Process, char)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let group = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(16)?.parse().ok()?;
    let process = Process {
        pid,
        group,
        started,
    };
    Some((process, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_anything() {
        let stat = "7 (a) Z 1 (b)) S 1 42 7 0 -1 4194560 1 0 0 0 2 3 0 0 20 0 1 0 98765 1 1";
        let expected = Process {
            pid: 7,
            group: 42,
            started: 98765,
        };
        assert_eq!(parse(7, stat), Some((expected, 'S')));
        assert_eq!(parse(7, "7 (sh) S 1"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_found_and_a_later_one_with_its_number_is_not_killed() {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let mut found = all().into_iter().find(|found| found.pid == pid).unwrap();
        assert_eq!(Some(found.started), read_start_time(pid));
        found.started -= 1;
        found.kill().unwrap();
    }
}
