//! A Postgres server of the tests' own: made in a temporary directory on a free port, and gone with the process that
//! started it, however that ends.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The user that owns the databases. It may make databases and is no superuser.
pub const USER: &str = "planner";

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Where Debian and others put the programs of the server, if no variable says it.
const PLACES: [&str; 4] = [
    "/usr/lib/postgresql",
    "/usr/local/pgsql",
    "/opt/homebrew/opt/postgresql",
    "/usr/pgsql",
];

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    directory: PathBuf,
    port: u16,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    keeper: Child,
    /// Closed when this process ends, which ends the server.
    alive: Option<ChildStdin>,
}

/// The server that all tests of a process share.
pub fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::start)
}

/// The folder with `initdb`, `postgres` and `psql`.
pub fn programs() -> PathBuf {
    if let Ok(folder) = std::env::var("PLANWRIGHT_POSTGRES_BIN") {
        return folder.into();
    }
    let mut found: Vec<PathBuf> = Vec::new();
    for place in PLACES {
        found.push(Path::new(place).join("bin"));
        let versions = std::fs::read_dir(place).into_iter().flatten().flatten();
        found.extend(versions.map(|version| version.path().join("bin")));
    }
    found.sort();
    let usable = found
        .into_iter()
        .rfind(|folder| folder.join("initdb").exists());
    usable.expect(
        "Postgres is installed: `cargo xtask check` does it, or the Debian package postgresql",
    )
}

/// Postgres does not run as root: its programs are started as a user that owns nothing.
fn as_other_user(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"])
        .arg(program);
    command
}

fn run(command: &mut Command) -> String {
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

impl Server {
    /// Makes a server of its own, for a test that stops it.
    pub fn start() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("planwright-postgres-")
            .tempdir_in("/tmp")
            .unwrap()
            .keep();
        if rustix::process::geteuid().is_root() {
            run(Command::new("chown").arg("nobody:nogroup").arg(&directory));
        }
        let data = directory.join("data");
        run(as_other_user(&programs().join("initdb"))
            .arg("--pgdata")
            .arg(&data)
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8"])
            .args(["--locale=C", "--no-sync"])
            .current_dir("/tmp"));
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let server = Self {
            directory,
            port,
            running: Mutex::new(None),
        };
        server.resume();
        server.sql(
            "postgres",
            &format!("CREATE ROLE {USER} LOGIN CREATEDB PASSWORD 'hunter2'"),
        );
        server
    }

    /// Starts it again after [`Server::stop`].
    pub fn resume(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // The shell outlives this process for as long as it takes to stop the server and to tidy up.
        let script = r#"directory=$1; shift
"$@" >>"$directory/log" 2>&1 </dev/null &
server=$!
read -r word
kill -QUIT "$server"
wait "$server"
[ "$word" = keep ] || rm -rf "$directory""#;
        let postgres = as_other_user(&programs().join("postgres"));
        let mut keeper = Command::new("sh");
        keeper
            .args(["-c", script, "keeper"])
            .arg(&self.directory)
            .arg(postgres.get_program())
            .args(postgres.get_args())
            .arg("-D")
            .arg(self.directory.join("data"))
            .args(["-p", &self.port.to_string()])
            .arg("-k")
            .arg(&self.directory)
            .args([
                "-c",
                "listen_addresses=127.0.0.1",
                "-c",
                "max_connections=300",
            ])
            .args(["-c", "shared_buffers=64MB", "-c", "fsync=on"])
            .current_dir("/tmp")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut keeper = keeper.spawn().unwrap();
        let alive = keeper.stdin.take();
        *running = Some(Running { keeper, alive });
        let until = Instant::now() + START_TIMEOUT;
        while !self.answers() {
            let log = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "Postgres does not start: {log}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends it at once, as a crash of it would. Its data stays.
    pub fn stop(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut running) = running.take() {
            running.alive.take().unwrap().write_all(b"keep\n").unwrap();
            running.keeper.wait().unwrap();
        }
    }

    fn answers(&self) -> bool {
        let mut psql = self.psql("postgres");
        psql.args(["-c", "SELECT 1"]);
        psql.output().is_ok_and(|output| output.status.success())
    }

    fn psql(&self, database: &str) -> Command {
        let mut psql = Command::new(programs().join("psql"));
        psql.args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(["-U", "postgres", "-d", database])
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"])
            .stdin(Stdio::null());
        psql
    }

    /// Runs statements as the superuser, and returns what they print.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        run(self.psql(database).args(["-c", statements]))
            .trim()
            .to_owned()
    }

    /// Lets it encrypt connections with a certificate and its key, both as PEM.
    pub fn use_certificate(&self, certificate: &str, key: &str) {
        let file = |name: &str, text: &str| {
            let path = self.directory.join(name);
            std::fs::write(&path, text).unwrap();
            run(Command::new("chmod").arg("600").arg(&path));
            if rustix::process::geteuid().is_root() {
                run(Command::new("chown").arg("nobody:nogroup").arg(&path));
            }
            path
        };
        for (setting, value) in [
            ("ssl_cert_file", file("certificate.pem", certificate)),
            ("ssl_key_file", file("key.pem", key)),
            ("ssl", "on".into()),
        ] {
            let sql = format!("ALTER SYSTEM SET {setting} = '{}'", value.display());
            self.sql("postgres", &sql);
        }
        self.stop();
        self.resume();
    }

    /// Makes an empty database that belongs to [`USER`].
    pub fn create_database(&self, name: &str) {
        self.sql("postgres", &format!("CREATE DATABASE {name} OWNER {USER}"));
    }

    /// Everything that a database holds, as `pg_dump` writes it: bytes are in hexadecimal.
    pub fn dump(&self, database: &str) -> String {
        run(Command::new(programs().join("pg_dump"))
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(["-U", "postgres", "--inserts", database]))
    }

    /// The files with the tables of a database, when everything is written to them.
    pub fn files_of(&self, database: &str) -> Vec<PathBuf> {
        self.sql("postgres", "CHECKPOINT");
        let oid = format!("SELECT oid FROM pg_database WHERE datname = '{database}'");
        let folder = self.directory.join("data/base");
        let folder = folder.join(self.sql("postgres", &oid));
        let files = std::fs::read_dir(folder).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of a database.
    pub fn url(&self, database: &str) -> String {
        format!(
            "postgres://{USER}:hunter2@127.0.0.1:{}/{database}",
            self.port
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut running) = running.take() {
            drop(running.alive.take());
            drop(running.keeper.wait());
        }
    }
}
