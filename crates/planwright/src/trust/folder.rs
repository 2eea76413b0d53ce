//! What the files of one workspace loosen, and which of it the user trusts.

use super::programs::{executor_loosening, server_loosening};
use super::{Loosening, Subject, Trust, TrustState};
use crate::config::file::Config;
use crate::config::models;
use crate::config::prompts::{
    ReplacedPrompt, WorkspacePrompts, merge_prompts, read_workspace_prompts,
};
use crate::exit::Failure;
use crate::workspace::app::Workspace;
use crate::workspace::servers::Roster;
use planwright_core::planning::Prompts;
use std::collections::{BTreeMap, BTreeSet};

/// A loosening and what the user said about it.
#[derive(Debug, Clone)]
pub(crate) struct JudgedLoosening {
    pub(crate) loosening: Loosening,
    pub(crate) state: TrustState,
}

/// What the files of a workspace loosen. Everything is read once: what was judged is what is used.
#[derive(Debug)]
pub(crate) struct FolderTrust {
    trust: Trust,
    pub(crate) judged: Vec<JudgedLoosening>,
    /// Prompts of the workspace that count.
    prompts: Vec<ReplacedPrompt>,
    /// Prompts that are not read, and why.
    pub(crate) problems: Vec<String>,
}

impl FolderTrust {
    /// Reads what the files loosen, the configuration as it is written, and the user's word.
    /// `trust_project` is the user's word about servers, models and executors for this command.
    pub(crate) fn read(
        workspace: &Workspace,
        config: &Config,
        trust_project: bool,
    ) -> Result<Self, Failure> {
        let root = &workspace.root;
        let trust = Trust::read(root);
        let roster = Roster::read(root, config, trust_project);
        let WorkspacePrompts { prompts, problems } = read_workspace_prompts(root, &workspace.plans);
        let mut loosenings = config.loosenings();
        let executors = config.project_executors();
        loosenings.extend(executors.map(|(name, table)| executor_loosening(name, table, root)));
        loosenings.extend(models::loosenings(config, root)?);
        let servers = roster.project_servers();
        loosenings.extend(servers.map(|server| server_loosening(server, root)));
        loosenings.extend(prompts.iter().map(ReplacedPrompt::loosening));
        let mut folder = Self::judge(trust, loosenings, trust_project);
        folder.problems = problems;
        let ignored = folder.ignored_subjects();
        let counts =
            |prompt: &ReplacedPrompt| !ignored.contains(&Subject::Prompt(prompt.name.clone()));
        folder.prompts = prompts.into_iter().filter(counts).collect();
        Ok(folder)
    }

    /// Judges what files loosen by what the user said.
    pub(crate) fn judge(trust: Trust, loosenings: Vec<Loosening>, trust_project: bool) -> Self {
        let judge = |loosening: Loosening| {
            let for_now = matches!(
                loosening.subject,
                Subject::Server(_) | Subject::Provider(_) | Subject::Executor(_)
            );
            let state = if trust_project && for_now {
                TrustState::Trusted
            } else {
                trust.trust_state(&loosening.subject.trust_name(), &loosening.digest)
            };
            JudgedLoosening { loosening, state }
        };
        let judged = loosenings.into_iter().map(judge).collect();
        Self {
            trust,
            judged,
            prompts: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// What the user has not agreed to.
    pub(crate) fn untrusted_loosenings(&self) -> impl Iterator<Item = &JudgedLoosening> {
        self.judged
            .iter()
            .filter(|judged| judged.state != TrustState::Trusted)
    }

    /// The subjects that the user has not agreed to.
    pub(crate) fn ignored_subjects(&self) -> BTreeSet<Subject> {
        self.untrusted_loosenings()
            .map(|judged| judged.loosening.subject.clone())
            .collect()
    }

    /// What the user agreed to, and where that is kept.
    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// The prompts that count.
    pub(crate) fn prompts(&self) -> Result<Prompts, Failure> {
        merge_prompts(self.prompts.clone())
    }

    /// Records the user's word about all that is not trusted yet. Exactly what was shown.
    pub(crate) fn grant(&self) -> Result<(), Failure> {
        self.trust
            .grant_all(self.untrusted_loosenings().map(|judged| {
                let Loosening {
                    subject,
                    key,
                    value,
                    digest,
                    ..
                } = &judged.loosening;
                (subject.trust_name(), *digest, format!("{key}: {value}"))
            }))
    }

    /// What is not trusted, as one line: how many of what, and where. Nothing if all is trusted.
    pub(crate) fn summary(&self) -> Option<String> {
        let mut places: BTreeMap<&str, BTreeMap<(&str, &str), Vec<&str>>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for judged in self.untrusted_loosenings() {
            let Loosening {
                subject,
                place,
                key,
                ..
            } = &judged.loosening;
            if seen.insert((subject, key)) {
                let nouns = places.entry(place).or_default();
                let names = nouns.entry(subject.noun()).or_default();
                names.push(subject.name().unwrap_or(key));
            }
        }
        let count = |(&(one, several), names): (&(&str, &str), &Vec<&str>)| match names.len() {
            1 if one == several => one.to_owned(),
            1 => format!("{one} {}", names[0]),
            count => format!("{count} {several}"),
        };
        let of_place = |(place, nouns): (&&str, &BTreeMap<(&str, &str), Vec<&str>>)| {
            let words: Vec<String> = nouns.iter().map(count).collect();
            format!("{} ({place})", words.join(", "))
        };
        let all: Vec<String> = places.iter().map(of_place).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}
