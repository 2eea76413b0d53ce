//! Ends the servers when this process cannot do it itself, because it was killed.
//!
//! A pipe tells: the shell that reads it learns of our end from the kernel, regardless of what
//! ended us, and kills the process groups it was told about. A child cannot be given a parent-death
//! signal without unsafe code, and stdin's end alone does not impress a server that hangs.

use rustix::process::Pid;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

const SCRIPT: &str = r#"
trap '' HUP INT TERM
groups=
while read -r verb id; do
    case $verb in
        add) groups="$groups $id" ;;
        del) kept=; for group in $groups; do [ "$group" = "$id" ] || kept="$kept $group"; done; groups=$kept ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
"#;

/// One shell for all servers, started with the first of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Watchdog(Arc<Mutex<Option<Shell>>>);

#[derive(Debug)]
struct Shell {
    process: Child,
    /// `None` only while it is being dropped.
    orders: Option<ChildStdin>,
}

impl Watchdog {
    /// Has the group killed if this process ends before the guard is dropped.
    pub(super) fn watch(&self, group: Pid) -> Guard {
        self.order("add", group);
        Guard {
            watchdog: self.clone(),
            group,
        }
    }

    /// Without the shell the servers still see the end of their stdin, so a failure is no reason
    /// not to go on.
    fn order(&self, verb: &str, group: Pid) {
        let mut shell = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shell.is_none() {
            match Shell::start() {
                Ok(started) => *shell = Some(started),
                Err(error) => {
                    return tracing::warn!(%error, "servers may outlive this process if it is killed");
                }
            }
        }
        let orders = shell.as_mut().and_then(|shell| shell.orders.as_mut());
        let Some(orders) = orders else { return };
        if let Err(error) = writeln!(orders, "{verb} {}", group.as_raw_nonzero()) {
            tracing::warn!(%error, "servers may outlive this process if it is killed");
            *shell = None;
        }
    }
}

impl Shell {
    fn start() -> std::io::Result<Self> {
        let mut process = Command::new("/bin/sh")
            .args(["-c", SCRIPT])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in the terminal is for us; the shell must see us end first.
            .process_group(0)
            .spawn()?;
        let orders = process.stdin.take();
        Ok(Self { process, orders })
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.orders.take());
        // It ends at once now that it gets no more orders; killing it only spares the wait for a
        // stuck one.
        if self.process.kill().is_ok() {
            self.process.wait().map(drop).unwrap_or_default();
        }
    }
}

/// While it lives, the group dies with this process.
#[derive(Debug)]
pub(super) struct Guard {
    watchdog: Watchdog,
    group: Pid,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.watchdog.order("del", self.group);
    }
}
