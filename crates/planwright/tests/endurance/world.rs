//! A workspace with a service that can be stopped, killed and started again.

use planwright_testing::http::HttpReply;
use planwright_testing::service::ServiceClient;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, Running};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a request may be repeated until the service answers it.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a test goes on: what the variable says, or else this.
pub(crate) fn length(variable: &str, seconds: u64) -> Duration {
    let given = std::env::var(variable).ok();
    let given = given.map(|text| text.parse().expect("a number of seconds"));
    Duration::from_secs(given.unwrap_or(seconds))
}

/// The seed of what happens: what the variable says, `new` for any, or else the same each time. It is
/// printed, so that a failure can be had again.
pub(crate) fn seed(variable: &str) -> u64 {
    let seed = match std::env::var(variable).as_deref() {
        Ok("new") => u64::from(std::process::id()) << 32 | u64::from(micros()),
        Ok(text) => text.parse().expect("a number, or `new`"),
        Err(_) => 7526,
    };
    println!("{variable}={seed}");
    seed
}

fn micros() -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.subsec_micros())
}

/// Says that it is over when the test ends, also by a panic: threads that go on are not waited for.
pub(crate) struct OverAtEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for OverAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Ends the service when the test ends by a panic, and with it the streams that others follow.
pub(crate) struct EndedAtEnd<'a>(pub(crate) &'a World);

impl Drop for EndedAtEnd<'_> {
    fn drop(&mut self) {
        let service = lock(&self.0.service).take();
        if let Some(service) = service {
            service.kill();
        }
    }
}

pub(crate) struct World {
    pub(crate) bench: Bench,
    pub(crate) admin: String,
    /// Told to the service when it is started.
    pub(crate) environment: Vec<(&'static str, String)>,
    service: Mutex<Option<Running>>,
    host: Mutex<String>,
}

impl World {
    /// A workspace with a ledger and no limits, whose service has not been started.
    pub(crate) fn new() -> Self {
        let bench = Bench::new();
        let ledger = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/endurance/ledger.py");
        let config = format!(
            "[local]\nrun_command = true\n\n[serve]\nrequests_per_second = 100000\nburst = 100000\n\n\
             [servers.ledger]\ncommand = \"python3\"\nargs = [{ledger:?}, \"effects.txt\"]\n"
        );
        bench.configure(&config);
        let args = "token create --role admin --kind person --name ada --json";
        let args: Vec<&str> = args.split(' ').collect();
        let made = bench.run(&args).ends(0).json();
        Self {
            bench,
            admin: made["token"].as_str().unwrap().to_owned(),
            environment: Vec::new(),
            service: Mutex::default(),
            host: Mutex::default(),
        }
    }

    /// Starts the service and waits until it says where it is.
    pub(crate) fn start(&self) {
        let args = "serve --listen 127.0.0.1:0 --json --trust-project-servers";
        let args: Vec<&str> = args.split(' ').collect();
        let mut command = self.bench.command(&args);
        command.stdout(File::create(self.bench.path("serve.out")).unwrap());
        command.stderr(File::create(self.bench.path("serve.err")).unwrap());
        command.envs(self.environment.iter().cloned());
        let mut running = Running::of(command);
        wait_until("the service", || {
            self.bench.read("serve.out").ends_with('\n') || running.is_over()
        });
        let said = self.bench.read("serve.out");
        assert!(said.ends_with('\n'), "{}", self.bench.read("serve.err"));
        let said: Value = serde_json::from_str(&said).unwrap();
        let url = said["url"].as_str().unwrap();
        *lock(&self.host) = url.strip_prefix("http://").unwrap().to_owned();
        *lock(&self.service) = Some(running);
    }

    /// The number of the service's process.
    pub(crate) fn service_id(&self) -> Option<u32> {
        lock(&self.service).as_ref().map(Running::id)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(service) = lock(&self.service).as_ref() {
            service.signal(signal);
        }
    }

    pub(crate) fn kill(&self) {
        let service = lock(&self.service).take();
        service.unwrap().kill();
    }

    /// Tells the service to stop, and returns its exit code.
    pub(crate) fn stop(&self) -> i32 {
        let service = lock(&self.service).take().unwrap();
        service.signal(Signal::TERM);
        service.wait().code
    }

    pub(crate) fn client(&self) -> ServiceClient {
        ServiceClient {
            host: lock(&self.host).clone(),
            admin: self.admin.clone(),
        }
    }

    /// Posts once; `None` without an answer.
    pub(crate) fn try_post(&self, path: &str, body: &Value) -> Option<HttpReply> {
        self.client().request("POST", path).json(body).try_send()
    }

    /// Posts again and again under one key, until a service answers what came of it.
    pub(crate) fn insist(&self, path: &str, body: &Value, key: &str) -> HttpReply {
        let since = Instant::now();
        loop {
            let client = self.client();
            let request = client.request("POST", path).header("Idempotency-Key", key);
            let answer = request.json(body).try_send();
            if let Some(answer) = answer
                && answer.status < 429
                && !answer.text().contains("is being done")
            {
                return answer;
            }
            assert!(
                since.elapsed() < PATIENCE,
                "the service does not answer POST {path}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Gets a document, as soon as there is a service.
    pub(crate) fn get(&self, path: &str) -> Value {
        let since = Instant::now();
        loop {
            let answer = self.client().request("GET", path).try_send();
            if let Some(answer) = answer
                && answer.status == 200
            {
                return answer.json();
            }
            assert!(
                since.elapsed() < PATIENCE,
                "the service does not answer GET {path}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
