//! What trusted servers answered when they were asked for their tools, kept for the next process, so
//! that a command that only looks starts none of them.
//!
//! What is remembered is shown, and plans are checked against it. No call is made on it: a call goes
//! to a server that listed its tools in this process, and only if they are what was judged. The
//! files are the user's, outside every workspace: a clone must not bring its own memory.

use super::ServerSpec;
use super::listing::is_usable;
use crate::files::{SealedFolder, SealedFolderError};
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use planwright_core::tool::ToolDefinition;
use planwright_engine::Redaction;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The shape of a file. Another one is as if there were none.
const FORMAT: u32 = 1;
/// Servers of all workspaces that are remembered. The one that was not seen for longest goes first.
const MAX_SERVERS: usize = 500;
/// The bytes kept of one server. One that says more is asked each time.
const MAX_BYTES: usize = 8 << 20;
/// What was seen longer ago is asked for again.
const MAX_AGE: Duration = Duration::from_hours(7 * 24);
/// The clocks of a machine may be set back by so much.
const CLOCK_SLACK: Duration = Duration::from_mins(1);
/// The same answer is written down again only after this time.
const SETTLED: Duration = Duration::from_mins(1);

/// The remembered tools of the servers of one workspace.
#[derive(Debug, Clone)]
pub struct ToolMemory {
    files: SealedFolder,
    /// Where they were before the workspace's store was encrypted.
    unsealed: Option<SealedFolder>,
    workspace: PathBuf,
}

/// When the tools of a server were listed, and how many there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenTools {
    /// The time at which the server listed them.
    pub at: Timestamp,
    /// The number of those that can be called.
    pub tools: usize,
}

/// Everything that a server said about its tools and itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Answer {
    pub(super) definitions: Vec<ToolDefinition>,
    /// Tools that cannot be called, each with the reason.
    pub(super) refused: Vec<(String, String)>,
    pub(super) has_resources: bool,
    pub(super) protocol_version: String,
    pub(super) calls_itself: Option<String>,
    pub(super) instructions: Option<String>,
}

/// The first line of a file; the answer is the rest of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Heading {
    format: u32,
    /// What was asked, where, and as what it was trusted.
    key: Digest,
    seen_at: Timestamp,
    /// The digest of the answer as it is written.
    answer: Digest,
}

/// An answer of an earlier process.
#[derive(Debug)]
pub(super) struct RememberedAnswer {
    pub(super) answer: Answer,
    pub(super) seen_at: Timestamp,
}

impl ToolMemory {
    /// Keeps the answers of a workspace's servers in this directory, which is made when needed.
    pub fn new(directory: impl Into<PathBuf>, workspace: &Path, cipher: Arc<Cipher>) -> Self {
        let directory = directory.into();
        let limit = u64::try_from(2 * MAX_BYTES).unwrap_or(u64::MAX);
        let files = |cipher| SealedFolder::new(directory.clone(), cipher).with_limit(limit);
        Self {
            unsealed: cipher.is_sealed().then(|| files(Arc::new(Cipher::Plain))),
            files: files(cipher),
            workspace: workspace
                .canonicalize()
                .unwrap_or_else(|_| workspace.to_owned()),
        }
    }

    /// Returns when the tools of a server were last seen, if they are remembered.
    pub fn last_seen(&self, spec: &ServerSpec) -> Option<SeenTools> {
        let RememberedAnswer { answer, seen_at } = self.recall(spec)?;
        Some(SeenTools {
            at: seen_at,
            tools: answer.definitions.len(),
        })
    }

    /// Returns what a server answered. What cannot be read, is too old, or was said to another
    /// launch line or in another workspace is as if there were nothing.
    pub(super) fn recall(&self, spec: &ServerSpec) -> Option<RememberedAnswer> {
        let key = self.key(spec);
        let (heading, text) = self.read(&key)?;
        let now = now();
        let is_old = now.since(heading.seen_at) > MAX_AGE;
        if is_old || heading.seen_at > now.plus(CLOCK_SLACK) {
            return None;
        }
        let answer: Answer = serde_json::from_slice(&text).ok()?;
        let mut names = BTreeSet::new();
        let good = |definition: &ToolDefinition| {
            is_usable(&spec.name, definition)
                && names.insert(definition.name.name.to_ascii_lowercase())
        };
        answer
            .definitions
            .iter()
            .all(good)
            .then_some(RememberedAnswer {
                answer,
                seen_at: heading.seen_at,
            })
    }

    /// Remembers what a server answered. Nothing depends on it, so nothing fails with it.
    pub(super) fn keep(&self, spec: &ServerSpec, answer: &Answer, redaction: &Redaction) {
        if let Err(error) = self.write(spec, answer, redaction) {
            tracing::debug!(server = %spec.name, %error, "the tools could not be remembered");
        }
    }

    fn write(
        &self,
        spec: &ServerSpec,
        answer: &Answer,
        redaction: &Redaction,
    ) -> Result<(), SealedFolderError> {
        let key = self.key(spec);
        let name = file_name(&key);
        if let Some(unsealed) = &self.unsealed {
            unsealed.remove(&name)?;
        }
        let text = serde_json::to_vec(answer).unwrap_or_default();
        // A text that would come back as another one would seem to be a change of the server.
        let comes_back =
            || serde_json::from_slice::<Answer>(&text).is_ok_and(|back| back == *answer);
        if text.len() > MAX_BYTES || redaction.redactor().finds(&text) || !comes_back() {
            // What was answered before is not true any more.
            return self.files.remove(&name).map(drop);
        }
        let heading = Heading {
            format: FORMAT,
            key,
            seen_at: now(),
            answer: Digest::of_bytes(&text),
        };
        let before = self.read(&key).map(|(before, _)| before);
        let is_settled = |before: &Heading| {
            before.answer == heading.answer
                && before.seen_at <= heading.seen_at
                && heading.seen_at.since(before.seen_at) < SETTLED
        };
        if before.as_ref().is_some_and(is_settled) {
            return Ok(());
        }
        let mut file = serde_json::to_vec(&heading).unwrap_or_default();
        file.push(b'\n');
        file.extend(text);
        self.files.save(&name, &file)?;
        match before {
            Some(_) => Ok(()),
            None => self.files.keep_newest(MAX_SERVERS),
        }
    }

    /// A file that is whole and belongs here.
    fn read(&self, key: &Digest) -> Option<(Heading, Vec<u8>)> {
        let mut file = self.files.load(&file_name(key)).ok().flatten()?;
        let end = file.iter().position(|byte| *byte == b'\n')?;
        let text = file.split_off(end + 1);
        let heading: Heading = serde_json::from_slice(&file).ok()?;
        let is_ours = heading.format == FORMAT && heading.key == *key;
        (is_ours && heading.answer == Digest::of_bytes(&text)).then_some((heading, text))
    }

    /// Everything that the answer depends on, as far as it is known before the server is asked.
    /// Secrets are part of it by their names, and other values by their digests.
    fn key(&self, spec: &ServerSpec) -> Digest {
        let trusted = spec.trusted_as.map(|digest| digest.to_string());
        let era = spec.era.map(|era| era.to_string());
        Digest::of_parts(&[
            b"remembered tools of planwright",
            self.workspace.as_os_str().as_bytes(),
            spec.name.as_bytes(),
            spec.origin().as_bytes(),
            trusted.unwrap_or_default().as_bytes(),
            era.unwrap_or_default().as_bytes(),
            &[u8::from(spec.believed), u8::from(spec.streams_events)],
        ])
    }
}

fn file_name(key: &Digest) -> String {
    key.hex().chars().take(32).collect()
}

fn now() -> Timestamp {
    let since_epoch = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_millis(0).plus(since_epoch)
}

#[cfg(test)]
mod tests {
    use super::super::Transport;
    use super::*;
    use planwright_core::secret::{SecretName, SecretText};
    use serde_json::json;

    fn spec(args: &[&str]) -> ServerSpec {
        let transport = Transport::Stdio {
            command: "serve".into(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: [("TOKEN".to_owned(), "${secret.T}".to_owned())].into(),
            cwd: None,
        };
        ServerSpec::new("s", transport)
    }

    fn answer() -> Answer {
        let schema =
            json!({ "type": "object", "properties": { "b": { "maximum": 0.1 }, "a": {} } });
        Answer {
            definitions: vec![ToolDefinition::new("s", "post", "Posts.", schema)],
            refused: vec![("odd".into(), "why".into())],
            has_resources: true,
            protocol_version: "2025-11-25".into(),
            calls_itself: None,
            instructions: Some("Be kind.".into()),
        }
    }

    fn memory(folder: &Path, workspace: &str) -> ToolMemory {
        ToolMemory::new(folder, Path::new(workspace), Arc::new(Cipher::Plain))
    }

    fn only_file(folder: &Path) -> PathBuf {
        let mut files = std::fs::read_dir(folder).unwrap();
        files.next().unwrap().unwrap().path()
    }

    #[test]
    fn an_answer_comes_back_for_the_same_question_only() {
        let folder = tempfile::tempdir().unwrap();
        let here = memory(folder.path(), "/home/ada/one");
        assert!(here.recall(&spec(&[])).is_none());
        here.keep(&spec(&[]), &answer(), &Redaction::default());
        assert_eq!(here.recall(&spec(&[])).unwrap().answer, answer());
        assert_eq!(here.last_seen(&spec(&[])).unwrap().tools, 1);

        assert!(here.recall(&spec(&["--more"])).is_none());
        let mut other = spec(&[]);
        other.trusted_as = Some(Digest::of_bytes(b"another"));
        assert!(here.recall(&other).is_none());
        let mut other = spec(&[]);
        other.name = "t".into();
        assert!(here.recall(&other).is_none());
        let elsewhere = memory(folder.path(), "/home/ada/two");
        assert!(elsewhere.recall(&spec(&[])).is_none());
    }

    #[test]
    fn a_file_that_was_changed_moved_or_is_too_old_is_as_if_there_were_none() {
        let folder = tempfile::tempdir().unwrap();
        let here = memory(folder.path(), "/home/ada/one");
        here.keep(&spec(&[]), &answer(), &Redaction::default());
        let path = only_file(folder.path());
        let whole = std::fs::read_to_string(&path).unwrap();
        for broken in [
            String::new(),
            "{}\n{}".into(),
            whole[..whole.len() / 2].to_owned(),
            whole.replace("Posts.", "Reads."),
            whole.replace("\"format\":1", "\"format\":2"),
        ] {
            assert_ne!(broken, whole);
            std::fs::write(&path, &broken).unwrap();
            assert!(here.recall(&spec(&[])).is_none(), "{broken}");
        }
        // The file of one server in the place of another one's.
        std::fs::write(&path, &whole).unwrap();
        let other = spec(&["--more"]);
        let place = here.files.path(&file_name(&here.key(&other)));
        std::fs::copy(&path, place).unwrap();
        assert!(here.recall(&other).is_none());

        let (heading, text) = whole.split_once('\n').unwrap();
        let mut heading: serde_json::Value = serde_json::from_str(heading).unwrap();
        for (age, is_known) in [(-3_600, false), (3_600, true), (8 * 86_400, false)] {
            let at = Timestamp::from_millis(now().as_millis() - age * 1_000);
            heading["seenAt"] = json!(at);
            std::fs::write(&path, format!("{heading}\n{text}")).unwrap();
            assert_eq!(here.recall(&spec(&[])).is_some(), is_known, "{age}");
        }
    }

    #[test]
    fn tools_that_no_server_could_list_are_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let here = memory(folder.path(), "/home/ada/one");
        let odd = |change: fn(&mut ToolDefinition)| {
            let mut answer = answer();
            change(&mut answer.definitions[0]);
            here.keep(&spec(&[]), &answer, &Redaction::default());
            here.recall(&spec(&[])).is_none()
        };
        assert!(odd(|tool| tool.name.server = "local".into()));
        assert!(odd(|tool| tool.name.name = "a b".into()));
        assert!(odd(
            |tool| tool.input_schema = json!({ "$ref": "file:///etc/passwd" })
        ));
        assert!(!odd(|_| {}));
    }

    #[test]
    fn an_answer_with_a_secret_is_not_kept_and_the_one_before_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let here = memory(folder.path(), "/home/ada/one");
        here.keep(&spec(&[]), &answer(), &Redaction::default());
        let redaction = Redaction::default();
        let secret = SecretText::new("correct horse battery".to_owned()).unwrap();
        let name = SecretName::new("T").unwrap();
        redaction.learn(&name, &secret).unwrap();
        let mut leaky = answer();
        leaky.instructions = Some("The key is correct horse battery.".into());
        here.keep(&spec(&[]), &leaky, &redaction);
        assert!(here.recall(&spec(&[])).is_none());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
