//! Who gives the commands of this process: the operating-system user, or an agent.
//!
//! The account decides and not the environment, which the user controls. The environment can only
//! take rights away: a mark in it makes the command an agent's, and nothing makes it a person's.

use super::agent_marks::{FoundMark, find_mark};
use crate::exit::Failure;
use planwright_core::principal::{Principal, PrincipalKind};
use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

/// Names the agent that uses the command line. Set by the process that starts the agent: an agent
/// proposes and never approves.
const AGENT: &str = "PLANWRIGHT_AGENT";

/// Marks that files add to the known ones. None is ever taken out.
static ADDED: RwLock<BTreeSet<String>> = RwLock::new(BTreeSet::new());

/// From here on, these marks show an agent too.
pub(crate) fn add_agent_marks<'a>(marks: impl IntoIterator<Item = &'a String>) {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    added.extend(marks.into_iter().cloned());
}

/// Returns the principal that gives this command.
pub(crate) fn user() -> Principal {
    match agent_mark() {
        Some(mark) => Principal::agent(mark.agent),
        None => account(),
    }
}

/// Returns the person whose account this is, whose files count as theirs.
pub(crate) fn account() -> Principal {
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

/// Returns whether an agent gives this command.
pub(crate) fn is_agent() -> bool {
    user().kind != PrincipalKind::Person
}

/// Refuses what only a person may do, and says by which variable an agent was recognised.
pub(crate) fn refuse_agents(what: &str) -> Result<(), Failure> {
    let Some(mark) = agent_mark() else {
        return Ok(());
    };
    Err(Failure::refused(format!(
        "an agent cannot {what}: {} is set, the mark of an agent ({})",
        mark.variable, mark.agent
    ))
    .hint("a person does it in a terminal of their own, outside the agent's"))
}

/// Says how a person approves what an agent asked for. Never how the agent could.
pub(crate) fn how_a_person_approves(command: &str) -> String {
    format!(
        "a person approves: {command} in a terminal of their own (outside the agent's), or signed in to the \
         service (planwright serve), also from a phone"
    )
}

/// What helps where no person could be asked: a person's `--yes`, and never an agent's.
pub(crate) fn confirmation_hint(for_a_person: &str) -> String {
    match is_agent() {
        false => for_a_person.to_owned(),
        true => "a person does it in a terminal of their own, outside the agent's".to_owned(),
    }
}

fn agent_mark() -> Option<FoundMark> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let variables: Vec<(String, String)> = std::env::vars_os()
        .map(|(name, value)| (text(name), text(value)))
        .collect();
    if let Some((variable, name)) = variables.iter().find(|(variable, _)| variable == AGENT) {
        let name = if name.is_empty() { "unnamed" } else { name };
        return Some(FoundMark {
            agent: name.to_owned(),
            variable: variable.clone(),
        });
    }
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    find_mark(&variables, added.iter())
}
