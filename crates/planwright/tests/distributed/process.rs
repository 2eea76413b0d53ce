//! A service or a worker, of steps or of runs, that is killed, stopped, cut off and started again.

use planwright_testing::proxy::{CommitCut, Proxy};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, Running};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::File;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How long a process may need until it is started: the database may have to recover first.
const PATIENCE: Duration = Duration::from_secs(90);

/// What was done to a process that may have lost a call by it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Blow {
    /// The number of the process.
    pub(crate) process: u32,
    pub(crate) from: SystemTime,
    pub(crate) until: SystemTime,
}

/// What a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Answers people, and owns runs.
    Service,
    /// Carries out single steps.
    Worker,
    /// Owns runs, and serves no client.
    Runner,
}

impl Role {
    /// Returns whether it makes the calls of steps without a capability.
    pub(crate) fn owns_runs(self) -> bool {
        match self {
            Self::Service | Self::Runner => true,
            Self::Worker => false,
        }
    }
}

/// A process, in a workspace of its own and with its own way to the database.
pub(crate) struct Process {
    pub(crate) role: Role,
    pub(crate) bench: Bench,
    args: Vec<String>,
    environment: Vec<(&'static str, String)>,
    /// To each of the two servers.
    ways: [Proxy; 2],
    running: Mutex<Option<Running>>,
    address: Mutex<String>,
    blows: Mutex<Vec<Blow>>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Process {
    pub(crate) fn new(
        role: Role,
        bench: Bench,
        args: &[&str],
        environment: Vec<(&'static str, String)>,
        ways: [Proxy; 2],
    ) -> Self {
        Self {
            role,
            bench,
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            environment,
            ways,
            running: Mutex::default(),
            address: Mutex::default(),
            blows: Mutex::default(),
        }
    }

    /// A command in its workspace, with what it is told.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bench.command(args);
        command.envs(self.environment.iter().cloned());
        command
    }

    /// Starts it, again where it ends because the database is away, and waits until it works.
    pub(crate) fn start(&self) {
        let mut running = lock(&self.running);
        self.start_within(&mut running);
    }

    fn start_within(&self, running: &mut Option<Running>) {
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            let mut command = self.command(&args);
            let log = File::options()
                .create(true)
                .append(true)
                .open(self.bench.path("log"));
            command.stdout(File::create(self.bench.path("out")).unwrap());
            command.stderr(log.unwrap()).stdin(Stdio::null());
            let mut started = Running::of(command);
            wait_until("the process", || {
                self.bench.read("out").ends_with('\n') || started.is_over()
            });
            if let Ok(said) = serde_json::from_str::<Value>(&self.bench.read("out"))
                && said["error"].is_null()
            {
                let url = said["url"].as_str().unwrap_or_default();
                *lock(&self.address) = url.trim_start_matches("http://").to_owned();
                *running = Some(started);
                return;
            }
            started.kill();
            std::thread::sleep(Duration::from_millis(200));
        }
        panic!("it does not start: {}", self.bench.read("log"));
    }

    /// Where a service is reached.
    pub(crate) fn address(&self) -> String {
        lock(&self.address).clone()
    }

    fn note_blow(&self, process: u32, from: SystemTime) {
        let until = SystemTime::now();
        lock(&self.blows).push(Blow {
            process,
            from,
            until,
        });
    }

    /// What was done to it so far.
    pub(crate) fn blows(&self) -> Vec<Blow> {
        lock(&self.blows).clone()
    }

    /// Kills it and starts it again.
    pub(crate) fn kill(&self) {
        let mut running = lock(&self.running);
        let killed = running.take().unwrap();
        let id = killed.id();
        let at = SystemTime::now();
        killed.kill();
        self.note_blow(id, at);
        self.start_within(&mut running);
    }

    /// Lets it stand still for a while.
    pub(crate) fn stop_for(&self, time: Duration) {
        let running = lock(&self.running);
        let process = running.as_ref().unwrap();
        let at = SystemTime::now();
        process.signal(Signal::STOP);
        std::thread::sleep(time);
        process.signal(Signal::CONT);
        self.note_blow(process.id(), at);
    }

    /// Lets nothing through between it and the database for a while. It goes on with the connections that it had, or with
    /// none of them.
    pub(crate) fn partition_for(&self, time: Duration, is_cut: bool) {
        let running = lock(&self.running);
        let at = SystemTime::now();
        for way in &self.ways {
            way.close();
        }
        std::thread::sleep(time);
        if is_cut {
            self.sever();
        }
        for way in &self.ways {
            way.open();
        }
        self.note_blow(running.as_ref().unwrap().id(), at);
    }

    /// Breaks its connections to the database. Returns how many there were.
    pub(crate) fn sever(&self) -> usize {
        self.ways.iter().map(Proxy::sever).sum()
    }

    /// Breaks its connection in the next commit. Returns whether it made one within a while.
    pub(crate) fn cut_commit(&self, server: usize, cut: CommitCut) -> bool {
        let way = &self.ways[server];
        let before = way.cuts();
        way.cut_next_commit(cut);
        let since = Instant::now();
        while way.cuts() == before && since.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(10));
        }
        way.cuts() > before
    }

    /// Tells it to end, and returns its exit code.
    pub(crate) fn end(&self) -> i32 {
        let running = lock(&self.running).take().unwrap();
        running.signal(Signal::TERM);
        running.wait().code
    }
}
