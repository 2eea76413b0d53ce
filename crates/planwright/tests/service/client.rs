//! A service of its own for each test: the real program.

use crate::descriptors::with_few_descriptors;
use planwright_testing::service::ServiceClient;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, Running};
use serde_json::Value;
use std::process::Command;

/// A running service.
pub(crate) struct Service {
    pub(crate) bench: Bench,
    adjust: fn(&Bench, &mut Command),
    running: Option<Running>,
    /// Told to the program when it is started.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// How many files it may have open.
    pub(crate) descriptors: Option<u32>,
    client: ServiceClient,
}

impl std::ops::Deref for Service {
    type Target = ServiceClient;

    fn deref(&self) -> &ServiceClient {
        &self.client
    }
}

impl Service {
    pub(crate) fn new() -> Self {
        Self::configured("")
    }

    /// A service whose operator wrote this into `planwright.toml`.
    pub(crate) fn configured(config: &str) -> Self {
        Self::adjusted(config, |_, _| {})
    }

    /// As [`Self::configured`], with the command that starts it changed.
    pub(crate) fn adjusted(config: &str, adjust: fn(&Bench, &mut Command)) -> Self {
        let mut service = Self::prepared(config);
        service.adjust = adjust;
        service.start();
        service
    }

    /// The same, not started yet.
    pub(crate) fn prepared(config: &str) -> Self {
        let bench = Bench::new();
        bench.configure(config);
        let admin = token(&bench, "admin", "person", "ada");
        Self {
            bench,
            adjust: |_, _| {},
            running: None,
            environment: Vec::new(),
            descriptors: None,
            client: ServiceClient {
                host: String::new(),
                admin,
            },
        }
    }

    /// Starts the service, and waits until it says where it is.
    pub(crate) fn start(&mut self) {
        assert!(self.try_start(), "{}", self.bench.read("serve.err"));
    }

    /// Starts the service, unless it ends before it says where it is.
    pub(crate) fn try_start(&mut self) -> bool {
        let mut command = self.bench.command(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--json",
            "--trust-project-servers",
        ]);
        if let Some(most) = self.descriptors {
            command = with_few_descriptors(&command, most);
        }
        let out = std::fs::File::create(self.bench.path("serve.out")).unwrap();
        let err = std::fs::File::create(self.bench.path("serve.err")).unwrap();
        command.stdout(out).stderr(err);
        command.envs(self.environment.iter().cloned());
        (self.adjust)(&self.bench, &mut command);
        self.running = Some(Running::of(command));
        let running = self.running.as_mut().unwrap();
        let bench = &self.bench;
        wait_until("the service", || {
            bench.read("serve.out").ends_with('\n') || running.is_over()
        });
        if !self.bench.read("serve.out").ends_with('\n') {
            self.running = None;
            return false;
        }
        let said: Value = serde_json::from_str(&self.bench.read("serve.out")).unwrap();
        self.client.host = said["url"]
            .as_str()
            .unwrap()
            .strip_prefix("http://")
            .unwrap()
            .to_owned();
        true
    }

    /// Tells the service to stop, and waits until it has.
    pub(crate) fn stop(&mut self) -> i32 {
        let running = self.running.take().unwrap();
        running.signal(rustix::process::Signal::TERM);
        running.wait().code
    }

    /// Waits until the service has ended by itself, and returns its exit code.
    pub(crate) fn ends(&mut self) -> i32 {
        self.running.take().unwrap().wait().code
    }

    /// Returns whether the service has ended by itself.
    pub(crate) fn is_over(&mut self) -> bool {
        self.running.as_mut().unwrap().is_over()
    }

    /// The id of its process.
    pub(crate) fn process(&self) -> u32 {
        self.running.as_ref().unwrap().id()
    }

    pub(crate) fn kill(&mut self) {
        self.running.take().unwrap().kill();
    }
}

fn token(bench: &Bench, role: &str, kind: &str, name: &str) -> String {
    let made = bench
        .run(&[
            "token", "create", "--role", role, "--kind", kind, "--name", name, "--json",
        ])
        .ends(0);
    made.json()["token"].as_str().unwrap().to_owned()
}
