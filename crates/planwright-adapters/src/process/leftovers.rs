//! Ending what calls of an earlier process left running, before they are made again.

use super::children::Children;
use super::record::Found;
use super::table::{self, Process};
use planwright_core::id::RunId;
use planwright_engine::port::{BoxFuture, Leftovers, StillRunning};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process_group};
use std::io;
use std::time::{Duration, Instant};

/// The time a killed process may take to end.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);
/// A process that was being started when its number should have been recorded has its mark by then.
const BEING_STARTED: Duration = Duration::from_millis(200);

/// What is left of a call.
#[derive(Debug, Default, PartialEq, Eq)]
struct Left {
    /// Certainly the call's.
    ours: Vec<Process>,
    /// In a group with the right number, and nothing else to tell whether they are the call's.
    unsure: Vec<Process>,
}

impl Leftovers for Children {
    fn end_leftovers(&self, run: &RunId) -> BoxFuture<'static, Result<(), StillRunning>> {
        let children = self.clone();
        let run = run.clone();
        Box::pin(async move {
            let found = find_records(&children, &run)?;
            if found.is_empty() {
                return Ok(());
            }
            let ending = tokio::task::spawn_blocking(move || found.iter().try_for_each(end));
            ending.await.unwrap_or_else(|error| {
                Err(StillRunning::new(format!(
                    "looking for what is left of earlier calls was given up: {error}"
                )))
            })
        })
    }
}

/// There are none for nearly every run: looking costs one directory that is nearly empty.
fn find_records(children: &Children, run: &RunId) -> Result<Vec<Found>, StillRunning> {
    let found = children.records().map(|records| records.of_run(run));
    found.unwrap_or_else(|| Ok(Vec::new())).map_err(|error| {
        StillRunning::new(format!(
            "what earlier calls of {run} started cannot be looked up: {error}"
        ))
    })
}

/// Ends what one record tells of, and removes the record once it is gone.
pub(super) fn end(found: &Found) -> Result<(), StillRunning> {
    let since = Instant::now();
    // One that is about to end may have lost its mark and its leader before.
    let mut known: Vec<Process> = Vec::new();
    loop {
        let left = find_left(found, &known)?;
        if left.ours.is_empty() && left.unsure.is_empty() {
            if found.written.pid.is_some() || since.elapsed() > BEING_STARTED {
                return remove(found);
            }
            std::thread::sleep(PAUSE);
            continue;
        }
        if let Some(process) = left.unsure.first() {
            return Err(still_running(found, process.pid, "may belong to it", None));
        }
        let mut refused = None;
        for process in &left.ours {
            if let Err(error) = process.kill() {
                refused = Some((process.pid, error));
            }
        }
        if let Some((pid, error)) = refused {
            let why = io::Error::from(error).to_string();
            return Err(still_running(found, pid, "cannot be ended", Some(&why)));
        }
        if known.is_empty() {
            tracing::info!(step = %found.written.step, "what was left of an interrupted call is ended");
        }
        if since.elapsed() > PATIENCE {
            let pid = left.ours.first().map_or(0, |process| process.pid);
            return Err(still_running(
                found,
                pid,
                "was killed and is still there",
                None,
            ));
        }
        known.extend(left.ours);
        std::thread::sleep(PAUSE);
    }
}

fn find_left(found: &Found, known: &[Process]) -> Result<Left, StillRunning> {
    match (&found.written.boot, table::boot()) {
        (Some(then), Some(now)) if *then != now => Ok(Left::default()),
        (Some(_) | None, Some(_)) => {
            let marked = table::find_marked(&found.mark);
            let leader = found.written.pid.and_then(table::read_start_time);
            Ok(select(found, leader, &table::all(), marked, known))
        }
        // There is no table of processes: only the group can be asked for.
        (_, None) => match found.written.pid.and_then(Pid::from_raw) {
            Some(group) if test_kill_process_group(group) == Err(Errno::SRCH) => {
                Ok(Left::default())
            }
            Some(group) => Ok(Left {
                unsure: vec![Process {
                    pid: group.as_raw_nonzero().get(),
                    group: group.as_raw_nonzero().get(),
                    started: 0,
                }],
                ..Left::default()
            }),
            None => Err(StillRunning::new(format!(
                "whether step `{}` still runs cannot be told on this system; if it does not, remove {}",
                found.written.step,
                found.path.display()
            ))),
        },
    }
}

/// A number is not given again while it is the number of a group. So a leader that began at
/// another time means that the group is gone, and no leader at all leaves open whose
/// group it is. `leader` is when the process with that number began.
fn select(
    found: &Found,
    leader: Option<u64>,
    all: &[Process],
    marked: Vec<Process>,
    known: &[Process],
) -> Left {
    let mut left = Left {
        ours: marked,
        unsure: Vec::new(),
    };
    let Some(pid) = found.written.pid else {
        return left;
    };
    let certain = match (leader, found.written.started) {
        (Some(now), Some(then)) if now != then => return left,
        (Some(_), Some(_)) => true,
        (Some(_), None) | (None, _) => false,
    };
    for process in all.iter().filter(|process| process.group == pid) {
        if left.ours.contains(process) {
            continue;
        }
        if certain || known.contains(process) {
            left.ours.push(*process);
        } else {
            left.unsure.push(*process);
        }
    }
    // What is certainly the call's goes first: the others may be gone with it.
    if !left.ours.is_empty() {
        left.unsure.clear();
    }
    left
}

fn still_running(found: &Found, pid: i32, what: &str, why: Option<&str>) -> StillRunning {
    let step = &found.written.step;
    let attempt = found.written.attempt;
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    StillRunning {
        message: format!(
            "attempt {attempt} of step `{step}` was interrupted, and process {pid} {what}{why}"
        ),
        advice: format!(
            "look at it with `ps -fp {pid}` and end it with `kill -9 {pid}`; if it is another program, remove {}; then repeat the command",
            found.path.display()
        ),
    }
}

fn remove(found: &Found) -> Result<(), StillRunning> {
    match std::fs::remove_file(&found.path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StillRunning::new(format!(
            "{} cannot be removed: {error}",
            found.path.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::record::Written;

    const LEADER: i32 = 100;
    const BEGAN: u64 = 5_000;

    fn found(pid: Option<i32>) -> Found {
        Found {
            mark: "token-1".to_owned(),
            written: Written {
                pid,
                started: pid.map(|_| BEGAN),
                ..Written::default()
            },
            path: "record".into(),
        }
    }

    fn process(pid: i32, group: i32) -> Process {
        Process {
            pid,
            group,
            started: BEGAN + u64::from(pid.unsigned_abs()),
        }
    }

    #[test]
    fn the_group_of_the_leader_that_was_recorded_is_ours() {
        let leader = Process {
            started: BEGAN,
            ..process(LEADER, LEADER)
        };
        let all = [leader, process(101, LEADER), process(102, 102)];
        let left = select(&found(Some(LEADER)), Some(BEGAN), &all, Vec::new(), &[]);
        assert_eq!(left.ours, all[..2]);
        assert_eq!(left.unsure, []);
    }

    #[test]
    fn a_group_with_another_leader_of_the_same_number_is_not() {
        let all = [process(LEADER, LEADER), process(101, LEADER)];
        let later = Some(BEGAN + 1);
        let left = select(&found(Some(LEADER)), later, &all, Vec::new(), &[]);
        assert_eq!(left, Left::default());
    }

    #[test]
    fn a_group_without_a_leader_may_be_ours() {
        let all = [process(101, LEADER)];
        let left = select(&found(Some(LEADER)), None, &all, Vec::new(), &[]);
        assert_eq!((left.ours, left.unsure), (Vec::new(), all.to_vec()));
        let left = select(&found(Some(LEADER)), None, &all, Vec::new(), &all);
        assert_eq!(left.ours, all, "it was known before its leader went");
    }

    #[test]
    fn a_leader_whose_start_was_not_recorded_may_be_another() {
        let mut record = found(Some(LEADER));
        record.written.started = None;
        let all = [process(LEADER, LEADER)];
        let left = select(&record, Some(BEGAN), &all, Vec::new(), &[]);
        assert_eq!((left.ours, left.unsure), (Vec::new(), all.to_vec()));
    }

    #[test]
    fn what_has_the_mark_is_ours_wherever_it_is() {
        let marked = process(101, 77);
        for pid in [None, Some(LEADER)] {
            let left = select(&found(pid), None, &[marked], vec![marked], &[]);
            assert_eq!(left.ours, [marked]);
        }
    }
}
