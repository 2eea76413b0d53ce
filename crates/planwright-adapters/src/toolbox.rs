//! Tools that live in this process, behind the engine's one door.
//!
//! A [`Toolbox`] holds any number of in-process servers. It builds the catalog once, applies what
//! the operator decided about each tool, and stands between the engine and the tool: a call that
//! does not fit the tool's input schema is not made, and a tool that panics fails its call and
//! nothing else. It knows nothing of servers in other processes.

use futures::{FutureExt as _, future};
use planwright_core::run::CallEffect;
use planwright_core::tool::{Catalog, EffectClass, KnownTool, ToolDefinition, ToolName};
use planwright_engine::port::{BoxFuture, Call, CallError, Outcome, Tools};
use serde_json::Value;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A server whose tools are functions of this process.
pub trait InProcessServer: Send + Sync + fmt::Debug {
    /// The first half of its tools' full names.
    fn name(&self) -> &'static str;

    /// The tools that can be called. Asked once.
    fn definitions(&self) -> Vec<ToolDefinition>;

    /// Tools it has but will not run, each with how to turn it on.
    fn disabled_tools(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// Makes the call. The arguments fit the input schema, and the tool is one of
    /// [`Self::definitions`].
    fn call(&self, call: Call) -> BoxFuture<'static, Outcome>;
}

/// The operator's decisions about the tools. Tools are named `server.tool`.
#[derive(Debug, Clone, Default)]
pub struct ToolboxOptions {
    /// Effect classes that replace the ones that follow from the annotations.
    pub classes: BTreeMap<String, EffectClass>,
    /// For keyed tools: the argument that takes the idempotency key.
    pub key_arguments: BTreeMap<String, String>,
    /// The number of calls a server takes at once.
    pub limits: BTreeMap<String, usize>,
    /// By server: `false` lets calls that are not read-only run at once; otherwise they run one at
    /// a time.
    pub serial_writes: BTreeMap<String, bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildToolboxError {
    #[error("there are two servers named `{0}`")]
    DuplicateServer(String),
    /// A server's name is part of tool names and of file names.
    #[error("`{0}` cannot be the name of a server: it takes 1 to 64 letters, digits, `_` and `-`")]
    BadServerName(String),
    #[error("there are two tools named `{0}`")]
    DuplicateTool(ToolName),
    /// A decision about a tool that does not exist protects nothing, so a misspelt one must not
    /// pass.
    #[error("the settings name a tool `{0}` that its server does not have")]
    UnknownTool(String),
    #[error(
        "`{tool}` takes its idempotency key as `{argument}`, which its input schema does not have"
    )]
    UnknownKeyArgument { tool: String, argument: String },
}

/// Any number of in-process servers as one set of tools.
#[derive(Debug)]
pub struct Toolbox {
    catalog: Catalog,
    routes: HashMap<ToolName, Route>,
    disabled: BTreeMap<String, &'static str>,
    options: ToolboxOptions,
}

#[derive(Debug)]
struct Route {
    tool: Arc<KnownTool>,
    server: Arc<dyn InProcessServer>,
}

impl Toolbox {
    pub fn new(
        servers: impl IntoIterator<Item = Arc<dyn InProcessServer>>,
        options: ToolboxOptions,
    ) -> Result<Self, BuildToolboxError> {
        let mut known = Vec::new();
        let mut owners = HashMap::new();
        let mut names = BTreeSet::new();
        let mut disabled = BTreeMap::new();
        for server in servers {
            if !names.insert(server.name()) {
                return Err(BuildToolboxError::DuplicateServer(server.name().to_owned()));
            }
            disabled.extend(
                server
                    .disabled_tools()
                    .into_iter()
                    .map(|(tool, how)| (format!("{}.{tool}", server.name()), how)),
            );
            for definition in server.definitions() {
                let tool = decided(definition, &options)?;
                if owners
                    .insert(tool.name.clone(), Arc::clone(&server))
                    .is_some()
                {
                    return Err(BuildToolboxError::DuplicateTool(tool.name));
                }
                known.push(tool);
            }
        }
        check_names(&options, &names, &owners, &disabled)?;

        let catalog = Catalog::new(known);
        let routes = catalog
            .iter()
            .map(|tool| {
                let server = owners
                    .remove(&tool.name)
                    .expect("each tool of the catalog was put there with its owner");
                (
                    tool.name.clone(),
                    Route {
                        tool: Arc::clone(tool),
                        server,
                    },
                )
            })
            .collect();
        Ok(Self {
            catalog,
            routes,
            disabled,
            options,
        })
    }

    /// Tools that exist but are turned off, each with how to turn it on. They are not in the
    /// catalog; this is for telling a person more than "unknown tool".
    pub fn disabled_tools(&self) -> Vec<(String, &'static str)> {
        self.disabled
            .iter()
            .map(|(tool, how)| (tool.clone(), *how))
            .collect()
    }

    fn unavailable(&self, tool: &ToolName) -> CallError {
        CallError::Unavailable(match self.disabled.get(&tool.to_string()) {
            Some(how) => format!("{tool} is off: {how}"),
            None => format!("there is no tool {tool}"),
        })
    }
}

impl Tools for Toolbox {
    fn catalog(&self) -> Catalog {
        self.catalog.clone()
    }

    fn call(&self, mut call: Call) -> BoxFuture<'static, Outcome> {
        let Some(route) = self.routes.get(&call.tool) else {
            return Box::pin(future::ready(Err(self.unavailable(&call.tool))));
        };
        if let Err(error) = check_args(&route.tool, &mut call) {
            return Box::pin(future::ready(Err(error)));
        }
        // A tool may panic while it makes its future as well as while the future runs.
        match catch_unwind(AssertUnwindSafe(|| route.server.call(call))) {
            Ok(future) => {
                Box::pin(AssertUnwindSafe(future).catch_unwind().map(|outcome| {
                    outcome.unwrap_or_else(|payload| Err(panicked(payload.as_ref())))
                }))
            }
            Err(payload) => Box::pin(future::ready(Err(panicked(payload.as_ref())))),
        }
    }

    fn server_limit(&self, server: &str) -> Option<usize> {
        self.options.limits.get(server).copied()
    }

    fn serial_writes(&self, server: &str) -> bool {
        self.options
            .serial_writes
            .get(server)
            .copied()
            .unwrap_or(true)
    }
}

/// The tool with the operator's decisions. These servers are part of the program, so their
/// annotations are believed.
fn decided(
    definition: ToolDefinition,
    options: &ToolboxOptions,
) -> Result<KnownTool, BuildToolboxError> {
    let name = definition.tool_name().to_string();
    let class = options
        .classes
        .get(&name)
        .copied()
        .unwrap_or_else(|| definition.annotated_class());
    let mut tool = KnownTool::new(definition, class);
    if let Some(argument) = options.key_arguments.get(&name) {
        if tool.definition.input_schema["properties"]
            .get(argument)
            .is_none()
        {
            return Err(BuildToolboxError::UnknownKeyArgument {
                tool: name,
                argument: argument.clone(),
            });
        }
        tool.key_argument = Some(argument.clone());
    }
    Ok(tool)
}

/// Settings may speak of servers that are not in this toolbox, but not of tools that a server here
/// does not have.
fn check_names(
    options: &ToolboxOptions,
    servers: &BTreeSet<&'static str>,
    tools: &HashMap<ToolName, Arc<dyn InProcessServer>>,
    disabled: &BTreeMap<String, &'static str>,
) -> Result<(), BuildToolboxError> {
    for named in options.classes.keys().chain(options.key_arguments.keys()) {
        let Ok(name) = ToolName::try_from(named.clone()) else {
            return Err(BuildToolboxError::UnknownTool(named.clone()));
        };
        if servers.contains(name.server.as_str())
            && !tools.contains_key(&name)
            && !disabled.contains_key(named)
        {
            return Err(BuildToolboxError::UnknownTool(named.clone()));
        }
    }
    Ok(())
}

/// Checks the arguments once more, right before they leave: what was checked when the plan was
/// loaded may have been a reference then. The findings name places and rules but no values, since a
/// value may be a secret.
pub(crate) fn check_args(tool: &KnownTool, call: &mut Call) -> Result<(), CallError> {
    const SHOWN: usize = 5;
    // The server checks what this program cannot.
    let Ok(validator) = tool.input_validator() else {
        return Ok(());
    };
    let args = Value::Object(std::mem::take(&mut call.args));
    let validator = validator
        .for_value(&args)
        .map_err(|problem| invalid_args(&tool.name, &problem.to_string()))?;
    if !validator.is_valid(&args) {
        let findings: Vec<String> = validator
            .iter_errors(&args)
            .take(SHOWN)
            .map(|error| match error.instance_path().as_str() {
                "" => error.masked().to_string(),
                place => format!("{place}: {}", error.masked()),
            })
            .collect();
        return Err(invalid_args(&tool.name, &findings.join("; ")));
    }
    if let Value::Object(args) = args {
        call.args = args;
    }
    Ok(())
}

fn invalid_args(tool: &ToolName, problem: &str) -> CallError {
    CallError::refused(
        "invalid_args",
        format!("the arguments do not fit {tool}: {problem}"),
    )
}

fn panicked(payload: &(dyn Any + Send)) -> CallError {
    let text = payload
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    CallError::Failed {
        code: "panic".into(),
        message: format!("the tool panicked: {text}"),
        retryable: false,
        effect: CallEffect::Unknown,
    }
}
