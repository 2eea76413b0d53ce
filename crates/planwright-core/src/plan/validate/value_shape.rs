//! What is known of a step's value before the plan runs: by the word of its tool, of the schema of a
//! question, or because a model answers with text.

use super::tools::Tools;
use crate::plan::compile::Compiled;
use crate::plan::reference::{Meaning, is_loop_name};
use crate::plan::{KnownPlans, PathSegment, Reference, Root, Step, StepIx, Template};
use crate::tool::SeenShape;
use serde_json::{Map, Value};

/// References within a schema that are followed.
const MAX_SCHEMA_REFERENCES: usize = 8;

/// The shape of a value, as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ValueShape<'a> {
    Unknown,
    Text,
    Integer,
    /// An object with these keys, of whose values nothing is known.
    Keys(Vec<String>),
    ListOf(Box<Self>),
    /// A value that is written down, unless another is given in its place.
    Given(&'a Value),
    /// As earlier results of the tool were. It is no promise.
    Seen(SeenShape),
    Schema {
        /// The whole schema, in which references are looked up.
        root: &'a Value,
        at: &'a Value,
    },
}

/// The reason a value has no such part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MissingPart {
    /// The number of segments of the path that have a value.
    pub(super) depth: usize,
    pub(super) why: Why,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Why {
    /// The object has these keys and no others.
    Closed(Vec<String>),
    /// The object declares these keys, and may have others.
    Open(Vec<String>),
    /// It is text, and has parts only if that text is JSON.
    Text,
    List,
    /// A number, a boolean or null.
    Scalar(&'static str),
    /// Earlier results had these keys and no others.
    Unseen(Vec<String>),
    /// Earlier results were this, which has no parts.
    UnseenIn(&'static str),
}

/// The shapes of all values that a plan's references can stand for.
pub(super) struct ValueShapes<'a> {
    compiled: &'a Compiled,
    steps: Vec<ValueShape<'a>>,
}

impl<'a> ValueShapes<'a> {
    pub(super) fn new(compiled: &'a Compiled, tools: &mut Tools<'a>, plans: &KnownPlans) -> Self {
        let steps = compiled.document.steps.iter();
        let steps = steps
            .map(|step| shape_of_step(step, tools, plans))
            .collect();
        Self { compiled, steps }
    }

    /// The shape of what a reference of a step stands for.
    pub(super) fn find(
        &self,
        of: StepIx,
        reference: &Reference,
    ) -> Result<ValueShape<'a>, MissingPart> {
        let root = self.root(of, &reference.root);
        match root.follow(&reference.path) {
            // Beside what a tool declares there may be pictures and the like.
            Err(_) if self.is_artifact(reference) => Ok(ValueShape::Unknown),
            found => found,
        }
    }

    /// Returns whether a reference asks for an artifact that the result of a tool came with.
    fn is_artifact(&self, reference: &Reference) -> bool {
        let of_tool = match &reference.root {
            Root::Step(ix) => self.compiled.document.steps[ix.index()].tool.is_some(),
            Root::Variable(_) | Root::Secret(_) => false,
        };
        let first = reference.path.first();
        of_tool
            && matches!(first, Some(PathSegment::Field(name)) if matches!(&**name, "artifact" | "artifacts"))
    }

    /// The shape of one result of a step itself, as `expect` sees it.
    pub(super) fn own_result(&self, of: StepIx) -> ValueShape<'a> {
        let step = &self.compiled.document.steps[of.index()];
        let shape = &self.steps[of.index()];
        if let (Some(_), ValueShape::ListOf(once)) = (&step.for_each, shape) {
            return (**once).clone();
        }
        shape.clone()
    }

    /// The shape of what a name stands for in an expression of a step.
    pub(super) fn named(&self, of: StepIx, name: &str) -> ValueShape<'a> {
        let by_id = |id: &str| self.compiled.by_id.get(id).copied();
        let bound = self.compiled.templates.get(&of);
        let bound = bound.and_then(|templates| templates.names.get(name).copied());
        match name.strip_prefix("steps.").map_or(bound, by_id) {
            Some(ix) => self.root(of, &Root::Step(ix)),
            None => self.variable(of, name),
        }
    }

    fn root(&self, of: StepIx, root: &Root) -> ValueShape<'a> {
        match root {
            // Its own value is seen by the call that takes the step back, for one element at a time.
            Root::Step(ix) if *ix == of => ValueShape::Unknown,
            Root::Step(ix) => self.steps[ix.index()].clone(),
            Root::Variable(name) => self.variable(of, name),
            Root::Secret(_) => ValueShape::Text,
        }
    }

    fn variable(&self, of: StepIx, name: &str) -> ValueShape<'a> {
        let document = &self.compiled.document;
        // The value given at run time wins, but it must fit the plan's inputs all the same.
        let input = document
            .inputs
            .as_ref()
            .and_then(|inputs| inputs.get("properties")?.get(name));
        if let (Some(root), Some(at)) = (&document.inputs, input) {
            return ValueShape::Schema { root, at };
        }
        if let Some(value) = document.variables.get(name) {
            return ValueShape::Given(value);
        }
        let step = document.steps.get(of.index());
        let loops = step.is_some_and(|step| step.for_each.is_some());
        let meaning = self.compiled.names.meaning(name, &self.compiled.by_id);
        if !loops || !is_loop_name(name) || meaning != Meaning::Nothing {
            return ValueShape::Unknown;
        }
        if name == "index" {
            return ValueShape::Integer;
        }
        let templates = self.compiled.templates.get(&of);
        match templates.and_then(|templates| templates.for_each.as_ref()) {
            Some(Template::Reference(list)) => self.find(of, list).map_or(
                // Said where the list is asked for.
                ValueShape::Unknown,
                ValueShape::into_element,
            ),
            _ => ValueShape::Unknown,
        }
    }
}

fn shape_of_step<'a>(step: &'a Step, tools: &mut Tools<'a>, plans: &KnownPlans) -> ValueShape<'a> {
    let of_schema = |schema: &'a Value| ValueShape::Schema {
        root: schema,
        at: schema,
    };
    let once = if let Some(name) = &step.tool {
        let known = tools.resolve(name).as_ref().ok().copied();
        let declared = known.and_then(|tool| tool.definition.output_schema.as_ref());
        let seen = || known.and_then(|tool| tool.seen_shape());
        match declared {
            Some(schema) => of_schema(schema),
            None => seen().map_or(ValueShape::Unknown, |seen| {
                ValueShape::Seen(SeenShape::clone(&seen))
            }),
        }
    } else if let Some(think) = &step.think {
        think.schema.as_ref().map_or(ValueShape::Text, of_schema)
    } else if let Some(input) = &step.input {
        of_schema(&input.schema)
    } else if let Some(known) = step.plan.as_deref().and_then(|plan| plans.get(&plan.id)) {
        ValueShape::Keys(known.document.value_keys())
    } else {
        ValueShape::Unknown
    };
    match step.for_each {
        Some(_) => ValueShape::ListOf(Box::new(once)),
        None => once,
    }
}

impl<'a> ValueShape<'a> {
    pub(super) fn follow(self, path: &[PathSegment]) -> Result<Self, MissingPart> {
        let mut shape = self;
        for (depth, segment) in path.iter().enumerate() {
            shape = shape
                .part(segment)
                .map_err(|why| MissingPart { depth, why })?;
        }
        Ok(shape)
    }

    /// The name of its JSON type, if it has one for certain.
    pub(super) fn type_name(&self) -> Option<&'static str> {
        match self {
            Self::Unknown | Self::Seen(_) => None,
            Self::Text => Some("string"),
            Self::Integer => Some("integer"),
            Self::ListOf(_) => Some("array"),
            Self::Keys(_) => Some("object"),
            // Numbers and the like often stand in for what is given when the plan runs. Text stays text.
            Self::Given(value) => value.is_string().then_some("string"),
            Self::Schema { root, at } => Plain::of(root, at)?.type_name,
        }
    }

    /// The shape of the elements of a list.
    fn into_element(self) -> Self {
        match self {
            Self::ListOf(element) => *element,
            Self::Schema { root, at } => Plain::of(root, at)
                .filter(|plain| plain.type_name == Some("array"))
                .map_or(Self::Unknown, |plain| plain.items(root)),
            Self::Seen(seen) => element_of_seen(seen),
            Self::Unknown | Self::Text | Self::Integer | Self::Keys(_) | Self::Given(_) => {
                Self::Unknown
            }
        }
    }

    fn part(self, segment: &PathSegment) -> Result<Self, Why> {
        let index = match segment {
            PathSegment::Index(index) => Some(*index),
            PathSegment::Field(name) => name.parse().ok(),
        };
        match self {
            Self::Unknown | Self::Given(_) => Ok(Self::Unknown),
            Self::Text => Err(Why::Text),
            Self::Integer => Err(Why::Scalar("a number")),
            Self::Keys(keys) => match segment {
                PathSegment::Field(name) if keys.iter().any(|key| **key == **name) => {
                    Ok(Self::Unknown)
                }
                PathSegment::Field(_) | PathSegment::Index(_) => Err(Why::Closed(keys)),
            },
            Self::ListOf(element) => match index {
                Some(_) => Ok(*element),
                None => Err(Why::List),
            },
            Self::Seen(seen) => part_of_seen(seen, segment, index),
            Self::Schema { root, at } => match Plain::of(root, at) {
                Some(plain) => plain.part(root, segment, index),
                None => Ok(Self::Unknown),
            },
        }
    }
}

fn element_of_seen<'a>(seen: SeenShape) -> ValueShape<'a> {
    match seen {
        SeenShape::List { of: Some(of) } => ValueShape::Seen(*of),
        SeenShape::JsonText { of } => element_of_seen(*of),
        SeenShape::Any
        | SeenShape::Null
        | SeenShape::Boolean
        | SeenShape::Number
        | SeenShape::Text
        | SeenShape::List { of: None }
        | SeenShape::Object { .. }
        | SeenShape::Table { .. } => ValueShape::Unknown,
    }
}

fn part_of_seen<'a>(
    seen: SeenShape,
    segment: &PathSegment,
    index: Option<usize>,
) -> Result<ValueShape<'a>, Why> {
    match seen {
        SeenShape::Any | SeenShape::Null => Ok(ValueShape::Unknown),
        SeenShape::Boolean => Err(Why::UnseenIn("true or false")),
        SeenShape::Number => Err(Why::UnseenIn("a number")),
        SeenShape::Text => Err(Why::UnseenIn("text that is no JSON")),
        SeenShape::JsonText { of } => part_of_seen(*of, segment, index),
        SeenShape::List { .. } if index.is_none() => Err(Why::UnseenIn("a list")),
        SeenShape::List { of } | SeenShape::Table { of } => {
            Ok(of.map_or(ValueShape::Unknown, |of| ValueShape::Seen(*of)))
        }
        SeenShape::Object { mut fields } => {
            let name = match segment {
                PathSegment::Field(name) => name.to_string(),
                PathSegment::Index(index) => index.to_string(),
            };
            match fields.remove(&name) {
                Some(field) => Ok(ValueShape::Seen(field.shape)),
                None => Err(Why::Unseen(fields.into_keys().collect())),
            }
        }
    }
}

/// A schema that says one thing about every value: no alternatives, no conditions.
struct Plain<'a> {
    schema: &'a Map<String, Value>,
    type_name: Option<&'static str>,
}

impl<'a> Plain<'a> {
    fn of(root: &'a Value, at: &'a Value) -> Option<Self> {
        let mut at = at;
        for _ in 0..MAX_SCHEMA_REFERENCES {
            let schema = at.as_object()?;
            if let Some(reference) = schema.get("$ref") {
                at = root.pointer(reference.as_str()?.strip_prefix('#')?)?;
                continue;
            }
            let variants = schema.get("anyOf").or_else(|| schema.get("oneOf"));
            if let Some(variants) = variants {
                at = only_variant(variants.as_array()?)?;
                continue;
            }
            let unclear = ["allOf", "not", "if", "patternProperties", "enum", "const"];
            if unclear.iter().any(|keyword| schema.contains_key(*keyword)) {
                return None;
            }
            let type_name = match schema.get("type") {
                Some(Value::String(name)) => type_word(name),
                Some(Value::Array(names)) => only_type(names),
                _ if schema.contains_key("properties") => Some("object"),
                _ => None,
            };
            return Some(Self { schema, type_name });
        }
        None
    }

    fn part(
        &self,
        root: &'a Value,
        segment: &PathSegment,
        index: Option<usize>,
    ) -> Result<ValueShape<'a>, Why> {
        match self.type_name {
            Some("object") => match segment {
                PathSegment::Field(name) => self.property(root, name),
                PathSegment::Index(index) => self.property(root, &index.to_string()),
            },
            Some("array") if index.is_some() => Ok(self.items(root)),
            Some("array") => Err(Why::List),
            Some("string") => Err(Why::Text),
            Some("integer" | "number") => Err(Why::Scalar("a number")),
            Some("boolean") => Err(Why::Scalar("true or false")),
            Some("null") => Err(Why::Scalar("null")),
            Some(_) | None => Ok(ValueShape::Unknown),
        }
    }

    fn property(&self, root: &'a Value, name: &str) -> Result<ValueShape<'a>, Why> {
        let declared = self.schema.get("properties").and_then(Value::as_object);
        if let Some(at) = declared.and_then(|declared| declared.get(name)) {
            return Ok(ValueShape::Schema { root, at });
        }
        let keys = || {
            let keys = declared.into_iter().flat_map(Map::keys);
            keys.cloned().collect::<Vec<String>>()
        };
        match self.schema.get("additionalProperties") {
            Some(Value::Bool(false)) => Err(Why::Closed(keys())),
            Some(at @ Value::Object(_)) => Ok(ValueShape::Schema { root, at }),
            _ if declared.is_none_or(Map::is_empty) => Ok(ValueShape::Unknown),
            _ => Err(Why::Open(keys())),
        }
    }

    fn items(&self, root: &'a Value) -> ValueShape<'a> {
        match self.schema.get("items") {
            Some(at @ Value::Object(_)) if !self.schema.contains_key("prefixItems") => {
                ValueShape::Schema { root, at }
            }
            _ => ValueShape::Unknown,
        }
    }
}

/// The one alternative besides null.
fn only_variant(variants: &[Value]) -> Option<&Value> {
    let mut some = variants
        .iter()
        .filter(|variant| variant.get("type").and_then(Value::as_str) != Some("null"));
    some.next().filter(|_| some.next().is_none())
}

/// The one type besides null.
fn only_type(names: &[Value]) -> Option<&'static str> {
    let mut some = names
        .iter()
        .filter_map(Value::as_str)
        .filter(|name| *name != "null");
    let only = some.next().filter(|_| some.next().is_none())?;
    type_word(only)
}

fn type_word(name: &str) -> Option<&'static str> {
    let words = [
        "string", "integer", "number", "boolean", "null", "array", "object",
    ];
    words.into_iter().find(|word| *word == name)
}
