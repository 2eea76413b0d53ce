//! What is written into addresses, headers and paths.

use planwright_adapters::local::fuzzing::Paths;
use planwright_core::digest::Digest;
use planwright_core::id::{CommentId, PlanId, RunId, StepId, split_instance};
use planwright_core::journal::StreamName;
use planwright_core::plan::{Bounds, Document, Edit, is_stored_part_file, stored_part_file};
use planwright_core::policy::{TimeSpan, ToolPattern};
use planwright_core::secret::SecretName;
use planwright_core::trace::{TraceId, TraceParent};
use planwright_server::events::fuzzing::read_last_event_id;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Display;
use std::os::unix::fs::symlink;
use std::path::{Component, Path};
use std::str::FromStr;
use std::sync::OnceLock;

/// Reads a text as every kind of name there is, as the path of an edit, and as a path in a
/// workspace that has links out of it.
pub(crate) fn read_ids_and_paths(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    for name in [
        check_id::<PlanId>(text),
        check_id::<RunId>(text),
        check_id::<StepId>(text),
        check_id::<CommentId>(text),
        Some(stored_part_file(text)),
    ]
    .into_iter()
    .flatten()
    {
        assert!(is_file_name(&name), "{name:?} leads elsewhere");
    }
    assert!(is_stored_part_file(&stored_part_file(text)), "{text:?}");
    if let Some((step, index)) = split_instance(text) {
        assert_eq!(format!("{step}[{index}]"), text);
    }
    check_text::<StreamName>(text);
    check_text::<TraceId>(text);
    check_text::<TraceParent>(text);
    check_text::<Digest>(text);
    drop(text.parse::<TimeSpan>());
    drop(SecretName::new(text));
    drop(ToolPattern::parse(text));
    edit_plan(text);
    if let Some(place) = workspace().locate(text) {
        let inside = place
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        assert!(inside, "{text:?} leads out of the workspace");
        assert!(!place.starts_with("out"), "{text:?} follows a link out");
    }
}

/// Reads an id as people write it and as journals hold it.
fn check_id<I: FromStr + Display + DeserializeOwned>(text: &str) -> Option<String> {
    let stored: Result<I, _> = serde_json::from_value(text.into());
    let written = text.parse::<I>().ok().map(|id| id.to_string());
    match &written {
        Some(written) => {
            assert_eq!(written, text);
            assert!(stored.is_ok(), "{text:?} is not read back");
        }
        None => drop(stored),
    }
    written
}

/// What was read and written is read as the same again.
fn check_text<T: FromStr + Display>(text: &str) {
    if let Ok(read) = text.parse::<T>() {
        let written = read.to_string();
        let again = written.parse::<T>().ok().map(|again| again.to_string());
        assert_eq!(again, Some(written), "{text:?}");
    }
}

fn is_file_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
}

fn edit_plan(path: &str) {
    let bounds = Bounds::for_untrusted();
    let plan = json!({"title": "t", "variables": {"x": [1]}, "steps": [
        {"id": "a", "tool": "r.read", "args": {"path": "x", "list": [1, {"y": 2}]}},
        {"id": "b", "tool": "r.read", "dependsOn": ["a"]},
    ]});
    let Ok(document) = Document::from_json(plan, &bounds) else {
        return;
    };
    let path = path.to_owned();
    let step = path.clone();
    let value = Value::from("new");
    for edit in [
        Edit::Set {
            path: path.clone(),
            value,
        },
        Edit::Unset { path },
        Edit::Skip { step: step.clone() },
        Edit::Remove { steps: vec![step] },
    ] {
        drop(document.with_edits(&[edit], &bounds));
    }
}

/// A folder whose links lead out of it, to itself and back.
fn workspace() -> &'static Paths {
    static WORKSPACE: OnceLock<(tempfile::TempDir, Paths)> = OnceLock::new();
    let (_, paths) = WORKSPACE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder for the paths");
        let root = folder.path();
        std::fs::create_dir_all(root.join("d/e")).expect("folders in it");
        std::fs::write(root.join("d/f"), "").expect("a file in it");
        for (target, link) in [("/", "out"), ("..", "up"), ("loop", "loop"), ("d/e", "in")] {
            symlink(target, root.join(link)).expect("a link in it");
        }
        let paths = Paths::open(root).expect("the folder is there");
        (folder, paths)
    });
    paths
}

/// Reads a `Last-Event-ID`.
pub(crate) fn read_sse_id(input: &[u8]) {
    let (number, place) = read_last_event_id(input);
    if let Some(number) = number {
        let written = number.to_string();
        assert_eq!(read_last_event_id(written.as_bytes()).0, Some(number));
    }
    if let Some(place) = place {
        assert_eq!(read_last_event_id(place.as_bytes()).1, Some(place));
    }
}
