//! Servers of the tests' own: each is kept by a shell that ends it, and tidies up, when this process is gone, however that
//! came about.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// Ignores the signals that end this process for as long as it takes to end the server and to tidy up.
const SCRIPT: &str = r#"trap "" TERM INT HUP
directory=$1; signal=$2; shift 2
setsid "$@" >>"$directory/log" 2>&1 </dev/null &
server=$!
read -r word
kill -s "$signal" -- "-$server"
wait "$server"
[ "$word" = keep ] || rm -rf "$directory""#;

/// A server that runs in a directory, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Keeper {
    shell: Child,
    /// Closed when this process ends, which ends the server.
    alive: Option<ChildStdin>,
}

impl Keeper {
    /// Starts a server that a signal ends, and waits until `answers` says that it is there.
    pub(crate) fn start(
        directory: &Path,
        server: &Command,
        signal: &str,
        patience: Duration,
        mut answers: impl FnMut() -> bool,
    ) -> Self {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", SCRIPT, "keeper"])
            .arg(directory)
            .arg(signal)
            .arg(server.get_program())
            .args(server.get_args())
            .envs(
                server
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .current_dir("/tmp")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut shell = shell.spawn().unwrap();
        let alive = shell.stdin.take();
        let keeper = Self { shell, alive };
        let until = Instant::now() + patience;
        while !answers() {
            let log = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "{server:?} does not start: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
        keeper
    }

    /// Ends the server. Its directory stays.
    pub(crate) fn end(mut self) {
        self.alive.take().unwrap().write_all(b"keep\n").unwrap();
        self.shell.wait().unwrap();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(alive) = self.alive.take() {
            drop(alive);
            drop(self.shell.wait());
        }
    }
}

/// A directory that outlives this process for as long as the server in it.
pub(crate) fn make_directory(prefix: &str) -> PathBuf {
    let mut builder = tempfile::Builder::new();
    let directory = builder.prefix(prefix).tempdir_in("/tmp").unwrap().keep();
    if rustix::process::geteuid().is_root() {
        give_away(&directory);
    }
    directory
}

/// Ports that are free now. All are taken at once, so that they differ.
pub(crate) fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let free = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    free.map(|listener| listener.local_addr().unwrap().port())
}

/// Some servers do not run as root: their programs are started as a user that owns nothing.
pub(crate) fn as_other_user(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"])
        .arg(program);
    command
}

/// Writes a file that only the user of such a server reads.
pub(crate) fn write_private(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    run(Command::new("chmod").arg("600").arg(path));
    if rustix::process::geteuid().is_root() {
        give_away(path);
    }
}

fn give_away(path: &Path) {
    run(Command::new("chown").arg("nobody:nogroup").arg(path));
}

/// Runs a program to its end, which has to be a good one.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}
