//! What authors and models write: plans, and the references in them.

use planwright_core::plan::{
    Bounds, Condition, Document, MarkdownMeta, Plan, StepIx, Values, from_markdown, literal,
    to_cursor, to_markdown, validate,
};
use planwright_core::policy::Policy;
use planwright_core::run::preview;
use planwright_core::time::Timestamp;
use planwright_core::tool::{Annotations, Catalog, EffectClass, KnownTool, ToolDefinition};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Reads a plan in JSON, in any of its dialects.
pub(crate) fn read_json(input: &[u8]) {
    if let Ok(document) = Document::read(input, &Bounds::for_untrusted()) {
        check_document(document);
    }
}

/// Reads a plan in Markdown, whose head is YAML.
pub(crate) fn read_markdown(input: &[u8]) {
    if let Ok(read) = from_markdown(input, &Bounds::for_untrusted()) {
        check_document(read.document);
    }
}

/// What was read means the same when it is written and read again, in both forms: what is approved
/// is what runs.
fn check_document(document: Document) {
    // What is read back may be larger than what was first read.
    let bounds = Bounds::default();
    let text = serde_json::to_vec(&document).expect("a document is JSON");
    let again = Document::read(&text, &bounds);
    assert_eq!(again.as_ref().ok(), Some(&document), "as JSON: {again:?}");
    let page = to_markdown(&document, &meta());
    let again = from_markdown(page.as_bytes(), &bounds).map(|read| read.document);
    assert_eq!(again.as_ref().ok(), Some(&document), "as Markdown: {page}");
    to_cursor(&document, &BTreeSet::new());
    let catalog = catalog();
    let report = validate(document.clone(), catalog, &bounds);
    let Some(plan) = report.plan else {
        return;
    };
    let compiled = Plan::compile(document, &bounds).expect("a plan that is kept compiles");
    let digest = plan.digest(catalog, "none");
    assert_eq!(compiled.digest(catalog, "none"), digest);
    preview(&plan, catalog, &Policy::default(), "none");
}

fn meta() -> MarkdownMeta {
    MarkdownMeta {
        status: "proposed".to_owned(),
        version: 1,
        created_at: Timestamp::from_millis(0),
        updated_at: Timestamp::from_millis(0),
        execution_session: None,
        execution_started_at: None,
        execution_ended_at: None,
        result_summary: None,
        rejections: Vec::new(),
    }
}

/// A tool that reads and one that writes.
fn catalog() -> &'static Catalog {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    CATALOG.get_or_init(|| {
        let schema = json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "text": {"type": ["string", "null"]}},
            "required": ["path"],
        });
        let read = ToolDefinition::new("local", "read_file", "Reads.", schema.clone())
            .with_annotations(Annotations::read_only());
        let write = ToolDefinition::new("local", "write_file", "Writes.", schema);
        Catalog::new([
            KnownTool::new(read, EffectClass::Safe),
            KnownTool::new(write, EffectClass::Unsafe),
        ])
    })
}

/// The values of a run in which every step came to the same.
struct Same(Value);

impl Values for Same {
    fn variable(&self, _: &str) -> Option<&Value> {
        Some(&self.0)
    }

    fn step(&self, _: StepIx) -> Option<&Value> {
        Some(&self.0)
    }
}

/// Reads references and resolves them. The first line is a text with references, the second a
/// predicate, the rest the JSON value of everything they name.
pub(crate) fn read_references(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let mut lines = text.splitn(3, '\n');
    let template = lines.next().unwrap_or_default();
    let predicate = lines.next().unwrap_or_default();
    let value = lines
        .next()
        .and_then(|text| serde_json::from_str(text).ok());
    let values = Same(value.unwrap_or_else(|| json!({"x": ["${a.x}"]})));
    if let Ok(condition) = Condition::parse(predicate) {
        drop(condition.holds_for_args(&values.0));
    }
    let args = Map::from_iter([
        ("template".to_owned(), template.into()),
        ("inside".to_owned(), json!([{"deep": template}])),
    ]);
    if let Some(plan) = compile(&args, predicate)
        && let Some(ix) = plan.find("b")
    {
        drop(plan.resolve_args(ix, &values));
        drop(plan.check_when(ix, &values));
        plan.needed_steps(ix);
        plan.all_secrets();
    }
    // A text that is meant as it stands means itself, regardless of the signs in it.
    let args = Map::from_iter([("text".to_owned(), literal(template.into()))]);
    let plan = compile(&args, "").expect("a text without references is a plan");
    let ix = plan.find("b").expect("it has this step");
    let sent = plan.resolve_args(ix, &values).expect("it needs no value");
    assert_eq!(sent["text"], template);
}

fn compile(args: &Map<String, Value>, predicate: &str) -> Option<Plan> {
    let bounds = Bounds {
        max_resolved_bytes: 1 << 20,
        ..Bounds::for_untrusted()
    };
    let mut second = json!({"id": "b", "tool": "t.x", "dependsOn": ["a"], "args": args});
    if !predicate.is_empty() {
        second["when"] = predicate.into();
    }
    let plan = json!({
        "id": "p",
        "variables": {"v": 1},
        "steps": [{"id": "a", "tool": "t.x"}, second],
    });
    // As a journal holds it: people may also write `$a`, which a reader takes for `${a}`.
    let document: Document = serde_json::from_value(plan).ok()?;
    Plan::compile(document, &bounds).ok()
}
