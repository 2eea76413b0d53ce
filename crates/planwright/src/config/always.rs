//! What the user allows for good in a folder: their own file, written by the question before a run
//! and by `planwright policy remove`.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::line;
use crate::trust::{home, is_inside};
use planwright_adapters::files::atomic_write;
use planwright_core::policy::{AlwaysRule, RuleDocument};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const FILE: &str = "always.toml";

/// One rule, and the folder it holds in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AlwaysEntry {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) tool: String,
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub(crate) condition: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AlwaysFile {
    always: Vec<AlwaysEntry>,
}

/// The path of the file, if the user has a directory for configuration.
pub(crate) fn file_path() -> Option<PathBuf> {
    home().map(|home| home.join(FILE))
}

/// Reads every rule of the user.
pub(crate) fn read_entries() -> Result<Vec<AlwaysEntry>, Failure> {
    let Some(path) = file_path() else {
        return Ok(Vec::new());
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unusable(&path, &error.to_string())),
    };
    let file: AlwaysFile =
        toml::from_str(&text).map_err(|error| unusable(&path, error.message()))?;
    Ok(file.always)
}

/// The rules that hold in this folder, as the policy reads them.
pub(crate) fn read_rules(folder: &Path) -> Result<Vec<RuleDocument>, Failure> {
    // A file that lies in the folder may have come with it.
    if file_path().is_none_or(|path| is_inside(&path, folder)) {
        return Ok(Vec::new());
    }
    let folder = canonical(folder);
    let entries = read_entries()?.into_iter();
    let here = entries.filter(|entry| entry.folder == folder);
    here.map(|entry| entry.rule()).collect()
}

impl AlwaysEntry {
    fn rule(&self) -> Result<RuleDocument, Failure> {
        let mut rule = json!({
            "name": self.name, "tool": self.tool, "then": "allow",
            "reason": "you always allow it in this folder",
        });
        if let Some(condition) = &self.condition {
            rule["if"] = json!(condition);
        }
        serde_json::from_value(rule).map_err(|error| Failure::new(Exit::Usage, error.to_string()))
    }

    /// The lines as they stand in the file.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            "[[always]]".to_owned(),
            format!("name = {}", json!(self.name)),
            format!("folder = {}", json!(self.folder)),
            format!("tool = {}", json!(self.tool)),
        ];
        lines.extend(
            self.condition
                .as_ref()
                .map(|condition| format!("if = {}", json!(condition))),
        );
        lines
    }
}

/// Names the rules and their folder, without writing them.
pub(crate) fn entries_for(
    rules: Vec<AlwaysRule>,
    folder: &Path,
) -> Result<Vec<AlwaysEntry>, Failure> {
    let existing = read_entries()?;
    let folder = canonical(folder);
    let is_taken = |name: &String| existing.iter().any(|entry| entry.name == *name);
    let mut names = (1_u32..)
        .map(|number| format!("always-{number}"))
        .filter(|name| !is_taken(name));
    let entries = rules.into_iter().filter_map(|rule| {
        Some(AlwaysEntry {
            name: names.next()?,
            folder: folder.clone(),
            tool: rule.tool,
            condition: rule.condition,
        })
    });
    Ok(entries.collect())
}

/// Adds rules to the user's file.
pub(crate) fn add_entries(added: Vec<AlwaysEntry>) -> Result<(), Failure> {
    let mut entries = read_entries()?;
    entries.extend(added);
    write_entries(entries)
}

/// Removes the rules of these names; all of them or none.
pub(crate) fn remove_entries(names: &[String]) -> Result<(), Failure> {
    let mut entries = read_entries()?;
    let is_known = |name: &&String| entries.iter().any(|entry| entry.name == **name);
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        return Err(
            Failure::usage(format!("there is no rule `{}`", line(unknown)))
                .hint("To list them: planwright policy list"),
        );
    }
    entries.retain(|entry| !names.contains(&entry.name));
    write_entries(entries)
}

fn write_entries(always: Vec<AlwaysEntry>) -> Result<(), Failure> {
    let Some(path) = file_path() else {
        return Err(
            Failure::usage("there is no directory for your configuration")
                .hint("set HOME or XDG_CONFIG_HOME"),
        );
    };
    let failed = |problem: String| unusable(&path, &problem);
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(|error| failed(error.to_string()))?;
    }
    let text =
        toml::to_string(&AlwaysFile { always }).map_err(|error| failed(error.to_string()))?;
    atomic_write(&path, text.as_bytes())
        .map_err(|error| failed(planwright_engine::with_causes(&error)))
}

fn unusable(path: &Path, problem: &str) -> Failure {
    Failure::usage(format!("{}: {problem}", path.display()))
}

fn canonical(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}
