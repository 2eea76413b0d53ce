//! One server of a test, with everything it leaves behind.

use planwright_adapters::mcp::{McpOptions, McpServers, ServerSpec, ServerState, Transport};
use planwright_adapters::toolbox::ToolboxOptions;
use planwright_core::run::Answered;
use planwright_engine::memory::MemoryArtifacts;
use planwright_engine::port::{Call, CallError, Outcome, Tools as _};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a call of these tests may take before it is told to stop.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);
/// How long after its timeout a call must have a definite outcome.
pub(crate) const SLACK: Duration = Duration::from_secs(20);

pub(crate) struct Scene {
    pub(crate) servers: McpServers,
    pub(crate) artifacts: Arc<MemoryArtifacts>,
    directory: TempDir,
    marker: String,
}

impl Scene {
    /// The hostile server with one behaviour.
    pub(crate) fn hostile(behaviour: &str) -> Self {
        Self::hostile_with(behaviour, &[], |_, _| {})
    }

    pub(crate) fn modern(behaviour: &str) -> Self {
        Self::hostile_with(behaviour, &["modern"], |_, _| {})
    }

    pub(crate) fn hostile_with(
        behaviour: &str,
        more: &[&str],
        change: impl FnOnce(&mut ServerSpec, &mut McpOptions),
    ) -> Self {
        let mut args = vec![behaviour];
        args.extend(more);
        Self::python("hostile_server.py", &args, change)
    }

    /// A server of this directory. Its command line ends with a marker of its own.
    pub(crate) fn python(
        script: &str,
        args: &[&str],
        change: impl FnOnce(&mut ServerSpec, &mut McpOptions),
    ) -> Self {
        static SCENES: AtomicU32 = AtomicU32::new(0);
        let marker = format!(
            "planwright-scene-{}-{}",
            std::process::id(),
            SCENES.fetch_add(1, Ordering::Relaxed)
        );
        let directory = TempDir::new().unwrap();
        let mut line = vec!["-u".to_owned(), fixture(script).display().to_string()];
        line.extend(args.iter().map(|arg| (*arg).to_owned()));
        line.push(format!(
            "state={}",
            directory.path().join("state").display()
        ));
        line.push(marker.clone());
        let transport = Transport::Stdio {
            command: "python3".into(),
            args: line,
            env: Default::default(),
            cwd: None,
        };
        Self::with(ServerSpec::new("s", transport), directory, marker, change)
    }

    pub(crate) fn http(url: &str, change: impl FnOnce(&mut ServerSpec, &mut McpOptions)) -> Self {
        let transport = Transport::Http {
            url: url.to_owned(),
            headers: Default::default(),
        };
        let marker = "planwright-scene-that-starts-nothing".to_owned();
        Self::with(
            ServerSpec::new("s", transport),
            TempDir::new().unwrap(),
            marker,
            change,
        )
    }

    fn with(
        mut spec: ServerSpec,
        directory: TempDir,
        marker: String,
        change: impl FnOnce(&mut ServerSpec, &mut McpOptions),
    ) -> Self {
        let artifacts = Arc::new(MemoryArtifacts::new());
        let mut options =
            McpOptions::new(Arc::clone(&artifacts) as _, directory.path().join("logs"));
        options.tools = ToolboxOptions::default();
        spec.start_timeout = Duration::from_secs(15);
        change(&mut spec, &mut options);
        Self {
            servers: McpServers::new(vec![spec], options).unwrap(),
            artifacts,
            directory,
            marker,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) async fn connect(&self) -> ServerState {
        self.servers.connect().await.remove(0).state
    }

    /// Connects to a server that must come up.
    pub(crate) async fn connected(self) -> Self {
        let state = self.connect().await;
        assert!(matches!(state, ServerState::Connected(_)), "{state:?}");
        self
    }

    /// Why a server that must not come up did not, with the end of its standard error.
    pub(crate) async fn refusal(&self) -> (String, String) {
        match self.connect().await {
            ServerState::Failed { reason, stderr } => (reason, stderr),
            other => panic!("it was to fail: {other:?}"),
        }
    }

    /// Waits until it is noticed that the server is gone.
    pub(crate) async fn lost(&self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while matches!(self.servers.status()[0].state, ServerState::Connected(_)) {
            assert!(
                Instant::now() < deadline,
                "no call noticed that the server is gone"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn call(&self, tool: &str, args: Value) -> Outcome {
        self.make(call(tool, args), TIMEOUT).await
    }

    /// Calls as the engine does: after the timeout it is told to stop, and then it has little time.
    pub(crate) async fn make(&self, call: Call, timeout: Duration) -> Outcome {
        let began = Instant::now();
        let cancelled = call.cancelled.clone();
        let calling = self.servers.call(call);
        let timing = async {
            tokio::time::sleep(timeout).await;
            cancelled.cancel();
            std::future::pending::<()>().await;
        };
        let outcome = tokio::select! {
            outcome = calling => outcome,
            () = timing => unreachable!("it waits for ever"),
        };
        assert!(
            began.elapsed() < timeout + SLACK,
            "a definite outcome took {:?}",
            began.elapsed()
        );
        outcome
    }

    pub(crate) fn marker(&self) -> &str {
        &self.marker
    }

    /// The processes whose command line holds this scene's marker.
    pub(crate) fn processes(&self) -> Vec<u32> {
        processes(&self.marker)
    }

    /// Closes everything, in time and without a trace.
    pub(crate) async fn end(self) {
        let began = Instant::now();
        self.servers.close().await;
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "closing took {:?}",
            began.elapsed()
        );
        // A killed process is gone a moment after the signal.
        gone(&self.marker).await;
    }
}

pub(crate) fn processes(marker: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("these tests look for processes in /proc");
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(marker)
        })
        .collect()
}

pub(crate) async fn gone(marker: &str) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !processes(marker).is_empty() {
        assert!(
            Instant::now() < deadline,
            "orphans: {:?}",
            processes(marker)
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/mcp")
        .join(name)
}

/// The first attempt of a call of the scene's server.
pub(crate) fn call(tool: &str, args: Value) -> Call {
    planwright_engine::conformance::call::first(&format!("s.{tool}"), args)
}

pub(crate) fn answering(tool: &str, answered: Answered) -> Call {
    Call {
        answered: vec![answered],
        ..call(tool, json!({}))
    }
}

/// The code of a call that failed for certain.
pub(crate) fn code(outcome: &Outcome) -> &str {
    match outcome {
        Err(CallError::Failed { code, .. }) => code.as_str(),
        other => panic!("it was to fail: {other:?}"),
    }
}

/// The most memory this process ever used, in MiB.
pub(crate) fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024
}
