//! A workspace of its own for each test, with all tools at hand.

use planwright_adapters::demo::Demo;
use planwright_adapters::local::{HttpOptions, Local, LocalOptions};
use planwright_adapters::toolbox::{InProcessServer, Toolbox, ToolboxOptions};
use planwright_engine::port::{Call, CallError, Outcome, Tools as _};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

pub(crate) struct Workbench {
    pub(crate) tools: Toolbox,
    parent: TempDir,
}

impl Workbench {
    /// Every tool is on, and `http_get` may reach every public host.
    pub(crate) fn new() -> Self {
        Self::allowing(&[])
    }

    /// Every tool is on, and `http_get` has this allow-list.
    pub(crate) fn allowing(hosts: &[&str]) -> Self {
        Self::with(|options| {
            options.run_command = true;
            options.http_get = HttpOptions {
                enabled: true,
                allow: hosts.iter().map(|host| (*host).to_owned()).collect(),
            };
        })
    }

    pub(crate) fn with(change: impl FnOnce(&mut LocalOptions)) -> Self {
        let parent = TempDir::new().unwrap();
        let workspace = parent.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        std::fs::write(parent.path().join("outside.txt"), "out of reach").unwrap();
        let mut options = LocalOptions::new(workspace);
        change(&mut options);
        let servers: [Arc<dyn InProcessServer>; 2] =
            [Arc::new(Local::open(options).unwrap()), Arc::new(Demo)];
        Self {
            tools: Toolbox::new(servers, ToolboxOptions::default()).unwrap(),
            parent,
        }
    }

    /// A path in the workspace.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.parent.path().join("workspace").join(path)
    }

    /// The directory around the workspace, which no tool may touch.
    pub(crate) fn parent(&self) -> &Path {
        self.parent.path()
    }

    /// Writes a file without the help of the tools, and makes its directories.
    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Reads a file without the help of the tools.
    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.path(path)).unwrap();
    }

    pub(crate) async fn call(&self, tool: &str, args: Value) -> Outcome {
        self.tools.call(call(tool, args)).await
    }

    /// The code of a call that must fail.
    pub(crate) async fn code(&self, tool: &str, args: Value) -> String {
        match self.call(tool, args.clone()).await {
            Err(CallError::Failed { code, .. }) => code.to_string(),
            other => panic!("{tool} {args} was to fail, and gave {other:?}"),
        }
    }
}

/// The first attempt of a call. `tool` is a full name.
pub(crate) fn call(tool: &str, args: Value) -> Call {
    planwright_engine::conformance::call::first(tool, args)
}
