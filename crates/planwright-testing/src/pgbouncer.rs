//! PgBouncer in front of a Postgres server, in transaction mode: the next transaction of a connection may be made on
//! another connection to the server.

use crate::keeper::{Keeper, as_other_user, free_ports, make_directory, write_private};
use crate::postgres::{Server, USER, url_of};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Where Debian puts the program, which is not on the path of every user.
const PLACES: [&str; 4] = [
    "/usr/sbin/pgbouncer",
    "/usr/bin/pgbouncer",
    "/usr/local/bin/pgbouncer",
    "/opt/homebrew/bin/pgbouncer",
];

/// A pooler that runs until this is dropped.
#[derive(Debug)]
pub struct Bouncer {
    port: u16,
    _keeper: Keeper,
}

fn program() -> PathBuf {
    if let Ok(program) = std::env::var("PLANWRIGHT_PGBOUNCER") {
        return program.into();
    }
    let found = PLACES.iter().map(PathBuf::from).find(|path| path.exists());
    found.expect(
        "PgBouncer is installed: `cargo xtask check` does it, or the Debian package pgbouncer",
    )
}

impl Bouncer {
    /// Starts one that has so many connections to each database of the server.
    pub fn start(server: &Server, connections: u32) -> Self {
        let directory = make_directory("planwright-pgbouncer-");
        let [port] = free_ports();
        let users = directory.join("users");
        write_private(&users, &format!("\"{USER}\" \"hunter2\"\n"));
        let settings = directory.join("pgbouncer.ini");
        write_private(&settings, &configuration(server, port, &users, connections));
        let mut bouncer = as_other_user(&program());
        bouncer.arg(&settings);
        let is_ready = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        Self {
            port,
            _keeper: Keeper::start(&directory, &bouncer, "KILL", START_TIMEOUT, is_ready),
        }
    }

    /// The address of a database through it.
    pub fn url(&self, database: &str) -> String {
        url_of(&[self.port], database)
    }
}

fn configuration(server: &Server, port: u16, users: &Path, connections: u32) -> String {
    let upstream = server.port();
    let users = users.display();
    format!(
        "[databases]\n\
         * = host=127.0.0.1 port={upstream}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = plain\n\
         auth_file = {users}\n\
         pool_mode = transaction\n\
         max_client_conn = 1000\n\
         default_pool_size = {connections}\n\
         server_round_robin = 1\n"
    )
}
