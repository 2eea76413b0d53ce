//! Plans in files: JSON, YAML, our Markdown, and the Markdown of other programs, told apart by what is in
//! them.

use crate::exit::Failure;
use crate::terminal::printer::Printer;
use crate::workspace::app::{App, user};
use crate::workspace::plan_source::{PlanSource, read_text, unreadable_plan};
use clap::ValueEnum;
use planwright_core::artifact::ArtifactRef;
use planwright_core::digest::Digest;
use planwright_core::id::PlanId;
use planwright_core::plan::{
    Bounds, Document, Finding, MarkdownForm, ReadMarkdown, ReadPlanError, from_markdown,
    from_markdown_as, stored_part_file,
};
use planwright_core::review::{Review, ReviewRefusal, ReviewState};
use planwright_engine::port::ArtifactError;
use planwright_engine::{Editing, LoadError};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// What is said about a version that came from an edited file.
const REASON: &str = "hand edit of plan.md";

/// The forms a file can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileForm {
    /// A plan as JSON.
    Json,
    /// A plan as YAML.
    Yaml,
    /// A plan.md.
    Md,
    /// A *.plan.md with todos in its frontmatter.
    Cursor,
    /// A list of tasks: `- [ ] what to do`.
    Tasks,
}

/// A plan that was read from a file.
#[derive(Debug)]
pub(crate) struct PlanFile {
    /// How people call the file.
    pub(crate) name: String,
    pub(crate) document: Document,
    notices: Vec<String>,
    /// Absent in files that do not say which version they were made from.
    edit: Option<EditedFile>,
    /// Where stored parts of the context may lie.
    directory: Option<PathBuf>,
}

/// A file of ours, which may have been edited.
#[derive(Debug)]
struct EditedFile {
    version: Option<u32>,
}

impl PlanFile {
    /// Reads a file or stdin, in the form that is named or else in the one it has.
    pub(crate) fn read(
        source: &PlanSource,
        form: Option<FileForm>,
        bounds: &Bounds,
    ) -> Result<Self, Failure> {
        let (name, text) = read_text(source, bounds)?;
        let path = match source {
            PlanSource::File(path) => Some(path.as_path()),
            PlanSource::Stdin | PlanSource::Id(_) => None,
        };
        let read =
            parse(path, &text, form, bounds).map_err(|error| unreadable_plan(&name, &error))?;
        let directory = path.map(|path| {
            path.parent()
                .unwrap_or_else(|| Path::new(""))
                .join("artifacts")
        });
        let mut file = match read {
            FileContent::Document(document) => Self {
                name,
                document: *document,
                notices: Vec::new(),
                edit: None,
                directory,
            },
            FileContent::Markdown(read) => {
                let ReadMarkdown {
                    document,
                    form,
                    version,
                    notices,
                } = *read;
                Self {
                    name,
                    document,
                    notices,
                    edit: (form == MarkdownForm::Plan).then_some(EditedFile { version }),
                    directory,
                }
            }
        };
        if path.is_some() {
            file.name_by_title();
        }
        Ok(file)
    }

    /// A file without an id is the plan of its title: edited, it is the next version of that plan,
    /// and not another plan.
    fn name_by_title(&mut self) {
        let Document { id, title, .. } = &mut self.document;
        if id.is_none()
            && let Some(named) = title.as_deref().and_then(PlanId::from_title)
        {
            *id = Some(named);
            self.edit = None;
        }
    }

    /// Says what was left out.
    pub(crate) fn print_notices(&self, printer: Printer) {
        for notice in &self.notices {
            printer.warn(&format!("{}: {notice}", self.name));
        }
    }

    /// The version it says it was made from.
    pub(crate) fn version(&self) -> Option<u32> {
        self.edit.as_ref().and_then(|edit| edit.version)
    }

    /// Stores the plan. A file that was made from a version of a known plan is an edit of that
    /// version, and of no other.
    pub(crate) async fn store(self, app: &App) -> Result<(Review, Vec<Finding>), Failure> {
        self.import_stored_parts(app).await?;
        let known = match (&self.edit, &self.document.id) {
            (Some(edit), Some(id)) => current_version_of(app, id)
                .await?
                .map(|current| (edit.version, id.clone(), current)),
            (Some(_) | None, _) => None,
        };
        let Some((version, id, current)) = known else {
            return Ok(app.engine.plans().propose(self.document, &user()).await?);
        };
        let Some(based_on) = version else {
            let message = format!(
                "{} does not say which version of `{id}` it was made from",
                self.name
            );
            return Err(Failure::refused(message).hint(format!(
                "the plan is at version {current}: write `version: {current}` into its frontmatter"
            )));
        };
        if based_on != current {
            let conflict = Failure::from(ReviewRefusal::Conflict { based_on, current });
            let message = format!("{}: {}", self.name, conflict.message);
            return Err(Failure::refused(message).hint(format!(
                "To see what changed since: planwright diff {id} {based_on}. Make the edit to version {current}"
            )));
        }
        let editing = Editing {
            based_on,
            by: user(),
            reason: Some(REASON.to_owned()),
        };
        Ok(app
            .engine
            .plans()
            .edit(&id, self.document, &editing)
            .await?)
    }

    /// Stores the plan as a draft.
    pub(crate) async fn store_draft(self, app: &App) -> Result<(Review, Vec<Finding>), Failure> {
        self.import_stored_parts(app).await?;
        Ok(app.engine.plans().draft(self.document, &user()).await?)
    }

    /// Takes the stored parts of the context from the files beside the plan. A part that is
    /// nowhere, or that is not what the plan names, is refused: it would be lost.
    async fn import_stored_parts(&self, app: &App) -> Result<(), Failure> {
        for (name, artifact) in &self.document.context.stored {
            let file = stored_part_file(name);
            let beside = self
                .directory
                .as_ref()
                .map(|directory| directory.join(&file));
            match beside.map(|path| read_part(&path, artifact)) {
                Some(StoredPart::Whole(bytes)) => {
                    app.artifacts().put(bytes).await?;
                }
                Some(StoredPart::Changed) => {
                    let message =
                        format!("{}: artifacts/{file} is not what the plan names", self.name);
                    return Err(Failure::refused(message).hint(
                        "to change it, remove its line below `### Artifacts` and write its content into `## Context`",
                    ));
                }
                Some(StoredPart::Missing) | None => match app.artifacts().get(artifact).await {
                    Ok(_) => {}
                    Err(ArtifactError::Missing(_)) => {
                        let message = format!(
                            "{}: artifacts/{file}, which the plan names, is missing",
                            self.name
                        );
                        return Err(Failure::refused(message).hint("put it beside the plan"));
                    }
                    Err(error) => return Err(error.into()),
                },
            }
        }
        Ok(())
    }
}

/// A file with a part of a plan's context.
enum StoredPart {
    Whole(Vec<u8>),
    Changed,
    Missing,
}

fn read_part(path: &Path, artifact: &ArtifactRef) -> StoredPart {
    let Ok(file) = std::fs::File::open(path) else {
        return StoredPart::Missing;
    };
    let mut bytes = Vec::new();
    // One byte too many is proof enough that it is another file.
    match file
        .take(artifact.bytes.saturating_add(1))
        .read_to_end(&mut bytes)
    {
        Ok(_) if Digest::of_bytes(&bytes) == artifact.digest => StoredPart::Whole(bytes),
        Ok(_) | Err(_) => StoredPart::Changed,
    }
}

/// The current version of a plan that is there.
async fn current_version_of(app: &App, id: &PlanId) -> Result<Option<u32>, Failure> {
    match app.engine.plans().load_review(id).await {
        Ok((review, _)) if review.state() == ReviewState::Deleted => Ok(None),
        Ok((review, _)) => Ok(Some(review.current().number)),
        Err(LoadError::NoSuchPlan(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What a file holds.
#[derive(Debug)]
pub(crate) enum FileContent {
    Document(Box<Document>),
    Markdown(Box<ReadMarkdown>),
}

impl FileContent {
    pub(crate) fn into_document(self) -> Document {
        match self {
            Self::Document(document) => *document,
            Self::Markdown(read) => read.document,
        }
    }
}

/// Reads a text in the form that is named. Otherwise a name that ends in `.yaml` or `.yml` means
/// YAML, one that ends in `.md` Markdown, and so does a text that does not begin as JSON does.
pub(crate) fn parse(
    path: Option<&Path>,
    text: &[u8],
    form: Option<FileForm>,
    bounds: &Bounds,
) -> Result<FileContent, ReadPlanError> {
    let ending = path.and_then(Path::extension);
    let is = |wanted: &str| ending.is_some_and(|ending| ending.eq_ignore_ascii_case(wanted));
    let markdown = match form {
        Some(FileForm::Json) => return parse_json(text, bounds),
        Some(FileForm::Yaml) => return parse_yaml(text, bounds),
        Some(FileForm::Md) => from_markdown_as(text, MarkdownForm::Plan, bounds),
        Some(FileForm::Cursor) => from_markdown_as(text, MarkdownForm::Cursor, bounds),
        Some(FileForm::Tasks) => from_markdown_as(text, MarkdownForm::Tasks, bounds),
        None if is("yaml") || is("yml") => return parse_yaml(text, bounds),
        None if is("md") || (!is("json") && begins_as_markdown(text)) => {
            from_markdown(text, bounds)
        }
        None => return parse_json(text, bounds),
    };
    markdown.map(|read| FileContent::Markdown(Box::new(read)))
}

fn parse_json(text: &[u8], bounds: &Bounds) -> Result<FileContent, ReadPlanError> {
    let document = Document::read(text, bounds)?;
    Ok(FileContent::Document(Box::new(document)))
}

fn parse_yaml(text: &[u8], bounds: &Bounds) -> Result<FileContent, ReadPlanError> {
    let document = Document::read_yaml(text, bounds)?;
    Ok(FileContent::Document(Box::new(document)))
}

fn begins_as_markdown(text: &[u8]) -> bool {
    let text = text
        .strip_prefix("\u{feff}".as_bytes())
        .unwrap_or(text)
        .trim_ascii_start();
    [&b"---\n"[..], b"---\r\n", b"# ", b"## ", b"- [", b"* ["]
        .iter()
        .any(|beginning| text.starts_with(beginning))
}
