//! Ends the children when this process cannot do it itself, because it was killed.
//!
//! A pipe tells: the shell that reads it learns of our end from the kernel, regardless of what
//! ended us, and kills the groups it was told about, and then every process with our mark. A
//! parent-death signal would add little: it can only be set by the child itself, between fork and
//! exec, which takes unsafe code; it comes when the *thread* that started the child ends; and it
//! does not reach what the child started.

use rustix::process::Pid;
use std::collections::HashSet;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// The groups are killed first and once: their numbers could come to mean others. A process that
/// was being started when we ended has its mark a moment later, and one that is killed may have
/// started another; so the marked ones are looked for until there are none, three times in a row.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
groups=
while read -r verb id; do
    case $verb in
        add) groups="$groups $id" ;;
        del) kept=; for group in $groups; do [ "$group" = "$id" ] || kept="$kept $group"; done; groups=$kept ;;
        bye) exit 0 ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
quiet=0
for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    found=$(grep -Fls -e "$1" /proc/[0-9]*/environ 2>/dev/null)
    for file in $found; do
        id=${file#/proc/}
        kill -s KILL "${id%/environ}" 2>/dev/null
    done
    if [ -z "$found" ]; then quiet=$((quiet + 1)); else quiet=0; fi
    [ "$quiet" -lt 3 ] || exit 0
    sleep 0.05
done
"#;

/// Where the tools of the script are: it gets none of our environment, and so no mark.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// One shell for all children, started before the first of them.
#[derive(Debug, Clone)]
pub(super) struct Watchdog {
    mark: Arc<str>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    shell: Option<Shell>,
    /// What a shell has to know if it has to be started again.
    groups: HashSet<Pid>,
    dismissed: bool,
}

#[derive(Debug)]
struct Shell {
    process: Child,
    /// `None` only while it is being dropped.
    orders: Option<ChildStdin>,
}

impl Watchdog {
    /// `mark` is what the environments of all children have.
    pub(super) fn new(mark: String) -> Self {
        Self {
            mark: mark.into(),
            state: Arc::default(),
        }
    }

    /// Sees to it that the shell is there before the child that it is for.
    pub(super) fn wake(&self) {
        self.with(|state, mark| state.wake(mark));
    }

    /// Has the group killed if this process ends before the group is forgotten.
    pub(super) fn watch(&self, group: Pid) {
        self.with(|state, mark| {
            state.groups.insert(group);
            state.order("add", group, mark);
        });
    }

    /// Must come before the leader of the group is reaped: then its number may be given again.
    pub(super) fn forget(&self, group: Pid) {
        self.with(|state, mark| {
            state.groups.remove(&group);
            state.order("del", group, mark);
        });
    }

    /// Everything has ended: the shell has nothing to look for.
    pub(super) fn dismiss(&self) {
        self.with(|state, _| {
            state.dismissed = true;
            if let Some(shell) = &mut state.shell
                && let Some(orders) = &mut shell.orders
            {
                // A shell that is gone has been dismissed.
                writeln!(orders, "bye").unwrap_or_default();
            }
        });
    }

    fn with(&self, act: impl FnOnce(&mut State, &str)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut state, &self.mark);
    }
}

impl State {
    /// Without the shell a child still ends when we do it in good order, and what works for a call
    /// is found by its record; so a failure is no reason not to go on.
    fn wake(&mut self, mark: &str) {
        if self.dismissed {
            return;
        }
        // One that was killed is replaced, and told about everything once more.
        let gone = |shell: &mut Shell| !matches!(shell.process.try_wait(), Ok(None));
        if self.shell.as_mut().is_some_and(gone) {
            self.shell = None;
        }
        if self.shell.is_some() {
            return;
        }
        match Shell::start(mark) {
            Ok(started) => self.shell = Some(started),
            Err(error) => {
                tracing::warn!(%error, "what is started may outlive this process if it is killed");
                return;
            }
        }
        for group in self.groups.clone() {
            self.send("add", group);
        }
    }

    fn order(&mut self, verb: &str, group: Pid, mark: &str) {
        if self.shell.is_none() || !self.send(verb, group) {
            self.shell = None;
            self.wake(mark);
        }
    }

    fn send(&mut self, verb: &str, group: Pid) -> bool {
        let orders = self.shell.as_mut().and_then(|shell| shell.orders.as_mut());
        let Some(orders) = orders else { return false };
        writeln!(orders, "{verb} {}", group.as_raw_nonzero()).is_ok()
    }
}

impl Shell {
    fn start(mark: &str) -> std::io::Result<Self> {
        let mut process = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "planwright-watchdog", mark])
            .env_clear()
            .env("PATH", PATH)
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
