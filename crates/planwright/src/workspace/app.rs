//! Puts the program together: workspace → configuration → store → tools → engine.
//!
//! Nothing is created before something has to be written: a command that reads finds an empty place
//! empty and leaves it so.

use crate::config::executors;
use crate::config::file::Config;
use crate::config::models;
use crate::config::passphrase::{self, Unlock};
use crate::exit::{Exit, Failure};
use crate::telemetry;
use crate::terminal::printer::Printer;
use crate::terminal::quiet_panics;
use crate::trust::{
    FolderTrust, ForeignFile, KeyUse, Trust, answer_directory, find_store_owner, foreign_owner,
    hint_directory,
};
use crate::workspace::broker_address::{find_broker, open_broker};
use crate::workspace::objects::open_objects;
pub(crate) use crate::workspace::principal::user;
use crate::workspace::principal::{account, add_agent_marks, confirmation_hint, is_agent};
use crate::workspace::projections::WorkspaceFiles;
use crate::workspace::servers::{Roster, Servers};
use crate::workspace::store_address::{OpenedSide, StoreAddress, WholeStore, find_location};
use planwright_adapters::demo::Demo;
use planwright_adapters::files::{FileArtifacts, FileStepLogs, WorkspaceSurroundings};
use planwright_adapters::local::Local;
use planwright_adapters::mcp::{
    AllTools, McpOptions, McpServers, SeenShapes, SignInTokens, ToolMemory,
};
use planwright_adapters::model::Models;
use planwright_adapters::objects::ObjectArtifacts;
use planwright_adapters::postgres::{
    Location, OpenPostgresError, PostgresArtifacts, PostgresOptions, PostgresStore,
    is_encrypted as is_database_encrypted,
};
use planwright_adapters::process::Children;
use planwright_adapters::sqlite::{
    ForeignStore, OpenStoreError, Options, SHAPES, SIGN_INS, SqliteStore, StoreOwner,
    find_lock_holder, is_encrypted as is_file_encrypted, is_missing,
};
use planwright_adapters::toolbox::{InProcessServer, Toolbox};
use planwright_adapters::vault::Cipher;
use planwright_core::time::Timestamp;
use planwright_engine::memory::MemoryStore;
use planwright_engine::port::{Artifacts, Secrets, Store};
use planwright_engine::{DispatchSettings, Engine, EngineBuilder, RedactedArtifacts, Redaction};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory in a workspace that everything is kept in.
const PLANS: &str = ".plans";

/// Keeps journals and results out of commits: git ignores everything in the directory.
pub(crate) const GITIGNORE: &str = ".gitignore";

/// Where things are.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// `.plans`: the store and the projections.
    pub(crate) plans: PathBuf,
    pub(crate) database: PathBuf,
    pub(crate) artifacts: PathBuf,
    /// A place above that has plans of another account, and so was not taken.
    pub(crate) passed_over: Option<ForeignFile>,
}

impl Workspace {
    /// The directory that was named, else the nearest one above that has plans, else the current
    /// one. Plans above that belong to another account are not taken for the user's.
    pub(crate) fn find(named: Option<&Path>) -> Result<Self, Failure> {
        let here = std::env::current_dir().map_err(|error| {
            Failure::usage(format!("the current directory cannot be used: {error}"))
        })?;
        let mut passed_over = None;
        let root = match named.filter(|path| !path.as_os_str().is_empty()) {
            Some(path) => here.join(path),
            None => {
                let above = here.ancestors().find(|path| path.join(PLANS).is_dir());
                let above = above.unwrap_or(&here);
                passed_over = foreign_owner(above, &above.join(PLANS))
                    .filter(|_| above != here && !Trust::read(above).foreign().is_empty());
                match &passed_over {
                    Some(_) => here.clone(),
                    None => above.to_owned(),
                }
            }
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
        Ok(Self {
            root,
            plans,
            artifacts: artifacts_beside(&database),
            database,
            passed_over,
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
            passed_over: None,
        })
    }

    /// Makes `.plans` for its owner only, and out of git's sight.
    pub(crate) fn create(&self) -> Result<(), Failure> {
        let created = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.plans);
        created
            .and_then(|()| self.hide_from_git())
            .map_err(|error| {
                Failure::new(
                    Exit::Store,
                    format!("cannot create {}: {error}", self.plans.display()),
                )
            })
    }

    /// A file that is there already is the user's.
    fn hide_from_git(&self) -> std::io::Result<()> {
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.plans.join(GITIGNORE));
        match made {
            Ok(mut file) => file.write_all(b"*\n"),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The folder with the large values of a store.
fn artifacts_beside(database: &Path) -> PathBuf {
    let mut artifacts = database.to_owned().into_os_string();
    artifacts.push("-artifacts");
    artifacts.into()
}

/// Access of a command to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nothing is created.
    Read,
    Write,
    /// A store that is not the user's is made theirs.
    Adopt,
}

/// The context of a command: workspace, configuration, printer and servers.
#[derive(Debug, Clone)]
pub(crate) struct CommandContext {
    pub(crate) workspace: Workspace,
    /// What counts: without what the user does not trust.
    pub(crate) config: Config,
    /// What the workspace's files loosen, and what of it the user trusts.
    pub(crate) folder: Arc<FolderTrust>,
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
        Self::inside(workspace, config, printer, servers)
    }

    /// The context of commands in a workspace with this configuration, of which only that counts
    /// which the user trusts.
    pub(crate) fn inside(
        workspace: Workspace,
        config: Config,
        printer: Printer,
        mut servers: Servers,
    ) -> Result<Self, Failure> {
        add_agent_marks(config.agent_marks());
        // An agent cannot trust, and neither can a flag where files are not the user's.
        let is_foreign = || !Trust::read(&workspace.root).foreign().is_empty();
        servers.trust_project = servers.trust_project && !is_agent() && !is_foreign();
        let folder = FolderTrust::read(&workspace, &config, servers.trust_project)?;
        let config = config.without(&folder.ignored_subjects());
        let mut records = workspace.database.clone().into_os_string();
        records.push("-children");
        Ok(Self {
            children: Children::new(Some(records.into())),
            workspace,
            config,
            folder: Arc::new(folder),
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
    fn open_store(&self, access: Access) -> Result<SqliteStore, Failure> {
        let path = &self.workspace.database;
        let owner = self.store_owner(match access {
            Access::Read => KeyUse::Read,
            Access::Write | Access::Adopt => KeyUse::Write,
        })?;
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
                owner: owner.clone(),
                adopt: access == Access::Adopt,
                ..Options::new(path)
            })
        };
        let store = match self.unlock.read_passphrase(self)? {
            Some(passphrase) => open(Some(passphrase)).map_err(place),
            None => match open(None) {
                Err(OpenStoreError::Encrypted) if self.printer.can_ask() => {
                    open(Some(passphrase::ask(self.printer, "Passphrase:")?)).map_err(place)
                }
                opened => opened.map_err(place),
            },
        }?;
        if let Some(why) = store.foreign() {
            self.meet_foreign_store(why, access)?;
        }
        Ok(store)
    }

    /// Whose stores this command may write to.
    pub(crate) fn store_owner(&self, needed: KeyUse) -> Result<StoreOwner, Failure> {
        find_store_owner((&self.config, &self.workspace.root), needed, self.printer)
    }

    /// A store from elsewhere can be looked at. Its approvals and runs are another person's word.
    fn meet_foreign_store(&self, why: &ForeignStore, access: Access) -> Result<(), Failure> {
        let path = self.workspace.database.display();
        let hint = confirmation_hint("To review and adopt it: planwright store adopt");
        match access {
            Access::Read => {
                self.printer
                    .warn(&format!("{path} can only be read: {why}; {hint}"));
                Ok(())
            }
            Access::Write | Access::Adopt => Err(Failure::refused(format!(
                "{path} is not adopted: {why}. Its approvals and runs count for nothing here"
            ))
            .hint(hint)),
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
        opened: &OpenedStore,
    ) -> Result<AllTools, Failure> {
        let cipher = opened.cipher();
        let keep_logs = !cipher.is_sealed();
        let masked = RedactedArtifacts::new(Arc::clone(artifacts), redaction.clone());
        let mut options = McpOptions::new(Arc::new(masked), self.workspace.plans.join("logs"));
        options.redaction = redaction.clone();
        options.keep_logs = keep_logs;
        options.tools = self.config.toolbox();
        options.children = self.children.clone();
        options.workspace = Some(self.workspace.root.clone());
        options.hints = hint_directory();
        options.passed = self.config.gateway().passed_requests();
        options.tokens = Some(self.sign_ins(opened.postgres(), &cipher));
        let shapes = self.beside_store(SHAPES);
        options.shapes = Some(SeenShapes::new(shapes, Arc::clone(&cipher)));
        options.memory = self.tool_memory(&cipher);
        options.person = Some(account());
        options.secrets = Some(Arc::new(self.config.secrets(&self.workspace.root)?));
        let specs = roster.ready().cloned().collect();
        let wrong = |error| Failure::usage(format!("{}: {error}", crate::config::file::FILE));
        let remote = McpServers::new(specs, options).map_err(wrong)?;
        AllTools::new(self.toolbox()?, remote).map_err(wrong)
    }

    /// What the servers answered to earlier commands, sealed like the store.
    pub(crate) fn tool_memory(&self, cipher: &Arc<Cipher>) -> Option<ToolMemory> {
        let root = &self.workspace.root;
        let directory = answer_directory(root)?;
        Some(ToolMemory::new(directory, root, Arc::clone(cipher)))
    }

    /// The tokens of the servers that people signed in to: in the database of the store, or beside its file, and sealed like it.
    pub(crate) fn sign_ins(
        &self,
        database: Option<&Arc<PostgresStore>>,
        cipher: &Arc<Cipher>,
    ) -> SignInTokens {
        match database {
            Some(store) => SignInTokens::in_store(Arc::<PostgresStore>::clone(store)),
            None => SignInTokens::in_files(self.beside_store(SIGN_INS), Arc::clone(cipher)),
        }
    }

    /// A folder beside the store, by the end of its name.
    pub(crate) fn beside_store(&self, suffix: &str) -> PathBuf {
        let mut directory = self.workspace.database.clone().into_os_string();
        directory.push(suffix);
        directory.into()
    }

    /// Returns whether this workspace has a store. One in a database that is named counts: only opening it
    /// would say more.
    pub(crate) fn has_store(&self) -> bool {
        self.workspace.database.exists() || !matches!(find_location(self), Ok(None))
    }

    /// Opens the database that is named as the store, if one is. A command that only reads makes no tables.
    fn open_database(&self, access: Access) -> Result<Option<OpenedStore>, Failure> {
        let Some(location) = find_location(self)? else {
            return Ok(None);
        };
        if access == Access::Write {
            // Files for calls, logs and the plans as files are still beside the workspace.
            self.workspace.create()?;
        }
        Ok(Some(match self.open_location(&location, access)? {
            Some(store) => OpenedStore::Postgres(store),
            None => OpenedStore::None,
        }))
    }

    /// Opens the store in a database. Without `Access::Write` one that is not there is not made. A person is asked for a
    /// passphrase only when there is something to open.
    fn open_location(
        &self,
        location: &Location,
        access: Access,
    ) -> Result<Option<Arc<PostgresStore>>, Failure> {
        let open = |passphrase| {
            PostgresStore::open_with(PostgresOptions {
                passphrase,
                ..PostgresOptions::new(location.clone(), access == Access::Write)
            })
        };
        let opened = match self.unlock.read_passphrase(self)? {
            Some(passphrase) => open(Some(passphrase)),
            None => match open(None) {
                Err(OpenPostgresError::Encrypted) if self.printer.can_ask() => {
                    open(Some(passphrase::ask(self.printer, "Passphrase:")?))
                }
                opened => opened,
            },
        };
        match opened {
            Ok(store) => Ok(Some(Arc::new(store))),
            Err(OpenPostgresError::Empty) => Ok(None),
            Err(
                error @ (OpenPostgresError::Encrypted
                | OpenPostgresError::NotEncrypted
                | OpenPostgresError::Unlock(_)),
            ) => {
                let failure = Failure::from(error);
                Err(Failure {
                    message: format!("{location}: {}", failure.message),
                    ..failure
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the file of the workspace, if there is one or it may be made.
    fn open_file(&self, access: Access) -> Result<OpenedStore, Failure> {
        let absent = !self.workspace.database.exists();
        if access == Access::Read && absent && !is_missing(&self.workspace.database) {
            return Ok(OpenedStore::None);
        }
        if access == Access::Write {
            self.workspace.create()?;
        }
        Ok(OpenedStore::Sqlite(Arc::new(self.open_store(access)?)))
    }

    /// Returns whether one of the stores of a copy is encrypted. Needs no passphrase.
    pub(crate) fn is_side_encrypted(&self, address: &StoreAddress) -> Result<bool, Failure> {
        let found = match address {
            StoreAddress::Workspace => is_file_encrypted(&self.workspace.database)?,
            StoreAddress::File(path) => is_file_encrypted(path)?,
            StoreAddress::Database(location) => is_database_encrypted(location)?,
        };
        Ok(found == Some(true))
    }

    /// Opens one of the stores of a copy. Without `Access::Write` one that is not there is not made.
    pub(crate) fn open_side(
        &self,
        address: &StoreAddress,
        access: Access,
    ) -> Result<Option<OpenedSide>, Failure> {
        let mut context = self.clone();
        match address {
            StoreAddress::Workspace => {}
            StoreAddress::File(path) => {
                let path = std::path::absolute(path)
                    .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
                context.workspace.artifacts = artifacts_beside(&path);
                context.workspace.database = path;
            }
            StoreAddress::Database(location) => {
                let Some(store) = self.open_location(location, access)? else {
                    return Ok(None);
                };
                let cipher = Arc::clone(store.cipher());
                let is_encrypted = cipher.is_sealed();
                let files = FileArtifacts::with_cipher(&self.workspace.artifacts, cipher);
                let own = PostgresArtifacts::new(Arc::clone(&store), files);
                return Ok(Some(OpenedSide {
                    artifacts: self.artifacts_of_side(Arc::new(own), is_encrypted)?,
                    store,
                    is_encrypted,
                }));
            }
        }
        if access == Access::Read && !context.workspace.database.exists() {
            return Ok(None);
        }
        if access == Access::Write && matches!(address, StoreAddress::Workspace) {
            context.workspace.create()?;
        }
        // A store that is only read is opened as one that is written, too: one from elsewhere is refused, because its
        // approvals would count in the copy.
        let store = Arc::new(context.open_store(Access::Write)?);
        let cipher = Arc::clone(store.cipher());
        let is_encrypted = cipher.is_sealed();
        let own = FileArtifacts::with_cipher(&context.workspace.artifacts, cipher);
        Ok(Some(OpenedSide {
            is_encrypted,
            artifacts: self.artifacts_of_side(Arc::new(own), is_encrypted)?,
            store,
        }))
    }

    /// The large values of one side of a copy. Both sides have those in a bucket in common.
    fn artifacts_of_side(
        &self,
        own: Arc<dyn Artifacts>,
        is_encrypted: bool,
    ) -> Result<Arc<dyn Artifacts>, Failure> {
        Ok(match open_objects(self, &own, is_encrypted)? {
            Some(objects) => objects,
            None => own,
        })
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

    /// Refuses plans of another account: the approvals in them are not the user's.
    pub(crate) fn check_owner_of_plans(&self) -> Result<(), Failure> {
        let plans = &self.workspace.plans;
        let foreign = self.folder.trust().foreign();
        let not_own = |file: &&ForeignFile| file.path == *plans && file.has_other_owner();
        match foreign.iter().find(not_own) {
            None => Ok(()),
            Some(file) => Err(Failure::refused(format!(
                "{file}: plans and approvals in it are not yours"
            ))
            .hint(file.remedy())),
        }
    }

    /// Says which steps are carried out by workers, and how they are told.
    fn dispatch(
        &self,
        builder: EngineBuilder,
        opened: &OpenedStore,
    ) -> Result<EngineBuilder, Failure> {
        let table = self.config.dispatch();
        let broker = find_broker(self, None)?.map(open_broker).transpose();
        let settings = DispatchSettings {
            capabilities: table.capabilities,
            broker: broker?,
        };
        Ok(match opened {
            OpenedStore::Postgres(store) => {
                builder.workers(Arc::<PostgresStore>::clone(store), settings)
            }
            OpenedStore::Sqlite(_) | OpenedStore::None => builder.dispatch(settings),
        })
    }

    /// Opens the store and builds the engine.
    pub(crate) fn open(&self, access: Access) -> Result<App, Failure> {
        if let Some(app) = &self.shared {
            return Ok(App::clone(app));
        }
        self.check_owner_of_plans()?;
        let roster = Arc::new(self.roster());
        let redaction = Redaction::default();
        quiet_panics::install(redaction.clone());
        telemetry::mask(redaction.clone());
        let opened = match self.open_database(access)? {
            Some(opened) => opened,
            None => self.open_file(access)?,
        };
        let cipher = opened.cipher();
        let keep_logs = !cipher.is_sealed();
        let files = FileArtifacts::with_cipher(&self.workspace.artifacts, Arc::clone(&cipher));
        let own: Arc<dyn Artifacts> = match &opened {
            OpenedStore::Postgres(store) => {
                Arc::new(PostgresArtifacts::new(Arc::clone(store), files))
            }
            OpenedStore::Sqlite(_) | OpenedStore::None => Arc::new(files),
        };
        let objects = match &opened {
            OpenedStore::None => None,
            OpenedStore::Postgres(_) | OpenedStore::Sqlite(_) => {
                open_objects(self, &own, cipher.is_sealed())?
            }
        };
        let artifacts = match &objects {
            Some(objects) => Arc::<ObjectArtifacts>::clone(objects),
            None => own,
        };
        let tools = Arc::new(self.tools(&roster, &artifacts, &redaction, &opened)?);
        let whole = opened.whole();
        let store: Arc<dyn Store> = match &whole {
            Some(whole) => Arc::<dyn WholeStore>::clone(whole),
            None => Arc::new(MemoryStore::default()),
        };
        let models = Arc::new(self.models(&redaction)?);
        let secrets: Arc<dyn Secrets> = Arc::new(self.config.secrets(&self.workspace.root)?);
        let mut builder = Engine::builder(Arc::<AllTools>::clone(&tools));
        if let Some(whole) = &whole {
            let endpoints = self.config.webhooks()?;
            let endpoints = endpoints.into_iter().map(|endpoint| endpoint.name);
            builder = builder
                .tokens(Arc::<dyn WholeStore>::clone(whole))
                .retention_store(
                    Arc::<dyn WholeStore>::clone(whole),
                    Arc::<dyn WholeStore>::clone(whole),
                    endpoints.collect(),
                );
            if keep_logs {
                let folder = self.workspace.plans.join("logs");
                builder = builder.step_logs(Arc::new(FileStepLogs::new(folder)));
            }
        }
        builder = self.dispatch(builder, &opened)?;
        let engine = builder
            .model(models)
            .executors(Arc::new(executors::usable(
                self.executors(),
                &self.workspace.root,
                &self.children,
            )))
            .leftovers(Arc::new(self.children.clone()))
            .agents(self.config.agents())
            .call_timeout(self.config.call_timeout())
            .stored_bytes(self.config.stored_bytes())
            .prompts(self.folder.prompts()?)
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
            sqlite: opened.sqlite().cloned(),
            postgres: opened.postgres().cloned(),
            objects,
            whole,
            secrets,
            tools,
            roster,
            files,
        })
    }
}

/// A store that was opened.
enum OpenedStore {
    /// There is none, and none was to be made.
    None,
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

impl OpenedStore {
    fn sqlite(&self) -> Option<&Arc<SqliteStore>> {
        match self {
            Self::Sqlite(store) => Some(store),
            Self::None | Self::Postgres(_) => None,
        }
    }

    fn postgres(&self) -> Option<&Arc<PostgresStore>> {
        match self {
            Self::Postgres(store) => Some(store),
            Self::None | Self::Sqlite(_) => None,
        }
    }

    /// What the store is sealed with, and everything beside it.
    fn cipher(&self) -> Arc<Cipher> {
        match self {
            Self::None => Arc::new(Cipher::Plain),
            Self::Sqlite(store) => Arc::clone(store.cipher()),
            Self::Postgres(store) => Arc::clone(store.cipher()),
        }
    }

    fn whole(&self) -> Option<Arc<dyn WholeStore>> {
        match self {
            Self::None => None,
            Self::Sqlite(store) => Some(Arc::<SqliteStore>::clone(store)),
            Self::Postgres(store) => Some(Arc::<PostgresStore>::clone(store)),
        }
    }
}

/// The program, put together.
#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) context: CommandContext,
    pub(crate) engine: Engine,
    /// The store, in a file or in a database; absent in a workspace without one.
    pub(crate) whole: Option<Arc<dyn WholeStore>>,
    /// The store as it really is, if it is a file.
    pub(crate) sqlite: Option<Arc<SqliteStore>>,
    /// The store as it really is, if it is a database.
    pub(crate) postgres: Option<Arc<PostgresStore>>,
    /// The bucket of the large values, if the store does not keep them itself.
    pub(crate) objects: Option<Arc<ObjectArtifacts>>,
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

    /// The tokens of the servers that people signed in to.
    pub(crate) fn sign_ins(&self) -> SignInTokens {
        let cipher = match (&self.sqlite, &self.postgres) {
            (Some(store), _) => Arc::clone(store.cipher()),
            (None, Some(store)) => Arc::clone(store.cipher()),
            (None, None) => Arc::new(Cipher::Plain),
        };
        self.context.sign_ins(self.postgres.as_ref(), &cipher)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.engine.now()
    }

    pub(crate) fn artifacts(&self) -> &Arc<dyn Artifacts> {
        self.engine.artifacts()
    }
}
