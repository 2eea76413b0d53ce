//! A Postgres server of the tests' own: made in a temporary directory on a free port, and gone with the process that
//! started it, however that ends.

use crate::keeper::{Keeper, as_other_user, free_ports, make_directory, run, write_private};
use crate::wait::wait_until;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

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
    running: Mutex<Option<Keeper>>,
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

impl Server {
    /// Makes a server of its own, for a test that stops it.
    pub fn start() -> Self {
        let server = Self::placed();
        let data = server.data();
        run(as_other_user(&programs().join("initdb"))
            .arg("--pgdata")
            .arg(&data)
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8"])
            .args(["--locale=C", "--no-sync"])
            .current_dir("/tmp"));
        server.resume();
        server.sql(
            "postgres",
            &format!("CREATE ROLE {USER} LOGIN CREATEDB PASSWORD 'hunter2'"),
        );
        server
    }

    /// A place for a server that has no data yet.
    fn placed() -> Self {
        let [port] = free_ports();
        Self {
            directory: make_directory("planwright-postgres-"),
            port,
            running: Mutex::new(None),
        }
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// What it has written to its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).unwrap()
    }

    /// Starts it again after [`Server::stop`].
    pub fn resume(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut postgres = as_other_user(&programs().join("postgres"));
        postgres
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.to_string()])
            .arg("-k")
            .arg(&self.directory);
        for setting in [
            "listen_addresses=127.0.0.1",
            "max_connections=300",
            "shared_buffers=64MB",
            "fsync=on",
            "wal_keep_size=256MB",
        ] {
            postgres.args(["-c", setting]);
        }
        let answers = || self.answers();
        let keeper = Keeper::start(&self.directory, &postgres, "QUIT", START_TIMEOUT, answers);
        *running = Some(keeper);
    }

    /// Ends it at once, as a crash of it would. Its data stays.
    pub fn stop(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keeper) = running.take() {
            keeper.end();
        }
    }

    /// Makes this place a standby of another server, which from now on answers a commit when it is durable on both.
    fn follow(&self, primary: &Self) {
        if self.data().exists() {
            std::fs::remove_dir_all(self.data()).unwrap();
        }
        let port = primary.port.to_string();
        run(as_other_user(&programs().join("pg_basebackup"))
            .args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-D"])
            .arg(self.data())
            .args(["-X", "stream", "-c", "fast", "--no-sync", "-R"])
            .current_dir("/tmp"));
        self.resume();
        primary.sql(
            "postgres",
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
        );
        primary.sql("postgres", "SELECT pg_reload_conf()");
        let sql = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        wait_until("the standby", || primary.sql("postgres", sql) == "1");
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
            write_private(&path, text);
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
        url_of(&[self.port], database)
    }
}

/// A primary and a standby, without which no commit is answered.
#[derive(Debug)]
pub struct ServerPair {
    servers: [Server; 2],
    primary: AtomicUsize,
}

impl ServerPair {
    /// Starts both.
    pub fn start() -> Self {
        let servers = [Server::start(), Server::placed()];
        servers[1].follow(&servers[0]);
        Self {
            servers,
            primary: AtomicUsize::new(0),
        }
    }

    /// The server that can be written.
    pub fn primary(&self) -> &Server {
        &self.servers[self.primary.load(Ordering::SeqCst)]
    }

    /// The other one.
    pub fn standby(&self) -> &Server {
        &self.servers[1 - self.primary.load(Ordering::SeqCst)]
    }

    /// The ports of both.
    pub fn ports(&self) -> [u16; 2] {
        [self.servers[0].port, self.servers[1].port]
    }

    /// Kills the primary, and lets the standby take its place, alone.
    pub fn fail_over(&self) {
        self.primary().stop();
        self.promote_standby();
    }

    /// Lets the standby take the place of the primary, which goes on and does not know it.
    pub fn promote_standby(&self) {
        let promoted = self.standby().sql("postgres", "SELECT pg_promote()");
        assert_eq!(promoted, "t", "the standby was not promoted");
        self.primary.fetch_xor(1, Ordering::SeqCst);
    }

    /// Makes what was the primary before a failover the standby.
    pub fn rejoin(&self) {
        self.standby().stop();
        self.standby().follow(self.primary());
    }

    /// The address of a database, with both servers.
    pub fn url(&self, database: &str) -> String {
        url_of(&self.ports(), database)
    }
}

/// The address of a database on one of several ports of this machine.
pub fn url_of(ports: &[u16], database: &str) -> String {
    let hosts: Vec<String> = ports
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    format!("postgres://{USER}:hunter2@{}/{database}", hosts.join(","))
}
