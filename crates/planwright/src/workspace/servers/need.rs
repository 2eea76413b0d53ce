//! Starting the servers a command needs, and no others. What is only looked at or decided about is
//! looked at with the tools that servers listed to earlier commands; what runs, with those that they
//! list now.

use super::roster::Roster;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::{Printer, line};
use crate::workspace::app::App;
use futures::future::join_all;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use planwright_adapters::mcp::{McpServers, ServerState, ServerStatus};
use planwright_core::plan::{Code, Document};
use planwright_core::tool::{Catalog, ResolveToolError};
use planwright_engine::port::Tools as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What becomes of a plan whose servers are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// It is only looked at: what is missing is said. Tools may be remembered.
    Look,
    /// It is decided about: what is missing stops it. Tools may be remembered, since the decision is
    /// bound to their digests.
    Decide,
    /// It is executed: what is missing stops it, and the servers are asked.
    Use,
}

impl Need {
    /// Returns whether a plan cannot go on without what it needs.
    fn stops(self) -> bool {
        match self {
            Self::Look => false,
            Self::Decide | Self::Use => true,
        }
    }
}

/// The servers of one command: how the user wants project servers treated, and what was started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Servers {
    /// `--trust-project-servers`.
    pub(crate) trust_project: bool,
    started: Arc<OnceLock<McpServers>>,
}

impl Servers {
    pub(crate) fn new(trust_project: bool) -> Self {
        Self {
            trust_project,
            started: Arc::default(),
        }
    }

    /// Notes what has to be closed when the command is over.
    pub(crate) fn remember(&self, remote: &McpServers) {
        // A command opens its servers once; all clones are the same set.
        self.started.get_or_init(|| remote.clone());
    }

    /// Ends what was started.
    pub(crate) async fn close(&self) {
        if let Some(remote) = self.started.get() {
            remote.close().await;
        }
    }
}

/// The servers a plan names, and whether it can do without them.
#[derive(Debug, Default, PartialEq, Eq)]
struct NamedServers {
    /// Servers by name; true if a step needs the server.
    servers: BTreeMap<String, bool>,
    /// Names that any server could have; true if a step needs the tool.
    bare: BTreeMap<String, bool>,
    /// Steps whose tools are known only later.
    open: bool,
}

impl NamedServers {
    /// The servers of the tools that steps call, that take them back, and that executors may call.
    /// If executors are only observed (`observed`), they may call any.
    fn by(document: &Document, roster: &Roster, observed: bool) -> Self {
        let mut named = Self::default();
        for step in &document.steps {
            named.open |= observed && step.agent.is_some();
            let undo = step.undo.as_deref().map(|undo| &*undo.tool);
            for name in step.tool.as_deref().into_iter().chain(undo) {
                named.note(name, !step.optional, roster);
            }
            let hinted = step
                .agent
                .as_deref()
                .and_then(|agent| agent.tool.as_deref());
            if let Some(name) = hinted {
                named.note(name, false, roster);
            }
        }
        for name in &document.tools_required {
            named.note(name, false, roster);
        }
        named
    }

    /// What a plan that it runs names is needed too.
    fn add(&mut self, other: Self) {
        for (name, needed) in other.servers {
            *self.servers.entry(name).or_default() |= needed;
        }
        for (name, needed) in other.bare {
            *self.bare.entry(name).or_default() |= needed;
        }
        self.open |= other.open;
    }

    fn note(&mut self, name: &str, needed: bool, roster: &Roster) {
        let full = match name.strip_prefix("mcp__") {
            Some(rest) => rest.split_once("__"),
            None => name.split_once('.'),
        };
        // The scope of a plan can name a server as a whole.
        if full.is_none() && roster.find(name).is_some() {
            *self.servers.entry(name.to_owned()).or_default() |= needed;
            return;
        }
        let kept = match full {
            Some(("local" | "demo", _)) => return,
            Some((server, _)) if roster.find(server).is_some() => {
                self.servers.entry(server.to_owned()).or_default()
            }
            Some(_) | None => self.bare.entry(name.to_owned()).or_default(),
        };
        *kept |= needed;
    }
}

impl App {
    /// Makes the tools of the servers known that this plan names; of all that are trusted if it
    /// names a tool without its server. Servers are started if the plan is executed, or if what they
    /// have is not remembered.
    pub(crate) async fn start_servers(
        &self,
        document: &Document,
        need: Need,
    ) -> Result<(), Failure> {
        self.learn_worker_tools().await;
        let named = self.name_servers(document).await?;
        for (name, &needed) in &named.servers {
            let server = self.roster.find(name);
            if let Some((reason, hint)) = server.and_then(super::ListedServer::obstacle) {
                self.report_missing(reason, hint, need, needed, Exit::Refused)?;
            }
        }
        self.warn_of_problems();
        let wanted = self.wanted_servers(&named);
        let started = match need {
            Need::Look | Need::Decide => self.recall_or_start(document, &wanted).await?,
            Need::Use => self.start_used(&named, &wanted).await?,
        };
        self.report_failed(started, &named, need)?;
        self.explain_bare_names(&named, need)
    }

    /// Starts what this plan needs and whose tools are only remembered so far: what was decided is
    /// about to be executed. Returns whether there were remembered tools at all.
    pub(crate) async fn start_remembered(&self, document: &Document) -> Result<bool, Failure> {
        if self.tools.remote().recalled_servers().is_empty() {
            return Ok(false);
        }
        let named = self.name_servers(document).await?;
        let wanted = self.wanted_servers(&named);
        let started = self.start_used(&named, &wanted).await?;
        self.report_failed(started, &named, Need::Use)?;
        Ok(true)
    }

    /// The servers that the plan names, and those that the plans below it name.
    async fn name_servers(&self, document: &Document) -> Result<NamedServers, Failure> {
        let observed = self.context.config.agents().observe_scope;
        let mut named = NamedServers::by(document, &self.roster, observed);
        for plan in self.engine.plans().known_plans(document).await?.iter() {
            named.add(NamedServers::by(&plan.document, &self.roster, observed));
        }
        Ok(named)
    }

    /// The servers that may have the tools and can be used.
    fn wanted_servers(&self, named: &NamedServers) -> BTreeSet<String> {
        let everything = named.open || !named.bare.is_empty();
        let ready = self.roster.ready().map(|spec| &spec.name);
        ready
            .filter(|name| everything || named.servers.contains_key(*name))
            .cloned()
            .collect()
    }

    /// Takes the tools of these servers from memory, and starts those that are not remembered. What
    /// is wrong with the plan is told only if it is wrong with what the servers have now.
    async fn recall_or_start(
        &self,
        document: &Document,
        wanted: &BTreeSet<String>,
    ) -> Result<Vec<ServerStatus>, Failure> {
        let mut started = self.look_up(wanted).await?;
        let recalled = self.tools.remote().recalled_servers();
        let recalled: BTreeSet<String> = recalled
            .into_keys()
            .filter(|name| wanted.contains(name))
            .collect();
        if !recalled.is_empty() && self.has_tool_findings(document).await? {
            started.extend(self.open_connections(&recalled).await?);
        }
        Ok(started)
    }

    /// Takes the tools of these servers from memory, and starts those that are not remembered.
    pub(crate) async fn look_up(
        &self,
        wanted: &BTreeSet<String>,
    ) -> Result<Vec<ServerStatus>, Failure> {
        let remote = self.tools.remote();
        let unknown = wanted.iter().filter(|name| !remote.recall_one(name));
        self.open_connections(&unknown.cloned().collect()).await
    }

    /// Returns whether something is wrong with the plan that other tools could mend.
    async fn has_tool_findings(&self, document: &Document) -> Result<bool, Failure> {
        let checked = self
            .engine
            .trials()
            .check_document(document.clone())
            .await?;
        let findings = checked.findings.iter();
        Ok(findings.map(|finding| finding.code).any(depends_on_tools))
    }

    /// Starts the servers whose tools the plan uses. Which of them has a tool that is named without
    /// its server is known if all of them are remembered.
    async fn start_used(
        &self,
        named: &NamedServers,
        wanted: &BTreeSet<String>,
    ) -> Result<Vec<ServerStatus>, Failure> {
        let remote = self.tools.remote();
        let is_searched = !named.open && !named.bare.is_empty();
        if is_searched && wanted.iter().all(|name| remote.recall_one(name)) {
            let catalog = self.tools.catalog();
            if let Some(owners) = find_owners(&catalog, named.bare.keys()) {
                let is_used =
                    |name: &&String| named.servers.contains_key(*name) || owners.contains(*name);
                let used = wanted.iter().filter(is_used).cloned().collect();
                return self.open_connections(&used).await;
            }
        }
        self.open_connections(wanted).await
    }

    fn report_failed(
        &self,
        started: Vec<ServerStatus>,
        named: &NamedServers,
        need: Need,
    ) -> Result<(), Failure> {
        for ServerStatus { name, state } in started {
            let ServerState::Failed { reason, stderr } = state else {
                continue;
            };
            let needed = named.servers.get(&name).copied().unwrap_or_default();
            let said = last_line(&stderr);
            let reason = format!("the server `{name}` could not be started: {reason}{said}");
            let hint = Some(format!("planwright servers check {name}"));
            self.report_missing(reason, hint, need, needed, Exit::RunFailed)?;
        }
        Ok(())
    }

    pub(crate) fn warn_of_problems(&self) {
        for problem in &self.roster.problems {
            self.printer().warn(problem);
        }
    }

    /// Connects to these servers, in parallel, and says so on a terminal.
    pub(crate) async fn connect(
        &self,
        wanted: &BTreeSet<String>,
    ) -> Result<Vec<ServerStatus>, Failure> {
        self.learn_worker_tools().await;
        self.warn_of_problems();
        self.open_connections(wanted).await
    }

    /// Makes the tools of workers known, if steps are carried out by them.
    async fn learn_worker_tools(&self) {
        if let Err(error) = self.engine.workers().learn_tools().await {
            let problem = format!("the tools of workers are not known: {error}");
            self.printer().warn(&problem);
        }
    }

    /// The same without saying what is wrong with the files that name them.
    pub(crate) async fn open_connections(
        &self,
        wanted: &BTreeSet<String>,
    ) -> Result<Vec<ServerStatus>, Failure> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let remote = self.tools.remote();
        self.context.servers.remember(remote);
        let waiting = StartingServers::show(self.printer(), wanted);
        let statuses = join_all(wanted.iter().map(|name| remote.connect_one(name))).await;
        drop(waiting);
        remote
            .check_settings()
            .map_err(|error| Failure::usage(format!("{}: {error}", crate::config::file::FILE)))?;
        Ok(statuses.into_iter().flatten().collect())
    }

    /// What a plan can do without is said; what it needs stops it.
    fn report_missing(
        &self,
        reason: String,
        hint: Option<String>,
        need: Need,
        needed: bool,
        exit: Exit,
    ) -> Result<(), Failure> {
        if need.stops() && needed {
            return Err(Failure {
                hint,
                ..Failure::new(exit, reason)
            });
        }
        self.printer().warn(&reason);
        if let Some(hint) = hint {
            self.printer().hint(&hint);
        }
        Ok(())
    }

    /// A tool that is nowhere may be on a server that was not started.
    fn explain_bare_names(&self, named: &NamedServers, need: Need) -> Result<(), Failure> {
        let untrusted = self.roster.untrusted_servers();
        let names: Vec<&str> = untrusted.map(|server| server.name.as_str()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let catalog = self.engine.catalog();
        for (name, &needed) in &named.bare {
            if let Err(ResolveToolError::Unknown { .. }) = catalog.resolve(name) {
                let names = names.join("`, `");
                let reason = format!(
                    "no server has a tool `{name}`; not trusted, and so not asked: `{names}`"
                );
                let hint = Some("To review and trust them: planwright trust".to_owned());
                self.report_missing(reason, hint, need, needed, Exit::Refused)?;
            }
        }
        Ok(())
    }
}

/// The servers of these tools; none if a name is a pattern or stands for no tool, or for several:
/// then any server may have what is meant.
fn find_owners<'a>(
    catalog: &Catalog,
    names: impl Iterator<Item = &'a String>,
) -> Option<BTreeSet<String>> {
    names
        .map(|name| {
            let tool = catalog.resolve(name).ok()?;
            Some(tool.name.server.clone())
        })
        .collect()
}

/// Returns whether a finding may be about what a server said to an earlier command, and no longer
/// says.
fn depends_on_tools(code: Code) -> bool {
    matches!(
        code,
        Code::UnknownTool
            | Code::AmbiguousTool
            | Code::InvalidArgs
            | Code::OutOfScope
            | Code::BadSchema
            | Code::UnknownField
            | Code::NotAList
            | Code::SubplanInvalid
            | Code::OptionalToolMissing
    )
}

/// What a server wrote last before it failed, if anything.
fn last_line(stderr: &str) -> String {
    let last = stderr.lines().rev().find(|text| !text.trim().is_empty());
    last.map_or_else(String::new, |text| {
        format!(" (it said: {})", line(text.trim()))
    })
}

/// A line on a terminal for as long as servers start.
struct StartingServers(Option<ProgressBar>);

impl StartingServers {
    fn show(printer: Printer, wanted: &BTreeSet<String>) -> Self {
        if !printer.is_live() {
            return Self(None);
        }
        let names: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_message(format!("starting {}", names.join(", ")));
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(Some(bar))
    }
}

impl Drop for StartingServers {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
