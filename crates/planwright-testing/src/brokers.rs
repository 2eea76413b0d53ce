//! RabbitMQ and Redis of the tests' own: started in a temporary directory on free ports, and gone with the process that
//! started them, however that ends.

use crate::keeper::{Keeper, free_ports, make_directory};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The password of the Redis server.
pub const REDIS_PASSWORD: &str = "hunter2";

const START_TIMEOUT: Duration = Duration::from_secs(120);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Where Debian puts RabbitMQ: what it puts on the path starts it only as root, for the whole machine.
const RABBITMQ_FOLDER: &str = "/usr/lib/rabbitmq/lib";

/// Which server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokerKind {
    /// RabbitMQ, with its Erlang.
    RabbitMq,
    /// Redis, which writes every command to its file before it answers.
    Redis,
}

/// A server that runs.
#[derive(Debug)]
pub struct BrokerServer {
    kind: BrokerKind,
    directory: PathBuf,
    /// The port of the server, and of the parts that RabbitMQ needs beside it.
    ports: [u16; 3],
    is_encrypted: bool,
    running: Mutex<Option<Keeper>>,
}

/// The RabbitMQ that all tests of a process share.
pub fn rabbitmq() -> &'static BrokerServer {
    static SERVER: OnceLock<BrokerServer> = OnceLock::new();
    SERVER.get_or_init(|| BrokerServer::start(BrokerKind::RabbitMq))
}

/// The Redis that all tests of a process share.
pub fn redis() -> &'static BrokerServer {
    static SERVER: OnceLock<BrokerServer> = OnceLock::new();
    SERVER.get_or_init(|| BrokerServer::start(BrokerKind::Redis))
}

/// The program that starts RabbitMQ.
fn rabbitmq_program() -> PathBuf {
    if let Ok(folder) = std::env::var("PLANWRIGHT_RABBITMQ_BIN") {
        return Path::new(&folder).join("rabbitmq-server");
    }
    let versions = std::fs::read_dir(RABBITMQ_FOLDER).into_iter().flatten();
    let mut programs = versions
        .flatten()
        .map(|version| version.path().join("sbin/rabbitmq-server"));
    programs.find(|program| program.exists()).expect(
        "RabbitMQ is installed: `cargo xtask check` does it, or the Debian package rabbitmq-server",
    )
}

impl BrokerServer {
    /// Starts a server that is not shared, for tests that kill it.
    pub fn start(kind: BrokerKind) -> Self {
        Self::start_with(kind, None)
    }

    /// Starts a server that takes encrypted connections only. Its certificate and its key are PEM.
    pub fn start_encrypted(kind: BrokerKind, certificate: &str, key: &str) -> Self {
        Self::start_with(kind, Some([certificate, key]))
    }

    fn start_with(kind: BrokerKind, encryption: Option<[&str; 2]>) -> Self {
        let directory = make_directory("planwright-broker-");
        let ports = free_ports();
        let server = Self {
            kind,
            directory,
            ports,
            is_encrypted: encryption.is_some(),
            running: Mutex::new(None),
        };
        if let Some([certificate, key]) = encryption {
            server.write("certificate.pem", certificate);
            server.write("key.pem", key);
            let folder = server.directory.display();
            // RabbitMQ reads no other settings from the command line.
            let settings = format!(
                "listeners.tcp = none\nlisteners.ssl.default = {}\nssl_options.certfile = {folder}/certificate.pem\n\
                 ssl_options.keyfile = {folder}/key.pem\nssl_options.verify = verify_none\n",
                server.ports[0]
            );
            server.write("rabbitmq.conf", &settings);
        }
        server.resume();
        server
    }

    fn command(&self) -> Command {
        match self.kind {
            BrokerKind::RabbitMq => self.rabbitmq_command(),
            BrokerKind::Redis => self.redis_command(),
        }
    }

    fn redis_command(&self) -> Command {
        let mut redis = Command::new("redis-server");
        let port = self.ports[0].to_string();
        match self.is_encrypted {
            false => redis.args(["--port", &port]),
            true => redis
                .args([
                    "--port",
                    "0",
                    "--tls-port",
                    &port,
                    "--tls-auth-clients",
                    "no",
                ])
                .arg("--tls-cert-file")
                .arg(self.directory.join("certificate.pem"))
                .arg("--tls-key-file")
                .arg(self.directory.join("key.pem")),
        };
        redis
            .args(["--bind", "127.0.0.1", "--requirepass", REDIS_PASSWORD])
            .args(["--save", "", "--appendonly", "yes"])
            .args(["--appendfsync", "always", "--dir"])
            .arg(self.data());
        redis
    }

    /// Erlang would start the daemon that knows its nodes for the whole machine: one of our own is
    /// started with it and ends with it.
    fn rabbitmq_command(&self) -> Command {
        let [port, node, names] = self.ports.map(|port| port.to_string());
        let mut rabbitmq = Command::new("sh");
        rabbitmq
            .args(["-c", r#"epmd -port "$ERL_EPMD_PORT" & exec "$0""#])
            .arg(rabbitmq_program())
            .env("HOME", &self.directory)
            .env("ERL_EPMD_PORT", names)
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODENAME", format!("planwright{port}@localhost"))
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", port)
            .env("RABBITMQ_DIST_PORT", node)
            .env("RABBITMQ_MNESIA_BASE", self.data())
            .env("RABBITMQ_LOG_BASE", self.directory.join("logs"))
            .env("RABBITMQ_LOGS", "-")
            .env("RABBITMQ_CONFIG_FILE", self.directory.join("rabbitmq"))
            .env("RABBITMQ_CONF_ENV_FILE", self.directory.join("none"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", self.directory.join("none"))
            .env("RABBITMQ_PID_FILE", self.directory.join("pid"))
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "+S 1:1 +sbwt none");
        rabbitmq
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.directory.join(name), text).unwrap();
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Starts it again after [`BrokerServer::kill`].
    pub fn resume(&self) {
        std::fs::create_dir_all(self.data()).unwrap();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let server = self.command();
        let is_ready = || self.greet().is_ok();
        let keeper = Keeper::start(&self.directory, &server, "KILL", START_TIMEOUT, is_ready);
        *running = Some(keeper);
    }

    /// Kills it, as a crash would. Its data stays.
    pub fn kill(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keeper) = running.take() {
            keeper.end();
        }
    }

    /// Deletes all data of a server that was killed.
    pub fn empty(&self) {
        std::fs::remove_dir_all(self.data()).unwrap();
    }

    /// Whether it answers in its protocol.
    fn greet(&self) -> std::io::Result<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.ports[0]))?;
        if self.is_encrypted {
            // It listens when it is ready; what it says then, the tests find out.
            return Ok(());
        }
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        let greeting: &[u8] = match self.kind {
            BrokerKind::RabbitMq => b"AMQP\0\0\x09\x01",
            BrokerKind::Redis => b"AUTH hunter2\r\nPING\r\n",
        };
        stream.write_all(greeting)?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer)?;
        let is_ready = match self.kind {
            BrokerKind::RabbitMq => answer[0] == 1,
            BrokerKind::Redis => answer == *b"+OK\r\n+PONG\r\n",
        };
        match is_ready {
            true => Ok(()),
            false => Err(std::io::ErrorKind::InvalidData.into()),
        }
    }

    /// Sends a command to Redis, and returns the beginning of its answer.
    pub fn ask_redis(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).unwrap();
        let commands = format!("AUTH {REDIS_PASSWORD}\r\n{command}\r\nQUIT\r\n");
        stream.write_all(commands.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.ports[0]
    }

    /// Its address.
    pub fn url(&self) -> String {
        let port = self.port();
        let s = if self.is_encrypted { "s" } else { "" };
        match self.kind {
            BrokerKind::RabbitMq => format!("amqp{s}://guest:guest@127.0.0.1:{port}"),
            BrokerKind::Redis => format!("redis{s}://:{REDIS_PASSWORD}@127.0.0.1:{port}"),
        }
    }
}
