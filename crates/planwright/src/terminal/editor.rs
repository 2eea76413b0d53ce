//! Editing a plan as a text: a file beside the plans, the user's editor, and the text read back.
//!
//! The file is kept whenever the text did not become a version, so that no work is lost.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::line;
use crate::workspace::plan_file::PlanFile;
use crate::workspace::plan_source::PlanSource;
use planwright_core::plan::Bounds;
use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most unfinished texts of one version.
const MAX_LEFT_OVER: u32 = 1_000;

/// A text that is being edited.
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) path: PathBuf,
}

impl Sheet {
    /// Writes the text into a file only its owner can read. A text left from an earlier edit is not
    /// touched.
    pub(crate) fn write(
        plans: &Path,
        name: &str,
        ending: &str,
        text: &str,
    ) -> Result<Self, Failure> {
        let directory = plans.join(".edits");
        let failed = |path: &Path, error: io::Error| {
            Failure::new(
                Exit::Store,
                format!("cannot write {}: {error}", path.display()),
            )
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(|error| failed(&directory, error))?;
        for number in 1..=MAX_LEFT_OVER {
            let again = if number == 1 {
                String::new()
            } else {
                format!("-{number}")
            };
            let path = directory.join(format!("{name}{again}.{ending}"));
            let mut file = match OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
            {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(failed(&path, error)),
            };
            file.write_all(text.as_bytes())
                .map_err(|error| failed(&path, error))?;
            return Ok(Self { path });
        }
        Err(Failure::new(
            Exit::Store,
            format!("{} is full of unfinished edits", directory.display()),
        )
        .hint("remove those you do not need"))
    }

    /// Lets the user edit it. Returns when the editor has ended.
    pub(crate) fn edit(&self) -> Result<(), Failure> {
        let Some(editor) = find_editor() else {
            self.discard();
            return Err(
                Failure::usage("no editor is set: VISUAL and EDITOR are empty")
                    .hint("set EDITOR, or use planwright edit ID --set PATH=VALUE"),
            );
        };
        // As other programs do it: the variable may hold arguments, so a shell takes it apart.
        let mut script = editor.clone();
        script.push(" \"$@\"");
        let name = line(&editor.to_string_lossy());
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(&script).arg(&editor).arg(&self.path);
        // With --json stdout belongs to the document; an editor that draws there draws on the
        // terminal instead.
        if let Ok(terminal) = File::options().write(true).open("/dev/tty") {
            command.stdout(terminal);
        } else {
            command.stdout(std::process::Stdio::null());
        }
        let ended = command.status().map_err(|error| {
            self.with_kept_path(Failure::usage(format!("cannot start `{name}`: {error}")))
        })?;
        if ended.success() {
            return Ok(());
        }
        Err(self.with_kept_path(Failure::refused(format!(
            "`{name}` failed ({ended}); nothing was stored"
        ))))
    }

    /// Takes the file away: its text is stored, or is the one that was there before.
    pub(crate) fn discard(&self) {
        // A file that stays is only in the way.
        drop(std::fs::remove_file(&self.path));
    }

    /// A failure that says where the text is.
    pub(crate) fn with_kept_path(&self, failure: Failure) -> Failure {
        let path = self.path.display();
        let message = format!("{} (your text is in {path})", failure.message);
        Failure { message, ..failure }
    }
}

fn find_editor() -> Option<OsString> {
    let named = |name: &str| std::env::var_os(name).filter(|editor| !editor.is_empty());
    named("VISUAL").or_else(|| named("EDITOR"))
}

/// Reads an edited text back.
pub(crate) fn read_edited(path: &Path, bounds: &Bounds) -> Result<PlanFile, Failure> {
    PlanFile::read(&PlanSource::File(path.into()), None, bounds).map_err(|mut failure| {
        // The caller replaces the hint with the command that continues, so the hint joins the message.
        if let Some(words) = failure.hint.take() {
            failure.message = format!("{} ({words})", failure.message);
        }
        failure
    })
}
