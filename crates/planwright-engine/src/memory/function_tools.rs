//! Tools that are Rust functions: the shortest way to use the engine as a library.

use crate::port::{BoxFuture, Call, CallError, Outcome, Tools};
use planwright_core::tool::{Catalog, KnownTool, ToolDefinition, ToolName};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

type Function = Arc<dyn Fn(Call) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// A set of tools, each an async function of this program. Their annotations are taken at their
/// word.
///
/// ```
/// use planwright_core::tool::{Annotations, ToolDefinition};
/// use planwright_engine::FunctionTools;
/// use serde_json::json;
///
/// let add = ToolDefinition::new("math", "add", "Adds two numbers.", json!({
///     "type": "object",
///     "properties": { "a": { "type": "number" }, "b": { "type": "number" } },
///     "required": ["a", "b"],
/// }))
/// .with_annotations(Annotations::read_only());
/// let tools = FunctionTools::new().with(add, |call| async move {
///     let number = |name: &str| call.args[name].as_f64().unwrap_or_default();
///     Ok(json!(number("a") + number("b")))
/// });
/// # let _ = tools;
/// ```
#[derive(Default, Clone)]
pub struct FunctionTools {
    tools: BTreeMap<ToolName, (ToolDefinition, Function)>,
    /// Made once: it is asked for before every call.
    catalog: Catalog,
}

impl fmt::Debug for FunctionTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}

impl FunctionTools {
    /// Begins without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool. A second one of the same name replaces the first.
    #[must_use]
    pub fn with<F, R>(mut self, definition: ToolDefinition, function: F) -> Self
    where
        F: Fn(Call) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        let function: Function = Arc::new(move |call| Box::pin(function(call)));
        self.tools
            .insert(definition.tool_name(), (definition, function));
        let known = |definition: &ToolDefinition| {
            KnownTool::new(definition.clone(), definition.annotated_class())
        };
        self.catalog = Catalog::new(self.tools.values().map(|(definition, _)| known(definition)));
        self
    }
}

impl Tools for FunctionTools {
    fn catalog(&self) -> Catalog {
        self.catalog.clone()
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Outcome> {
        match self.tools.get(&call.tool) {
            Some((_, function)) => function(call),
            None => Box::pin(async move {
                Err(CallError::Unavailable(format!(
                    "there is no tool `{}`",
                    call.tool
                )))
            }),
        }
    }
}
