//! The model: one process for all tests of this binary, installed by `cargo xtask peers`.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// A model that serves on this machine. It ends when its input does: with this process, however
/// that ends.
#[derive(Debug)]
pub(crate) struct LocalModel {
    pub(crate) port: u16,
    child: Child,
    _input: ChildStdin,
}

/// It answers one at a time, so the tests ask one at a time: else they would measure each other.
pub(crate) struct Shared {
    pub(crate) port: u16,
    _turn: MutexGuard<'static, ()>,
}

impl LocalModel {
    /// The model that all tests share, for one of them, once it has loaded.
    pub(crate) fn shared() -> Shared {
        static MODEL: OnceLock<LocalModel> = OnceLock::new();
        static TURN: Mutex<()> = Mutex::new(());
        // A test that failed in its turn leaves nothing behind that would matter to the next one.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let model = MODEL.get_or_init(|| {
            let model = Self::start();
            planwright_testing::wait::wait_until("the model to be loaded", || {
                model.status() == Some(200)
            });
            model
        });
        Shared {
            port: model.port,
            _turn: turn,
        }
    }

    /// A model of one's own, which is still loading.
    pub(crate) fn start() -> Self {
        let port = free_port();
        let mut command = Command::new(installed("bin/python"));
        command.arg(installed("serve.py")).arg(port.to_string());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        Self {
            port,
            child,
            _input: input,
        }
    }

    /// What it says about itself: 503 while it loads, 200 once it has; nothing before it listens.
    pub(crate) fn status(&self) -> Option<u16> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream.write_all(b"GET /health HTTP/1.0\r\n\r\n").ok()?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).ok()?;
        std::str::from_utf8(&head[9..]).ok()?.parse().ok()
    }

    /// Stops it in its tracks, or lets it go on.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, signal).unwrap();
    }
}

impl Drop for LocalModel {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The operator's file for a model on this port.
pub(crate) fn configured(port: u16) -> String {
    format!(
        "[models]\ndefault = \"local/smollm2\"\n\
         [models.providers.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\
         context_tokens = 8192\ntimeout_seconds = 600\nsilence_seconds = 600\n"
    )
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// A file of the model's folder.
fn installed(path: &str) -> PathBuf {
    planwright_testing::peers::installed(&format!("model/{path}"))
}
