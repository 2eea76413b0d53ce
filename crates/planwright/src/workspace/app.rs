//! Puts the program together: workspace → configuration → store → tools → engine.
//!
//! Nothing is created before something has to be written: a command that reads finds an empty place
//! empty and leaves it so.

use crate::config::executors;
use crate::config::file::Config;
use crate::config::models;
use crate::config::passphrase::{self, Unlock};
use crate::config::prompts;
use crate::exit::{Exit, Failure};
use crate::telemetry;
use crate::terminal::printer::Printer;
use crate::terminal::quiet_panics;
use crate::workspace::projections::WorkspaceFiles;
use crate::workspace::servers::{Roster, Servers};
use planwright_adapters::demo::Demo;
use planwright_adapters::files::{FileArtifacts, WorkspaceSurroundings};
use planwright_adapters::local::Local;
use planwright_adapters::mcp::{AllTools, McpOptions, McpServers};
use planwright_adapters::model::Models;
use planwright_adapters::process::Children;
use planwright_adapters::sqlite::{
    OpenStoreError, Options, SqliteStore, find_lock_holder, is_missing,
};
use planwright_adapters::toolbox::{InProcessServer, Toolbox};
use planwright_adapters::vault::Cipher;
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use planwright_engine::memory::MemoryStore;
use planwright_engine::port::{Artifacts, Secrets, Store};
use planwright_engine::{Engine, RedactedArtifacts, Redaction};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory in a workspace that everything is kept in.
const PLANS: &str = ".plans";

/// Names the agent that uses the command line. Set by the process that starts the agent: an agent
/// proposes and never approves.
const AGENT: &str = "PLANWRIGHT_AGENT";

/// Where things are.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// `.plans`: the store and the projections.
    pub(crate) plans: PathBuf,
    pub(crate) database: PathBuf,
    pub(crate) artifacts: PathBuf,
}

impl Workspace {
    /// The directory that was named, else the nearest one above that has plans, else the current
    /// one.
    pub(crate) fn find(named: Option<&Path>) -> Result<Self, Failure> {
        let here = std::env::current_dir().map_err(|error| {
            Failure::usage(format!("the current directory cannot be used: {error}"))
        })?;
        let root = match named.filter(|path| !path.as_os_str().is_empty()) {
            Some(path) => here.join(path),
            None => here
                .ancestors()
                .find(|path| path.join(PLANS).is_dir())
                .unwrap_or(&here)
                .to_owned(),
        };
        if !root.is_dir() {
            return Err(Failure::usage(format!(
                "the workspace {} is not a directory",
                root.display()
            )));
        }
        let plans = root.join(PLANS);
        let moved = std::env::var_os("PLAN_RUNTIME_STORE_PATH").filter(|path| !path.is_empty());
        let database = moved.map_or_else(|| plans.join("planwright.db"), |path| here.join(path));
        let mut artifacts = database.clone().into_os_string();
        artifacts.push("-artifacts");
        Ok(Self {
            root,
            plans,
            database,
            artifacts: artifacts.into(),
        })
    }

    /// The workspace in a directory, wherever the environment keeps the store of this one.
    pub(crate) fn inside(directory: &Path) -> Result<Self, Failure> {
        let root = std::path::absolute(directory)
            .map_err(|error| Failure::usage(format!("{}: {error}", directory.display())))?;
        if !root.is_dir() {
            return Err(Failure::usage(format!(
                "{} is not a directory",
                root.display()
            )));
        }
        let plans = root.join(PLANS);
        let database = plans.join("planwright.db");
        let artifacts = plans.join("planwright.db-artifacts");
        Ok(Self {
            root,
            plans,
            database,
            artifacts,
        })
    }

    /// Makes `.plans` for its owner only.
    pub(crate) fn create(&self) -> Result<(), Failure> {
        let created = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.plans);
        created.map_err(|error| {
            Failure::new(
                Exit::Store,
                format!("cannot create {}: {error}", self.plans.display()),
            )
        })
    }
}

/// Access of a command to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nothing is created.
    Read,
    Write,
}

/// The context of a command: workspace, configuration, printer and servers.
#[derive(Debug, Clone)]
pub(crate) struct CommandContext {
    pub(crate) workspace: Workspace,
    pub(crate) config: Config,
    pub(crate) printer: Printer,
    pub(crate) servers: Servers,
    /// Where the passphrase of an encrypted store comes from.
    pub(crate) unlock: Unlock,
    /// The processes that this command starts.
    pub(crate) children: Children,
    /// The program that is open already, for commands inside of it.
    pub(crate) shared: Option<Arc<App>>,
}

impl CommandContext {
    pub(crate) fn new(
        dir: Option<&Path>,
        printer: Printer,
        servers: Servers,
    ) -> Result<Self, Failure> {
        let workspace = Workspace::find(dir)?;
        let config = Config::read(&workspace.root)?;
        let mut records = workspace.database.clone().into_os_string();
        records.push("-children");
        Ok(Self {
            children: Children::new(Some(records.into())),
            workspace,
            config,
            printer,
            servers,
            unlock: Unlock::default(),
            shared: None,
        })
    }

    pub(crate) fn with_unlock(self, unlock: Unlock) -> Self {
        Self { unlock, ..self }
    }

    /// Returns this context with an open program that commands share instead of opening the store
    /// again.
    pub(crate) fn with_shared_app(self, app: App) -> Self {
        Self {
            shared: Some(Arc::new(app)),
            ..self
        }
    }

    /// Opens the store. A person is asked for a passphrase only when there is something to open.
    fn open_store(&self) -> Result<SqliteStore, Failure> {
        let path = &self.workspace.database;
        let place = |error: OpenStoreError| {
            let holder = match &error {
                OpenStoreError::Locked => find_lock_holder(path),
                _ => None,
            };
            let holder = holder.map_or_else(String::new, |holder| format!(", {holder}"));
            let failure = Failure::from(error);
            Failure {
                message: format!("{}: {}{holder}", path.display(), failure.message),
                ..failure
            }
        };
        let open = |passphrase| {
            SqliteStore::open_with(Options {
                passphrase,
                ..Options::new(path)
            })
        };
        match self.unlock.read_passphrase(self)? {
            Some(passphrase) => open(Some(passphrase)).map_err(place),
            None => match open(None) {
                Err(OpenStoreError::Encrypted) if self.printer.can_ask() => {
                    open(Some(passphrase::ask(self.printer, "Passphrase:")?)).map_err(place)
                }
                opened => opened.map_err(place),
            },
        }
    }

    pub(crate) fn toolbox(&self) -> Result<Toolbox, Failure> {
        let local = Local::open(self.config.local(&self.workspace.root, &self.children)).map_err(
            |error| {
                Failure::usage(format!(
                    "cannot open the workspace {}: {error}",
                    self.workspace.root.display()
                ))
            },
        )?;
        let servers: [Arc<dyn InProcessServer>; 2] = [Arc::new(local), Arc::new(Demo)];
        Toolbox::new(servers, self.config.toolbox())
            .map_err(|error| Failure::usage(format!("{}: {error}", crate::config::file::FILE)))
    }

    /// The servers that files name.
    pub(crate) fn roster(&self) -> Roster {
        Roster::read(
            &self.workspace.root,
            &self.config,
            self.servers.trust_project,
        )
    }

    /// The programs that work on agent steps, as the files describe them.
    pub(crate) fn executors(&self) -> Vec<executors::DescribedExecutor> {
        executors::read_executors(
            &self.config,
            &self.workspace.root,
            self.servers.trust_project,
        )
    }

    /// Returns the models that can be asked. A key is read only when its model is asked.
    pub(crate) fn models(&self, redaction: &Redaction) -> Result<Models, Failure> {
        let trusted = self.servers.trust_project;
        let options = models::usable(&self.config, &self.workspace.root, trusted)?;
        Ok(Models::new(options, redaction.clone()))
    }

    /// The tools of this process and those of the servers that may be started. None is started yet.
    fn tools(
        &self,
        roster: &Roster,
        artifacts: &Arc<dyn Artifacts>,
        redaction: &Redaction,
        keep_logs: bool,
    ) -> Result<AllTools, Failure> {
        let masked = RedactedArtifacts::new(Arc::clone(artifacts), redaction.clone());
        let mut options = McpOptions::new(Arc::new(masked), self.workspace.plans.join("logs"));
        options.redaction = redaction.clone();
        options.keep_logs = keep_logs;
        options.tools = self.config.toolbox();
        options.children = self.children.clone();
        options.workspace = Some(self.workspace.root.clone());
        let specs = roster.ready().cloned().collect();
        let wrong = |error| Failure::usage(format!("{}: {error}", crate::config::file::FILE));
        let remote = McpServers::new(specs, options).map_err(wrong)?;
        AllTools::new(self.toolbox()?, remote).map_err(wrong)
    }

    /// Returns whether this workspace has a store.
    pub(crate) fn has_store(&self) -> bool {
        self.workspace.database.exists()
    }

    /// Opens the store for writing if there is one. A workspace without a store is opened for
    /// reading, so that a command that fails there creates nothing.
    pub(crate) fn open_existing(&self) -> Result<App, Failure> {
        self.open(if self.has_store() {
            Access::Write
        } else {
            Access::Read
        })
    }

    /// Opens the store and builds the engine.
    pub(crate) fn open(&self, access: Access) -> Result<App, Failure> {
        if let Some(app) = &self.shared {
            return Ok(App::clone(app));
        }
        let absent = !self.workspace.database.exists();
        let roster = Arc::new(self.roster());
        let redaction = Redaction::default();
        quiet_panics::install(redaction.clone());
        telemetry::mask(redaction.clone());
        let sqlite = if access == Access::Read && absent && !is_missing(&self.workspace.database) {
            None
        } else {
            if access == Access::Write {
                self.workspace.create()?;
            }
            Some(Arc::new(self.open_store()?))
        };
        let cipher = sqlite.as_ref().map_or_else(
            || Arc::new(Cipher::Plain),
            |store| Arc::clone(store.cipher()),
        );
        let keep_logs = !cipher.is_sealed();
        let artifacts = FileArtifacts::with_cipher(&self.workspace.artifacts, cipher);
        let artifacts: Arc<dyn Artifacts> = Arc::new(artifacts);
        let tools = Arc::new(self.tools(&roster, &artifacts, &redaction, keep_logs)?);
        let store: Arc<dyn Store> = match &sqlite {
            Some(sqlite) => Arc::<SqliteStore>::clone(sqlite),
            None => Arc::new(MemoryStore::default()),
        };
        let models = Arc::new(self.models(&redaction)?);
        let secrets: Arc<dyn Secrets> = Arc::new(self.config.secrets(&self.workspace.root)?);
        let mut builder = Engine::builder(Arc::<AllTools>::clone(&tools));
        if let Some(sqlite) = &sqlite {
            let endpoints = self.config.webhooks()?;
            let endpoints = endpoints.into_iter().map(|endpoint| endpoint.name);
            builder = builder
                .tokens(Arc::<SqliteStore>::clone(sqlite))
                .retention_store(
                    Arc::<SqliteStore>::clone(sqlite),
                    Arc::<SqliteStore>::clone(sqlite),
                    endpoints.collect(),
                );
        }
        let engine = builder
            .model(models)
            .executors(Arc::new(executors::usable(
                self.executors(),
                &self.workspace.root,
                &self.children,
            )))
            .leftovers(Arc::new(self.children.clone()))
            .agents(self.config.agents())
            .prompts(prompts::read(&self.workspace.plans)?)
            .surroundings(Arc::new(WorkspaceSurroundings::new(&self.workspace.root)))
            .store(store, artifacts)
            .secrets(Arc::clone(&secrets), redaction)
            .limits(self.config.limits())
            .bounds(self.config.bounds())
            .retention(self.config.retention())
            .policy(Arc::new(self.config.policy()?))
            .policy_version(self.config.policy_version()?)
            .build();
        let files = Arc::new(WorkspaceFiles::new(
            engine.clone(),
            self.workspace.plans.clone(),
            !keep_logs,
        ));
        Ok(App {
            context: self.clone(),
            engine,
            sqlite,
            secrets,
            tools,
            roster,
            files,
        })
    }
}

/// The program, put together.
#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) context: CommandContext,
    pub(crate) engine: Engine,
    /// The store as it really is; absent in a workspace without one.
    pub(crate) sqlite: Option<Arc<SqliteStore>>,
    pub(crate) secrets: Arc<dyn Secrets>,
    pub(crate) tools: Arc<AllTools>,
    pub(crate) roster: Arc<Roster>,
    /// `.plans/<id>/`, kept in step with the journal.
    pub(crate) files: Arc<WorkspaceFiles>,
}

impl App {
    pub(crate) fn printer(&self) -> Printer {
        self.context.printer
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.engine.now()
    }

    pub(crate) fn artifacts(&self) -> &Arc<dyn Artifacts> {
        self.engine.artifacts()
    }
}

/// Returns the principal that gives this command: the operating-system user, or an agent that says
/// so. The account decides and not the environment, which the user controls; the environment can
/// only take rights away.
pub(crate) fn user() -> Principal {
    if let Some(agent) = std::env::var_os(AGENT).filter(|name| !name.is_empty()) {
        return Principal::agent(agent.to_string_lossy());
    }
    let uid = rustix::process::getuid().as_raw().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let account = accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    });
    let named = account.or_else(|| std::env::var("USER").ok().filter(|name| !name.is_empty()));
    Principal::person(named.unwrap_or_else(|| format!("uid {uid}")))
}
