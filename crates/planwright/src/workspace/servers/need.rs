//! Starting the servers a command needs, and no others.

use super::roster::Roster;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::{Printer, line};
use crate::workspace::app::App;
use futures::future::join_all;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use planwright_adapters::mcp::{McpServers, ServerState, ServerStatus};
use planwright_core::plan::Document;
use planwright_core::tool::ResolveToolError;
use planwright_engine::port::Tools as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What becomes of a plan whose servers are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// It is only looked at: what is missing is said.
    Look,
    /// It is approved or executed: what is missing stops it.
    Use,
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
    fn by(document: &Document, roster: &Roster) -> Self {
        let mut named = Self::default();
        for step in &document.steps {
            named.open |= step.agent.is_some();
            let undo = step.undo.as_deref().map(|undo| &*undo.tool);
            for name in step.tool.as_deref().into_iter().chain(undo) {
                named.note(name, !step.optional, roster);
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
    /// Starts the servers that this plan names; all that are trusted if it names a tool without its
    /// server.
    pub(crate) async fn start_servers(
        &self,
        document: &Document,
        need: Need,
    ) -> Result<(), Failure> {
        let mut named = NamedServers::by(document, &self.roster);
        for plan in self.engine.plans().known_plans(document).await?.iter() {
            named.add(NamedServers::by(&plan.document, &self.roster));
        }
        let mut wanted: BTreeSet<String> = BTreeSet::new();
        for (name, &needed) in &named.servers {
            let obstacle = self
                .roster
                .find(name)
                .and_then(super::ListedServer::obstacle);
            match obstacle {
                None => drop(wanted.insert(name.clone())),
                Some((reason, hint)) => {
                    self.report_missing(reason, hint, need, needed, Exit::Refused)?;
                }
            }
        }
        if named.open || !named.bare.is_empty() {
            wanted.extend(self.roster.ready().map(|spec| spec.name.clone()));
        }
        for ServerStatus { name, state } in self.connect(&wanted).await? {
            let ServerState::Failed { reason, stderr } = state else {
                continue;
            };
            let needed = named.servers.get(&name).copied().unwrap_or_default();
            let said = last_line(&stderr);
            let reason = format!("the server `{name}` could not be started: {reason}{said}");
            let hint = Some(format!("planwright servers check {name}"));
            self.report_missing(reason, hint, need, needed, Exit::RunFailed)?;
        }
        self.explain_bare_names(&named, need)
    }

    /// Connects to these servers, in parallel, and says so on a terminal.
    pub(crate) async fn connect(
        &self,
        wanted: &BTreeSet<String>,
    ) -> Result<Vec<ServerStatus>, Failure> {
        for problem in &self.roster.problems {
            self.printer().warn(problem);
        }
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
        if need == Need::Use && needed {
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
        let catalog = self.tools.catalog();
        for (name, &needed) in &named.bare {
            if let Err(ResolveToolError::Unknown { .. }) = catalog.resolve(name) {
                let names = names.join("`, `");
                let reason = format!(
                    "no server has a tool `{name}`; not trusted, and so not asked: `{names}`"
                );
                let hint = Some("planwright trust shows them, and asks".to_owned());
                self.report_missing(reason, hint, need, needed, Exit::Refused)?;
            }
        }
        Ok(())
    }
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
