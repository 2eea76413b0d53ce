//! Two services, three workers of steps and one of runs on a primary with a standby, and two brokers.

use crate::process::{Process, Role};
use planwright_testing::brokers::{BrokerKind, BrokerServer};
use planwright_testing::postgres::{ServerPair, url_of};
use planwright_testing::proxy::Proxy;
use planwright_testing::workbench::{Bench, said};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

/// How long a worker may be silent.
pub(crate) const CLAIM: Duration = Duration::from_secs(8);
const DATABASE: &str = "plans";
/// What those who own runs are told.
const OWNER_CONFIG: &str = "[dispatch]\ncapabilities = [\"bank\"]\n\
     [serve]\nrequests_per_second = 100000\nburst = 100000\nmax_runs = 1000\n";

/// People who give orders.
const ADMINS: usize = 8;

/// All of it, until this is dropped.
pub(crate) struct Cluster {
    /// Services first, then workers, then those that execute runs.
    pub(crate) processes: Vec<Process>,
    pub(crate) servers: Mutex<ServerPair>,
    pub(crate) brokers: Vec<BrokerServer>,
    /// The tokens of people who may do everything. A service keeps so many requests of each that one of them could not give
    /// the orders of a long proof.
    admins: Vec<String>,
    folder: tempfile::TempDir,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let servers = ServerPair::start();
        servers.primary().create_database(DATABASE);
        // Brokers only tell where to look: the services tell it by different ones, and workers listen to either.
        let brokers = [BrokerKind::Redis, BrokerKind::RabbitMq].map(BrokerServer::start);
        let mut cluster = Self {
            processes: Vec::new(),
            brokers: brokers.into(),
            admins: Vec::new(),
            folder,
            servers: Mutex::new(servers),
        };
        for number in 0..2 {
            let service = cluster.service(number);
            if number == 0 {
                cluster.admins = (0..ADMINS)
                    .map(|admin| make_token(&service, admin))
                    .collect();
            }
            cluster.processes.push(service);
        }
        for number in 0..3 {
            let worker = cluster.worker(number % 2);
            cluster.processes.push(worker);
        }
        let runner = cluster.runner();
        cluster.processes.push(runner);
        std::thread::scope(|scope| {
            for process in &cluster.processes {
                scope.spawn(|| process.start());
            }
        });
        cluster
    }

    fn environment(&self, broker: usize) -> (Vec<(&'static str, String)>, [Proxy; 2]) {
        let servers = self.servers.lock().unwrap();
        let ways = servers.ports().map(Proxy::start);
        let ports = ways.each_ref().map(Proxy::port);
        let environment = vec![
            ("PLANWRIGHT_STORE", url_of(&ports, DATABASE)),
            ("PLANWRIGHT_DISPATCH", self.brokers[broker].url()),
        ];
        (environment, ways)
    }

    fn service(&self, broker: usize) -> Process {
        let bench = Bench::new();
        bench.configure(OWNER_CONFIG);
        let (environment, ways) = self.environment(broker);
        let args = ["serve", "--listen", "127.0.0.1:0", "--json"];
        Process::new(Role::Service, bench, &args, environment, ways)
    }

    fn worker(&self, broker: usize) -> Process {
        let bench = Bench::new();
        let claim = CLAIM.as_secs();
        bench.configure(
            &format!(
                "[dispatch]\nclaim = \"{claim}s\"\n[tools.\"bank.pay\"]\nclass = \"unsafe\"\n[tools.\"bank.transfer\"]\nclass = \"keyed\"\n"
            ),
        );
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/distributed/bank.py");
        let bank = json!({ "command": "python3", "args": ["-IS", program, self.ledger_path()] });
        let servers = json!({ "mcpServers": { "bank": bank } });
        bench.write("bank.json", &servers.to_string());
        let (environment, ways) = self.environment(broker);
        let args = "worker --capability bank --servers bank.json --concurrency 4 --json";
        let args: Vec<&str> = args.split(' ').collect();
        Process::new(Role::Worker, bench, &args, environment, ways)
    }

    /// A worker without a capability: it takes over the runs of processes that are gone.
    fn runner(&self) -> Process {
        let bench = Bench::new();
        bench.configure(OWNER_CONFIG);
        let (environment, ways) = self.environment(1);
        Process::new(
            Role::Runner,
            bench,
            &["worker", "--json"],
            environment,
            ways,
        )
    }

    fn ledger_path(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }

    /// The calls that reached the bank, in their order.
    pub(crate) fn ledger(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.ledger_path()).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub(crate) fn services(&self) -> &[Process] {
        let workers = self.processes.iter().position(|it| it.role == Role::Worker);
        &self.processes[..workers.unwrap()]
    }

    /// All but the services.
    pub(crate) fn workers(&self) -> &[Process] {
        &self.processes[self.services().len()..]
    }

    pub(crate) fn runners(&self) -> impl Iterator<Item = &Process> {
        let all = self.processes.iter();
        all.filter(|process| process.role == Role::Runner)
    }

    /// The token of the person who asks for this path: a request that is repeated comes from the same one.
    pub(crate) fn admin_of(&self, path: &str) -> &str {
        let sum: usize = path.bytes().map(usize::from).sum();
        &self.admins[sum % self.admins.len()]
    }

    /// The place of the server that can be written.
    pub(crate) fn primary(&self) -> usize {
        let servers = self.servers.lock().unwrap();
        usize::from(servers.primary().port() != servers.ports()[0])
    }
}

/// The first command that writes makes the tables.
fn make_token(service: &Process, admin: usize) -> String {
    let args = format!("token create --role admin --kind person --name ada-{admin} --json");
    let args: Vec<&str> = args.split(' ').collect();
    let made = said(service.command(&args).output().unwrap()).ends(0);
    made.json()["token"].as_str().unwrap().to_owned()
}
