//! All tools known at one moment, and which name means which of them.

use super::{EffectClass, Keywords, SeenShape, ToolDefinition, ToolName, score_relevance};
use crate::digest::Digest;
use crate::json::CompiledSchema;
use crate::tool::FoldedName;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// A tool that can be called, with what the operator decided about it.
pub struct KnownTool {
    /// The tool as its server describes it.
    pub definition: ToolDefinition,
    /// Full name of the tool.
    pub name: ToolName,
    /// Effect class of its calls.
    pub class: EffectClass,
    /// True if the server's word about its tools is taken: its operator trusts it.
    pub trusted: bool,
    /// The argument for the idempotency key, for `keyed` tools that take one.
    pub key_argument: Option<String>,
    /// Why its server's word about it is not taken, although that of its other tools is.
    pub doubt: Option<String>,
    /// True if this program makes it of something else that the protocol offers: the server itself
    /// has no such tool.
    pub made_here: bool,
    /// True if it is called with the account of the person whose name the run is in.
    pub personal: bool,
    /// What starts its server and whether that was trusted, for a server in another process.
    origin: Option<(Digest, bool)>,
    /// Taken when it is asked for: most tools of a workspace are not used by a plan.
    digest: OnceLock<Digest>,
    /// The shape of its results so far. It is learnt while the tool is used.
    seen: RwLock<Option<Arc<SeenShape>>>,
    input_validator: OnceLock<Result<CompiledSchema, String>>,
    output_validator: OnceLock<Result<CompiledSchema, String>>,
    folded: OnceLock<FoldedName>,
}

impl fmt::Debug for KnownTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownTool")
            .field("name", &self.name)
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}

impl KnownTool {
    /// Makes a tool of a trusted server in this process.
    pub fn new(definition: ToolDefinition, class: EffectClass) -> Self {
        Self {
            name: definition.tool_name(),
            class,
            trusted: true,
            key_argument: None,
            doubt: None,
            made_here: false,
            personal: false,
            origin: None,
            digest: OnceLock::new(),
            seen: RwLock::default(),
            input_validator: OnceLock::new(),
            output_validator: OnceLock::new(),
            folded: OnceLock::new(),
            definition,
        }
    }

    /// A tool of a server in another process. What starts the server is part of what an approval
    /// pins, and so is whether it is `trusted`: its annotations count only then.
    pub fn from_server(definition: ToolDefinition, origin: &Digest, trusted: bool) -> Self {
        let class = if trusted {
            definition.annotated_class()
        } else {
            EffectClass::Unsafe
        };
        Self {
            origin: Some((*origin, trusted)),
            trusted,
            ..Self::new(definition, class)
        }
    }

    /// A tool of another process, which took its digest.
    pub fn with_digest(self, digest: Digest) -> Self {
        Self {
            digest: OnceLock::from(digest),
            ..self
        }
    }

    /// Returns the digest that an approval pins: of the definition, and of what starts its server.
    pub fn digest(&self) -> Digest {
        *self.digest.get_or_init(|| {
            let definition = self.definition.digest();
            match &self.origin {
                None => definition,
                Some((origin, trusted)) => Digest::of_parts(&[
                    definition.as_bytes(),
                    origin.as_bytes(),
                    &[u8::from(*trusted)],
                ]),
            }
        })
    }

    /// Returns the shape of earlier results, if its server does not say what they are.
    pub fn seen_shape(&self) -> Option<Arc<SeenShape>> {
        if self.definition.output_schema.is_some() {
            return None;
        }
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }

    /// Takes note of what its results looked like.
    pub fn note_seen(&self, shape: Arc<SeenShape>) {
        *self.seen.write().unwrap_or_else(PoisonError::into_inner) = Some(shape);
    }

    /// Returns whether a trusted server says that the tool only reads.
    pub fn is_read_only(&self) -> bool {
        self.trusted && self.definition.annotations.is_read_only()
    }

    /// Returns whether the server says that the tool reaches beyond its own system.
    pub fn reaches_out(&self) -> bool {
        self.definition.annotations.open_world_hint == Some(true)
    }

    /// The name as rules compare it with look-alikes. Folded once.
    pub fn folded_name(&self) -> &FoldedName {
        self.folded.get_or_init(|| FoldedName::new(&self.name))
    }

    /// The compiled input schema, or why it cannot be compiled. Compiled once.
    pub fn input_validator(&self) -> Result<&CompiledSchema, &str> {
        self.input_validator
            .get_or_init(|| crate::json::compile_tool_schema(&self.definition.input_schema))
            .as_ref()
            .map_err(String::as_str)
    }

    /// The compiled output schema if the tool declares one, or why it cannot be compiled. Compiled
    /// once.
    pub fn output_validator(&self) -> Result<Option<&CompiledSchema>, &str> {
        let Some(schema) = &self.definition.output_schema else {
            return Ok(None);
        };
        self.output_validator
            .get_or_init(|| crate::json::compile_tool_schema(schema))
            .as_ref()
            .map(Some)
            .map_err(String::as_str)
    }
}

/// The reason a name stands for no tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveToolError {
    /// No server has the tool.
    #[error("unknown tool `{name}`")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// Names that were probably meant.
        nearest: Vec<String>,
    },
    /// Several servers have a tool of this name.
    #[error("the name `{name}` is ambiguous: {}", .candidates.join(", "))]
    Ambiguous {
        /// The name that was asked for.
        name: String,
        /// Full names it could stand for.
        candidates: Vec<String>,
    },
}

/// The tools known at one moment. Cheap to clone: it is asked for before every call.
#[derive(Debug, Clone, Default)]
pub struct Catalog(Arc<Tools>);

#[derive(Debug, Default)]
struct Tools {
    tools: BTreeMap<ToolName, Arc<KnownTool>>,
    by_bare_name: BTreeMap<String, Vec<Arc<KnownTool>>>,
}

impl Catalog {
    /// Makes a catalog of these tools.
    pub fn new(tools: impl IntoIterator<Item = KnownTool>) -> Self {
        tools.into_iter().map(Arc::new).collect()
    }

    /// Returns whether this is a clone of the other, which costs nothing to find out. Two that were made
    /// apart are not, also where they have the same tools.
    pub fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Iterates over the tools in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<KnownTool>> {
        self.0.tools.values()
    }

    /// Finds a tool by `server.tool`, `mcp__server__tool`, or a bare name that only one server has.
    /// Names are compared exactly: a look-alike is an unknown tool.
    pub fn resolve(&self, name: &str) -> Result<&Arc<KnownTool>, ResolveToolError> {
        if let Some(tool) = self.by_full_name(name) {
            return Ok(tool);
        }
        match self.0.by_bare_name.get(name).map(Vec::as_slice) {
            Some([tool]) => Ok(tool),
            Some(several @ [_, _, ..]) => Err(ResolveToolError::Ambiguous {
                name: name.to_owned(),
                candidates: several.iter().map(|tool| tool.name.to_string()).collect(),
            }),
            Some([]) | None => Err(ResolveToolError::Unknown {
                name: name.to_owned(),
                nearest: self.nearest_tools(name),
            }),
        }
    }

    fn by_full_name(&self, name: &str) -> Option<&Arc<KnownTool>> {
        let (server, tool) = match name.strip_prefix("mcp__") {
            Some(rest) => rest.split_once("__")?,
            None => name.split_once('.')?,
        };
        self.0.tools.get(&ToolName {
            server: server.to_owned(),
            tool: tool.to_owned(),
        })
    }

    /// Returns up to three tools that seem to do what a name says which no tool has, by the words of
    /// their names, titles and descriptions.
    pub fn related_tools(&self, name: &str) -> Vec<String> {
        let wanted = Keywords::of(name);
        let mut ranked: Vec<(Reverse<usize>, &ToolName)> = Vec::new();
        for tool in self.iter() {
            let score = score_relevance(&wanted, &tool.definition);
            if score > 0 {
                ranked.push((Reverse(score), &tool.name));
            }
        }
        ranked.sort_unstable();
        let best = ranked.iter().take(3);
        best.map(|(_, name)| name.to_string()).collect()
    }

    /// Up to three names a person may have meant.
    fn nearest_tools(&self, name: &str) -> Vec<String> {
        let names = self
            .0
            .tools
            .values()
            .flat_map(|tool| [tool.name.tool.clone(), tool.name.to_string()]);
        crate::text::nearest_names(name, names)
    }
}

/// Catalogs of several sources become one without compiling any schema again.
impl FromIterator<Arc<KnownTool>> for Catalog {
    fn from_iter<I: IntoIterator<Item = Arc<KnownTool>>>(tools: I) -> Self {
        let mut known = Tools::default();
        for tool in tools {
            known
                .by_bare_name
                .entry(tool.name.tool.clone())
                .or_default()
                .push(Arc::clone(&tool));
            known.tools.insert(tool.name.clone(), tool);
        }
        Self(Arc::new(known))
    }
}
